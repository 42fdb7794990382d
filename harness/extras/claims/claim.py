"""The model of a claim file: the source, the quotation, and the statements to measure."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from harness.errors import UsageError
from harness.paths import CLAIMS
from harness.plan.profile import ConfigSection, read_toml
from harness.plan.suggestions import suggest
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import ClosedLoop, Load, Scenario
from harness.stats.cell_values import METRICS

ERRORS = "errors"  # number of failed requests of a cell; a count, which is never compared as a ratio


def _known(what: str, names: Sequence[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"no {what} {name!r}; {suggest(name, names)}")
        return name

    return AfterValidator(check)


class ClaimSide(ConfigSection):
    """A side of a statement: an implementation on a test type under a load."""

    implementation: str
    test_type: Annotated[str, _known("test type", list(TEST_TYPES))]
    connections: int = Field(ge=1)
    queries: int | None = None
    # Factor by which the arrival rates of the order service are multiplied.
    factor: float | None = Field(default=None, gt=0)

    @property
    def load(self) -> Load:
        """Return the load of the measurement."""
        if self.factor is not None:
            return Scenario(connections=self.connections, factor=self.factor)
        return ClosedLoop(connections=self.connections, queries=self.queries)

    @property
    def key(self) -> tuple[str, str, Load]:
        """Return implementation, test type and load."""
        return self.implementation, self.test_type, self.load

    @property
    def label(self) -> str:
        """Return the cell as text, for example ``vertx-web query c512 q20``."""
        return f"{self.implementation} {self.test_type} {self.load.label}"


class Rounds(ConfigSection):
    """A ratio of waiting times: ``calls`` equal calls on ``CPUs - less`` workers, compared with all calls at once."""

    calls: int = Field(ge=1)
    less: int = Field(default=0, ge=0)

    def ratio(self, cpus: int) -> float:
        """Return the ratio ceil(calls / workers) on a number of CPUs."""
        return math.ceil(self.calls / max(1, cpus - self.less))


class Needs(ConfigSection):
    """Requests/s that each side must reach before the effect of a statement can be observed."""

    of: float = Field(gt=0)
    to: float = Field(gt=0)
    why: str


class Statement(ConfigSection):
    """A statement of a claim: a ratio or an order of two cells, or whether a cell has errors ("none" or "some").

    A statement about a program has ``figures`` instead of cells: keys of the JSON object that the program prints.
    "some" then means that the figure is not zero.
    """

    name: str  # name that is unique within the claim
    metric: Annotated[str, _known("metric", [*METRICS, ERRORS])] = ""
    of: ClaimSide | None = None
    to: ClaimSide | None = None
    figures: tuple[str, ...] = ()
    ratio: float | None = Field(default=None, gt=0)
    order: Literal["higher", "lower", "not higher", "not lower", "none", "some"] | None = None
    # Relative tolerance t: a ratio r means the range from r / (1 + t) to r (1 + t).
    tolerance: float = Field(default=0.15, gt=0)
    least: float = Field(default=0.05, gt=0)  # smallest relative difference that is relevant in practice
    substantial: bool = False  # whether the order means a difference of at least ``least``
    context: bool = False  # added by this project; it is shown, but does not affect the verdict
    why: str = ""  # sentence that explains the expected ratio on other numbers of CPUs
    needs: Needs | None = None
    rounds: Rounds | None = None  # formula of a ratio that depends on the number of CPUs

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.ratio is None) == (self.order is None):
            raise ValueError("needs exactly one of ratio and order")
        if self.cells and self.figures:
            raise ValueError("compares implementations (of, to) or a program's figures, not both")
        counted = self.order in ("none", "some")
        if (len(self.cells) or len(self.figures)) != (1 if counted else 2):
            raise ValueError("a ratio or an order needs two sides: of and to, or two figures; none and some need one")
        if (self.rounds and self.order) or (self.needs and self.figures):
            raise ValueError("rounds requires a ratio; needs requires implementations (of, to)")
        if self.cells and (not self.metric or (self.metric == ERRORS) != counted):
            raise ValueError('needs a metric: "errors" for none and some, any other metric for a ratio or an order')
        return self

    @property
    def cells(self) -> tuple[ClaimSide, ...]:
        """Return the cells to measure."""
        return tuple(side for side in (self.of, self.to) if side)

    @property
    def said(self) -> str:
        """Return the claimed ratio or order as text, for example ``2.5×`` or ``higher``."""
        if self.ratio is not None:
            return f"{self.ratio:.3g}×"
        return str(self.order)

    def expected(self, cpus: int) -> float | None:
        """Return the ratio that the claim implies on a number of CPUs, or None if it claims no ratio."""
        return self.rounds.ratio(cpus) if self.rounds else self.ratio


class Claim(ConfigSection):
    """A claim: the content of a file in config/claims."""

    name: str
    title: str  # the claim as a sentence
    talk: str
    page: str  # place in the talk
    said: str  # quotation from the talk, with figures
    conditions: str  # conditions of the measurement in the talk
    here: str = ""  # differences between this project's measurement and the talk's
    can: bool = False  # whether the source claims a possibility, so that a single supported statement suffices
    program: tuple[str, ...] = ()  # command that prints a JSON object of figures; it runs in the root of the repository
    compare: tuple[Statement, ...] = Field(min_length=1)

    @property
    def cells(self) -> tuple[ClaimSide, ...]:
        """Return the cells of all statements."""
        return tuple(cell for each in self.compare for cell in each.cells)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [each.name for each in self.compare]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"compare: two statements are named {twice[0]!r}. Rename one of them")
        if all(each.context for each in self.compare):
            raise ValueError("compare: every statement is context. At least one must be claimed by the source")
        for each in self.compare:
            if bool(self.program) == bool(each.cells):
                raise ValueError(f"compare {each.name!r}: a program needs figures, every other claim needs of and to")
        return self


def read(folder: Path = CLAIMS) -> dict[str, Claim]:
    """Return all claim files of a folder by name. Raises ConfigError with the file and the key for an invalid file."""
    return {path.stem: read_toml(path, Claim, name=path.stem) for path in sorted(folder.glob("*.toml"))}


def chosen(claims: Mapping[str, Claim], names: Sequence[str]) -> list[Claim]:
    """Return the named claims, or all claims if no names are given. Raises UsageError for an unknown name."""
    for name in names:
        if name not in claims:
            raise UsageError(f"no claim {name!r}; {suggest(name, list(claims))}")
    return [claims[name] for name in (names or claims)]
