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
from harness.records.verdicts import UNCHANGED_MARGIN
from harness.stats.cell_values import METRICS

ERRORS = "errors"  # metric: the number of a cell's failed requests, which a statement claims to be zero or nonzero


def _known(what: str, names: Sequence[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"no {what} {name!r}; {suggest(name, names)}")
        return name

    return AfterValidator(check)


class ClaimSide(ConfigSection):
    """A cell that a statement compares: an implementation, a test type and a load."""

    implementation: str  # implementation name
    test_type: Annotated[str, _known("test type", list(TEST_TYPES))]  # test type name
    connections: int = Field(ge=1)  # number of connections
    queries: int | None = None  # rows per request; None for test types without a row count
    # Multiplier for the arrival rates of the order service; None for all other test types.
    factor: float | None = Field(default=None, gt=0)

    @property
    def load(self) -> Load:
        """Return the load: a scenario for the order service, otherwise a closed loop."""
        if self.factor is not None:
            return Scenario(connections=self.connections, factor=self.factor)
        return ClosedLoop(connections=self.connections, queries=self.queries)

    @property
    def key(self) -> tuple[str, str, Load]:
        """Return the key of the cell: implementation, test type and load."""
        return self.implementation, self.test_type, self.load

    @property
    def label(self) -> str:
        """Return the cell as text, for example ``vertx-web query c512 q20``."""
        return f"{self.implementation} {self.test_type} {self.load.label}"


class Rounds(ConfigSection):
    """The predicted duration of ``calls`` equal calls on ``CPUs - less`` workers, relative to a single call."""

    calls: int = Field(ge=1)  # number of calls
    less: int = Field(default=0, ge=0)  # how many fewer workers than CPUs there are

    def ratio(self, cpus: int) -> float:
        """Return the ratio that the formula yields on a machine with ``cpus`` CPUs: ceil(calls / workers)."""
        return math.ceil(self.calls / max(1, cpus - self.less))


class Needs(ConfigSection):
    """The requests/s that each implementation must reach before the claimed effect can be observed."""

    of: float = Field(gt=0)  # requests/s of the implementation in ``of``
    to: float = Field(gt=0)  # requests/s of the implementation in ``to``
    why: str  # why the effect requires these rates, as a clause


class Statement(ConfigSection):
    """A claim about the ratio or the order of two cells, or about the presence of errors in one cell.

    A statement about a program names ``figures`` instead of cells: keys of the JSON object that the program prints.
    The order "none" claims that a cell has no errors or that a figure is zero. "some" claims the opposite.
    """

    name: str  # statement name, unique within the claim
    metric: Annotated[str, _known("metric", [*METRICS, ERRORS])] = ""  # metric, for example throughput, or errors
    of: ClaimSide | None = None  # the cell in the numerator of the ratio
    to: ClaimSide | None = None  # the cell in the denominator of the ratio
    figures: tuple[str, ...] = ()  # instead of cells: keys of the program's figures, numerator first
    ratio: float | None = Field(default=None, gt=0)  # claimed ratio
    # Claimed order, instead of a ratio.
    order: Literal["higher", "lower", "not higher", "not lower", "none", "some"] | None = None
    # Relative tolerance t. The claim holds for ratios from r / (1 + t) to r (1 + t), where r is ``ratio``.
    tolerance: float = Field(default=0.15, gt=0)
    least: float = Field(default=UNCHANGED_MARGIN, gt=0)  # smallest relative difference that is relevant in practice
    substantial: bool = False  # whether the source claims a difference of at least ``least``
    context: bool = False  # True if this project added the statement, which then does not affect the verdict
    why: str = ""  # why the expected ratio depends on the number of CPUs, as a sentence
    needs: Needs | None = None  # rates below which the machine is too small to show the effect
    rounds: Rounds | None = None  # formula for a ratio that depends on the number of CPUs

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.ratio is None) == (self.order is None):
            raise ValueError("needs exactly one of `ratio` and `order`")
        if self.cells and self.figures:
            raise ValueError("compares implementations (`of`, `to`) or a program's figures, not both")
        counted = self.order in ("none", "some")
        if (len(self.cells) or len(self.figures)) != (1 if counted else 2):
            raise ValueError(
                "`ratio` and `order` need two sides: `of` and `to`, or two figures; `none` and `some` need one"
            )
        if (self.rounds and self.order) or (self.needs and self.figures):
            raise ValueError("`rounds` requires `ratio`; `needs` requires implementations (`of`, `to`)")
        if self.cells and (not self.metric or (self.metric == ERRORS) != counted):
            raise ValueError('needs a metric: "errors" for `none` and `some`, any other metric for `ratio` and `order`')
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
        """Return the ratio that the statement implies for a machine with ``cpus`` CPUs, or None for a claimed order."""
        return self.rounds.ratio(cpus) if self.rounds else self.ratio


class Claim(ConfigSection):
    """A claim made in a conference talk, as described by a file in config/claims."""

    name: str  # name of the claim
    title: str  # the claim as a sentence
    talk: str  # title and speaker of the talk
    page: str  # slide or page of the talk
    said: str  # quotation from the talk, including its figures
    conditions: str  # conditions under which the talk's figures were measured
    here: str = ""  # how this project's measurement differs from the measurement in the talk
    can: bool = False  # True if the source claims only a possibility, so one supported statement is enough
    program: tuple[str, ...] = ()  # command that prints a JSON object of figures, run in the repository root
    compare: tuple[Statement, ...] = Field(min_length=1)  # statements to measure

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
            raise ValueError(
                "compare: every statement is context, so there is nothing to judge. "
                "Remove `context` from at least one statement"
            )
        for each in self.compare:
            if bool(self.program) == bool(each.cells):
                raise ValueError(
                    f"compare {each.name!r}: a claim with `program` needs `figures`; other claims need `of` and `to`"
                )
        return self


def read_claims(folder: Path = CLAIMS) -> dict[str, Claim]:
    """Return the claims in a folder by name. Raises a ConfigError that names the invalid file and key."""
    return {path.stem: read_toml(path, Claim, name=path.stem) for path in sorted(folder.glob("*.toml"))}


def select_claims(claims: Mapping[str, Claim], names: Sequence[str]) -> list[Claim]:
    """Return the named claims, or all claims if no names are given. Raises UsageError for an unknown name."""
    for name in names:
        if name not in claims:
            raise UsageError(f"no claim {name!r}; {suggest(name, list(claims))}")
    return [claims[name] for name in (names or claims)]
