"""A server in a container, wherever its engine is: what the container knows is all that is asked of it."""

from pathlib import Path
from typing import Generic, Protocol, TypeVar

from harness.plan.discovery import Implementation
from harness.runtime import Endpoint, Meter, Upstream


class Inside(Meter, Protocol):
    """The container of a server."""

    log: Path

    def identity(self) -> str:
        """Changes when it is started again."""

    def require_alive(self) -> None:
        """Raises ServerDiedError with how it ended and its last lines."""


ContainerT = TypeVar("ContainerT", bound=Inside)


class ContainedServer(Generic[ContainerT]):
    """An implementation in its container."""

    def __init__(self, implementation: Implementation, endpoint: Endpoint, container: ContainerT) -> None:
        self.implementation = implementation
        self.endpoint = endpoint
        self.meter = container
        self.log = container.log
        self.first_answer = 0.0
        self.upstream: Upstream | None = None

    def identity(self) -> str:
        """Of its container and first process; raises ServerDiedError when it is gone."""
        self.require_alive()
        return self.meter.identity()

    def require_alive(self) -> None:
        """Raises what its container does."""
        self.meter.require_alive()
