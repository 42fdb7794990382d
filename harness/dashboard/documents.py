"""What the dashboard's server tells its page: one model a document.

``python -m harness.dashboard.documents`` prints their JSON Schema; the page's TypeScript types are made from it.
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
    """One run in the list of runs."""

    run_id: str
    title: str  # what it is, where the name only repeats the time
    example: bool = False  # a run that ships with the project
    lead: str = ""  # who leads, where a ranking is at hand
    status: RunStatus
    profile: str
    started_at: float
    completed_at: float | None
    implementations: tuple[str, ...]
    test_types: tuple[str, ...]
    machine: str  # CPU model and count
    grade: str
    problems: tuple[ReadProblem, ...]


class BrokenRun(Record):
    """A folder of results/ whose run.json cannot be read."""

    run_id: str
    file: str
    message: str


class RunList(Record):
    """All runs, newest first, and the folders that could not be read."""

    runs: tuple[RunSummary, ...]
    broken: tuple[BrokenRun, ...]
    views: dict[str, str] = Field(default_factory=dict)  # pages of plugins below /views: name -> title


class VerdictSummary(Record):
    """The worst outcome of one implementation x test type over its processes, with the checks that did not pass."""

    implementation: str
    test_type: str
    outcome: Outcome
    findings: tuple[CheckResult, ...]


class RunDocument(Record):
    """A run as its page first needs it: what was asked, and the headline table of each test type."""

    run: RunInfo
    title: str
    example: bool = False
    sentences: dict[str, dict[str, tuple[str, ...]]] = Field(default_factory=dict)  # test type -> metric -> the answer
    ranking: Ranking  # without the tables of single loads: those come with a TestDocument
    problems: tuple[ReadProblem, ...] = ()
    source_base: str | None = None  # address that an implementation's folder is appended to; None without a remote


class CellLatency(Record):
    """The latency distribution of a cell in seconds: mean and percentiles are medians over its processes."""

    implementation: str
    load: Load
    basis: str  # of Latency, or what a file of another tool says
    percentiles: dict[str, float]
    spread: dict[str, tuple[float, float]] = Field(default_factory=dict)  # lowest and highest process
    mean: float | None = None
    stdev: float | None = None
    maximum: float | None = None
    trials: int


class TestDocument(Record):
    """One test type in full: the table of every load, and what verification found."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    test_type: str
    tables: tuple[Table, ...]
    verdicts: tuple[VerdictSummary, ...]
    problems: tuple[ReadProblem, ...] = ()


class LatencyDocument(Record):
    """The latency of every cell of a test type; empty where requests were pipelined."""

    test_type: str
    cells: tuple[CellLatency, ...]


class OverallDocument(Record):
    """Overall scores over some of a run's test types."""

    test_types: tuple[str, ...]
    scores: tuple[Score, ...]


class ComparisonDocument(Record):
    """Two runs compared by harness.stats."""

    comparison: Comparison
    verdict: tuple[str, ...] = ()  # in sentences: slower, faster, same, or cannot tell


class CellDocument(Record):
    """Everything behind one implementation x test type; trials without histograms and the operations of arrivals."""

    implementation: str
    test_type: str
    trials: tuple[Trial, ...] = ()
    verdicts: tuple[VerificationRecord, ...] = ()
    processes: tuple[ProcessRecord, ...] = ()
    problems: tuple[ReadProblem, ...] = ()


class ClaimsDocument(Record):
    """The last verdict on every claim that was measured into these results; ``problem``: why there are none."""

    verdicts: tuple[ClaimVerdict, ...]
    problem: str = ""


class LogDocument(Record):
    """A log's text; ``skipped`` bytes at its start are left out when it is long."""

    path: str
    text: str
    skipped: int = 0


class LiveDocument(Record):
    """Where a run in progress stands: small, as a page asks for it every second."""

    status: str
    progress: RunProgress | None
    trials: tuple[Trial, ...]  # the last ones, the latest first, without their windows and histograms
    version: str  # another one whenever there are new trials or a new ranking
    silent_for: float | None  # seconds since the run last wrote anything, when that is long


class Embedded(Record):
    """One run in one file: everything that the page would have asked the server for."""

    document: RunDocument
    tests: dict[str, TestDocument]
    latency: dict[str, LatencyDocument]
    cells: tuple[CellDocument, ...]
    logs: dict[str, LogDocument]
    left_out: tuple[str, ...] = ()  # sentences: what was left out to keep the file small


def schema() -> dict[str, Any]:
    """The JSON Schema of all documents, as they are written: a field with a default is always there."""
    models = [each for each in globals().values() if getattr(each, "__module__", "") == __name__ and each is not schema]
    _, combined = models_json_schema([(model, "serialization") for model in models], by_alias=False, title="Documents")
    for definition in combined["$defs"].values():
        if "properties" in definition:
            definition["required"] = list(definition["properties"])
    properties = {model.__name__: {"$ref": f"#/$defs/{model.__name__}"} for model in models}
    return {**combined, "type": "object", "properties": properties, "additionalProperties": False}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
