"""Load generators: the command line for a load, and the result parsed from all clients' output."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LoadError
from harness.experiment.generators import LoadRun
from harness.experiment.generators.loadgen import Loadgen
from harness.experiment.generators.loadgen_output import Times
from harness.experiment.generators.wrk import Wrk
from harness.extras.orders.test_type import USE_CASES
from harness.plan.requests import Expect, PreparedRequest
from harness.plan.scenarios import plan
from harness.records.loads import ClosedLoop, OpenLoop, Scenario
from harness.tests.approve import approve
from harness.verify.checks.evidence import Sampling

RUN = LoadRun(
    url="http://127.0.0.1:8080/json?x=1",
    host="tfb-server",
    accept="*/*",
    load=ClosedLoop(connections=64),
    seconds=15,
    threads=2,
    seed=7,
)
OPEN = replace(RUN, load=OpenLoop(rate=500.0, connections=64), late_after=0.01)
PLAYED = replace(RUN, load=Scenario(factor=8, connections=64), use_cases=USE_CASES)
READY = {"kind": "ready", "ready": True, "connections": 64, "connections_asked": 64, "pid": 5, "now_ns": 1}
FAULTS = {
    "connect": 1,
    "write": 2,
    "closed": 4,
    "timeout": 8,
    "framing": 16,
    "dropped": 32,
    "reset": 128,
    "mismatch": 256,
    "status": 64,
    "missing_value": 0,
}
NO_FAULTS = dict.fromkeys(FAULTS, 0)


def times(*cells: tuple[int, int]) -> dict[str, Any]:
    """Return a distribution of (nanoseconds, count) pairs in loadgen's output format."""
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
    """Return loadgen's last line for an open loop, with changes."""
    return {
        "kind": "total", "loop": "open", "depth": 1, "seconds": 2.0,
        "in_time": {"due": 1007, "received": 998, "successes": 930, "bytes_in": 5000},
        "due": 1008, "sent": 1005, "received": 1000, "successes": 936, "unsent": 3, "unfinished": 4,
        "unsolicited_responses": 5, "unsolicited_bytes": 6, "connections_hung": 7, "connections_closed_by_peer": 8,
        "sampled": 9, "errors": FAULTS, "statuses": {"200": 936, "503": 64},
        "latency": times((1_000_000, 900), (20_000_000, 36)), "service": times((500_000, 936)),
        "lag": times((50_000, 995), (9_000_000, 10)),
        "drain_seconds": 0.1, "cpu_seconds": 0.5, "run_queue_wait_seconds": 0.01, **changes,
    }  # fmt: skip


CLOSED: dict[str, Any] = {"loop": "closed", "latency": None, "lag": None, "unsent": 0, "due": 0}


def printed(*lines: Mapping[str, object]) -> str:
    """Return loadgen's output with the given lines."""
    return "starting\n" + "".join(json.dumps(line) + "\n" for line in (READY, *lines))


MADE = PreparedRequest(target="/a?b=1", method="POST", body=b"\x00body", expect=Expect(status=201))
SAMPLING = Sampling(share=0.01, max_responses=3000, max_bytes=1 << 20)
LOADS: dict[str, LoadRun] = {
    "closed": RUN,
    "pipelined, sampled, for less than a second": replace(
        RUN, load=ClosedLoop(connections=7, depth=16), seconds=0.5, threads=4, seed=8, sampling=SAMPLING
    ),
    "open": OPEN,
    "open, so fast that waking would take a tenth of the threads' time, sampled": replace(
        OPEN, load=OpenLoop(rate=20_000.0, connections=512), sampling=SAMPLING
    ),
    "scenario": PLAYED,
    "scenario, sampled": replace(PLAYED, sampling=SAMPLING),
    "requests of a service": replace(RUN, requests=(MADE, replace(MADE, body=b"", expect=Expect(status=200)))),
    "HTTP/2": replace(RUN, load=ClosedLoop(connections=16, depth=16), protocol="http2", sampling=SAMPLING),
    "WebSocket": replace(RUN, load=ClosedLoop(connections=16, depth=16), protocol="websocket", sampling=SAMPLING),
    "requests of a service at a rate": replace(OPEN, requests=(MADE,), sampling=SAMPLING),
}


def command_line(generator: Loadgen | Wrk, run: LoadRun, folder: Path) -> str:
    """Return the command line for a load, or the error message if the generator does not support the load."""
    try:
        return " ".join((generator.program, *generator.arguments(run, folder))).replace(str(folder), "FOLDER")
    except LoadError as error:
        return str(error)


