"""Loads that a load generator can apply to a server."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.record import Int64, Record


class ClosedLoop(Record):
    """A closed loop: each connection keeps ``depth`` requests under way and sends the next when one is answered."""

    kind: Literal["closed"] = "closed"
    connections: Int64
    queries: Int64 | None = None  # rows that each request asks for; None where the test type has no such count
    depth: Int64 = 1  # requests under way on each connection; above 1 they are pipelined

    @property
    def label(self) -> str:
        """The load in a word: ``c64``, ``c64 q20``, ``c256 p16``."""
        return _label(self)


class OpenLoop(Record):
    """An open loop: Poisson arrivals at a rate, whatever the server does; latency from the intended send time."""

    kind: Literal["open"] = "open"
    rate: float = Field(gt=0)  # requests per second
    connections: Int64  # that the requests go over
    queries: Int64 | None = None
    depth: Literal[1] = 1

    @property
    def label(self) -> str:
        """The load in a word: ``1000/s c64``."""
        return f"{self.rate:.0f}/s {_label(self)}"


class Scenario(Record):
    """Poisson arrivals of use cases, each a sequence of dependent requests, at ``factor`` times their base rates."""

    kind: Literal["scenario"] = "scenario"
    factor: float = Field(gt=0)
    connections: Int64  # at most
    queries: None = None
    depth: Literal[1] = 1

    @property
    def label(self) -> str:
        """The load in a word: ``x8``."""
        return f"x{self.factor:g}"


Load = Annotated[ClosedLoop | OpenLoop | Scenario, Field(discriminator="kind")]


def _label(load: ClosedLoop | OpenLoop) -> str:
    parts = [f"c{load.connections}"]
    if load.queries is not None:
        parts.append(f"q{load.queries}")
    if load.depth > 1:
        parts.append(f"p{load.depth}")
    return " ".join(parts)
