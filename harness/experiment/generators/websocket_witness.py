"""Runs toolset/websocket-witness, the witness for WebSocket."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from harness.errors import LoadError
from harness.experiment.generators import LoadResult, LoadRun
from harness.experiment.generators.closed_loop_report import combine, parse_reports
from harness.records.loads import ClosedLoop
from harness.runtime import Runtime


@dataclass(frozen=True, kw_only=True)
class WebSocketWitness:
    """A WebSocket client built on tokio-tungstenite, for closed loops. It reports no latency."""

    program: str = "websocket-witness"
    name: Literal["websocket-witness"] = "websocket-witness"
    waits_for_go: bool = False

    @classmethod
    def of(cls, runtime: Runtime) -> Self:
        """Build the program if necessary, and return the generator.

        Raises EnvironmentLacksError if this machine cannot build it, or BuildError if the build fails.
        """
        return cls(program=runtime.own_generator("websocket-witness"))

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Return the arguments. Raises LoadError for loads that need loadgen."""
        load = run.load
        if not isinstance(load, ClosedLoop) or load.close_after or run.protocol != "websocket":
            raise LoadError(f"websocket-witness supports only closed loops over WebSocket, not {load.label}")
        return [
            *("--connections", str(load.connections), "--depth", str(load.depth), "--threads", str(run.threads)),
            *("--duration", str(math.ceil(run.seconds)), "--seed", str(run.seed)),
            run.url.replace("http", "ws", 1),
        ]

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """Return the combined result of all clients. Raises LoadError for invalid output."""
        return combine(parse_reports(self.name, run, output))
