"""The Docker runtime: the shared PostgreSQL, one implementation at a time and wrk, each in its container."""

import platform
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from harness import process
from harness.database import connect, execute
from harness.database.embedded import ADMIN, free_port
from harness.discovery import Implementation
from harness.errors import BuildError, ServerDiedError, StartError, TfbError
from harness.metering.cgroup import CgroupMeter
from harness.model import Build
from harness.runtime import DatabaseAddress, Endpoint
from harness.runtime.compose import FOLDER, Project, docker, engine, inspect, remove_images
from harness.runtime.readiness import first_answer

BUILD_SECONDS = 3600.0  # TechEmpower's
UP_SECONDS = 120.0
DATABASE, SERVER, WRK = "tfb-database", "tfb-server", "tfb-wrk"
BASE = "debian:trixie-slim"


class Container:
    """A running container: its first process, its meter and how it ended."""

    def __init__(self, name: str, container: str) -> None:
        state = inspect("container", container)
        if state is None or not state["State"]["Running"]:
            raise StartError(f"{name}: the container exited at once: {ended(container)}")
        self.name = name
        self.id = container
        self.pid = int(state["State"]["Pid"])
        self.started = str(state["State"]["StartedAt"])
        self.meter = CgroupMeter(self.pid)

    def alive(self) -> bool:
        """Whether its first process runs; asks the kernel, not the engine, so that it costs nothing under load."""
        return Path(f"/proc/{self.pid}").exists()

    def nofile(self) -> int | None:
        """The soft limit of open files inside, or None where it cannot be read."""
        try:
            limits = Path(f"/proc/{self.pid}/limits").read_text(encoding="utf-8")
        except OSError:
            return None
        match = re.search(r"^Max open files\s+(\d+)", limits, re.MULTILINE)
        return int(match[1]) if match else None


def ended(container: str) -> str:
    """How a container ended, with its memory limit when that was the reason."""
    found = inspect("container", container)
    if found is None:
        return "it was removed"
    state = found["State"]
    if state["OOMKilled"]:
        limit = found["HostConfig"]["Memory"]
        allowed = f" of {limit / 2**20:.0f} MiB (--test-container-memory)" if limit else ""
        return f"it ran out of memory: the limit{allowed} was reached"
    return f"exit status {state['ExitCode']}{' ' + state['Error'] if state['Error'] else ''}"


class DockerServer:
    """An implementation in its container."""

    def __init__(self, implementation: Implementation, endpoint: Endpoint, container: Container, log: Path) -> None:
        self.implementation = implementation
        self.endpoint = endpoint
        self.container = container
        self.log = log
        self.first_answer = 0.0

    @property
    def meter(self) -> CgroupMeter:
        """Of its control group."""
        return self.container.meter

    def identity(self) -> str:
        """Container and start time."""
        self.require_alive()
        found = inspect("container", self.container.id)
        return f"{self.container.id}@{found['State']['StartedAt'] if found else 'removed'}"

    def require_alive(self) -> None:
        """Raises ServerDiedError with how it ended and its last lines."""
        if not self.container.alive():
            save_log(self.container.id, self.log)
            raise ServerDiedError(
                f"{self.implementation.name}: the server's container is gone: {ended(self.container.id)}\n"
                f"{process.tail(self.log)}\nlog: {self.log}"
            )


class DockerDatabase:
    """The shared PostgreSQL in its container; ``restore`` starts a new one when it has died."""

    def __init__(self, project: Project, address: DatabaseAddress, log: Path) -> None:
        self.address = address
        self._project = project
        self._log = log
        self._container = self._up()

    def _up(self) -> Container:
        done = self._project.run("up", "--detach", "--no-build", "--wait", DATABASE, seconds=UP_SECONDS, log=self._log)
        if done.status != 0:
            raise StartError(f"PostgreSQL's container did not come up:\n{process.tail(self._log)}\nlog: {self._log}")
        return Container(DATABASE, self._project.container(DATABASE))

    def restore(self) -> None:
        """Copy the seeded template again, in a new container if the old one is gone."""
        if not self._container.alive():
            self._project.run("rm", "--force", "--stop", DATABASE, seconds=UP_SECONDS, log=self._log)
            self._container = self._up()
        try:
            with connect(self.address, admin=True, name="postgres") as connection:
                execute(connection, "restore.sql")
        except psycopg.Error as error:
            raise StartError(f"PostgreSQL could not restore the seeded state: {error}") from error

    def meter(self) -> CgroupMeter:
        """Of its control group."""
        return self._container.meter


