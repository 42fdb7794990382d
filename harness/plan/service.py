"""``tfb.toml``: a service of anybody's own: how it is built and started, what is asked, what a right answer is."""

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
SHELL_OPERATORS = ("&&", "||", ";", "|", "\n")  # commands: the shell stays above them
SHELL_BUILTINS = ("exec", "cd", ".", "source", "ulimit", "umask", "export")  # the shell's own
ShellCommand = Annotated[str, Field(min_length=1, max_length=10_000)]


class Service(ConfigSection):
    """How it is built and started, from the folder that holds the file; commands are the shell's.

    A command, an image that a Dockerfile describes or that is there already, a service of a compose file with what it
    depends on, or the address of one that runs already.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=60)] = "service"
    build: ShellCommand | None = None
    start: ShellCommand | None = (
        None  # listens on 127.0.0.1, at the port that PORT in its environment names; in the foreground
    )
    dockerfile: ShellCommand | None = None
    image: ShellCommand | None = None
    compose: ShellCommand | None = None
    service: ShellCommand | None = None  # of the compose file
    port: Annotated[int, Field(ge=1, le=65535)] = 8080  # that a container listens on; PORT in its environment, too
    url: Annotated[str, Field(pattern=r"^http://[^/]+$")] | None = None
    ready: Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=2000)] | None = None  # answers 200 once it is up
    env: dict[str, str] = Field(default={})
    language: str = ""  # java, kotlin, scala, …: a just-in-time compiler is given longer to warm up
    files: tuple[FileName, ...] = ()  # that git does not have, such as .env: copied from the working tree to each side
    postgres: bool = False  # whether it is given an empty database: DBHOST, DBPORT, DBNAME, DBUSER, DBPASS
    connections: ConnectionCount = 32

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if [self.start, self.dockerfile, self.image, self.compose, self.url].count(None) != 4:
            raise ValueError("one of start, dockerfile, image, compose and url says how it is started")
        if (self.compose is None) != (self.service is None):
            raise ValueError('compose = "compose.yaml" and service = "web" belong together')
        if self.postgres and self.start is None:
            raise ValueError("postgres is for a command: give a container its database by compose")
        return self

    def started_by(self, **way: str) -> "Service":
        """The same by other means: nothing is built."""
        ways = dict.fromkeys(("build", "start", "dockerfile", "image", "compose", "service", "url"))
        return self.model_copy(update={**ways, "postgres": self.postgres and "start" in way, **way})


class ServiceFile(ConfigSection):
    """The whole file."""

    service: Service
    request: tuple[Request, ...] = Field(min_length=1, max_length=50)


def read_service(folder: Path) -> ServiceFile:
    """The file of a folder; raises ConfigError that names the key and what is allowed."""
    return read_toml(folder / FILE, ServiceFile, f"{folder / FILE}: not there; ./tfb init writes one")


def service_implementation(
    file: ServiceFile,
    folder: Path,
    name: str,
    seed: int,
    asked: Path,
    kinds: Mapping[str, TestType] | None = None,
) -> Implementation:
    """Return the service of a folder as an implementation of this name.

    Its test types are ``kinds``, or the requests of the file, whose files lie in ``asked``. Raises ConfigError for
    files that lack what the requests need.
    """
    own = file.service
    build = () if own.build is None else (("sh", "-c", own.build),)
    command = own.start or "false"  # where it is no command, the runtime does not ask
    # In the shell's place, also where it begins with VARIABLE=value.
    whole = command.lstrip().partition(" ")[0] in SHELL_BUILTINS or any(
        word in command.strip() for word in SHELL_OPERATORS
    )
    start = command if whole else f"exec env {command}"
    entry = TestEntry.model_validate(
        {
            "json_url": "/",  # never asked: its requests are its own
            "language": own.language or "unknown",
            "database": "postgres" if own.postgres else "none",
            "local": LocalRun(build=build, run=("sh", "-c", start), env=own.env),
        }
    )
    kinds = declared_test_types(file.request, asked, seed) if kinds is None else kinds
    plain = [each for each in file.request if each.method == "GET" and each.expect.status == 200 and not each.headers]
    shown = (plain or file.request)[0].name
    return Implementation(
        name=name,
        variant="default",
        framework=own.name,
        folder=folder,
        maintainers=(),
        entry=entry,
        ready=own.ready or kinds[shown].requests[0].target,
        ready_at_200=bool(own.ready or plain),
        requests=kinds,
    )
