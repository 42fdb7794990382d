"""A queue of whole units over a lab: each unit is the reference beside a few implementations, run on one deployment.

A unit is never split: what is compared was measured on the same machines at the same time. Pure, but for ``load``.
"""

import random
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import ConfigError
from harness.records import bounded

TOGETHER = 4  # implementations of a unit beside the reference: a fifth of the time goes to the reference


class Deployment(BaseModel):
    """Where its units are driven from, and the flags that name its machines."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    login: str | None = None  # ssh name of the machine that drives it (Slurm: its node name); None: this machine
    flags: tuple[str, ...] = ()  # of every run on it, such as --server-host app


class Lab(BaseModel):
    """All deployments (``lab.toml``, shown in docs/machines.md)."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    sets: tuple[Deployment, ...] = Field(alias="set", min_length=1)
    directory: str = "tfb"  # of the checkout on every login, below the home folder unless absolute
    partition: str | None = None  # of Slurm

    @model_validator(mode="after")
    def _unique(self) -> "Lab":
        for what in ("name", "login"):
            values = [value for each in self.sets if (value := getattr(each, what))]
            if twice := {value for value in values if values.count(value) > 1}:
                raise ValueError(f"two sets have the {what} {min(twice)!r}: each drives its own machines")
        return self

    def find(self, name: str) -> Deployment | None:
        """The deployment of this name or login."""
        return next((each for each in self.sets if name in (each.name, each.login)), None)


def load(path: Path) -> Lab:
    """Read a lab; raises ConfigError that names file, key and what is allowed."""
    try:
        return Lab.model_validate(bounded.toml(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; docs/machines.md shows a lab.toml") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {key}: {first['msg']}; docs/machines.md shows a lab.toml") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error


class Unit(BaseModel):
    """A run of its own, with one process of each implementation."""

    model_config = ConfigDict(frozen=True)

    id: str  # "0001": also the name of its results folder
    implementations: tuple[str, ...]  # the reference first
    seed: int
    seconds: float  # expected


class Queue(BaseModel):
    """queue.json: what is to be run, on what, and by which command line."""

    model_config = ConfigDict(frozen=True)

    id: str
    command: tuple[str, ...]  # of the run, as it was given; selection, processes and seed are the unit's
    reference: str
    lab: Lab
    units: tuple[Unit, ...]
    retries: int
    slurm: bool = False

    def unit(self, name: str) -> Unit | None:
        """The unit of this id."""
        return next((unit for unit in self.units if unit.id == name), None)

    @property
    def seconds(self) -> float:
        """Expected, if the deployments are equally fast and share the units evenly."""
        return sum(unit.seconds for unit in self.units) / len(self.lab.sets)


def plan(
    names: Sequence[str], reference: str, seconds: float, *, processes: int, together: int, seed: int
) -> tuple[Unit, ...]:
    """``processes`` units of each implementation, in company drawn anew each time; the reference is in all of them.

    ``seconds``: what one process is expected to take. All implementations come once, then all of them again, so that a
    queue that is cut off is short of processes and not of implementations.
    """
    shuffle = random.Random(seed)
    others = sorted(name for name in names if name != reference)
    units: list[Unit] = []
    for _ in range(processes):
        shuffle.shuffle(others)
        groups = -(-len(others) // together) or 1
        for group in range(groups):  # as even as may be: 9 by 4 is 3, 3, 3
            members = (reference, *others[group::groups])
            number = f"{len(units) + 1:04d}"
            drawn = shuffle.randrange(1 << 31)
            units.append(Unit(id=number, implementations=members, seed=drawn, seconds=seconds * len(members)))
    return tuple(units)
