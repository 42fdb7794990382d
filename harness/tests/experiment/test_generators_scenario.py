"""A scenario arrives on time whatever the server does: response times are what the server's own record says.

The truth of a response time: the server writes down when it answered each creation; when its arrival came is in the
generator's answers, and that these moments owe nothing to the server is tested by their number: as many came while it
stood still as at any other time. A generator that waits for its server (coordinated omission) has none of them.
"""

import json
import re
import shutil
import subprocess
import threading
import time
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
from harness.tests.experiment.generator_servers import MS, OK, Scripted, assert_true

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")]

ATTEMPTS = 4  # a machine that is busy adds what no server's record holds; a generator that is wrong is wrong each time


def shopping(rate: float) -> dict[str, Any]:
    return {**plan(1)["use_cases"][0], "rate": rate}  # type: ignore[index]


class Shop(Scripted):
    """Creates and reads orders, one request at a time over all connections; stands still or fails when told to."""

    def __init__(
        self, *, stall_at: float = 0, stall_seconds: float = 0, refuses: int = 0, closes: int = 0, silent: int = 0
    ) -> None:
        """From ``stall_at`` seconds on, once; of creations each so many-th, of reads that of each so many-th order."""
        self.told = (stall_at, stall_seconds)
        self.refuses, self.closes, self.silent = refuses, closes, silent
        self.orders = self.first = 0
        self.created: dict[int, int] = {}  # by order: when its creation was answered, CLOCK_MONOTONIC in nanoseconds
        self.stall: tuple[int, int] | None = None
        self.alone = threading.Lock()
        super().__init__()

    def respond(self, number: int, head: bytes) -> bytes | None:
        with self.alone:
            now = time.monotonic_ns()
            self.first = self.first or now
            at, seconds = self.told
            if seconds and self.stall is None and now - self.first >= at * 1e9:
                time.sleep(seconds)
                self.stall = (now, time.monotonic_ns())
            if read := re.search(rb"GET /orders/(\d+)", head):
                return None if is_nth(self.silent, int(read[1])) else OK
            self.orders += 1
            if is_nth(self.refuses, self.orders):
                return b"HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\n{}"
            if is_nth(self.closes, self.orders):
                return b""
            body = b'{"id":%d}' % self.orders
            self.created[self.orders] = time.monotonic_ns()
            return b"HTTP/1.1 201 X\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def is_nth(often: int, number: int) -> bool:
    return often > 0 and number % often == 0


@dataclass(frozen=True, kw_only=True)
class Played:
    """What came of one load."""

    total: Total
    whole: Arrivals  # in the records' terms
    arrivals: Sequence[Mapping[str, Any]]


def play(folder: Path, use_case: Mapping[str, Any], server: Scripted, *words: str) -> Played:
    """One use case alone, against a server of its own."""
    (folder / PLAN).write_text(json.dumps({"use_cases": [use_case]}))
    with server:
        url = server.endpoint.url("")
        command = [str(crates.loadgen()), "--scenario", PLAN, "--answers", ANSWERS]
        command += ["--start-at-once", "--connections", "16", *words, url]
        output = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
    load = Scenario(factor=1, connections=16)
    asked = LoadRun(url=url, host="h", accept="*/*", load=load, seconds=1, threads=1, seed=1)
    whole = Loadgen().result(asked, output).arrivals
    assert whole is not None  # its counts add up
    return Played(
        total=totals(output, url)[0],
        whole=whole,
        arrivals=[json.loads(line) for line in (folder / ANSWERS).read_text().splitlines()],
    )


def later_than(distribution: Times | None, milliseconds: float) -> int:
    assert distribution is not None
    return sum(count for value, count in distribution.distribution_ns if value > milliseconds * MS)


def test_a_standstill_shows_in_the_response_time_of_every_arrival_that_was_due_within_it(tmp_path: Path) -> None:
    rate, seconds = 200, 8
    for attempt in range(1, ATTEMPTS + 1):
        shop = Shop(stall_at=3, stall_seconds=1)
        played = play(tmp_path, shopping(rate), shop, "--duration", str(seconds), "--seed", str(attempt))
        assert shop.stall is not None
        begin, end = shop.stall
        within = [one for one in played.arrivals if begin < one["came_ns"] < end]
        assert len(within) == pytest.approx(rate, abs=5 * rate**0.5)  # Poisson: they came while it stood still
        create, read_order = played.total.operations
        times = sorted((shop.created[one["order"]] - one["came_ns"]) / MS for one in played.arrivals)
        late = sum(one > 500 for one in times)
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
    words = ("--duration", "2", "--timeout", "0.5", "--drain-seconds", "1.5")
    shop = Shop(refuses=10, closes=7, silent=13)
    played = play(tmp_path, shopping(150), shop, *words)
    create, read_order = played.total.operations
    orders = create.due
    refused = orders // 10
    closed = sum(n % 7 == 0 and n % 10 != 0 for n in range(1, orders + 1))
    silent = sum(order % 13 == 0 for order in shop.created)
    assert (create.errors.status, create.errors.closed, create.unfinished) == (refused, closed, 0)
    assert read_order.due == create.answered == len(shop.created)
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
    played = play(tmp_path, shopping(40), Shop(silent=1), "--duration", "1", "--drain-seconds", "0.2")
    create, read_order = played.total.operations
    assert create.due > create.answered == 16  # each connection waits for the answer to a read
    assert read_order.unfinished == 16
    assert create.unfinished == create.due - 16
    assert played.whole.unfinished == create.due == len(played.arrivals)
    assert Counter(len(one["steps"]) for one in played.arrivals) == {2: 16, 0: create.due - 16}


def test_arrivals_go_on_over_new_connections_where_each_answer_closes_its_own(tmp_path: Path) -> None:
    once = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    steps = [{"name": name, "method": "GET", "path": f"/{name}", "status": 200} for name in "abc"]
    use_case = {"name": "u", "rate": 60.0, "steps": steps}
    total = play(tmp_path, use_case, Scripted(lambda _: once), "--duration", "1").total
    assert total.use_cases[0].due == total.use_cases[0].done > 30
    assert total.connections_closed_by_peer == total.received == total.due == 3 * total.use_cases[0].due
    assert total.connections_hung == total.unfinished == total.errors.errors(total.unsent).total == 0
