"""A run becomes a command line, and what generators print becomes one result, of one client or of several."""

import base64
import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LoadError
from harness.experiment.generators import ANSWERS, LoadRun
from harness.experiment.generators.own import Loadgen, Times
from harness.experiment.generators.wrk import Wrk
from harness.plan.orders import plan
from harness.plan.requests import Expect, Prepared
from harness.records.models import Closed, Errors, Open, Scenario
from harness.verify.checks.evidence import Account, Sampling

RUN = LoadRun(
    url="http://127.0.0.1:8080/json?x=1",
    host="tfb-server",
    accept="*/*",
    load=Closed(connections=64),
    seconds=15,
    threads=2,
    seed=7,
)
OPEN = replace(RUN, load=Open(rate=500.0, connections=64), late_after=0.01)
PLAYED = replace(RUN, load=Scenario(factor=8, connections=64))
HERE = Path()
READY = {"kind": "ready", "ready": True, "connections": 64, "connections_asked": 64, "pid": 5, "now_ns": 1}
FAULTS = {"connect": 1, "write": 2, "closed": 4, "timeout": 8, "framing": 16, "dropped": 32, "status": 64, "lacking": 0}
NO_FAULTS = dict.fromkeys(FAULTS, 0)


def times(*cells: tuple[int, int]) -> dict[str, Any]:
    """As the generator prints them, of (nanoseconds, count)."""
    count = sum(number for _, number in cells)
    mean = sum(value * number for value, number in cells) / count
    return {
        "count": count,
        "mean_ns": mean,
        "stdev_ns": (sum((value - mean) ** 2 * number for value, number in cells) / count) ** 0.5,
        "min_ns": cells[0][0],
        "max_ns": cells[-1][0],
        "percentiles_ns": dict.fromkeys(("50", "75", "90", "95", "99", "99.9", "99.99"), cells[-1][0]),
        "distribution_ns": cells,
        "hdr_v2": "x",
    }


def total(**changes: object) -> dict[str, Any]:
    """The last line of an open loop."""
    return {
        "kind": "total",
        "loop": "open",
        "depth": 1,
        "seconds": 2.0,
        "in_time": {"due": 1007, "received": 998, "successes": 930, "bytes_in": 5000},
        "due": 1008,
        "sent": 1005,
        "received": 1000,
        "successes": 936,
        "unsent": 3,
        "unfinished": 4,
        "unasked_responses": 5,
        "unasked_bytes": 6,
        "connections_hung": 7,
        "connections_closed_by_peer": 8,
        "sampled": 9,
        "errors": FAULTS,
        "statuses": {"200": 936, "503": 64},
        "latency": times((1_000_000, 900), (20_000_000, 36)),
        "service": times((500_000, 936)),
        "lag": times((50_000, 995), (9_000_000, 10)),
        "drain_seconds": 0.1,
        "cpu_seconds": 0.5,
        "run_queue_wait_seconds": 0.01,
        **changes,
    }


CLOSED: dict[str, Any] = {"loop": "closed", "latency": None, "lag": None, "unsent": 0, "due": 0}


def printed(*lines: Mapping[str, object]) -> str:
    """What a generator prints: these lines after its first."""
    return "starting\n" + "".join(json.dumps(line) + "\n" for line in (READY, *lines))


def options(words: list[str]) -> dict[str, str]:
    return dict(itertools.pairwise(words))


# ---- the command line ------------------------------------------------------------------------------------------------


def test_each_kind_of_load_is_on_the_command_line(tmp_path: Path) -> None:
    sampled = replace(RUN, sampling=Sampling(share=0.01, answers=3000, bytes=1 << 20))
    words = list(Loadgen().arguments(sampled, tmp_path))
    closed = options(words)
    assert words[-1] == RUN.url
    assert (closed["--connections"], closed["--threads"], closed["--depth"]) == ("64", "2", "1")
    assert (closed["--duration"], closed["--seed"], closed["--drain-seconds"]) == ("15", "7", "8")
    assert (closed["--answers"], closed["--answers-share"]) == (str(tmp_path / ANSWERS), "0.01")
    assert (closed["--answers-limit"], closed["--answers-bytes"]) == ("3000", "1048576")
    opened = options(list(Loadgen().arguments(OPEN, tmp_path)))
    assert (opened["--rate"], opened["--drain-seconds"], opened["--spin"]) == ("500", "2", "50")
    quick = replace(OPEN, load=Open(rate=20_000.0, connections=64))
    assert options(list(Loadgen().arguments(quick, tmp_path)))["--spin"] == "10"  # a tenth of its threads' time
    assert {"--depth", "--answers"}.isdisjoint(opened)
    assert "--answers" not in Loadgen().arguments(PLAYED, tmp_path)
    words = list(Loadgen().arguments(replace(PLAYED, sampling=sampled.sampling), tmp_path))
    played = options(words)
    assert words[-1] == "http://127.0.0.1:8080"  # paths are the plan's
    assert json.loads(Path(played["--scenario"]).read_text(encoding="utf-8")) == plan(8)
    assert played["--answers"] == str(tmp_path / ANSWERS)


