"""The file ``tfb.toml``: how to build and start a service, its requests, and the expected responses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.plan.benchmark_config import LocalRun, TestEntry
from harness.plan.implementation import Implementation
from harness.plan.profile import ConfigSection, ConnectionCount, read_toml
from harness.plan.requests import SERVICE_FILE, TOKEN, FileName, Headers, Login, PreparedRequest, Request
from harness.plan.testtypes import TestType, declared_test_types

FILE = SERVICE_FILE
TOKEN_NAME = TOKEN.strip("{}")
# Commands that contain an operator or start with a builtin need a shell, so ``exec`` cannot start them.
SHELL_OPERATORS = ("&&", "||", ";", "|", "\n")
SHELL_BUILTINS = ("exec", "cd", ".", "source", "ulimit", "umask", "export")
# Dependency folders that package managers fill from lock files.
CacheName = Literal[
    "node_modules",
    ".venv",
    "target",
    "~/.npm",
    "~/.cache/pip",
    "~/.cache/go-build",
    "~/.cargo/registry",
    "~/.m2/repository",
    "~/go/pkg/mod",
]
ShellCommand = Annotated[str, Field(min_length=1, max_length=10_000)]


class Service(ConfigSection):
    """Instructions to build and start a service. Shell commands run in the folder of tfb.toml.

    tfb starts the service with a command, from a Dockerfile or an existing image, or from a compose file that also
    starts dependencies. Alternatively, set ``url`` to the address of a running service.
    """

    # Service name in reports and record files.
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=60)] = "service"
    build: ShellCommand | None = None  # command that installs dependencies and compiles the service, once per version
    # Command that starts the service in the foreground. The service must listen on 127.0.0.1 or [::1], at the port in
    # the variable PORT.
    start: ShellCommand | None = None
    dockerfile: ShellCommand | None = None  # Dockerfile to build and run, instead of `start`
    image: ShellCommand | None = None  # existing image to run, instead of `start`
    compose: ShellCommand | None = None  # compose file, instead of `start`; requires `service`
    service: ShellCommand | None = None  # service name in the compose file
    port: Annotated[int, Field(ge=1, le=65535)] = 8080  # port on which the container listens; also in the variable PORT
    # Address of a running service, instead of `start`.
    url: Annotated[str, Field(pattern=r"^https?://[^/]+$")] | None = None
    # Unix socket on which `start` listens instead of PORT: a path in the service's folder, or an absolute path.
    listen: Annotated[str, Field(pattern=r"^unix:[!-~]+$", max_length=112)] | None = None
    tls: bool = False  # whether `start` or the container serves HTTPS; any certificate is accepted
    # Path that returns status 200 when the service is ready. Default: a declared request, preferably GET without login.
    ready: Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=2000)] | None = None
    start_seconds: Annotated[float, Field(ge=1, le=3600)] = 60.0  # time limit for the start, in seconds
    headers: Headers = Field(default={})  # headers for every request; a request can override them
    env: dict[str, str] = Field(default={})  # environment variables for the build and the server
    # Environment variables for the build only; they take precedence over `env`.
    build_env: dict[str, str] = Field(default={})
    language: str = ""  # programming language; JIT-compiled languages, such as java and kotlin, get a longer warm-up
    files: tuple[FileName, ...] = ()  # untracked files, such as .env, to copy into each version's folder
    # Dependency folders that base's build fills. tfb keeps them for later comparisons with the same lock files.
    cache: tuple[CacheName, ...] = ()
    # Whether to create an empty database for the service. The address and login are in the variables DBHOST, DBPORT,
    # DBNAME, DBUSER and DBPASS.
    postgres: bool = False
    connections: ConnectionCount = 32  # number of connections that the load generator opens
    login: Login | None = None  # request that obtains a token from each process; the token replaces {token} in headers

    @model_validator(mode="after")
    def _check_start_method(self) -> Self:
        if [self.start, self.dockerfile, self.image, self.compose, self.url].count(None) != 4:
            raise ValueError("give exactly one of start, dockerfile, image, compose and url")
        if (self.compose is None) != (self.service is None):
            raise ValueError('compose = "compose.yaml" and service = "web" must be given together')
        if self.listen and (self.start is None or ".." in self.listen.removeprefix("unix:").split("/")):
            raise ValueError(
                "listen requires start, and a path in the service's folder or an absolute path without ..: use "
                'listen = "unix:app.sock" or listen = "unix:/run/app.sock"'
            )
        if self.build_env and self.build is None:
            raise ValueError("build_env requires build: add the command, or remove build_env")
        if self.cache and self.build is None:
            raise ValueError("cache requires build: add the command, or remove cache")
        if self.postgres and self.start is None:
            raise ValueError("postgres requires start: for a container, add the database to a compose file")
        return self

    def started_by(self, **method: str) -> "Service":
        """Return the service with a different start method and without a build command."""
        cleared = dict.fromkeys(("build", "start", "dockerfile", "image", "compose", "service", "url"))
        return self.model_copy(
            update={**cleared, "cache": (), "postgres": self.postgres and "start" in method, **method}
        )


class ServiceFile(ConfigSection):
    """The content of a tfb.toml."""

    service: Service
    request: tuple[Request, ...] = Field(min_length=1, max_length=50)

    @model_validator(mode="after")
    def _add_headers(self) -> Self:
        requests = tuple(request.with_headers(self.service.headers) for request in self.request)
        object.__setattr__(self, "request", requests)
        if login := self.service.login:
            object.__setattr__(self.service, "login", login.with_headers(self.service.headers))
        return self

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        users = [
            each.name
            for each in self.request
            if TOKEN_NAME not in each.values and any(TOKEN in value for value in each.headers.values())
        ]
        if self.service.login and not users:
            raise ValueError("service.login is not used: add {token} to a request's header")
        if users and not self.service.login:
            raise ValueError(
                f"request {users[0]}: a header contains {TOKEN}: add [service.login], or define values.{TOKEN_NAME}"
            )
        return self


def read_service(folder: Path) -> ServiceFile:
    """Read the tfb.toml in a folder. Raises a ConfigError that names the key."""
    return read_toml(folder / FILE, ServiceFile, f"{folder / FILE}: does not exist; run ./tfb init to create it")


def service_implementation(
    file: ServiceFile,
    folder: Path,
    name: str,
    seed: int,
    request_folder: Path,
    kinds: Mapping[str, TestType] | None = None,
) -> Implementation:
    """Return the service in a folder as an implementation. Raises ConfigError if a request's file is unusable.

    File names in requests are relative to ``request_folder``. ``kinds`` maps request names to test types. By default,
    each declared request gets a test type.
    """
    service = file.service
    build = () if service.build is None else (("sh", "-c", service.build),)
    command = service.start or "false"  # the fallback never runs: services without `start` are started differently
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
    kinds = declared_test_types(file.request, request_folder, seed) if kinds is None else kinds
    ready = _ready_request(file, kinds)
    return Implementation(
        name=name,
        variant="default",
        framework=service.name,
        folder=folder,
        maintainers=(),
        entry=entry,
        ready_request=ready,
        ready_statuses=(ready.expect.status,) if _needs_no_login(file, ready) else range(200, 500),
        start_seconds=service.start_seconds,
        requests=kinds,
    )


def _ready_request(file: ServiceFile, kinds: Mapping[str, TestType]) -> PreparedRequest:
    """Return the request that tests whether a service is ready.

    Unless ``service.ready`` is set, prefer a GET or HEAD request that expects status 200 and adds no headers.
    """
    common_headers = {name: value for name, value in file.service.headers.items() if TOKEN not in value}
    if file.service.ready:
        hosts = {name: value for name, value in file.request[0].headers.items() if name.lower() == "host"}
        return PreparedRequest(target=file.service.ready, headers=tuple((common_headers | hosts).items()))
    open_requests = [each for each in file.request if _needs_no_login(file, kinds[each.name].requests[0])]
    safe = [each for each in open_requests if each.method in ("GET", "HEAD")]
    plain = [each for each in safe if each.expect.status == 200 and each.headers.keys() <= common_headers.keys()]
    return kinds[(plain or safe or open_requests or file.request)[0].name].requests[0]


def _needs_no_login(file: ServiceFile, request: PreparedRequest) -> bool:
    return file.service.login is None or all(TOKEN not in value for _, value in request.headers)
