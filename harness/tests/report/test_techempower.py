"""The contract of results.json: the keys that TechEmpower's viewers read."""

from pathlib import Path
from typing import Any

import pytest

from harness.records import store
from harness.report import techempower
from harness.tests import records

KEYS = {
    *("uuid", "name", "environmentDescription", "git", "operatingSystem", "startTime", "completionTime", "duration"),
    *("concurrencyLevels", "pipelineConcurrencyLevels", "queryIntervals", "cachedQueryIntervals", "frameworks"),
    *("rawData", "completed", "succeeded", "failed", "verify", "testMetadata"),
}
METADATA_KEYS = {
    *("project_name", "name", "approach", "classification", "database", "framework", "language", "orm", "platform"),
    *("webserver", "os", "database_os", "display_name", "notes", "versus", "tags"),
}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = records.write(Path(tmp_path_factory.mktemp("results"))).folder
    return techempower.document(store.read(folder))


def test_the_keys_are_pinned(document: dict[str, Any]) -> None:
    assert set(document) == KEYS
    assert set(document["git"]) == {"commitId", "repositoryUrl", "branchName"}
    assert [set(entry) for entry in document["testMetadata"]] == [METADATA_KEYS] * 2


def test_levels_are_listed_as_numbers(document: dict[str, Any]) -> None:
    assert document["concurrencyLevels"] == [64]
    assert document["queryIntervals"] == [1, 20]
    assert document["pipelineConcurrencyLevels"] == []


def test_an_entry_has_wrk_s_notation_and_the_lower_median(document: dict[str, Any]) -> None:
    (entry,) = document["rawData"]["json"]["fast"]
    assert entry == {
        "latencyAvg": "500.00us",
        "latencyStdev": "2.00ms",
        "latencyMax": "1.50s",
        "totalRequests": 20_000,
        "startTime": 0,
        "endTime": 10,
    }


def test_a_level_without_a_valid_sample_keeps_its_place(document: dict[str, Any]) -> None:
    entries = document["rawData"]["query"]["slow"]
    assert entries[0]["totalRequests"] == 10_000
    assert entries[1] == {}
    assert document["succeeded"]["query"] == ["fast"]
    assert document["failed"]["query"] == ["slow"]


def test_verdicts_and_times_are_those_of_the_run(document: dict[str, Any]) -> None:
    assert document["verify"] == {name: {"json": "pass", "query": "pass"} for name in ("fast", "slow")}
    assert document["completionTime"] - document["startTime"] == 61_000
    assert document["duration"] == 10
    assert document["frameworks"] == ["fast", "slow"]