def test_declared_requests_are_a_file_of_heads_bodies_and_statuses(tmp_path: Path) -> None:
    made = Prepared(target="/a?b=1", method="POST", body=b"\x00body", expect=Expect(status=201))
    words = list(Loadgen().arguments(replace(RUN, requests=(made, made)), tmp_path))
    assert words[-1] == "http://127.0.0.1:8080"
    first, second = Path(options(words)["--requests"]).read_text(encoding="utf-8").splitlines()
    assert first == second
    assert json.loads(first) == {
        "head": made.head("tfb-server").decode(),
        "body_base64": base64.b64encode(b"\x00body").decode(),
        "status": 201,
        "weight": 1.0,
    }


def test_loads_that_are_due_at_a_time_have_real_time_priority_where_it_is_allowed(tmp_path: Path) -> None:
    started = Loadgen(binary="/built/loadgen", chrt="/usr/bin/chrt")
    assert (started.program, Loadgen(binary="/built/loadgen").program) == ("/usr/bin/chrt", "/built/loadgen")
    for run, priority in ((RUN, ["--other", "0"]), (OPEN, ["--rr", "1"]), (PLAYED, ["--rr", "1"])):
        assert list(started.arguments(run, tmp_path)[:4]) == [*priority, "/built/loadgen", "--header"]
        assert Loadgen().arguments(run, tmp_path)[0] == "--header"


def test_wrk_s_command_line_is_techempower_s_in_whole_seconds() -> None:
    words = list(Wrk().arguments(replace(RUN, seconds=14.2), HERE))
    assert words[:6] == ["-H", "Host: tfb-server", "-H", "Accept: */*", "-H", "Connection: keep-alive"]
    assert " ".join(words[6:]) == f"--latency -d 15 -c 64 --timeout 8 -t 2 -s report.lua {RUN.url}"
    words = list(Wrk().arguments(replace(RUN, load=Closed(connections=64, depth=16)), HERE))
    assert words[-5:] == ["-s", "pipeline.lua", RUN.url, "--", "16"]
    with pytest.raises(LoadError, match="wrk makes closed loops alone, not 500/s c64"):
        Wrk().arguments(OPEN, HERE)


# ---- what came of it -------------------------------------------------------------------------------------------------


def test_a_closed_loop_s_service_time_is_its_latency_unless_pipelined_and_its_account_is_of_all_requests() -> None:
    text = printed(total(**CLOSED))
    found = Loadgen().result(RUN, text)
    assert (found.duration, found.requests, found.bytes, found.cpu_seconds) == (2.0, 998, 5000, 0.5)
    assert found.errors == Errors(connect=1, read=4 + 16 + 32, write=2, timeout=8 + 4, status=64)
    assert (found.wait_seconds, found.due, found.late, found.arrivals) == (0.01, None, None, None)
    assert found.latency is not None
    assert (found.latency.basis, found.latency.percentiles["99"]) == ("closed-loop, service time", 0.0005)
    assert Loadgen().result(RUN, printed(total(**{**CLOSED, "depth": 16}))).latency is None
    assert Loadgen().result(RUN, printed(total(**{**CLOSED, "service": None}))).latency is None
    account = Account(
        sent=1005, received=1000, successes=936, failed=64, unasked=5, unasked_bytes=6, unfinished=4, hung=7, closed=8,
        cut=4 + 2, unsound=16 + 32, statuses={"200": 936, "503": 64}, whole=False,
    )  # fmt: skip
    assert found.account == account
    waited = Loadgen().result(RUN, printed(total(**CLOSED, drain_seconds=8.0, sampled=1000))).account
    assert waited == replace(account, unfinished=0, whole=True)  # what is missing then never comes


