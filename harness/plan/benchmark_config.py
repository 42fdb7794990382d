"""The models of benchmark_config.json: TechEmpower's keys and meanings, plus our optional ``local`` block.

Values that TechEmpower compares without case (``"Realistic"``, ``"postgres"``) are folded here, once. The JSON Schema
in config/ is generated from these models (``python -m harness.plan.benchmark_config``).
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
# Names become parts of paths (logs, verdicts, images): a letter or digit first, and no separator anywhere.
NAME = re.compile(r"^\w[\w.+@#~ -]{0,99}$")  # of a framework or variant
NAME_DESCRIPTION = "a name: a letter or digit first, at most 100 characters, no / in it"
NAME_BYTES = 100  # two names, a copy's suffix and a number are a part of a path, which has 255 bytes at most


def require_short(name: str) -> str:
    """Return a name as it is; raises ValueError for one that would make a path's part too long."""
    if (size := len(name.encode())) > NAME_BYTES:
        raise ValueError(f"has {size} bytes in UTF-8; at most {NAME_BYTES} are allowed")
    return name


ConfigName = Annotated[str, Field(pattern=NAME.pattern, description=NAME_DESCRIPTION), AfterValidator(require_short)]
ConfigText = Annotated[str, Field(max_length=4000), AfterValidator(require_printable)]
# Of a command; NUL and broken Unicode are refused where files are read.
CommandWord = Annotated[str, Field(max_length=1 << 16)]
URL_DESCRIPTION = "a path that begins with / and has no spaces, such as /json"
Url = Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=2000, description=URL_DESCRIPTION)]  # in a request line
# A program, and perhaps a package to install: no trailing ``-`` or ``+``, which tell apt to remove or to install; g++
# is a name.
ToolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]([A-Za-z0-9_.+-]*[A-Za-z0-9_])?(\+\+)?$", max_length=64)]
CONDITION_DESCRIPTION = "a condition such as >=20 or ==20.11"
VersionCondition = Annotated[
    str, Field(pattern=r"^(>=|==)\d{1,6}(\.\d{1,6}){0,6}$", max_length=60, description=CONDITION_DESCRIPTION)
]
PATH_DESCRIPTION = "a path below the folder, without .. and spaces"
RelativePath = Annotated[
    str, Field(pattern=r"^\w[\w.+-]*(/\w[\w.+-]*)*$", max_length=300, description=PATH_DESCRIPTION)
]
Command = Annotated[tuple[CommandWord, ...], Field(min_length=1, max_length=1000)]
# As npm spells the names of packages.
PACKAGE_NAME = r"^(@[a-z0-9~][a-z0-9._~-]*/)?[a-zA-Z0-9~][a-zA-Z0-9._~-]*$"
PackageName = Annotated[str, Field(pattern=PACKAGE_NAME, max_length=214)]
EnvironmentKey = Annotated[str, Field(pattern=r"^[^=]+$", max_length=200)]


