"""The command line of the project's own generator, its lines, and how several results become one."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import LoadError
from harness.measure.loadgen import Load, own
from harness.measure.loadgen.own import Distribution, Own, Total, merge, merge_distributions, read
from harness.paths import REPOSITORY, TOOLSET

URL = "http://127.0.0.1:8080/json"
LOAD = Load(url=URL, host="tfb-server", accept="*/*", seconds=15, connections=64, threads=2)
READY = {"kind": "ready", "ready": True, "connections": 64, "connections_asked": 64, "pid": 5, "now_ns": 1}


def distribution(*cells: tuple[int, int]) -> dict[str, Any]:
    count = sum(number for _, number in cells)
    mean = sum(value * number for value, number in cells) / count
    return {
        "count": count,
        "mean_ns": mean,
        "stdev_ns": (sum((value - mean) ** 2 * number for value, number in cells) / count) ** 0.5,
        "min_ns": cells[0][0],
        "max_ns": cells[-1][0],
        "percentiles_ns": dict.fromkeys(own.PERCENTILES, cells[-1][0]),
        "distribution_ns": cells,
        "hdr_v2": "x",
    }


def counts(received: int) -> dict[str, Any]:
    plain = [name for name, field in own.Counts.model_fields.items() if field.annotation is int]
    faults = dict.fromkeys(own.Faults.model_fields, 1)
    return {
        **dict.fromkeys(plain, 0),
        "received": received,
        "errors": faults,
        "statuses": {"200": received},
        "latency": distribution((1_000_000, received)),
        "service": None,
        "lag": None,
    }


def total(received: int = 1000, **changes: object) -> dict[str, Any]:
    return {
        **counts(received),
        "kind": "total",
        "loop": "open",
        "rate": 500.0,
        "connections": 64,
        "threads": 2,
        "depth": 1,
        "start_ns": 10,
        "end_ns": 2_000_000_010,
        "seconds": 2.0,
        "stopped_by": "duration",
        "in_time": {"received": received - 2, "successes": received - 4, "bytes_in": 5000},
        "drain_seconds": 0.1,
        "unsent": 3,
        "unfinished": 4,
        "cpu_seconds": 0.5,
        "run_queue_wait_seconds": 0.01,
        **changes,
    }


def output(*lines: dict[str, Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_the_headers_are_wrk_s_in_an_order_drawn_by_the_seed() -> None:
    orders = set()
    for seed in range(60):
        words = list(Own(seed=seed).arguments(LOAD))
        orders.add(tuple(words[i + 1] for i, word in enumerate(words) if word == "--header"))
    assert len(orders) == 6
    assert {tuple(sorted(order)) for order in orders} == {("Accept: */*", "Connection: keep-alive", "Host: tfb-server")}


def test_the_load_is_on_the_command_line() -> None:
    words = " ".join(Own(rate=2500.0, seed=7, extra=("--spin", "0")).arguments(replace(LOAD, pipeline=16)))
    assert words.endswith(
        "--connections 64 --threads 2 --depth 16 --duration 15 --timeout 8 --seed 7 "
        f"--rate 2500 --arrivals poisson --start-at-once --spin 0 {URL}"
    )


def test_throughput_is_made_of_what_came_in_time() -> None:
    result = Own(rate=500.0).result(LOAD, output(READY, total()))
    assert (result.requests, result.bytes, result.duration) == (998, 5000, 2.0)
    assert result.errors.model_dump() == {"connect": 1, "read": 5, "write": 1, "timeout": 8, "status": 1}
    assert result.latency is not None
    assert result.latency.mean == pytest.approx(0.001)
    assert result.latency.histogram == ((0.001, 1000),)
    assert Total.model_validate(total()).throughput == 498


def test_an_open_loop_says_what_was_due_and_how_late_the_generator_was() -> None:
    lines = total(
        latency=distribution((1_000_000, 900), (20_000_000, 100)),
        service=distribution((500_000, 1000)),
        lag=distribution((50_000, 1000)),
        sent=1005,
        successes=990,
    )
    counted = Own(rate=500.0).result(LOAD, output(READY, lines)).at_rate
    assert counted is not None
    assert (counted.due, counted.answered, counted.unfinished) == (1008, 990, 7)
    assert counted.lag_p99 == pytest.approx(50e-6)
    assert counted.service is not None
    assert counted.service.basis == "closed-loop, service time"
    assert [counted.late(seconds) for seconds in (0.0005, 0.010, 0.1)] == [1000, 100, 0]


def test_a_closed_loop_s_service_time_is_its_latency_but_not_when_pipelined() -> None:
    closed = output(READY, total(loop="closed", rate=None, latency=None, service=distribution((2_000_000, 1000))))
    result = Own().result(LOAD, closed)
    assert result.at_rate is None
    assert result.latency is not None
    assert result.latency.basis == "closed-loop, service time"
    assert result.latency.mean == pytest.approx(0.002)
    assert Own().result(replace(LOAD, pipeline=16), closed).latency is None


def test_a_program_that_starts_the_generator_has_its_words_before_the_arguments() -> None:
    words = Own(rate=1.0, start_at_once=False, program="/usr/bin/chrt", prefix=("--rr", "1", "/loadgen")).arguments(
        LOAD
    )
    assert list(words[:4]) == ["--rr", "1", "/loadgen", "--header"]
    assert "--start-at-once" not in words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "printed no result for .*: nothing at all"),
        (output(READY), "printed no result"),
        (output(READY, total(seconds=0.0)), "no duration"),
        (output(READY, {"kind": "total"}), "not as documented"),
        ("{broken\n", "not as documented"),
        ("x" * (own.MAX_LINE_BYTES + 1), "bytes in one"),
        ("\n" * (own.MAX_LINES + 1), "more than"),
    ],
)
def test_what_is_no_result_is_an_error(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        read(text, URL)


def test_of_the_output_of_several_generators_the_last_is_read_and_all_are_reports() -> None:
    text = output(READY, total(1000), READY, total(500), {**READY, "pid": 7}, total(20))
    assert (read(text, URL).total.received, read(text, URL).ready.pid) == (20, 7)
    assert [each.total.received for each in own.reports(text, URL)] == [1000, 500, 20]
    assert read(output(READY, total(3)), URL).total.received == 3


def test_results_of_several_generators_add_up() -> None:
    one = Total.model_validate(total(1000))
    two = Total.model_validate(total(500, latency=distribution((3_000_000, 500)), seconds=2.5, stopped_by="asked"))
    both = merge([one, two])
    assert (both.received, both.unsent, both.errors.closed, both.statuses) == (1500, 6, 2, {"200": 1500})
    assert (both.rate, both.seconds, both.stopped_by, both.connections) == (1000.0, 2.5, "asked", 128)
    assert both.in_time.successes == 996 + 496
    assert both.latency is not None
    assert both.latency.mean_ns == pytest.approx(5_000_000 / 3)
    assert both.latency.percentiles_ns["50"] == 1_000_000
    assert both.latency.percentiles_ns["90"] == 3_000_000


def test_loads_of_different_kinds_do_not_merge() -> None:
    with pytest.raises(ValueError, match="different kinds"):
        merge([Total.model_validate(total()), Total.model_validate(total(depth=16))])
    with pytest.raises(ValueError, match="nothing"):
        merge([])


def test_a_merged_distribution_has_the_moments_of_all_times() -> None:
    parts = [Distribution.model_validate(distribution((100, 3), (200, 1))), None]
    parts.append(Distribution.model_validate(distribution((200, 2), (500, 4))))
    merged = merge_distributions(parts)
    whole = Distribution.model_validate(distribution((100, 3), (200, 3), (500, 4)))
    assert merged is not None
    assert merged.distribution_ns == whole.distribution_ns
    assert merged.count == 10
    assert merged.mean_ns == pytest.approx(whole.mean_ns)
    assert merged.stdev_ns == pytest.approx(whole.stdev_ns)
    assert merge_distributions([None]) is None


def test_every_argument_and_every_field_is_documented() -> None:
    page = (REPOSITORY / "docs" / "load-generator.md").read_text()
    usage = (TOOLSET / "loadgen" / "src" / "arguments.rs").read_text().split('USAGE: &str = "')[1].split('";')[0]
    options = set(re.findall(r"^  (--[a-z-]+)", usage, re.MULTILINE))
    assert len(options) > 20
    assert {option for option in options if f"`{option}" not in page} == set()
    models = (own.Ready, own.Interval, own.Total, own.Faults, own.InTime, Distribution)
    fields = {name for model in models for name in model.model_fields}
    assert {name for name in fields if f"`{name}`" not in page} == set()


def test_a_load_of_two_clients_is_the_sum_of_both_and_keeps_each() -> None:
    closed = {"loop": "closed", "rate": None, "lag": None, "latency": None}
    text = output(READY, total(1000, **closed)) + "\n" + output(READY, total(500, **closed, cpu_seconds=0.25))
    found = Own().result(LOAD, text)
    assert found.requests == 998 + 498
    assert [(part.requests, part.cpu_seconds, part.wait_seconds) for part in found.parts] == [
        (998, 0.5, 0.01),
        (498, 0.25, 0.01),
    ]
    assert found.cpu_seconds == 0.75
