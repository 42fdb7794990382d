"""wrk's command line and its one JSON line."""

import json
import statistics
from dataclasses import replace

import pytest

from harness.errors import LoadError
from harness.measure.loadgen import Load
from harness.measure.loadgen.wrk import Wrk, merged_latency
from harness.records.models import Latency

LOAD = Load(url="http://127.0.0.1:8080/json", host="127.0.0.1", accept="*/*", seconds=15, connections=64, threads=2)
NO_ERRORS = {"connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 0}
NO_LATENCY = {"mean": 0.0, "stdev": 0.0, "min": 0, "max": 0, "percentiles": {"50": 0}, "histogram": []}
LINE = {
    "duration_us": 2_000_000,
    "requests": 1000,
    "bytes": 154_000,
    "cpu_seconds": 0.5,
    "errors": {"connect": 1, "read": 2, "write": 3, "status": 4, "timeout": 5},
    "latency_us": {
        "mean": 250.5,
        "stdev": 10.0,
        "min": 100,
        "max": 9000,
        "percentiles": {"50": 240, "99": 800},
        "histogram": [[240, 990], [9000, 10]],
    },
}


def test_the_command_line_is_techempower_s() -> None:
    words = list(Wrk().arguments(LOAD))
    assert words[:6] == ["-H", "Host: 127.0.0.1", "-H", "Accept: */*", "-H", "Connection: keep-alive"]
    assert " ".join(words[6:]) == "--latency -d 15 -c 64 --timeout 8 -t 2 -s report.lua http://127.0.0.1:8080/json"


def test_a_pipelined_load_has_its_depth_behind_two_dashes() -> None:
    words = Wrk().arguments(replace(LOAD, pipeline=16))
    assert list(words[-5:]) == ["-s", "pipeline.lua", LOAD.url, "--", "16"]


def test_the_result_is_in_si_units() -> None:
    result = Wrk().result(LOAD, "Running 15s test\n" + json.dumps(LINE) + "\n")
    assert (result.duration, result.requests, result.bytes, result.cpu_seconds) == (2.0, 1000, 154_000, 0.5)
    assert result.errors.model_dump() == LINE["errors"]
    assert result.errors.total == 15
    assert result.latency is not None
    assert result.latency.mean == pytest.approx(250.5e-6)
    assert result.latency.percentiles == {"50": pytest.approx(240e-6), "99": pytest.approx(800e-6)}
    assert [value for value, _ in result.latency.histogram] == pytest.approx([240e-6, 9e-3])
    assert [count for _, count in result.latency.histogram] == [990, 10]


def test_a_pipelined_result_has_no_latency() -> None:
    assert Wrk().result(replace(LOAD, pipeline=16), json.dumps(LINE)).latency is None


@pytest.mark.parametrize("word", ["nan", "-nan"])
def test_a_run_without_a_response_has_no_latency(word: str) -> None:
    line = json.dumps({**LINE, "requests": 0, "errors": NO_ERRORS}).replace("250.5", word).replace("10.0", word)
    result = Wrk().result(LOAD, line)
    assert (result.requests, result.latency) == (0, None)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "wrk printed no result for http://127.0.0.1:8080/json: nothing at all"),
        ("unable to connect to 127.0.0.1:8080 Connection refused", "unable to connect to 127.0.0.1:8080"),
        ('{"duration_us": 2', "is not what report.lua prints"),
        ('{"duration_us": 2000}', "is not what report.lua prints"),
        (json.dumps({**LINE, "duration_us": 0}), "wrk reports no duration"),
        (
            json.dumps(
                {
                    **LINE,
                    "requests": 0,
                    "errors": {**NO_ERRORS, "read": 2395},
                    "latency_us": NO_LATENCY,
                }
            ),
            "wrk understood no response of http://127.0.0.1:8080/json: 2395 connections were closed",
        ),
    ],
)
def test_anything_else_is_an_error_with_what_was_printed(output: str, message: str) -> None:
    with pytest.raises(LoadError) as error:
        Wrk().result(LOAD, output)
    assert message in str(error.value)


def of_times(times: list[float]) -> Latency:
    """The distribution of these response times."""
    return Latency(
        basis="closed-loop, wrk-corrected",
        mean=statistics.fmean(times),
        stdev=statistics.pstdev(times),
        min=min(times),
        max=max(times),
        percentiles={"50": statistics.median(times)},
        histogram=tuple((value, times.count(value)) for value in sorted(set(times))),
    )


def test_the_latency_of_several_clients_is_that_of_all_their_responses() -> None:
    one, other = [0.1, 0.1, 0.2, 0.4], [0.2, 0.9, 1.7, 2.0, 2.0, 2.2]
    merged, truth = merged_latency([of_times(one), of_times(other)], 2), of_times(one + other)
    assert merged is not None
    assert merged.mean == pytest.approx(truth.mean)
    assert merged.stdev == pytest.approx(truth.stdev)
    assert (merged.min, merged.max, merged.histogram) == (0.1, 2.2, truth.histogram)
    assert merged_latency([of_times(one)], 2) is None
    assert merged_latency([of_times(one), of_times(other).model_copy(update={"histogram": ()})], 2) is None