def _no_bool(value: object) -> object:
    """Return the value unchanged; raise ValueError for true and false, which Python takes to be 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("Input should be a valid integer")  # noqa: TRY004 - pydantic reports ValueError only
    return value


Port = Annotated[int, BeforeValidator(_no_bool), Field(ge=1, le=65535)]  # also "9000", as TechEmpower's tree has it


class LocalRun(ConfigSection):
    """How to build and run an implementation without Docker; the working directory is its folder.

    ``requires`` maps a tool (``java``, ``maven``, ``node``, ``go``, …: any program) to a version condition such as
    ``>=21``; the chosen tool comes first on PATH (and JAVA_HOME is set). A program is asked for its version by
    ``--version``, ``version``, ``-V`` and ``-version``; one that is no common build tool only when it is needed to
    build or run. ``build`` is a command or a list of commands.
    Install scripts of npm packages do not run, but for packages that ``install_scripts`` names.
    """

    requires: dict[ToolName, VersionCondition] = Field(default={})
    build: tuple[Command, ...] = ()
    run: Command
    install_scripts: Annotated[tuple[PackageName, ...], Field(max_length=100)] = ()
    env: dict[EnvironmentKey, CommandWord] = Field(default={})

    @field_validator("build", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return [value] if isinstance(value, list) and value and isinstance(value[0], str) else value


class TestEntry(ConfigSection):
    """One implementation: an entry of ``tests``."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    urls: dict[str, Url] = Field(default={}, exclude=True)  # by the keys of the test types: json_url, …
    port: Port = 8080
    debug_port: Port | None = None
    approach: Literal["Realistic", "Stripped"] = "Realistic"
    classification: Literal["Fullstack", "Micro", "Platform"] = "Micro"
    database: DatabaseName = "none"
    framework: ConfigText | None = None
    language: ConfigText
    flavor: ConfigText | None = None
    orm: Literal["Full", "Micro", "Raw", "none"] = "none"
    platform: ConfigText | None = None
    webserver: ConfigText | None = None
    os: OperatingSystem = "Linux"
    database_os: OperatingSystem = "Linux"
    display_name: ConfigText | None = None
    notes: ConfigText | None = None
    versus: ConfigText | None = None
    tags: Annotated[tuple[ConfigText, ...], Field(max_length=100)] = ()
    dockerfile: RelativePath | None = None
    docker_cmd: CommandWord | None = None
    wait_before_sending_requests: Annotated[int, BeforeValidator(_no_bool), Field(ge=0, le=600)] | None = (
        None  # seconds
    )
    local: LocalRun | None = None

    @field_validator("database")
    @classmethod
    def _known_database(cls, value: str, info: ValidationInfo) -> str:
        """One that we know, unless the context allows ``any_database``: then it is named in lower case."""
        if value.lower() in DATABASES or (info.context or {}).get("any_database"):
            return value.lower()
        raise ValueError(f"Input should be {', '.join(map(repr, DATABASES[:-1]))} or {DATABASES[-1]!r}")

    @field_validator("approach", "classification", "orm", "os", "database_os", mode="before")
    @classmethod
    def _in_our_spelling(cls, value: object, info: ValidationInfo) -> object:
        allowed = get_args(cls.model_fields[str(info.field_name)].annotation)
        return next((ours for ours in allowed if ours.lower() == str(value).lower()), value)

    @field_validator("flavor", "platform", "webserver", "notes", "versus", "framework", "display_name", mode="before")
    @classmethod
    def _none_word(cls, value: object) -> object:
        return None if value in ("", "None", "none") else value

    @model_validator(mode="before")
    @classmethod
    def _urls_apart(cls, value: object) -> object:
        """The keys of the registered test types, gathered: a further test type needs no line here."""
        if not isinstance(value, dict):
            return value
        if "urls" in value:
            raise ValueError("urls: unknown key; each test type has a key of its own, such as json_url")
        rest = {key: item for key, item in value.items() if key not in url_keys()}
        return {**rest, "urls": {key: value[key] for key in url_keys() if value.get(key) is not None}}

    @model_validator(mode="after")
    def _has_a_url(self) -> "TestEntry":
        if not self.urls:
            raise ValueError("names no URL: give at least one of json_url, plaintext_url, db_url, …")
        return self


Tests = Annotated[dict[ConfigName, TestEntry], Field(min_length=1)]  # "default" and named variants


class BenchmarkConfig(ConfigSection):
    """The whole file: one framework with its ``default`` test and named variants."""

    framework: ConfigName
    maintainers: Annotated[tuple[ConfigText, ...], Field(max_length=200)] = ()
    tests: Annotated[tuple[Tests, ...], Field(min_length=1, max_length=500)]


def url_keys() -> tuple[str, ...]:
    """The keys that name a test type's URL."""
    return tuple(test_type.url_key for test_type in TEST_TYPES.values())


def json_schema() -> dict[str, Any]:
    """The JSON Schema that config/benchmark_config.schema.json holds."""
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