def test_an_open_loop_says_what_was_due_and_how_late_server_and_generator_were() -> None:
    found = Loadgen().result(OPEN, printed(total()))
    assert (found.due, found.answered, found.unfinished) == (1008, 936, 7)
    assert found.late == 1008 - 900  # badly, never, or later than the goal
    assert found.errors.timeout == 8 + 7
    assert found.latency is not None
    assert found.service is not None
    assert found.latency.basis == "open-loop, intended send time"
    assert found.service.basis == "closed-loop, service time"
    assert found.lag_p99 == pytest.approx(9e-3)
    assert found.sent_late == 10  # later than a fifth of 20 ms
    assert Loadgen().result(replace(OPEN, late_after=None), printed(total())).late is None
    silent = Loadgen().result(OPEN, printed(total(latency=None, service=None, lag=None, successes=0)))
    assert (silent.late, silent.sent_late, silent.lag_p99, silent.latency) == (1008, None, None, None)


def test_a_latency_is_in_seconds_and_its_histogram_in_three_digits() -> None:
    found = Loadgen().result(OPEN, printed(total(latency=times((1_234_999, 3), (1_230_001, 2), (5_000_000, 1)))))
    assert found.latency is not None
    assert found.latency.histogram == ((0.00123, 5), (0.005, 1))
    assert [found.latency.mean, found.latency.stdev] == pytest.approx([0.001861, 0.001404], abs=1e-5)
    assert [found.latency.min, found.latency.max] == pytest.approx([0.001234999, 0.005])


def test_several_clients_are_one_load_and_each_is_kept() -> None:
    statuses = {"200": 930, "500": 6, "503": 64}
    slower = total(
        seconds=2.5, latency=times((3_000_000, 500)), run_queue_wait_seconds=None, unsent=0, statuses=statuses
    )
    found = Loadgen().result(OPEN, printed(total()) + printed(slower))
    assert (found.duration, found.requests, found.due, found.cpu_seconds) == (2.5, 1996, 2016, 1.0)
    assert (found.wait_seconds, found.errors.status) == (None, 128)
    assert found.latency is not None
    assert found.latency.percentiles["50"] == pytest.approx(0.001)
    assert found.latency.percentiles["90"] == pytest.approx(0.003)
    whole = Times.model_validate(times((1_000_000, 900), (3_000_000, 500), (20_000_000, 36)))
    assert [found.latency.mean, found.latency.stdev] == pytest.approx([whole.mean_ns * 1e-9, whole.stdev_ns * 1e-9])
    ten = Times.model_validate(times((100, 3), (200, 3), (500, 4)))
    assert [ten.quantile(share) for share in (0.3, 0.31, 0.6, 0.61, 1.0)] == [100, 200, 200, 500, 500]
    assert found.account is not None
    assert found.account.statuses == {"200": 1866, "500": 6, "503": 128}
    assert [(part.duration, part.wait_seconds) for part in found.parts] == [(2.0, 0.01), (2.5, None)]
    nothing = total(**CLOSED, in_time={"due": 0, "received": 0, "successes": 0, "bytes_in": 0})
    assert Loadgen().result(RUN, printed(nothing) + printed(nothing)).requests == 0
    with pytest.raises(LoadError, match="different kinds"):
        Loadgen().result(OPEN, printed(total()) + printed(total(**CLOSED)))


OPERATION = {"use_case": "shop", "service": times((1_000_000, 37))}
OPERATIONS = (
    {**OPERATION, "operation": "create order", "due": 40, "answered": 37, "unfinished": 0,
     "errors": {**NO_FAULTS, "status": 2, "lacking": 1}, "latency": times((2_000_000, 37))},
    {**OPERATION, "operation": "read order", "due": 37, "answered": 36, "unfinished": 1, "errors": NO_FAULTS,
     "latency": times((2_000_000, 36))},
)  # fmt: skip
USE_CASE = {"use_case": "shop", "due": 40, "done": 36, "failed": 3, "unfinished": 1, "latency": times((4_000_000, 36))}