@dataclass(frozen=True, kw_only=True)
class DockerRuntime:
    """Builds images and runs containers through compose; sees the same interface as the local runtime."""

    project: Project
    logs: Path
    server_port: int | None = None
    connections: int = 0  # most that a level asks for
    force_rm: bool = False
    name: str = "docker"

    def build(self, implementation: Implementation, log: Path) -> Build:
        """Build the image; a failure is in the result, with the log's last lines."""
        log.parent.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        tag = image_tag(implementation)
        if not implementation.dockerfile.exists():
            return Build(status="skipped", reason=f"{implementation.dockerfile} does not exist")
        reason = ""
        try:
            self._build(
                SERVER,
                log,
                {
                    "TFB_SERVER_IMAGE": tag,
                    "TFB_SERVER_CONTEXT": str(implementation.folder),
                    "TFB_SERVER_DOCKERFILE": str(implementation.dockerfile),
                },
                ("--build-arg", f"TFB_TEST_NAME={implementation.name}"),
            )
        except TfbError as error:
            reason = str(error)
        image = None if reason else inspect("image", tag)
        return Build(
            status="failed" if reason else "ok",
            reason=reason,
            duration=time.monotonic() - began,
            log=f"logs/{implementation.name}/{log.name}",
            commands=(f"docker compose build {SERVER}",),
            tools={"docker": engine()},
            image=tag,
            image_digest=str(image["Id"]) if image else None,
            image_bytes=int(image["Size"]) if image else None,
        )

    def prepare(self) -> None:
        """The base image and the images of database and wrk; raises BuildError."""
        log = self.logs / "images.log"
        if inspect("image", BASE) is None:
            done = process.run([str(FOLDER / "bootstrap-base")], seconds=BUILD_SECONDS, log=log)
            if done.status != 0:
                raise BuildError(f"the base image {BASE} could not be made:\n{process.tail(log)}\nlog: {log}")
        for service in (DATABASE, WRK):
            self._build(service, log, {})

    def _build(self, service: str, log: Path, more: dict[str, str], arguments: Sequence[str] = ()) -> None:
        done = self.project.run("build", *arguments, service, seconds=BUILD_SECONDS, log=log, more=more)
        if done.status != 0:
            how = process.describe_status(done.status)
            raise BuildError(f"building the image of {service} failed ({how}):\n{process.tail(log)}\nlog: {log}")

    @contextmanager
    def database(self) -> Iterator[DockerDatabase]:
        """The shared PostgreSQL for the length of the run; its container is removed on the way out."""
        port = free_port()
        address = DatabaseAddress(
            host="127.0.0.1", port=port, admin_user=ADMIN, admin_password=secrets.token_urlsafe(12)
        )
        variables = {"TFB_DATABASE_PORT": str(port), "ADMIN_PASSWORD": address.admin_password or ""}
        project = Project(
            run_id=self.project.run_id, bridge=self.project.bridge, variables={**self.project.variables, **variables}
        )
        try:
            yield DockerDatabase(project, address, self.logs / "database.log")
        finally:
            self._save_and_remove(project)

    def _save_and_remove(self, project: Project) -> None:
        try:
            save_log(project.container(DATABASE), self.logs / "database.log")
        except StartError:
            pass  # it never came up, and the reason has been told
        finally:
            project.remove_all()
            if self.force_rm:
                remove_images(project.run_id)

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[DockerServer]:
        """A fresh container that has answered once; stopped and removed on the way out, its log kept."""
        port = self.server_port or free_port()
        more = {
            "TFB_SERVER_IMAGE": image_tag(implementation),
            "TFB_SERVER_PORT": str(port),
            "TFB_DATABASE_PORT": str(database.port),
            "TFB_DATABASE_ADDRESS": database.host,
        }
        up_log = log.with_suffix(".compose.log")
        log.touch()
        began = time.monotonic()
        try:
            container = self._up(implementation, up_log, more)
            endpoint = Endpoint(host="127.0.0.1", port=port, visible=not self.project.bridge)
            server = DockerServer(implementation, endpoint, container, log)
            self._require_files(implementation, container)
            server.first_answer = first_answer(endpoint, ready_path, began, server.require_alive)
            if wait := implementation.entry.wait_before_sending_requests:
                time.sleep(wait)
            yield server
        except StartError as error:
            self._save_server_log(log)
            raise StartError(f"{implementation.name}: {error}\n{process.tail(log)}\nlog: {log}") from error
        finally:
            self._save_server_log(log)
            self.project.run("rm", "--force", "--stop", SERVER, seconds=UP_SECONDS, log=up_log, more=more)

    def _up(self, implementation: Implementation, log: Path, more: dict[str, str]) -> Container:
        arguments = ("up", "--detach", "--no-build", "--no-deps", "--force-recreate", SERVER)
        done = self.project.run(*arguments, seconds=UP_SECONDS, log=log, more=more)
        if done.status != 0:
            raise StartError(f"its container could not be started:\n{process.tail(log)}\nlog: {log}")
        return Container(implementation.name, self.project.container(SERVER))

    def _save_server_log(self, log: Path) -> None:
        try:
            save_log(self.project.container(SERVER), log)
        except StartError:
            return  # no container, no log

    def _require_files(self, implementation: Implementation, container: Container) -> None:
        allowed = container.nofile()
        if allowed is not None and allowed < self.connections + 100:
            raise StartError(
                f"{implementation.name}: its container may open {allowed} files, {self.connections} connections need "
                "more: raise the engine's hard limit of nofile"
            )

    def wrk(self, arguments: Sequence[str]) -> Sequence[str]:
        """wrk in a container of its own, for this one load; a signal to this command reaches it."""
        if self.project.bridge:
            arguments = [word.replace("http://127.0.0.1:", f"http://{SERVER}:") for word in arguments]
        return [
            "env",
            *(f"{name}={value}" for name, value in {**self.project.variables, "TFB_RUN": self.project.run_id}.items()),
            *self.project.command("run", "--rm", "--no-deps", "--no-TTY", "--label", self._label(), WRK, *arguments),
        ]

    def _label(self) -> str:
        return f"org.tfb.run={self.project.run_id}"

    def versions(self) -> dict[str, str]:
        """Engine, wrk and PostgreSQL, as their images say."""
        found = {"docker": engine()}
        for kind, image, command in (
            ("wrk", "tfb/wrk", ("wrk", "--version")),
            ("postgres", "tfb/database", ("postgres", "--version")),
        ):
            text = docker("run", "--rm", "--network", "none", "--entrypoint", command[0], image, *command[1:]).stdout
            match = re.search(r"(\d+(?:\.\d+)+)", text)
            found[kind] = match[1] if match else "unknown"
        return found


def image_tag(implementation: Implementation) -> str:
    """The image of an implementation; a name may hold characters that a tag may not."""
    return f"tfb/{re.sub(r'[^a-z0-9._-]+', '-', implementation.name.lower()).strip('-')}"


def save_log(container: str, log: Path) -> None:
    """Copy a container's output so far to its log file."""
    log.write_text(docker("logs", container).stdout, encoding="utf-8", errors="replace")


def default_bridge() -> bool:
    """Host networking is Linux's; elsewhere the engine runs in a virtual machine."""
    return platform.system() != "Linux"
