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
from harness.runtime.database import restore, unrestored
from harness.runtime.database.copies import OwnDatabase, alone, connections_free, own
from harness.runtime.database.crashes import crash, size_of

logger = logging.getLogger("tfb.docker")

BEGINNINGS = 3  # that are tried, where somebody kills it while it starts
RECOVERY_SECONDS = 15.0  # what PostgreSQL has to accept connections again after one of its processes was killed


class DockerDatabase:
    """The shared PostgreSQL in its container; ``restore`` starts a new one when it has died."""

    def __init__(self, project: Project, address: DatabaseAddress, log: Path, *, guests: bool = False) -> None:
        self.address = address
        self._guests = guests
        self._project = project
        self._log = log
        self._read = 0
        self._container = self._up()

    def obituary(self) -> str | None:
        """How PostgreSQL ended since it was last restored."""
        if not self._container.alive():
            return self._container.obituary()
        return crash(self._log, self._read)

    def _up(self) -> Container:
        log = self._log.with_suffix(".compose.log")
        arguments = ("up", "--detach", "--no-build", "--force-recreate", "--wait", DATABASE)
        for left in reversed(range(BEGINNINGS)):
            done = self._project.run(*arguments, seconds=UP_SECONDS, log=log)
            with contextlib.suppress(StartError):  # without a container there is no more to say than compose did
                container = self.contained()
                if done.status == 0:
                    return container
                container.close()
            if not left or not (how := self._killed()):
                break
            logger.warning("PostgreSQL's container was ended while it started: %s; beginning again", how)
        raise StartError(
            f"PostgreSQL's container did not come up:\n{process.tail(log)}\n{process.tail(self._log)}\nlog: {self._log}"
        )

    def _killed(self) -> str:
        """How somebody has ended the container; empty where it ended by itself, or lives."""
        try:
            how = ended(self._project.container(DATABASE))
        except StartError:  # compose has made none, or somebody removed it: then compose's words say more
            return ""
        return how if how.startswith("killed by") else ""

    def contained(self) -> Container:
        """Its container, that has started."""
        return Container("PostgreSQL", self._project.container(DATABASE), self._log)

    def restore(self) -> None:
        """Copy the seeded template again, in a new container if the old one is gone."""
        if not self._container.alive():
            logger.warning("%s", self._container.obituary())
            self._container.close()
            self._container = self._up()
        until = time.monotonic() + RECOVERY_SECONDS
        while True:
            try:
                restore(self.address, guests=self._guests)
            except (StartError, psycopg.Error) as error:
                self._container.require_alive()
                if time.monotonic() > until:
                    raise StartError(f"{unrestored(error, self.address)}: {error}") from error
                time.sleep(0.1)
            else:
                self._read = size_of(self._log)
                return

    @property
    def divisible(self) -> bool:
        """It is the run's own."""
        return True

    def own(self, name: str) -> AbstractContextManager[OwnDatabase]:
        """A copy of the template for one server; where folders of another tree are among them, the one they know."""
        if self._guests:
            self.restore()
            return alone(self.address, self._container)
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