def played(**changes: object) -> dict[str, Any]:
    """The last line of a scenario."""
    in_time = {"received": 74, "successes": 72, "bytes_in": 9000, "due": 76}
    counts: dict[str, Any] = {"due": 77, "sent": 77, "received": 76, "successes": 73, "unsent": 0, "unfinished": 1}
    parts = {"operations": OPERATIONS, "use_cases": [USE_CASE]}
    errors = {**NO_FAULTS, "connect": 2, "status": 2, "lacking": 1}
    return total(**{"loop": "scenario", "in_time": in_time, "errors": errors, **counts, **parts, **changes})


def test_arrivals_and_requests_are_told_apart() -> None:
    found = Loadgen().result(PLAYED, printed(played()))
    assert (found.due, found.answered, found.unfinished) == (77, 73, 1)
    assert found.requests == 74
    assert found.errors == Errors(connect=2, read=1, timeout=1, status=2)
    arrivals = found.arrivals
    assert arrivals is not None
    assert (arrivals.due, arrivals.done, arrivals.failed, arrivals.unfinished) == (40, 36, 3, 1)
    create, read = arrivals.operations
    assert (create.operation, create.due, create.answered, create.errors) == (
        "create order", 40, 37, Errors(read=1, status=2),
    )  # fmt: skip
    assert create.latency is not None
    assert create.service is not None
    assert create.latency.basis == "open-loop, intended send time"
    assert create.latency.mean == pytest.approx(0.002)
    assert create.service.percentiles["50"] == pytest.approx(0.001)
    assert (read.operation, read.due) == ("read order", 37)
    assert arrivals.use_cases[0].latency is not None
    assert arrivals.use_cases[0].latency.mean == pytest.approx(0.004)


# ---- what is no result -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (printed(), "printed no result"),
        (printed(total()) + printed(), "printed no result"),  # of the second client
        (printed(total(seconds=0.0)), "reports no duration"),
        (printed({"kind": "total"}), "not as documented"),
        (printed(total(lag=times((1, 1)) | {"count": 0})), "not as documented"),
        (printed(total(lag=times((1, 1)) | {"percentiles_ns": {}})), "figures for .* that no load has: '99'"),
        (printed(played(use_cases=[{**USE_CASE, "due": 41}])), "do not add up"),
        (printed(played(operations=[{**OPERATIONS[0], "due": 41}])), "do not add up"),
    ],
)
def test_what_is_no_result_is_an_error_with_what_was_printed(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        Loadgen().result(PLAYED, text)


LINE = {
    "duration_us": 2_000_000,
    "requests": 1000,
    "bytes": 154_000,
    "cpu_seconds": 0.5,
    "errors": {"connect": 1, "read": 2, "write": 3, "status": 4, "timeout": 5},
}


def test_wrk_has_counts_and_no_latency_and_several_clients_are_one_load_by_their_rates() -> None:
    found = Wrk().result(RUN, "Running 15s test\n" + json.dumps(LINE) + "\n")
    assert (found.duration, found.requests, found.bytes, found.cpu_seconds) == (2.0, 1000, 154_000, 0.5)
    assert found.errors.model_dump() == LINE["errors"]
    assert (found.latency, found.account, found.wait_seconds) == (None, None, None)
    lines = (LINE, {**LINE, "requests": 500, "duration_us": 500_000, "cpu_seconds": 0.25})
    found = Wrk().result(RUN, "\n".join(map(json.dumps, lines)))
    assert (found.duration, found.requests, found.cpu_seconds, found.errors.total) == (1.0, 1500, 0.75, 30)
    assert [part.requests for part in found.parts] == [1000, 500]
    idle = [{**LINE, "requests": 0}, {**LINE, "requests": 0, "duration_us": 3_000_000}]
    assert Wrk().result(RUN, "\n".join(map(json.dumps, idle))).duration == 3.0


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("unable to connect to 127.0.0.1:8080 Connection refused", "unable to connect"),
        (json.dumps({**LINE, "bytes": -1}), "is not what report.lua prints"),
        (json.dumps({**LINE, "duration_us": 0}), "no duration"),
        (json.dumps({**LINE, "duration_us": -5}), "the time of day was set under it"),
        (
            json.dumps({**LINE, "requests": 0, "errors": {**LINE["errors"], "read": 65}}),  # type: ignore[dict-item]
            "wrk understood no response of .*: 65 connections were closed",
        ),
    ],
)
def test_what_wrk_prints_instead_is_an_error(output: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        Wrk().result(RUN, output)
