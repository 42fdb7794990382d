"""A scenario arrives on time whatever the server does: response times are what the server's own record says.

The truth of a response time: the server writes down when it answered each creation; when its arrival came is in the
generator's answers, and that these moments owe nothing to the server is tested by their number: as many came while it
stood still as at any other time. A generator that waits for its server (coordinated omission) has none of them.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.experiment.generators import ANSWERS, LoadRun
from harness.experiment.generators.own import PLAN, Loadgen, Times, Total, totals
from harness.host import crates
from harness.plan.orders import plan
from harness.records.models import Arrivals, Scenario
from harness.tests.experiment import order_server
from harness.tests.experiment.generator_servers import MS, OK, assert_true, scripted

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")]

ATTEMPTS = 4  # a machine that is busy adds what no server's record holds; a generator that is wrong is wrong each time
SHOP: dict[str, Any] = {**plan(1)["use_cases"][0]}  # type: ignore[index]


@dataclass(frozen=True, kw_only=True)
class Played:
    """One load and what the server wrote down of it."""

    total: Total
    whole: Arrivals  # in the records' terms
    arrivals: Sequence[Mapping[str, Any]]
    requests: Sequence[tuple[str, str]]
    created: Mapping[int, int]
    stall: tuple[int, int] | None


def play(folder: Path, scenario: Mapping[str, object], server: Sequence[str] = (), words: Sequence[str] = ()) -> Played:
    """Play it against a server of its own."""
    (folder / PLAN).write_text(json.dumps(scenario))
    with subprocess.Popen(
        [sys.executable, order_server.__file__, *server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as service:
        assert service.stdin is not None
        assert service.stdout is not None
        url = f"http://127.0.0.1:{int(service.stdout.readline())}"
        command = [str(crates.loadgen()), "--scenario", PLAN, "--answers", ANSWERS]
        command += ["--start-at-once", "--connections", "16", *words, url]
        output = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
        record = json.loads(service.communicate(timeout=10)[0])
    load = Scenario(factor=1, connections=16)
    asked = LoadRun(url=url, host="h", accept="*/*", load=load, seconds=1, threads=1, seed=1)
    whole = Loadgen().result(asked, output).arrivals
    assert whole is not None  # its counts add up
    return Played(
        total=totals(output, url)[0],
        whole=whole,
        arrivals=[json.loads(line) for line in (folder / ANSWERS).read_text().splitlines()],
        requests=[(method, path) for method, path in record["requests"]],
        created={int(order): answered for order, answered in record["created"].items()},
        stall=record["stall"],
    )


def at_rate(rate: float) -> dict[str, object]:
    """The shop's use case alone."""
    return {"use_cases": [{**SHOP, "rate": rate}]}


def later_than(distribution: Times | None, milliseconds: float) -> int:
    assert distribution is not None
    return sum(count for value, count in distribution.distribution_ns if value > milliseconds * MS)


def test_a_standstill_shows_in_the_response_time_of_every_arrival_that_was_due_within_it(tmp_path: Path) -> None:
    rate, seconds = 200, 8
    server = ("--stall-at", "3", "--stall-seconds", "1")
    for attempt in range(1, ATTEMPTS + 1):
        played = play(tmp_path, at_rate(rate), server, ("--duration", str(seconds), "--seed", str(attempt)))
        assert played.stall is not None
        begin, end = played.stall
        within = [one for one in played.arrivals if begin < one["came_ns"] < end]
        assert len(within) == pytest.approx(rate, abs=5 * rate**0.5)  # Poisson: they came while it stood still
        create, read_order = played.total.operations
        times = sorted((played.created[one["order"]] - one["came_ns"]) / MS for one in played.arrivals)
        late = sum(time > 500 for time in times)
        assert late >= rate / 2 - 5 * (rate / 2) ** 0.5 > 16  # more than there are connections
        # By the time of sending only those on the connections were late: what a generator that waits would report.
        assert later_than(create.service, 500) <= 16
        assert later_than(read_order.latency, 500) <= 16  # due when the answer before it is complete
        try:
            assert_true(create.latency, times, "95", "99")
        except AssertionError:
            if attempt == ATTEMPTS:
                raise
            continue
        with pytest.raises(AssertionError):
            assert_true(create.service, times, "95", "99")
        assert later_than(played.total.use_cases[0].latency, 500) >= late
        return


def test_an_arrival_whose_step_fails_goes_no_further_and_all_counts_add_up(tmp_path: Path) -> None:
    server = ("--refuse-every", "10", "--close-every", "7", "--silent-every", "13")
    words = ("--duration", "2", "--timeout", "0.5", "--drain-seconds", "1.5")
    played = play(tmp_path, at_rate(150), server, words)
    create, read_order = played.total.operations
    orders = create.due
    refused = orders // 10
    closed = sum(n % 7 == 0 and n % 10 != 0 for n in range(1, orders + 1))
    silent = sum(order % 13 == 0 for order in played.created)
    assert (create.errors.status, create.errors.closed, create.unfinished) == (refused, closed, 0)
    assert read_order.due == create.answered == len(played.created)
    assert read_order.errors.timeout + read_order.unfinished == silent
    assert read_order.errors.timeout > 0
    whole = played.whole
    assert whole.due == orders == len(played.arrivals)
    assert whole.failed == refused + closed + read_order.errors.timeout
    assert whole.unfinished == read_order.unfinished
    ended = Counter(step.get("error", step["status"]) for one in played.arrivals for step in one["steps"][-1:])
    assert ended == +Counter(
        {
            200: whole.done,
            503: refused,
            "closed": closed,
            "timeout": read_order.errors.timeout,
            "unfinished": read_order.unfinished,
        }
    )
    assert not any(one["order"] for one in played.arrivals if len(one["steps"]) == 1)


def test_what_is_under_way_when_the_waiting_ends_is_unfinished(tmp_path: Path) -> None:
    words = ("--duration", "1", "--drain-seconds", "0.2")
    played = play(tmp_path, at_rate(40), ("--silent-every", "1"), words)
    create, read_order = played.total.operations
    assert create.due > create.answered == 16  # each connection waits for the answer to a read
    assert read_order.unfinished == 16
    assert create.unfinished == create.due - 16
    assert played.whole.unfinished == create.due == len(played.arrivals)
    assert Counter(len(one["steps"]) for one in played.arrivals) == {2: 16, 0: create.due - 16}


def test_arrivals_go_on_over_new_connections_where_each_answer_closes_its_own(tmp_path: Path) -> None:
    closing = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    steps = [{"name": name, "method": "GET", "path": f"/{name}", "status": 200} for name in "abc"]
    (tmp_path / PLAN).write_text(json.dumps({"use_cases": [{"name": "u", "rate": 60.0, "steps": steps}]}))
    with scripted(lambda _: closing) as server:
        url = server.url.removesuffix("/x")
        command = [str(crates.loadgen()), "--scenario", PLAN, "--start-at-once", "--connections", "3"]
        command += ["--duration", "1", url]
        output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True).stdout
    (total,) = totals(output, url)
    assert total.use_cases[0].due == total.use_cases[0].done > 30
    assert total.connections_closed_by_peer == total.received == total.due == 3 * total.use_cases[0].due
    assert total.connections_hung == total.unfinished == total.errors.errors(total.unsent).total == 0
