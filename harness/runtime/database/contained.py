"""The shared PostgreSQL of a run in its container."""

import contextlib
import logging
import time
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg

from harness.errors import StartError
from harness.host import process
from harness.runtime import DatabaseAddress
from harness.runtime.compose import DATABASE, UP_SECONDS, Project
from harness.runtime.container import Container, ended
from harness.runtime.database import BEGINNINGS, RECOVERY_SECONDS, crash, restore, size_of
from harness.runtime.database.copies import OwnDatabase, connections_free, own

logger = logging.getLogger("tfb.docker")


class DockerDatabase:
    """The shared PostgreSQL in its container; ``restore`` starts a new one when it has died."""

    def __init__(self, project: Project, address: DatabaseAddress, log: Path, *, owned: bool = False) -> None:
        self.address = address
        self._owned = owned
        self._project = project
        self._log = log
        self._read = 0
        self._container = self._up()

    def crash_reason(self) -> str | None:
        """How PostgreSQL ended since it was last restored."""
        if not self._container.alive():
            return self._container.crash_reason()
        return crash(self._log, self._read)

    def _up(self) -> Container:
        log = self._log.with_suffix(".compose.log")
        arguments = ("up", "--detach", "--no-build", "--force-recreate", "--wait", DATABASE)
        for left in reversed(range(BEGINNINGS)):
            done = self._project.run(*arguments, seconds=UP_SECONDS, log=log)
            how = ""
            with contextlib.suppress(StartError):  # without a container there is no more to say than compose did
                how = ended(self._project.container(DATABASE)) if done.status else ""
                container = self.contained()
                if done.status == 0:
                    return container
                container.close()
            if not left or not how.startswith("killed by"):
                break
            logger.warning("PostgreSQL's container was ended while it started: %s; beginning again", how)
        raise StartError(
            f"PostgreSQL's container did not come up:\n{process.tail(log)}\n{process.tail(self._log)}\nlog: {self._log}"
        )

    def contained(self) -> Container:
        """Its container, that has started."""
        return Container("PostgreSQL", self._project.container(DATABASE), self._log)

    def restore(self) -> None:
        """Copy the seeded template again, in a new container if the old one is gone."""
        if not self._container.alive():
            logger.warning("%s", self._container.crash_reason())
            self._container.close()
            self._container = self._up()
        until = time.monotonic() + RECOVERY_SECONDS
        while True:
            try:
                restore(self.address, owned=self._owned)
            except (StartError, psycopg.Error) as error:
                self._container.require_alive()
                if time.monotonic() > until:
                    raise StartError(f"{_unrestored(error, self.address)}: {error}") from error
                time.sleep(0.1)
            else:
                self._read = size_of(self._log)
                return

    @property
    def divisible(self) -> bool:
        """It is the run's own."""
        return True

    def own(self, name: str) -> AbstractContextManager[OwnDatabase]:
        """A copy of the template for one server; where upstream folders are among them, the shared one."""
        if self._owned:  # the one whose name they have in their source
            self.restore()
            return contextlib.nullcontext(OwnDatabase(address=self.address, postgres=self._container))
        return own(self.address, name, self._container)

    def connections_free(self) -> int | None:
        """What its settings leave."""
        return connections_free(self.address)

    def meter(self) -> Container:
        """Of its control group; a reading says how it ended when it is gone."""
        return self._container

    def close(self) -> None:
        """Follow its log no longer."""
        self._container.close()


def _unrestored(error: Exception, address: DatabaseAddress) -> str:
    """Why the database is not as it should be: whether it cannot be reached at all, or did not do as it was told."""
    cause = error.__cause__ if isinstance(error, StartError) else error
    if isinstance(cause, psycopg.OperationalError) and "FATAL" not in str(cause):  # no server has answered
        return (
            f"PostgreSQL's container runs, but {address.host}:{address.port} cannot be reached from here (another "
            "network? a firewall?); --network-mode says how containers are connected, --runtime local does without them"
        )
    return "PostgreSQL could not restore the seeded state"
