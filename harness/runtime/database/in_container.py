"""A run's PostgreSQL server in a Docker container."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from harness.errors import StartError
from harness.host import process
from harness.runtime import DatabaseAddress
from harness.runtime.compose import DATABASE, UP_SECONDS, Project, start_error
from harness.runtime.container import Container
from harness.runtime.database.copies import RunDatabase

ContainerType = Callable[[str, str, Path], Container]  # arguments: name, container id and log


class DockerDatabase(RunDatabase):
    """A PostgreSQL server in a container that compose starts."""

    def __init__(
        self, project: Project, address: DatabaseAddress, log: Path, container: ContainerType, *, owned: bool = False
    ) -> None:
        super().__init__(address, log)
        self.owned = owned
        self.project, self._type = project, container
        self._container: Container | None = None
        self.start_server()

    def start_server(self) -> None:
        """Start a new container. Raises StartError or EngineFullError if it does not start."""
        self.close()
        log = self.log.with_suffix(".compose.log")
        arguments = ("up", "--detach", "--no-build", "--force-recreate", "--wait", DATABASE)
        with contextlib.suppress(StartError):  # the container has exited; the log contains the reason
            done = self.project.run(*arguments, seconds=UP_SECONDS, log=log)
            self._container = self._type("PostgreSQL", self.project.container(DATABASE), self.log)
            if done.status == 0:
                return
            self.close()  # completes the log
        logs = f"{process.tail(log)}\n{process.tail(self.log)}\nlog: {self.log}"
        raise start_error(logs, "PostgreSQL's container did not start")

    def exit_reason(self) -> str | None:
        """Return how the container exited, or None while it is running."""
        return None if self.meter().alive() else self.meter().crash_reason()

    def meter(self) -> Container:
        """Return the container, which meters its control group."""
        if self._container is None:
            raise StartError("PostgreSQL's container has not been started")
        return self._container

    def close(self) -> None:
        """Stop copying the container's log."""
        if self._container is not None:
            self._container.close()