def test_command_lines_match_approved_ones(tmp_path: Path) -> None:
    own, first, wrk = Loadgen(), Loadgen(binary="/built/loadgen", chrt="/usr/bin/chrt"), Wrk()
    command_lines = {
        name: [command_line(own, run, tmp_path), command_line(wrk, replace(run, seconds=14.2), tmp_path)]
        for name, run in LOADS.items()
    }
    command_lines["priority"] = [command_line(first, run, tmp_path) for run in (RUN, OPEN, PLAYED)]
    approve("experiment-generators-arguments", command_lines)


def test_requests_and_scenarios_are_written_to_files(tmp_path: Path) -> None:
    Loadgen().arguments(LOADS["requests of a service"], tmp_path)
    first, second = map(json.loads, (tmp_path / "requests.jsonl").read_text(encoding="utf-8").splitlines())
    head = {"head": MADE.head("tfb-server").decode(), "weight": 1.0}
    assert first == {**head, "body_base64": base64.b64encode(b"\x00body").decode(), "status": 201}
    assert (second["status"], second["body_base64"]) == (200, "")
    Loadgen().arguments(PLAYED, tmp_path)
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8")) == plan(USE_CASES, 8)


SLOWER = {
    "seconds": 2.5, "latency": times((3_000_000, 500)), "run_queue_wait_seconds": None, "unsent": 0,
    "drain_seconds": 8.0, "statuses": {"200": 930, "500": 6, "503": 64},
}  # fmt: skip
NOTHING = {"in_time": {"due": 0, "received": 0, "successes": 0, "bytes_in": 0}}


OPERATION = {"use_case": "shop", "service": times((1_000_000, 37))}
OPERATIONS = (
    {**OPERATION, "operation": "create order", "due": 40, "answered": 37, "unfinished": 0,
     "errors": {**NO_FAULTS, "status": 2, "missing_value": 1}, "latency": times((2_000_000, 37))},
    {**OPERATION, "operation": "read order", "due": 37, "answered": 36, "unfinished": 1, "errors": NO_FAULTS,
     "latency": times((2_000_000, 36))},
)  # fmt: skip
USE_CASE = {"use_case": "shop", "due": 40, "done": 36, "failed": 3, "unfinished": 1, "latency": times((4_000_000, 36))}


def played(**changes: object) -> dict[str, Any]:
    """Return loadgen's last line for a scenario, with changes."""
    in_time = {"received": 74, "successes": 72, "bytes_in": 9000, "due": 76}
    counts: dict[str, Any] = {"due": 77, "sent": 77, "received": 76, "successes": 73, "unsent": 0, "unfinished": 1}
    parts = {"operations": OPERATIONS, "use_cases": [USE_CASE]}
    errors = {**NO_FAULTS, "connect": 2, "status": 2, "missing_value": 1}
    return total(**{"loop": "scenario", "in_time": in_time, "errors": errors, **counts, **parts, **changes})


LINE: dict[str, Any] = {
    "duration_us": 2_000_000,
    "requests": 1000,
    "bytes": 154_000,
    "cpu_seconds": 0.5,
    "errors": {"connect": 1, "read": 2, "write": 3, "status": 4, "timeout": 5},
}


def lines(*changes: Mapping[str, object]) -> str:
    """Return wrk's output with one line for each client."""
    return "Running 15s test\n" + "\n".join(json.dumps({**LINE, **each}) for each in changes)


WRK, LOADGEN = Wrk(), Loadgen()
OUTPUTS: dict[str, tuple[Loadgen | Wrk, LoadRun, str]] = {
    "closed": (LOADGEN, RUN, printed(total(**CLOSED))),
    "closed, drained, written out": (LOADGEN, RUN, printed(total(**CLOSED, drain_seconds=8.0, sampled=1000))),
    "closed, pipelined": (LOADGEN, RUN, printed(total(**CLOSED | {"depth": 16, "seconds": 0.5}))),
    "open": (LOADGEN, OPEN, printed(total(latency=times((1_234_999, 3), (1_230_001, 2), (5_000_000, 1))))),
    "open, without a goal": (LOADGEN, replace(OPEN, late_after=None), printed(total())),
    "open, lag at the least that counts": (
        LOADGEN, OPEN,
        printed(total(latency=times((0, 1), (200_000, 9)), lag=times((0, 1), (99_000, 7), (101_000, 2)))),
    ),
    "open, silent": (LOADGEN, OPEN, printed(total(latency=None, service=None, lag=None, successes=0))),
    "open, two clients": (LOADGEN, OPEN, printed(total()) + printed(total(**SLOWER))),
    "open, two clients, one silent": (LOADGEN, OPEN, printed(total()) + printed(total(latency=None, lag=None))),
    "closed, two clients without an answer": (LOADGEN, RUN, printed(total(**CLOSED | NOTHING)) * 2),
    "scenario": (LOADGEN, PLAYED, printed(played())),
    "wrk": (WRK, RUN, lines({})),
    "wrk, two clients": (WRK, RUN, lines({}, {"requests": 500, "duration_us": 500_000, "cpu_seconds": 0.25})),
    "wrk, two idle clients": (WRK, RUN, lines({"requests": 0}, {"requests": 0, "duration_us": 3_000_000})),
    "wrk, read errors": (WRK, RUN, lines({"requests": 0, "errors": {**LINE["errors"], "read": 64}})),
}  # fmt: skip


