"""The shared PostgreSQL of a run in its container."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from harness.errors import StartError
from harness.host import process
from harness.runtime import DatabaseAddress
from harness.runtime.compose import DATABASE, UP_SECONDS, Project, start_error
from harness.runtime.container import Container
from harness.runtime.database.copies import RunDatabase

ContainerType = Callable[[str, str, Path], Container]  # of a name, the engine's id and a log


class DockerDatabase(RunDatabase):
    """PostgreSQL in its container."""

    def __init__(
        self, project: Project, address: DatabaseAddress, log: Path, container: ContainerType, *, owned: bool = False
    ) -> None:
        super().__init__(address, log)
        self.owned = owned
        self.project, self._type = project, container
        self._container: Container | None = None
        self.begin()

    def begin(self) -> None:
        """A new container."""
        self.close()
        log = self.log.with_suffix(".compose.log")
        arguments = ("up", "--detach", "--no-build", "--force-recreate", "--wait", DATABASE)
        with contextlib.suppress(StartError):  # it ended at once: its log says why
            done = self.project.run(*arguments, seconds=UP_SECONDS, log=log)
            self._container = self._type("PostgreSQL", self.project.container(DATABASE), self.log)
            if done.status == 0:
                return
            self.close()  # its log is whole
        said = f"{process.tail(log)}\n{process.tail(self.log)}\nlog: {self.log}"
        raise start_error(said, "PostgreSQL's container did not come up")

    def ended(self) -> str | None:
        """As its container says."""
        return None if self.meter().alive() else self.meter().crash_reason()

    def meter(self) -> Container:
        """Of its control group; a reading says how it ended when it is gone."""
        if self._container is None:
            raise StartError("PostgreSQL's container has not been started")
        return self._container

    def close(self) -> None:
        """Follow its log no longer."""
        if self._container is not None:
            self._container.close()
