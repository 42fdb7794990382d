"""What theory predicts of a ratio on so many CPUs, where a claim's figure depends on them. Closed forms, no fits."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import Field, field_validator

from harness.plan.profile import Section

COUNT = re.compile(r"(?:(?P<number>\d+)|(?P<times>\d+ \* )?cpus(?P<less> - \d+)?)")


def count(text: str, cpus: int) -> int:
    """``4``, ``cpus``, ``2 * cpus`` or ``cpus - 1`` as a number, at least 1. Raises ValueError for anything else."""
    match = COUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is none of 4, cpus, 2 * cpus, cpus - 1")
    if match["number"]:
        return max(1, int(match["number"]))
    times = int(match["times"].split()[0]) if match["times"] else 1
    less = int(match["less"].split()[1]) if match["less"] else 0
    return max(1, times * cpus - less)


class Theory(Section):
    """A law and what it needs of both sides; ``at_once``: calls that run at the same time, threads of a pool.

    - ``rounds``: time of ``calls`` equal waits of which so many run at once: ceil(calls / at once).
    - ``queue``: mean time in a closed loop of so many connections on so many threads that wait equally long: as many
      waits as connections a thread, at least one (Little 1961: N = X R with X = threads / wait).
    - ``pool``: throughput of the same: connections or threads in their wait at once, whichever are fewer.
    """

    law: Literal["rounds", "queue", "pool"]
    calls: int = Field(default=1, ge=1)
    of_at_once: str
    to_at_once: str
    of_connections: int = Field(default=1, ge=1)
    to_connections: int = Field(default=1, ge=1)
    why: str  # a sentence that a reader can check

    @field_validator("of_at_once", "to_at_once")
    @classmethod
    def _readable(cls, text: str) -> str:
        count(text, 1)
        return text

    def ratio(self, cpus: int) -> float:
        """The predicted ratio on so many CPUs."""
        law = LAWS[self.law]
        of = law(self.calls, count(self.of_at_once, cpus), self.of_connections)
        return of / law(self.calls, count(self.to_at_once, cpus), self.to_connections)


LAWS: Mapping[str, Callable[[int, int, int], float]] = {
    "rounds": lambda calls, at_once, _: float(math.ceil(calls / at_once)),
    "queue": lambda _, at_once, connections: max(1.0, connections / at_once),
    "pool": lambda _, at_once, connections: float(min(at_once, connections)),
}
