"""The file ``tfb.toml``: build and start of a service, requests, and expected responses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from harness.plan.benchmark_config import LocalRun, TestEntry
from harness.plan.discovery import Implementation
from harness.plan.profile import ConfigSection, ConnectionCount, read_toml
from harness.plan.requests import SERVICE_FILE, FileName, Request
from harness.plan.testtypes import TestType, declared_test_types

FILE = SERVICE_FILE
# If the command contains any of these, ``exec`` cannot replace the shell.
SHELL_OPERATORS = ("&&", "||", ";", "|", "\n")
SHELL_BUILTINS = ("exec", "cd", ".", "source", "ulimit", "umask", "export")
ShellCommand = Annotated[str, Field(min_length=1, max_length=10_000)]


class Service(ConfigSection):
    """Build and start of a service. Shell commands run in the folder of the file.

    A service is a command, an image (built from a Dockerfile, or existing), a service of a compose file with its
    dependencies, or the address of a running service.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=60)] = "service"
    build: ShellCommand | None = None
    start: ShellCommand | None = (
        None  # runs in the foreground, and listens on 127.0.0.1 at the port in the variable PORT
    )
    dockerfile: ShellCommand | None = None
    image: ShellCommand | None = None
    compose: ShellCommand | None = None
    service: ShellCommand | None = None  # name of the service in the compose file
    port: Annotated[int, Field(ge=1, le=65535)] = 8080  # port inside the container, passed to it in the variable PORT
    url: Annotated[str, Field(pattern=r"^http://[^/]+$")] | None = None
    ready: Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=2000)] | None = (
        None  # path that returns status 200 when the service is ready
    )
    env: dict[str, str] = Field(default={})
    language: str = ""  # languages with a JIT compiler, such as java or kotlin, get a longer warm-up
    files: tuple[FileName, ...] = ()  # untracked files, such as .env, that are copied into each version
    postgres: bool = False  # provide an empty database in the variables DBHOST, DBPORT, DBNAME, DBUSER and DBPASS
    connections: ConnectionCount = 32

    @model_validator(mode="after")
    def _check_start_method(self) -> Self:
        if [self.start, self.dockerfile, self.image, self.compose, self.url].count(None) != 4:
            raise ValueError("give exactly one of start, dockerfile, image, compose and url")
        if (self.compose is None) != (self.service is None):
            raise ValueError('compose = "compose.yaml" and service = "web" must be given together')
        if self.postgres and self.start is None:
            raise ValueError("postgres requires start: with a container, add the database to a compose file")
        return self

    def started_by(self, **method: str) -> "Service":
        """Return the service with a different start method and without a build command."""
        cleared = dict.fromkeys(("build", "start", "dockerfile", "image", "compose", "service", "url"))
        return self.model_copy(update={**cleared, "postgres": self.postgres and "start" in method, **method})


class ServiceFile(ConfigSection):
    """The content of a tfb.toml."""

    service: Service
    request: tuple[Request, ...] = Field(min_length=1, max_length=50)


def read_service(folder: Path) -> ServiceFile:
    """Read the tfb.toml in a folder. Raises a ConfigError that names the key."""
    return read_toml(folder / FILE, ServiceFile, f"{folder / FILE}: does not exist; run ./tfb init to create it")


def service_implementation(
    file: ServiceFile,
    folder: Path,
    name: str,
    seed: int,
    asked: Path,
    kinds: Mapping[str, TestType] | None = None,
) -> Implementation:
    """Return the service in a folder as an implementation.

    Args:
        file: The content of the service's tfb.toml.
        folder: The folder in which to build the service.
        name: Name of the implementation.
        seed: Seed of random values in requests.
        asked: Folder that the file names in requests are relative to.
        kinds: Test types; default: one for each request in the file.

    Raises:
        ConfigError: A file of a request cannot be read, or lacks a column.
    """
    service = file.service
    build = () if service.build is None else (("sh", "-c", service.build),)
    command = service.start or "false"  # never runs with other start methods
    is_builtin = command.lstrip().partition(" ")[0] in SHELL_BUILTINS
    needs_shell = is_builtin or any(operator in command.strip() for operator in SHELL_OPERATORS)
    start = command if needs_shell else f"exec env {command}"  # env accepts leading VARIABLE=value words
    entry = TestEntry.model_validate(
        {
            "json_url": "/",  # required by the model, but not used
            "language": service.language or "unknown",
            "database": "postgres" if service.postgres else "none",
            "local": LocalRun(build=build, run=("sh", "-c", start), env=service.env),
        }
    )
    kinds = declared_test_types(file.request, asked, seed) if kinds is None else kinds
    plain = [each for each in file.request if each.method == "GET" and each.expect.status == 200 and not each.headers]
    probed = (plain or file.request)[0].name
    return Implementation(
        name=name,
        variant="default",
        framework=service.name,
        folder=folder,
        maintainers=(),
        entry=entry,
        ready=service.ready or kinds[probed].requests[0].target,
        ready_at_200=bool(service.ready or plain),
        requests=kinds,
    )
