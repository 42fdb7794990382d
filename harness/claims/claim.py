"""A claim as its file states it: source, what was said, and the comparisons that settle it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from harness.claims.theory import Theory
from harness.errors import UsageError
from harness.paths import CLAIMS, REPOSITORY
from harness.plan.profile import Section
from harness.plan.testtypes.registry import TEST_TYPES
from harness.plan.words import suggest
from harness.records import bounded
from harness.records.models import Closed, Load, Scenario
from harness.stats.further import METRICS

ERRORS = "errors"  # of all requests of a cell: counted, and no ratio of two such counts is made


class Cell(Section):
    """One side of a comparison: an implementation on a test type at a level."""

    implementation: str
    test_type: str
    connections: int = Field(ge=1)
    queries: int | None = None
    pipeline: int = Field(default=1, ge=1)
    factor: float | None = Field(default=None, gt=0)  # of the order service's arrivals

    @field_validator("test_type")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in TEST_TYPES:
            raise ValueError(f"no test type {name!r}; {suggest(name, list(TEST_TYPES))}")
        return name

    @property
    def level(self) -> Load:
        """Of the sweep."""
        if self.factor is not None:
            return Scenario(connections=self.connections, factor=self.factor)
        return Closed(connections=self.connections, queries=self.queries, depth=self.pipeline)

    @property
    def key(self) -> tuple[str, str, Load]:
        """Implementation, test type and level."""
        return self.implementation, self.test_type, self.level

    @property
    def label(self) -> str:
        """``vertx-web query c512 q20``."""
        return f"{self.implementation} {self.test_type} {self.level.label}"


class Comparison(Section):
    """One statement: of two cells a metric with a ratio or an order, of one cell whether there are errors.

    Of a program's figures: ``of`` and ``to`` are keys of the JSON object that it prints.
    """

    name: str  # unique within the claim
    metric: str = ""
    of: Cell | str
    to: Cell | str | None = None
    ratio: float | None = Field(default=None, gt=0)
    order: Literal["higher", "lower"] | None = None
    none: bool = False  # there are no errors
    some: bool = False  # there are errors, or the program's figure is not zero
    tolerance: float = Field(default=0.15, gt=0)  # relative, on both sides alike as a factor
    theory: Theory | None = None

    @field_validator("metric")
    @classmethod
    def _known(cls, name: str) -> str:
        if name and name not in METRICS and name != ERRORS:
            raise ValueError(f"no metric {name!r}; {suggest(name, [*METRICS, ERRORS])}")
        return name

    @model_validator(mode="after")
    def _complete(self) -> Self:
        said = [self.ratio is not None, self.order is not None, self.none, self.some]
        if sum(said) != 1:
            raise ValueError("says exactly one of ratio, order, none, some")
        if self.to is None and not (self.none or self.some):
            raise ValueError("a ratio or an order needs both of and to")
        if isinstance(self.of, Cell) and not self.metric:
            raise ValueError("names no metric")
        return self

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that have to be measured."""
        return tuple(side for side in (self.of, self.to) if isinstance(side, Cell))

    def predicted(self, cpus: int) -> float | None:
        """The ratio that the claim means on so many CPUs."""
        return self.theory.ratio(cpus) if self.theory and self.ratio is not None else self.ratio


class Program(Section):
    """A measuring program: prints one JSON object of figures; each start is one block."""

    needs: dict[str, str] = Field(default_factory=dict)  # kind of tool -> condition, as in benchmark_config.json
    command: tuple[str, ...] = Field(min_length=1)  # from the repository's root
    seconds: float = Field(default=120.0, gt=0)  # that one start may take


class Claim(Section):
    """One file of config/claims."""

    name: str
    title: str  # the claim in one sentence
    talk: str
    page: str  # where in it
    said: str  # with its figures
    conditions: str  # under which it was said
    here: str = ""  # what is different wherever this project measures it
    cpus: int | None = None  # of the claim's own machine, where it was said
    program: Program | None = None
    compare: tuple[Comparison, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [each.name for each in self.compare]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"compare: two are named {twice[0]!r}")
        for each in self.compare:
            if bool(self.program) == bool(each.cells):
                what = "figures of the program" if self.program else "cells (implementation, test_type, connections)"
                raise ValueError(f"compare {each.name!r}: of and to are {what} here")
        return self

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, each once."""
        return tuple(dict.fromkeys(cell for each in self.compare for cell in each.cells))


@dataclass(frozen=True, kw_only=True)
class Claims:
    """What was read, by name; ``problems`` name what could not be."""

    claims: Mapping[str, Claim]
    problems: tuple[str, ...] = ()

    def chosen(self, names: tuple[str, ...]) -> tuple[Claim, ...]:
        """The named claims, all without a name. Raises UsageError for a name that is none."""
        for name in names:
            if name not in self.claims:
                broken = "".join(f"\n{problem}" for problem in self.problems)
                raise UsageError(f"no claim {name!r}; {suggest(name, list(self.claims))}{broken}")
        return tuple(self.claims[name] for name in (names or self.claims))


def read(folder: Path = CLAIMS) -> Claims:
    """Every file of the folder; one that cannot be read is a problem that names file and key."""
    found: dict[str, Claim] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*.toml")):
        shown = path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path
        try:
            values = bounded.toml(path)
            found[path.stem] = Claim.model_validate({**values, "name": path.stem})
        except OSError as error:
            problems.append(f"{shown}: cannot be read: {error.strerror}")
        except ValidationError as error:
            problems.append(f"{shown}: {_complaint(error)}")
        except ValueError as error:
            problems.append(f"{shown}: {error}")
    return Claims(claims=found, problems=tuple(problems))


def _complaint(error: ValidationError) -> str:
    """The first thing that is wrong, with its key and, for an unknown one, the nearest that there is."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("Cell", "str")]
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        near = suggest(place[-1], _keys(first["loc"]))
        message = f"unknown key; {near}"
    return f"{'.'.join(place)}: {message}" if place else message


def _keys(place: tuple[int | str, ...]) -> list[str]:
    """The keys that are known where an unknown one stands."""
    words = set(place[:-1])
    if "theory" in words:
        return list(Theory.model_fields)
    if words & {"of", "to"}:
        return list(Cell.model_fields)
    if "program" in words:
        return list(Program.model_fields)
    return list(Comparison.model_fields) if "compare" in words else list(Claim.model_fields)
