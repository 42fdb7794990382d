"""What a fault is: a name, what is promised, how it is produced, and a judgement that can fail."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from harness.faults.promises import BrokenPromise, CannotBeProducedError, hold
from harness.faults.scene import Scene

__all__ = ["BrokenPromise", "CannotBeProducedError", "Case", "Runtime", "hold"]

Runtime = Literal["any", "local", "docker"]  # any: no server is started


@dataclass(frozen=True, kw_only=True)
class Case:
    """One fault; ``produce`` makes it really happen and raises BrokenPromise where the promise was not kept."""

    name: str  # group/what
    fault: str  # what is done, in a few words
    promise: str
    produce: Callable[[Scene], None]
    runtime: Runtime = "any"

    @property
    def group(self) -> str:
        """The first part of its name."""
        return self.name.partition("/")[0]
