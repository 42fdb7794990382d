"""Loads that a load generator can apply to a server."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.record import Int64, Record


class ClosedLoop(Record):
    """A closed loop: each connection keeps ``depth`` requests outstanding, and sends the next after a response."""

    kind: Literal["closed"] = "closed"  # identifies a closed loop
    connections: Int64  # number of connections
    queries: Int64 | None = None  # number of rows per request; None if requests do not specify it
    depth: Int64 = 1  # outstanding requests per connection; pipelined in HTTP/1.1
    close_after: Int64 | None = None  # number of responses after which the client replaces a connection; None for never

    @property
    def label(self) -> str:
        """A short name, for example ``c64``, ``c64 q20``, ``c256 p16`` or ``c64 r10``."""
        return _label(self) if self.close_after is None else f"{_label(self)} r{self.close_after}"


class OpenLoop(Record):
    """An open loop: requests are due at random times (Poisson), at a fixed mean rate, regardless of earlier responses.

    Latency is measured from the intended send time.
    """

    kind: Literal["open"] = "open"  # identifies an open loop
    rate: float = Field(gt=0)  # requests per second
    connections: Int64  # number of connections that requests share
    queries: Int64 | None = None  # number of rows per request; None if requests do not specify it
    depth: Literal[1] = 1  # always 1, because open loops do not use pipelining

    @property
    def label(self) -> str:
        """A short name, for example ``1000/s c64``."""
        return f"{self.rate:.0f}/s {_label(self)}"


class Scenario(Record):
    """A scenario: customers arrive at random times (Poisson), at ``factor`` times the base rates of the use cases.

    Each customer carries out a use case, which is a sequence of dependent requests.
    """

    kind: Literal["scenario"] = "scenario"  # identifies a scenario
    factor: float = Field(gt=0)  # factor by which the base arrival rates are multiplied
    connections: Int64  # maximum number of connections
    queries: None = None  # always None
    depth: Literal[1] = 1  # always 1, because scenarios do not use pipelining

    @property
    def label(self) -> str:
        """A short name, for example ``x8``."""
        return f"x{self.factor:g}"


Load = Annotated[ClosedLoop | OpenLoop | Scenario, Field(discriminator="kind")]


def keeps_connections(load: Load) -> bool:
    """Return whether a load is a closed loop with persistent connections. Every load generator supports these loads."""
    return isinstance(load, ClosedLoop) and load.close_after is None


def _label(load: ClosedLoop | OpenLoop) -> str:
    parts = [f"c{load.connections}"]
    if load.queries is not None:
        parts.append(f"q{load.queries}")
    if load.depth > 1:
        parts.append(f"p{load.depth}")
    return " ".join(parts)
