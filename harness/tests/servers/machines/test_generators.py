"""Generators on several clients: the load is shared out, and results merge exactly."""

import json

import pytest

from harness.errors import LoadError
from harness.measure.loadgen import Load
from harness.measure.loadgen.wrk import Wrk
from harness.servers.machines.generators import shares

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
