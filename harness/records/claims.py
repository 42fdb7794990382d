"""claims.json of a results folder: the last verdict on every claim, with what it was made from."""

from pathlib import Path

from pydantic import Field

from harness.errors import StoreError
from harness.paths import RESULTS
from harness.records.reader import first_error, newer_version_message, read_bounded
from harness.records.record import EpochSeconds, Record
from harness.records.verdicts import ClaimConclusion

CLAIMS_FILE = "claims.json"
CLAIMS_SCHEMA_VERSION = 2
PUBLISHED = RESULTS / "rounds" / "1"  # verdicts that ship with the project


class StatementVerdict(Record):
    """The verdict on one comparison of a claim, with what it was made from."""

    name: str
    metric: str
    of: str
    to: str
    said: str  # "2.56×", "higher", "none"
    expected: float | None = None  # the ratio that the claim means on this machine's CPUs
    theory: str = ""  # why that is not what was said
    least: float | None = None  # the ratios that count as what was said; None: no end on that side
    most: float | None = None
    value: float | None = None  # the ratio as measured, or the number of errors
    low: float | None = None
    high: float | None = None
    confidence: float | None = None  # of this interval
    processes: int = 0  # fresh starts that the interval rests on, of the side with fewer
    figures_of: tuple[float, ...] = ()  # of each process, SI units
    figures_to: tuple[float, ...] = ()
    context: bool = False  # the source does not say it: no part of the verdict on the claim
    verdict: ClaimConclusion
    reason: str  # one sentence
    more: float = 0.0  # processes of each that would decide more
    takes: str = ""  # the same in a sentence; empty when all is decided
    remarks: tuple[str, ...] = ()  # flags of the trials' validity checks


class ClaimVerdict(Record):
    """The verdict on one claim."""

    claim: str
    title: str
    talk: str
    page: str
    said: str
    conditions: str
    here: str = ""
    verdict: ClaimConclusion
    sentence: str  # the verdict with its figures
    statements: tuple[StatementVerdict, ...]
    runs: tuple[str, ...] = ()  # whose trials it rests on
    measured_at: EpochSeconds  # epoch seconds, of the latest
    machine: str
    cpus: int
    grade: str = ""
    concerns: tuple[str, ...] = ()  # what disturbed a measurement there
    profile: str
    runtime: str = ""
    revision: str | None = None
    dirty: bool | None = None
    figures: tuple[dict[str, float], ...] = ()  # of a program, one object a start


class ClaimsRecord(Record):
    """All verdicts, by name of the claim."""

    schema_version: int = CLAIMS_SCHEMA_VERSION
    verdicts: dict[str, ClaimVerdict] = Field(default_factory=dict)


def read_claims(results: Path) -> ClaimsRecord:
    """What is recorded; empty without a file. Raises StoreError for one that cannot be read at all."""
    path = results / CLAIMS_FILE
    try:
        data = read_bounded(path)
        if newer := newer_version_message(data, CLAIMS_SCHEMA_VERSION):
            raise StoreError(f"{path}: {newer}")
        return ClaimsRecord.model_validate_json(data)
    except FileNotFoundError:
        return ClaimsRecord()
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: {first_error(error)}; move it away to begin anew") from error


def latest_verdicts(results: Path) -> dict[str, ClaimVerdict]:
    """The verdicts of a results folder, and the published ones on what it has none of. Raises StoreError."""
    return {**read_claims(PUBLISHED).verdicts, **read_claims(results).verdicts}
