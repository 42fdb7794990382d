"""A claim as its file states it: source, what was said, and the statements that settle it."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from harness.errors import UsageError
from harness.paths import CLAIMS
from harness.plan.profile import Section, read_toml
from harness.plan.testtypes.registry import TEST_TYPES
from harness.plan.words import suggest
from harness.records.models import Closed, Load, Scenario
from harness.stats.values import METRICS

ERRORS = "errors"  # of all requests of a cell: counted, and no ratio of two such counts is made


def _known(what: str, names: Sequence[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"no {what} {name!r}; {suggest(name, names)}")
        return name

    return AfterValidator(check)


class Cell(Section):
    """One side of a statement: an implementation on a test type under a load."""

    implementation: str
    test_type: Annotated[str, _known("test type", list(TEST_TYPES))]
    connections: int = Field(ge=1)
    queries: int | None = None
    factor: float | None = Field(default=None, gt=0)  # of the order service's arrivals

    @property
    def load(self) -> Load:
        """What it is measured under."""
        if self.factor is not None:
            return Scenario(connections=self.connections, factor=self.factor)
        return Closed(connections=self.connections, queries=self.queries)

    @property
    def key(self) -> tuple[str, str, Load]:
        """Implementation, test type and load."""
        return self.implementation, self.test_type, self.load

    @property
    def label(self) -> str:
        """``vertx-web query c512 q20``."""
        return f"{self.implementation} {self.test_type} {self.load.label}"


class Rounds(Section):
    """Equal waits on as many workers as CPUs, less some: a ratio of ceil(calls / workers) to all of them at once."""

    calls: int = Field(ge=1)
    less: int = Field(default=0, ge=0)

    def ratio(self, cpus: int) -> float:
        """On so many CPUs."""
        return math.ceil(self.calls / max(1, cpus - self.less))


class Needs(Section):
    """The requests/s that both sides have to answer for a statement to be seen."""

    of: float = Field(gt=0)
    to: float = Field(gt=0)
    why: str


class Statement(Section):
    """Of two cells a metric with a ratio or an order, of one cell whether there are errors: none, or some.

    A program has ``figures`` in their place: keys of the JSON object that it prints; some: a figure is not zero.
    """

    name: str  # unique within the claim
    metric: Annotated[str, _known("metric", [*METRICS, ERRORS])] = ""
    of: Cell | None = None
    to: Cell | None = None
    figures: tuple[str, ...] = ()
    ratio: float | None = Field(default=None, gt=0)
    order: Literal["higher", "lower", "not higher", "not lower", "none", "some"] | None = None
    tolerance: float = Field(default=0.15, gt=0)  # relative, on both sides alike as a factor
    least: float = Field(default=0.05, gt=0)  # of an order: a smaller difference is none that anybody speaks of
    substantial: bool = False  # an order by at least that
    context: bool = False  # the source does not say it: it is shown beside, and decides nothing
    why: str = ""  # what theory makes of the ratio on other CPUs, in a sentence that a reader can check
    needs: Needs | None = None
    rounds: Rounds | None = None  # the same as a formula, where it depends on the CPUs

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.ratio is None) == (self.order is None):
            raise ValueError("says exactly one of ratio and order")
        if self.cells and self.figures:
            raise ValueError("is of implementations (of, to) or of a program (figures), not of both")
        counted = self.order in ("none", "some")
        if (len(self.cells) or len(self.figures)) != (1 if counted else 2):
            raise ValueError("a ratio, and an order other than none and some, is of two: of and to, or figures")
        if (self.rounds and self.order) or (self.needs and self.figures):
            raise ValueError("rounds go with a ratio, needs with implementations")
        if self.cells and (not self.metric or (self.metric == ERRORS) != counted):
            raise ValueError("needs a metric: errors for none and some, another for a ratio or an order")
        return self

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that have to be measured."""
        return tuple(side for side in (self.of, self.to) if side)

    @property
    def said(self) -> str:
        """What the claim says, in a word."""
        if self.ratio is not None:
            return f"{self.ratio:.3g}×"
        return str(self.order)

    def expected(self, cpus: int) -> float | None:
        """The ratio that the claim means on so many CPUs; None where it says none."""
        return self.rounds.ratio(cpus) if self.rounds else self.ratio


class Claim(Section):
    """One file of config/claims."""

    name: str
    title: str  # the claim in one sentence
    talk: str
    page: str  # where in it
    said: str  # with its figures
    conditions: str  # under which it was said
    here: str = ""  # what is different wherever this project measures it
    can: bool = False  # the source says that something can be so: one statement that holds is enough
    program: tuple[str, ...] = ()  # a command, from the repository's root, that prints one JSON object of figures
    compare: tuple[Statement, ...] = Field(min_length=1)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Those of all statements."""
        return tuple(cell for each in self.compare for cell in each.cells)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [each.name for each in self.compare]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"compare: two are named {twice[0]!r}")
        if all(each.context for each in self.compare):
            raise ValueError("compare: all are context, none is the source's own")
        for each in self.compare:
            if bool(self.program) == bool(each.cells):
                raise ValueError(f"compare {each.name!r}: a program has figures, any other claim of and to")
        return self


def read(folder: Path = CLAIMS) -> dict[str, Claim]:
    """Every file of the folder, by name. Raises ConfigError for one that cannot be read, with file and key."""
    return {path.stem: read_toml(path, Claim, name=path.stem) for path in sorted(folder.glob("*.toml"))}


def chosen(claims: Mapping[str, Claim], names: Sequence[str]) -> list[Claim]:
    """The named claims, all without a name. Raises UsageError for a name that is none."""
    for name in names:
        if name not in claims:
            raise UsageError(f"no claim {name!r}; {suggest(name, list(claims))}")
    return [claims[name] for name in (names or claims)]
