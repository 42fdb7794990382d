"""Models of the JSON documents that the dashboard's server sends to the page.

``python -m harness.dashboard.documents`` prints their JSON Schema, from which the page's TypeScript types are
generated. With ``--titles``, it prints the titles of the test types, which the page displays.
"""

import json
import sys
from typing import Any

from pydantic import Field
from pydantic.json_schema import models_json_schema

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.claims import ClaimVerdict
from harness.records.loads import Load
from harness.records.record import Record
from harness.records.run_info import RunInfo, RunStatus
from harness.records.run_records import ProcessRecord, ReadProblem, RunProgress
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord
from harness.stats.ranking_model import Comparison, Ranking, Score, Table


class RunSummary(Record):
    """An entry in the list of runs."""

    run_id: str
    title: str  # run name, or a description if the name is only a timestamp
    published: str = ""  # name of the published round that contains the run, for example "Round 1"
    lead: str = ""  # sentence that names the top-ranked implementation; empty until the run's document is generated
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
    """A folder in results/ with an unreadable run.json."""

    run_id: str
    file: str
    message: str


class PreparingRun(Record):
    """A run that has started, but has not yet written run.json."""

    run_id: str
    stage: str
    elapsed: float  # seconds since the start
    silent_for: float | None = None  # seconds since the last heartbeat; None if it was recent


class RunList(Record):
    """The user's runs, newest first, then the published runs. Also lists the folders that could not be read."""

    runs: tuple[RunSummary, ...]
    preparing: tuple[PreparingRun, ...] = ()
    broken: tuple[BrokenRun, ...]
    views: dict[str, str] = Field(default_factory=dict)  # plugins' pages: name below /views -> title


class RunDocument(Record):
    """The main document about a run, with the run's settings and the main table of each test type."""

    run: RunInfo
    title: str
    published: str = ""  # name of the published round that contains the run, for example "Round 1"
    # Test type -> metric -> summary sentences.
    sentences: dict[str, dict[str, tuple[str, ...]]] = Field(default_factory=dict)
    ranking: Ranking  # without the tables for individual loads; TestDocument contains those
    problems: tuple[ReadProblem, ...] = ()
    source_base: str | None = None  # web address of the git remote origin; None if unknown
    network_path: str  # see RunInfo.network_path

    @property
    def summary(self) -> tuple[str, ...]:
        """Return the first test type's summary for the metric that decides the ranking.

        The first sentence names the top-ranked implementation.
        """
        return next(iter(self.sentences.values()), {}).get(self.ranking.leading, ())


class CellLatency(Record):
    """A cell's latency distribution, in seconds. Mean and percentiles are medians over processes."""

    implementation: str
    load: Load
    basis: str  # how latency was measured: Latency.basis, or the description in an imported file
    percentiles: dict[str, float]
    # Percentile -> minimum and maximum over processes.
    spread: dict[str, tuple[float, float]] = Field(default_factory=dict)
    mean: float | None = None
    stdev: float | None = None
    maximum: float | None = None
    trials: int


class TestDocument(Record):
    """The ranking tables of a test type for all loads."""

    __test__ = False  # prevents pytest from collecting the class

    test_type: str
    tables: tuple[Table, ...]
    problems: tuple[ReadProblem, ...] = ()


class LatencyDocument(Record):
    """The latency of every cell of a test type. ``cells`` is empty if requests were pipelined."""

    test_type: str
    cells: tuple[CellLatency, ...]


class OverallDocument(Record):
    """Overall scores for a selection of a run's test types."""

    test_types: tuple[str, ...]
    scores: tuple[Score, ...]


class ComparisonDocument(Record):
    """A comparison of two runs."""

    comparison: Comparison
    verdict: tuple[str, ...] = ()  # summary sentences with the number of cells per verdict


class CellDocument(Record):
    """All records of an implementation and test type, without histograms and scenario arrivals."""

    implementation: str
    test_type: str
    trials: tuple[Trial, ...] = ()
    verdicts: tuple[VerificationRecord, ...] = ()
    processes: tuple[ProcessRecord, ...] = ()
    problems: tuple[ReadProblem, ...] = ()


class ClaimsDocument(Record):
    """The latest verdict on every claim. ``problem`` is empty unless the verdicts cannot be read."""

    verdicts: tuple[ClaimVerdict, ...]
    problem: str = ""


class LogDocument(Record):
    """The end of a log. ``skipped`` is the number of bytes omitted at the beginning."""

    path: str
    text: str
    skipped: int = 0


class LiveDocument(Record):
    """The state of a run in progress. It is small, because a page requests it every second."""

    status: str
    progress: RunProgress | None
    trials: tuple[Trial, ...]  # most recent trials, latest first, without windows and histograms
    version: str  # changes when trials or the ranking change
    silent_for: float | None  # seconds since the last write to the run's files; None if it was recent


class Embedded(Record):
    """All documents of a run, for a page that works without a server."""

    document: RunDocument
    tests: dict[str, TestDocument]
    latency: dict[str, LatencyDocument]
    cells: tuple[CellDocument, ...]
    logs: dict[str, LogDocument]
    left_out: tuple[str, ...] = ()  # sentences that name the data omitted to limit the file's size
    links: dict[str, str] = Field(default_factory=dict)  # other pages of the static site: title -> address


def schema() -> dict[str, Any]:
    """Return the JSON Schema of all documents. All fields are required, because defaults are serialized too."""
    models = [each for each in globals().values() if getattr(each, "__module__", "") == __name__ and each is not schema]
    _, combined = models_json_schema([(model, "serialization") for model in models], by_alias=False, title="Documents")
    for definition in combined["$defs"].values():
        if "properties" in definition:
            definition["required"] = list(definition["properties"])
    properties = {model.__name__: {"$ref": f"#/$defs/{model.__name__}"} for model in models}
    return {**combined, "type": "object", "properties": properties, "additionalProperties": False}


if __name__ == "__main__":
    titles = {name: test_type.title for name, test_type in TEST_TYPES.items()}
    print(json.dumps(titles if "--titles" in sys.argv else schema(), indent=2))
