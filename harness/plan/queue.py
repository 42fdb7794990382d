"""A queue of whole units: each is one block, the reference beside a few implementations, run on one set of machines.

A unit is never split: what is compared was measured on the same machines within the same block. Pure.
"""

import random
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from harness.plan.lab import Lab

TOGETHER = 4  # implementations of a unit beside the reference: a fifth of the time goes to the reference


class Unit(BaseModel):
    """One block: a run of its own, with one replicate of each implementation."""

    model_config = ConfigDict(frozen=True)

    id: str  # "0001": also the name of its results folder
    implementations: tuple[str, ...]  # the reference first
    seed: int
    seconds: float  # expected


class Queue(BaseModel):
    """queue.json: what is to be run, on what, and by which command line."""

    model_config = ConfigDict(frozen=True)

    id: str
    engine: str
    command: tuple[str, ...]  # of the run, as it was given; selection, replicates and seed are the unit's
    reference: str
    lab: Lab
    units: tuple[Unit, ...]
    retries: int

    def unit(self, name: str) -> Unit | None:
        """The unit of this id."""
        return next((unit for unit in self.units if unit.id == name), None)

    @property
    def seconds(self) -> float:
        """Expected, if the sets are equally fast and share the units evenly."""
        return sum(unit.seconds for unit in self.units) / len(self.lab.sets)


def plan(
    names: Sequence[str],
    reference: str,
    seconds: Mapping[str, float],
    *,
    blocks: int,
    together: int,
    seed: int,
) -> tuple[Unit, ...]:
    """``blocks`` units of each implementation, in company drawn anew each time; the reference is in all of them.

    ``seconds``: what one replicate of each is expected to take. The order is that of the turns: all implementations
    once, then all of them again, so that a queue that is cut off is short of replicates and not of implementations.
    """
    shuffle = random.Random(seed)
    others = sorted(name for name in names if name != reference)
    units: list[Unit] = []
    for _ in range(blocks):
        shuffle.shuffle(others)
        groups = -(-len(others) // together) or 1
        for group in range(groups):  # as even as may be: 9 by 4 is 3, 3, 3
            members = (reference, *others[group::groups])
            units.append(
                Unit(
                    id=f"{len(units) + 1:04d}",
                    implementations=members,
                    seed=shuffle.randrange(1 << 31),
                    seconds=sum(seconds[name] for name in members),
                )
            )
    return tuple(units)
