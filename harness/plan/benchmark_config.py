"""Models of benchmark_config.json: TechEmpower's keys, and tfb's optional key ``local``.

Values such as ``"Realistic"`` and ``"postgres"`` are case-insensitive, as in TechEmpower. Run
``python -m harness.plan.benchmark_config`` to generate the JSON Schema in config/ from these models.
"""

import json
import re
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from harness.paths import CONFIG
from harness.plain_text import require_printable
from harness.plan.profile import ConfigSection
from harness.plan.testtypes.registry import TEST_TYPES

SCHEMA_FILE = CONFIG / "benchmark_config.schema.json"

DATABASES = ("postgres", "mysql", "mongodb", "none")
DatabaseName = Annotated[str, WithJsonSchema({"enum": list(DATABASES), "type": "string"})]
OperatingSystem = Literal["Linux", "Windows"]
# Framework and variant names, which become parts of paths and image names.
NAME = re.compile(r"^\w[\w.+@#~ -]{0,99}$")
NAME_DESCRIPTION = "a name of at most 100 characters that starts with a letter or digit and contains no /"
NAME_BYTES = 100  # low enough that two names, a suffix and a number fit into a path component of 255 bytes


def require_short(name: str) -> str:
    """Return the name unchanged. Raises ValueError if it is too long for a path component."""
    if (size := len(name.encode())) > NAME_BYTES:
        raise ValueError(f"is {size} bytes long in UTF-8; at most {NAME_BYTES} are allowed")
    return name


ConfigName = Annotated[str, Field(pattern=NAME.pattern, description=NAME_DESCRIPTION), AfterValidator(require_short)]
ConfigText = Annotated[str, Field(max_length=4000), AfterValidator(require_printable)]
# NUL and invalid Unicode need no check here, because the reader rejects files that contain them.
CommandWord = Annotated[str, Field(max_length=1 << 16)]
URL_DESCRIPTION = "a path that starts with / and contains no spaces, such as /json"
Url = Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=2000, description=URL_DESCRIPTION)]
# apt removes a package if ``-`` follows the name, and installs it if ``+`` follows the name. A name must
# therefore not end in ``-`` or a single ``+``. ``++`` is allowed, as in ``g++``.
ToolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]([A-Za-z0-9_.+-]*[A-Za-z0-9_])?(\+\+)?$", max_length=64)]
CONDITION_DESCRIPTION = "a condition such as >=20 or ==20.11"
VersionCondition = Annotated[
    str, Field(pattern=r"^(>=|==)\d{1,6}(\.\d{1,6}){0,6}$", max_length=60, description=CONDITION_DESCRIPTION)
]
PATH_DESCRIPTION = "a path inside the folder, without .. and spaces"
RelativePath = Annotated[
    str, Field(pattern=r"^\w[\w.+-]*(/\w[\w.+-]*)*$", max_length=300, description=PATH_DESCRIPTION)
]
Command = Annotated[tuple[CommandWord, ...], Field(min_length=1, max_length=1000)]
NPM_PACKAGE_NAME = r"^(@[a-z0-9~][a-z0-9._~-]*/)?[a-zA-Z0-9~][a-zA-Z0-9._~-]*$"
PackageName = Annotated[str, Field(pattern=NPM_PACKAGE_NAME, max_length=214)]
EnvironmentKey = Annotated[str, Field(pattern=r"^[^=]+$", max_length=200)]


def _no_bool(value: object) -> object:
    """Return the value unchanged. Raises ValueError for booleans, which Python treats as integers."""
    if isinstance(value, bool):
        raise ValueError("Input should be a valid integer")  # noqa: TRY004 - pydantic reports ValueError only
    return value


# Strings such as "8080" are accepted, because TechEmpower's tree contains them.
Port = Annotated[int, BeforeValidator(_no_bool), Field(ge=1, le=65535)]


class LocalRun(ConfigSection):
    """Commands that build and run an implementation without Docker, in the implementation's folder.

    ``requires`` maps a program, such as ``java``, ``maven`` or ``go``, to a version condition such as ``>=21``. tfb
    runs the program with ``--version``, ``version``, ``-V`` or ``-version`` to find the version. It puts a
    program that meets the condition first on PATH and, for ``java``, sets JAVA_HOME. ``build`` is a command or a list
    of commands. Only npm packages in ``install_scripts`` may run install scripts.
    """

    # Programs that the implementation requires, with version conditions, for example {"go": ">=1.25"}.
    requires: dict[ToolName, VersionCondition] = Field(default={})
    # Commands that build the implementation. They run in its folder before the first start.
    build: tuple[Command, ...] = ()
    run: Command  # command that starts the server in the foreground
    # Names of npm packages that may run install scripts during the build.
    install_scripts: Annotated[tuple[PackageName, ...], Field(max_length=100)] = ()
    # Environment variables for `run`. Containers do not receive them.
    env: dict[EnvironmentKey, CommandWord] = Field(default={})

    @field_validator("build", mode="before")
    @classmethod
    def _as_list_of_commands(cls, value: object) -> object:
        return [value] if isinstance(value, list) and value and isinstance(value[0], str) else value