def shorten(document: dict[str, Any]) -> dict[str, Any]:
    """Abbreviate JSON objects such as latency distributions. Used as an ``object_hook``."""
    if "basis" in document:
        figures = [f"{key} {document[key]:.7g}" for key in ("mean", "stdev", "min", "max")]
        figures += [f"p{point} {document['percentiles'][point]:.7g}" for point in ("50", "99")]
        counts = [f"{count} of {seconds:.7g}" for seconds, count in document["histogram"]]
        return {"": f"{document['basis'].partition(',')[0]} {' '.join(figures)}; {', '.join(counts)}"}
    if "all_recorded" in document:
        return {"": " ".join(f"{key} {value}" for key, value in document.items() if key != "all_recorded" or value)}
    if "parts" in document:
        document["parts"] = [f"{part['requests']}, {part['wait_seconds']} s" for part in document["parts"]]
    return document


def test_results_match_approved_ones() -> None:
    """The approved file contains the first result of each kind. Other results show only how they differ from it."""
    results = {
        name: json.loads(generator.result(run, text).model_dump_json(), object_hook=shorten)
        for name, (generator, run, text) in OUTPUTS.items()
    }
    for name, one in results.items():
        first_result = results[name.partition(",")[0]]
        if one is not first_result:
            differs = {key: value for key, value in one.items() if value != first_result[key]}
            results[name] = {key: "nothing" if value is None else value for key, value in differs.items()}
    approve("experiment-generators-results", results)


def test_merged_percentiles_lie_on_the_bins() -> None:
    ten = Times.model_validate(times((100, 3), (200, 3), (500, 4)))
    assert [ten.quantile(share) for share in (0.3, 0.31, 0.6, 0.61, 1.0)] == [100, 200, 200, 500, 500]
    assert [ten.later_than(seconds) for seconds in (99e-9, 201e-9, 501e-9)] == [10, 4, 0]


NO_RESULTS: tuple[tuple[Loadgen | Wrk, str], ...] = (
    (LOADGEN, ""),
    (LOADGEN, "{nonsense"),
    (LOADGEN, printed()),
    (LOADGEN, printed(total()) + printed()),  # the second client lacks a result
    (LOADGEN, printed(total(seconds=0.0))),
    (LOADGEN, printed({"kind": "total"})),
    (LOADGEN, printed({"kin": "total"})),
    (LOADGEN, printed(total(lag=times((1, 1)) | {"count": 0}))),
    (LOADGEN, printed(total(lag=times((1, 1)) | {"percentiles_ns": {}}))),
    (LOADGEN, printed(played(use_cases=[{**USE_CASE, "due": 41}]))),
    (LOADGEN, printed(played(operations=[{**OPERATIONS[0], "due": 41}]))),
    (LOADGEN, printed(total()) + printed(total(**CLOSED))),
    (WRK, ""),
    (WRK, " unable to connect to 127.0.0.1:8080 Connection refused\n"),
    (WRK, lines({"bytes": -1})),
    (WRK, lines({"duration_us": 0})),
    (WRK, lines({"duration_us": -5})),
    (WRK, lines({"requests": 0, "errors": {**LINE["errors"], "read": 65}})),
)


def refused(generator: Loadgen | Wrk, text: str) -> str:
    with pytest.raises(LoadError) as raised:
        generator.result(PLAYED, text)
    return str(raised.value)


def test_invalid_output_is_an_error_that_quotes_it() -> None:
    approve("experiment-generators-errors", [refused(generator, text) for generator, text in NO_RESULTS])
