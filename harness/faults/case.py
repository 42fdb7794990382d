"""What a fault is: a name, what is promised, how it is produced, and a judgement that can fail."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from harness.faults.scene import Scene

Runtime = Literal["any", "local", "docker"]  # any: no server is started


class BrokenPromise(Exception):  # noqa: N818 - what it is called everywhere here
    """What was seen in place of what was promised."""


class CannotBeProducedError(Exception):
    """This machine lacks what the fault needs; says what."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One fault; ``produce`` makes it really happen and raises BrokenPromise where the promise was not kept."""

    name: str  # group/what
    fault: str  # what is done, in a few words
    promise: str
    produce: Callable[["Scene"], None]
    runtime: Runtime = "any"

    @property
    def group(self) -> str:
        """The first part of its name."""
        return self.name.partition("/")[0]


def hold(promise: bool, *, else_: str) -> None:
    """Raise BrokenPromise with what was seen unless the promise holds."""
    if not promise:
        raise BrokenPromise(else_)