class TestEntry(ConfigSection):
    """An implementation: an entry in ``tests`` with URLs, commands and descriptive keys."""

    __test__ = False  # prevents pytest from collecting the class

    # URL path for each test type that the implementation supports; at least one is required.
    urls: dict[str, Url] = Field(default={}, exclude=True)
    port: Port = 8080  # port on which the server listens in a container; a local server uses the variable PORT
    debug_port: Port | None = None  # accepted for compatibility with TechEmpower, and ignored
    # Style of the code: typical of production, or stripped down for the benchmark. Shown in results.
    approach: Literal["Realistic", "Stripped"] = "Realistic"
    # Scope of the framework: a full stack, a micro-framework, or only a platform. Shown in results.
    classification: Literal["Fullstack", "Micro", "Platform"] = "Micro"
    database: DatabaseName = "none"  # database that the implementation requires; tfb provides only postgres
    framework: ConfigText | None = None  # framework name in results; default: the file's `framework`
    language: ConfigText  # programming language, shown in results; a JIT-compiled language gets a longer warm-up
    flavor: ConfigText | None = None  # variant of the language, shown in results
    # How the implementation accesses the database: full ORM, micro-ORM or raw SQL. Shown in results.
    orm: Literal["Full", "Micro", "Raw", "none"] = "none"
    platform: ConfigText | None = None  # platform on which the framework runs, shown in results
    webserver: ConfigText | None = None  # web server in front of the framework, shown in results
    # Components that may determine the rank instead of the framework. Shown in results, with filters.
    http_server: ConfigText | None = None  # program or library that parses HTTP, for example Netty
    concurrency: ConfigText | None = None  # concurrency model, for example event loops or virtual threads
    database_driver: ConfigText | None = None  # library that speaks the database protocol, for example pgjdbc
    json_library: ConfigText | None = None  # library that serialises JSON
    template_engine: ConfigText | None = None  # engine that renders the fortunes page
    os: OperatingSystem = "Linux"  # server's operating system, shown in results
    database_os: OperatingSystem = "Linux"  # database's operating system, shown in results
    display_name: ConfigText | None = None  # name in TechEmpower's results; default: the implementation's name
    notes: ConfigText | None = None  # remarks, shown in results
    versus: ConfigText | None = None  # name of an implementation to compare this one with, shown in results
    # Labels for `--tag`. "core" implementations are measured by default, and "broken" implementations never run.
    tags: Annotated[tuple[ConfigText, ...], Field(max_length=100)] = ()
    dockerfile: RelativePath | None = None  # Dockerfile in the folder; default: the implementation's name + .dockerfile
    docker_cmd: CommandWord | None = None  # command that replaces the image's CMD
    # Seconds to wait between the server's first successful response and further requests. Default: 0.
    wait_before_sending_requests: Annotated[int, BeforeValidator(_no_bool), Field(ge=0, le=600)] | None = None
    # Whether the server uses io_uring if permitted. Its container may do so without consent if this clone's latest
    # commit contains this declaration. Otherwise, the user must permit it with `--allow NAME=io_uring`.
    io_uring: bool = False
    local: LocalRun | None = None  # commands for the local runtime; if missing, the implementation requires Docker

    @field_validator("database")
    @classmethod
    def _check_database(cls, value: str, info: ValidationInfo) -> str:
        """Return the database in lower case. If ``any_database`` is set in the context, accept any name."""
        if value.lower() in DATABASES or (info.context or {}).get("any_database"):
            return value.lower()
        raise ValueError(f"Input should be {', '.join(map(repr, DATABASES[:-1]))} or {DATABASES[-1]!r}")

    @field_validator("approach", "classification", "orm", "os", "database_os", mode="before")
    @classmethod
    def _normalise_case(cls, value: object, info: ValidationInfo) -> object:
        allowed = get_args(cls.model_fields[str(info.field_name)].annotation)
        return next((spelling for spelling in allowed if spelling.lower() == str(value).lower()), value)

    @field_validator(
        *("flavor", "platform", "webserver", "notes", "versus", "framework", "display_name"),
        *("http_server", "concurrency", "database_driver", "json_library", "template_engine"),
        mode="before",
    )
    @classmethod
    def _normalise_none(cls, value: object) -> object:
        return None if value in ("", "None", "none") else value

    @model_validator(mode="before")
    @classmethod
    def _collect_urls(cls, value: object) -> object:
        """Move the URL keys of all registered test types into ``urls``."""
        if not isinstance(value, dict):
            return value
        if "urls" in value:
            raise ValueError("urls: unknown key; use the keys of test types, such as json_url")
        others = {key: item for key, item in value.items() if key not in url_keys()}
        return {**others, "urls": {key: value[key] for key in url_keys() if value.get(key) is not None}}

    @model_validator(mode="after")
    def _require_url(self) -> "TestEntry":
        if not self.urls:
            raise ValueError("has no URL: add at least one of json_url, plaintext_url, db_url, …")
        return self


Tests = Annotated[dict[ConfigName, TestEntry], Field(min_length=1)]  # "default" or variant name -> implementation


class BenchmarkConfig(ConfigSection):
    """A benchmark_config.json: a framework with a ``default`` implementation and named variants."""

    framework: ConfigName  # name of the default implementation and prefix of the variants' names
    # GitHub accounts of the folder's maintainers. If missing, the project's maintainers are responsible.
    maintainers: Annotated[tuple[ConfigText, ...], Field(max_length=200)] = ()
    # Implementations: an entry named "default", and an entry for each variant.
    tests: Annotated[tuple[Tests, ...], Field(min_length=1, max_length=500)]


def url_keys() -> tuple[str, ...]:
    """Return the keys of benchmark_config.json that declare URLs, such as json_url."""
    return tuple(test_type.url_key for test_type in TEST_TYPES.values())


def json_schema() -> dict[str, Any]:
    """Return the content of config/benchmark_config.schema.json."""
    schema = BenchmarkConfig.model_json_schema()
    properties = schema["$defs"]["TestEntry"]["properties"]
    url = {"anyOf": [properties.pop("urls")["additionalProperties"], {"type": "null"}], "default": None}
    properties |= {key: {**url, "title": key.replace("_", " ").title()} for key in url_keys()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "benchmark_config.json"}


def main() -> None:
    """Write the schema file."""
    SCHEMA_FILE.write_text(json.dumps(json_schema(), indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
