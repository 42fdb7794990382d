"""Tests for exports to other programs: JSON, and TechEmpower's results.json with its exact keys."""

import csv
import io
from datetime import datetime
from typing import Any

import pytest

from harness.records.loads import ClosedLoop
from harness.records.measurements import ErrorCounts, Latency
from harness.records.run_records import RunRecords
from harness.records.verification_record import Outcome
from harness.report import Report, exporters, techempower
from harness.stats.ranking_model import Ranking
from harness.tests.doubles import records
from harness.tests.report import made

KEYS = {
    *("uuid", "name", "environmentDescription", "git", "operatingSystem", "startTime", "completionTime", "duration"),
    *("concurrencyLevels", "pipelineConcurrencyLevels", "queryIntervals", "cachedQueryIntervals", "frameworks"),
    *("rawData", "completed", "succeeded", "failed", "verify", "testMetadata"),
}
METADATA_KEYS = {
    *("project_name", "name", "approach", "classification", "database", "framework", "language", "orm", "platform"),
    *("webserver", "os", "database_os", "display_name", "notes", "versus", "tags"),
}
ONE, TWENTY = (ClosedLoop(connections=64, queries=count) for count in (1, 20))
SERVICE = Latency(
    basis="closed-loop, service time", mean=0.0005, stdev=0.002, min=0.0001, max=1.5, percentiles={"50": 0.0004}
)


def test_json_is_the_ranking_itself() -> None:
    out, ranking = io.StringIO(), made.ranking()
    exporters.EXPORTERS["json"](Report(records=RunRecords(info=made.info()), ranking=ranking), out)
    assert Ranking.model_validate_json(out.getvalue()) == ranking


def test_csv_has_a_row_for_each_implementation() -> None:
    rows = (made.row("=1+1", 1, (1, 2), flags=("@flag", "b")), made.unranked("c", '-x, "quoted"'))
    out = io.StringIO()
    exporters.EXPORTERS["csv"](Report(records=RunRecords(info=made.info()), ranking=made.ranking(rows)), out)
    first, second = csv.DictReader(out.getvalue().splitlines())
    assert (first["table"], first["test_type"], first["implementation"]) == ("headline", "json", "'=1+1")
    assert (first["rank_low"], first["rank_high"], first["flags"]) == ("1", "2", "'@flag; b")
    throughput = rows[0].throughput
    assert throughput
    assert float(first["requests_per_second"]) == throughput.estimate.median
    assert float(first["requests_per_second_low"]) < float(first["requests_per_second"])
    assert (second["reason"], second["requests_per_second"]) == ('\'-x, "quoted"', "")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """Return the results.json of a run with two implementations and three trials per cell.

    The trials of ``slow`` have errors at the highest level.
    """
    trials = []
    for name, factor in (("fast", 2.0), ("slow", 1.0)):
        for number, wobble in enumerate((1.02, 1.0, 0.9)):
            speed = 1000 * factor * wobble
            trials.append(made.trial(name, number, speed, latency=SERVICE))
            trials.append(made.trial(name, number, speed, ONE, "query"))
            bad = (
                {"validity": [made.validity_check("errors", Outcome.FAIL)], "errors": ErrorCounts(read=1)}
                if name == "slow"
                else {}
            )
            trials.append(made.trial(name, number, speed, TWENTY, "query", **bad))
    trials.append(made.trial("fast", 0, 9e9, purpose="witness"))
    verdicts = [
        records.verdict("fast", "json"),
        records.verdict("slow", "json", Outcome.WARN),
        records.verdict("fast", "http"),
    ]
    info = made.info(("fast", "slow"), loads={"json": (made.JSON,), "query": (ONE, TWENTY)}, revision="c0ffee")
    return techempower.document(RunRecords(info=info, trials=trials, verdicts=verdicts))


def test_the_keys_are_pinned_and_levels_are_numbers(document: dict[str, Any]) -> None:
    assert set(document) == KEYS
    assert document["git"] == {"commitId": "c0ffee", "repositoryUrl": "", "branchName": None}
    assert [set(entry) for entry in document["testMetadata"]] == [METADATA_KEYS] * 2
    levels = [document[name] for name in ("concurrencyLevels", "queryIntervals", "pipelineConcurrencyLevels")]
    assert levels == [[64], [1, 20], []]


def test_entry_uses_wrk_notation_and_median_trial(document: dict[str, Any]) -> None:
    (entry,) = document["rawData"]["json"]["fast"]
    latency = {"latencyAvg": "500.00us", "latencyStdev": "2.00ms", "latencyMax": "1.50s"}
    assert entry == {**latency, "totalRequests": 4000, "startTime": 1001, "endTime": 1003}
    assert document["rawData"]["query"]["fast"][0]["latencyAvg"] == "0us"  # unknown


def test_counts_are_scaled_to_the_common_duration() -> None:
    longer = made.trial("a", 0, 1000.0, duration=4.0, asked_duration=4.0, requests=4000)
    shorter = made.trial("a", 0, 500.0, ONE, "query", errors=ErrorCounts(timeout=3))
    info = made.info(("a",), loads={"json": (made.JSON,), "query": (ONE,)})
    document: Any = techempower.document(RunRecords(info=info, trials=[longer, shorter]))
    assert document["duration"] == 4
    assert document["rawData"]["query"]["a"][0]["totalRequests"] / document["duration"] == 500
    assert document["rawData"]["query"]["a"][0]["timeout"] == 6


def test_load_without_valid_trial_keeps_position(document: dict[str, Any]) -> None:
    entries = document["rawData"]["query"]["slow"]
    assert entries[0]["totalRequests"] == 2000
    assert entries[1] == {}
    assert document["succeeded"]["query"] == ["fast"]
    assert document["failed"]["query"] == ["slow"]


def test_verdicts_and_times_are_those_of_the_run(document: dict[str, Any]) -> None:
    assert document["verify"] == {"fast": {"json": "pass"}, "slow": {"json": "warn"}}
    assert document["completionTime"] - document["startTime"] == 61_000
    assert document["frameworks"] == ["fast", "slow"]
    ended = [datetime.strptime(at, "%Y%m%d%H%M%S").timestamp() for at in document["completed"].values()]
    assert ended == [1002.0, 1002.0]


def test_unknown_values_are_null() -> None:
    (one,) = made.info(("a-raw",)).implementations
    facts = {"project": "a", "framework": "Vert.x", "approach": "Realistic", "versus": "Netty"}
    info = made.info(("a-raw",), implementations=(one.model_copy(update=facts),))
    document: Any = techempower.document(RunRecords(info=info))
    assert document["git"] is None
    (entry,) = document["testMetadata"]
    assert [entry[key] for key in ("project_name", "name", "framework")] == ["a", "a-raw", "vert.x"]
    assert [entry[key] for key in ("approach", "platform", "versus")] == ["realistic", "none", "Netty"]
