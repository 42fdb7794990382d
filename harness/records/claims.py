"""Reads the latest verdict on each claim from claims.json in a results folder."""

from pathlib import Path

from pydantic import Field

from harness.errors import StoreError
from harness.paths import RESULTS
from harness.records.reader import first_error, newer_version_message, read_bounded
from harness.records.record import EpochSeconds, Record
from harness.records.run_folders import ROUNDS, numbered_rounds
from harness.records.verdicts import ClaimConclusion

CLAIMS_FILE = "claims.json"
CLAIMS_SCHEMA_VERSION = 2
# Folder of the published claims.json: the newest round that contains one.
PUBLISHED = next(
    (folder for folder in reversed(numbered_rounds(RESULTS / ROUNDS)) if (folder / "claims.json").exists()),
    RESULTS / ROUNDS / "1",
)


class StatementVerdict(Record):
    """The verdict on one of a claim's comparisons, with the measured values."""

    name: str
    metric: str
    of: str  # numerator of the ratio: label of a cell, or name of a value that the claim's program prints
    to: str  # denominator of the ratio: label of a cell, or name of a value that the claim's program prints
    said: str  # claimed result, for example "2.56×", "higher" or "none"
    # Ratio that the claim predicts for this machine's number of CPUs; None if the claim states only an order.
    expected: float | None = None
    theory: str = ""  # why ``expected`` differs from the claimed ratio, or why the machine is too small
    least: float | None = None  # smallest ratio that agrees with the claim; None if there is no lower limit
    most: float | None = None  # largest ratio that agrees with the claim; None if there is no upper limit
    value: float | None = None  # measured ratio, or number of errors
    low: float | None = None
    high: float | None = None
    confidence: float | None = None  # confidence level of the interval from ``low`` to ``high``
    processes: int = 0  # number of processes in ``of`` or ``to``, whichever has fewer
    figures_of: tuple[float, ...] = ()  # values of the metric in ``of``, one per process, in SI units
    figures_to: tuple[float, ...] = ()  # values of the metric in ``to``, one per process, in SI units
    context: bool = False  # whether the comparison is shown only for context and does not affect the verdict
    verdict: ClaimConclusion
    reason: str  # explanation of the verdict in a single sentence
    more: float = 0.0  # estimated number of additional processes per cell that are needed to decide the comparison
    takes: str = ""  # measurement that would decide the comparison; empty if it is decided
    remarks: tuple[str, ...] = ()  # flags that validity checks added to the measured trials


class ClaimVerdict(Record):
    """The verdict on a claim, with the measured comparisons and the conditions of the measurement."""

    claim: str
    title: str
    talk: str
    page: str
    said: str  # quotation from the talk
    conditions: str  # conditions of the measurement in the talk
    here: str = ""  # differences between this project's measurement and the talk's
    verdict: ClaimConclusion
    sentence: str  # sentence that states the verdict and the measured values
    statements: tuple[StatementVerdict, ...]
    runs: tuple[str, ...] = ()  # ids of the runs that contain the trials
    measured_at: EpochSeconds  # time of the latest measurement
    machine: str
    cpus: int
    grade: str = ""
    concerns: tuple[str, ...] = ()  # likely sources of noise on the machine
    profile: str
    runtime: str = ""
    revision: str | None = None
    dirty: bool | None = None
    figures: tuple[dict[str, float], ...] = ()  # values that the claim's program printed, one table per process


class ClaimsRecord(Record):
    """The content of claims.json: verdicts by claim name."""

    schema_version: int = CLAIMS_SCHEMA_VERSION
    verdicts: dict[str, ClaimVerdict] = Field(default_factory=dict)


def read_claims(results: Path) -> ClaimsRecord:
    """Return the recorded verdicts, or an empty record. Raises StoreError if the file is unreadable."""
    path = results / CLAIMS_FILE
    try:
        data = read_bounded(path)
        if newer := newer_version_message(data, CLAIMS_SCHEMA_VERSION):
            raise StoreError(f"{path}: {newer}")
        return ClaimsRecord.model_validate_json(data)
    except FileNotFoundError:
        return ClaimsRecord()
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: {first_error(error)}. Move the file away, then run ./tfb claims") from error


def latest_verdicts(results: Path) -> dict[str, ClaimVerdict]:
    """Return the verdicts in a results folder, and published verdicts on all other claims. Raises StoreError."""
    return {**read_claims(PUBLISHED).verdicts, **read_claims(results).verdicts}
