"""Generators on several clients: the load is shared out, and results merge exactly."""

import json

import pytest

from harness.errors import LoadError, MachineLostError
from harness.measure.loadgen import Load
from harness.measure.loadgen.wrk import Wrk
from harness.runtime.machines.generators import Generators, shares

LOAD = Load(url="http://app:8080/json", host="app", accept="*/*", seconds=2, connections=65, threads=4)


def test_connections_and_threads_are_shared_and_none_is_lost() -> None:
    parts = shares("wrk", Wrk().arguments(LOAD), 2)
    assert [(part[part.index("-c") + 1], part[part.index("-t") + 1]) for part in parts] == [("33", "2"), ("32", "2")]
    assert [part[-1] for part in parts] == [LOAD.url, LOAD.url]


def test_a_rate_is_divided_and_every_client_has_a_thread() -> None:
    parts = shares("loadgen", ["--connections", "3", "--threads", "1", "--rate", "900", "http://app"], 3)
    assert parts == [["--connections", "1", "--threads", "1", "--rate", "300", "http://app"]] * 3


def test_fewer_connections_than_clients_cannot_be_shared() -> None:
    with pytest.raises(LoadError, match="1 connections cannot be shared by 2 clients"):
        shares("wrk", ["-c", "1", "-t", "1"], 2)


def line(requests: int, duration_us: int, histogram: list[list[int]], errors: int = 0) -> str:
    values = [value for value, count in histogram for _ in range(count)] or [0]
    mean = sum(values) / len(values)
    return json.dumps({
        "duration_us": duration_us, "requests": requests, "bytes": requests * 100, "cpu_seconds": 1.0,
        "errors": {"connect": 0, "read": errors, "write": 0, "status": 0, "timeout": 0},
        "latency_us": {
            "mean": mean, "stdev": 0.0, "min": min(values), "max": max(values),
            "percentiles": {"50": values[len(values) // 2], "99": max(values)}, "histogram": histogram,
        },
    })  # fmt: skip


def test_counts_rates_errors_and_distributions_of_two_clients_add_up() -> None:
    output = (
        "ready\n" + line(6, 2_000_000, [[100, 6]], errors=1) + "\nready\n" + line(4, 1_000_000, [[100, 1], [900, 3]])
    )
    found = Wrk().result(LOAD, output)
    assert (found.requests, found.bytes, found.errors.read, found.cpu_seconds) == (10, 1000, 1, 2.0)
    assert found.requests / found.duration == pytest.approx(6 / 2 + 4 / 1)
    assert found.latency is not None
    assert found.latency.histogram == ((100e-6, 7), (900e-6, 3))
    assert found.latency.percentiles == {"50": 100e-6, "99": 900e-6}
    assert found.latency.mean == pytest.approx(340e-6)
    assert found.latency.max == 900e-6


def test_without_the_distribution_of_one_client_there_is_no_latency() -> None:
    assert Wrk().result(LOAD, line(6, 2_000_000, [[100, 6]]) + "\n" + line(4, 1_000_000, [])).latency is None


class Part:
    """A generator whose end is given: its status after so many looks."""

    command = ("wrk",)

    def __init__(self, said: list[str], name: str, status: int | None) -> None:
        self._said, self._name, self._status = said, name, status

    def await_ready(self) -> None:
        self._said.append(f"{self._name} ready")

    def go(self) -> None:
        self._said.append(f"{self._name} go")

    def wait(self, seconds: float) -> int | None:
        return self._status

    def interrupt(self) -> None:
        self._said.append(f"{self._name} interrupted")

    def output(self) -> str:
        return self._name


class Reached:
    """A machine that answers, or not."""

    def __init__(self, *, lost: bool = False) -> None:
        self._lost = lost

    def require_reachable(self, settle: float = 0.0) -> None:
        if self._lost and settle:
            raise MachineLostError("the machine c1 is lost")


def together(said: list[str], *statuses: int | None, lost: bool = False) -> Generators:
    return Generators([(Reached(lost=lost), Part(said, f"p{n}", status)) for n, status in enumerate(statuses)])  # type: ignore[misc]


def test_nobody_begins_before_all_are_ready() -> None:
    said: list[str] = []
    together(said, 0, 0).begin()
    assert said == ["p0 ready", "p1 ready", "p0 go", "p1 go"]


def test_a_load_is_over_when_all_have_ended() -> None:
    said: list[str] = []
    assert together(said, 0, None).wait(1.0) is None
    assert together(said, 0, 0).wait(1.0) == 0
    assert together(said, 0, 0).output() == "p0\np1"


def test_the_failure_of_one_ends_the_others_and_is_blamed_on_its_machine_when_that_is_lost() -> None:
    said: list[str] = []
    assert together(said, None, 7).wait(1.0) == 7
    assert said == ["p0 interrupted", "p1 interrupted"]
    with pytest.raises(MachineLostError):
        together(said, 1, None, lost=True).wait(1.0)


class Ran:
    """A generator that was started and begins at its word, or does not tell."""

    def __init__(self, command: list[str], *, tells: bool) -> None:
        self.command, self.tells, self.words = command, tells, 0

    def await_ready(self) -> None:
        """At once."""

    def go(self) -> None:
        self.words += 1

    def await_begun(self) -> bool:
        return self.tells


class Up:
    """A machine that answers."""

    lost = None

    def __init__(self, name: str) -> None:
        self.name = name

    def require_reachable(self, settle: float = 0.0) -> None:
        """It does."""


def test_every_client_s_share_and_beginning_is_known() -> None:
    gate = ["docker", "run", "--entrypoint", "sh", "tfb/wrk", "-c", "echo ready", "wrk"]
    parts = [
        (Up("c1"), Ran([*gate, "-c", "33", "-t", "2", "http://app/"], tells=True)),
        (Up("c2"), Ran([*gate, "-c", "32", "-t", "2", "http://app/"], tells=False)),
    ]
    generators = Generators(parts, tell=True)  # type: ignore[arg-type]
    generators.begin()
    first, second = generators.begun()
    assert [part.words for _, part in parts] == [1, 1]
    assert (first.client, first.connections, first.threads) == ("c1", 33, 2)
    assert (second.client, second.connections, second.seen_at) == ("c2", 32, None)
    assert first.seen_at is not None
    assert first.word_at <= second.word_at <= first.seen_at
