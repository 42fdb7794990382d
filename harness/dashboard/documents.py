"""Models of the JSON documents that the dashboard's server sends to its page.

``python -m harness.dashboard.documents`` prints their JSON Schema, from which the page's TypeScript types are
generated.
"""

import json
from typing import Any

from pydantic import Field
from pydantic.json_schema import models_json_schema

from harness.records.claims import ClaimVerdict
from harness.records.loads import Load
from harness.records.outcome import Outcome
from harness.records.process_record import ProcessRecord
from harness.records.record import Record
from harness.records.run_info import RunInfo, RunStatus
from harness.records.run_records import ReadProblem, RunProgress
from harness.records.trial_record import Trial
from harness.records.verification_record import CheckResult, VerificationRecord
from harness.stats.ranking_model import Comparison, Ranking, Score, Table


class RunSummary(Record):
    """An entry in the list of runs."""

    run_id: str
    title: str  # a description of the run if its name is only a time
    example: bool = False  # True if the run is part of the repository
    lead: str = ""  # leading implementation; empty until a ranking has been made
    status: RunStatus
    profile: str
    started_at: float
    completed_at: float | None
    implementations: tuple[str, ...]
    test_types: tuple[str, ...]
    machine: str  # CPU model and number of CPUs
    grade: str
    problems: tuple[ReadProblem, ...]


class BrokenRun(Record):
    """A folder in results/ whose run.json cannot be read."""

    run_id: str
    file: str
    message: str


class RunList(Record):
    """All runs, newest first, and the folders that could not be read."""

    runs: tuple[RunSummary, ...]
    broken: tuple[BrokenRun, ...]
    views: dict[str, str] = Field(default_factory=dict)  # pages of plugins: name below /views -> title


class VerdictSummary(Record):
    """The worst outcome over the processes of an implementation and test type, and the checks that did not pass."""

    implementation: str
    test_type: str
    outcome: Outcome
    findings: tuple[CheckResult, ...]


class RunDocument(Record):
    """A run without details: its settings, and the headline table of each test type."""

    run: RunInfo
    title: str
    example: bool = False
    # Test type -> metric -> parts of the summary.
    sentences: dict[str, dict[str, tuple[str, ...]]] = Field(default_factory=dict)
    ranking: Ranking  # the tables for single loads are omitted; TestDocument contains them
    problems: tuple[ReadProblem, ...] = ()
    source_base: str | None = None  # web address that an implementation's folder is appended to; None if unknown


class CellLatency(Record):
    """The latency distribution of a cell in seconds. Mean and percentiles are medians over processes."""

    implementation: str
    load: Load
    basis: str  # Latency.basis, or the description in the other tool's file
    percentiles: dict[str, float]
    # Percentile -> minimum and maximum over processes.
    spread: dict[str, tuple[float, float]] = Field(default_factory=dict)
    mean: float | None = None
    stdev: float | None = None
    maximum: float | None = None
    trials: int


class TestDocument(Record):
    """A test type with a table for every load, and its verification results."""

    __test__ = False  # prevents pytest from collecting the class

    test_type: str
    tables: tuple[Table, ...]
    verdicts: tuple[VerdictSummary, ...]
    problems: tuple[ReadProblem, ...] = ()


class LatencyDocument(Record):
    """The latency of every cell of a test type; empty if requests were pipelined."""

    test_type: str
    cells: tuple[CellLatency, ...]


class OverallDocument(Record):
    """Overall scores for a selection of a run's test types."""

    test_types: tuple[str, ...]
    scores: tuple[Score, ...]


class ComparisonDocument(Record):
    """A comparison of two runs."""

    comparison: Comparison
    verdict: tuple[str, ...] = ()  # sentences with the verdicts: slower, faster, same or cannot tell


class CellDocument(Record):
    """All records of an implementation and test type; trials have no histograms and no operations of arrivals."""

    implementation: str
    test_type: str
    trials: tuple[Trial, ...] = ()
    verdicts: tuple[VerificationRecord, ...] = ()
    processes: tuple[ProcessRecord, ...] = ()
    problems: tuple[ReadProblem, ...] = ()


class ClaimsDocument(Record):
    """The latest verdict on every claim in these results. ``problem`` says why the verdicts cannot be read."""

    verdicts: tuple[ClaimVerdict, ...]
    problem: str = ""


class LogDocument(Record):
    """The end of a log; ``skipped`` is the number of bytes omitted at its start."""

    path: str
    text: str
    skipped: int = 0


class LiveDocument(Record):
    """The state of a run in progress. It is small, because a page requests it every second."""

    status: str
    progress: RunProgress | None
    trials: tuple[Trial, ...]  # most recent trials, latest first, without windows and histograms
    version: str  # changes when trials or the ranking change
    silent_for: float | None  # seconds since the last write; None if the last write was recent


class Embedded(Record):
    """All documents of a run, for a page that works without a server."""

    document: RunDocument
    tests: dict[str, TestDocument]
    latency: dict[str, LatencyDocument]
    cells: tuple[CellDocument, ...]
    logs: dict[str, LogDocument]
    left_out: tuple[str, ...] = ()  # sentences about parts that were omitted to limit the file's size


def schema() -> dict[str, Any]:
    """Return the JSON Schema of all documents as serialized. Fields with defaults are required."""
    models = [each for each in globals().values() if getattr(each, "__module__", "") == __name__ and each is not schema]
    _, combined = models_json_schema([(model, "serialization") for model in models], by_alias=False, title="Documents")
    for definition in combined["$defs"].values():
        if "properties" in definition:
            definition["required"] = list(definition["properties"])
    properties = {model.__name__: {"$ref": f"#/$defs/{model.__name__}"} for model in models}
    return {**combined, "type": "object", "properties": properties, "additionalProperties": False}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
