"""The flags of a run, with shell completion. To keep ``--help`` fast, this module does not import pydantic."""

import contextlib
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter, Token
from cyclopts.validators import Number

from harness.errors import UsageError
from harness.paths import CONFIG_FILE, FRAMEWORKS, INSTALLED, PROFILES, RESULTS
from harness.records import safe_read

MAX_SECONDS = 30 * 86_400
CONFIG_BYTES = 1 << 20  # shell completion skips larger configuration files
COMMON, SELECTION, MEASUREMENT, ENVIRONMENT, OUTPUT = (
    Group(name, sort_key=number)
    for number, name in enumerate(
        ("common flags", "which implementations", "measurement", "machines and runtime", "output"), 1
    )
)


# ---- shell completion ------------------------------------------------------------------------------------------------


def complete_names(*_: object) -> list[str]:
    """Return the names of implementations and groups. Ignore broken configurations."""
    names = ["all", "run"]
    for path in sorted(FRAMEWORKS.glob(f"*/*/{CONFIG_FILE}")):
        with contextlib.suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
            document: Any = safe_read.parse_json(safe_read.read(path, CONFIG_BYTES))
            variants = [variant for tests in document["tests"] for variant in tests]
            names += [document["framework"] + ("" if each == "default" else f"-{each}") for each in variants]
    return names


def complete_languages(*_: object) -> list[str]:
    """Return the names of the language folders below frameworks/."""
    return sorted({path.parent.name for path in FRAMEWORKS.glob("*/*")})


def complete_runs(*_: object) -> list[str]:
    """Return the ids of the runs in the results folder, newest first, then the published rounds."""
    rounds = (f"round-{path.name}" for path in RESULTS.glob("rounds/*"))
    return [*sorted((path.parent.name for path in RESULTS.glob("*/run.json")), reverse=True), *rounds]


def complete_profiles(*_: object) -> list[str]:
    """Return the names of the profiles in config/profiles/."""
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


def complete_test_types(*_: object) -> list[str]:
    """Return the names of the test types. Unlike the other completions, this function imports pydantic."""
    from harness.plan.testtypes.registry import TEST_TYPES

    return [*TEST_TYPES, "all"]


# ---- value parsing ---------------------------------------------------------------------------------------------------


def parse_duration(_: object, tokens: Sequence[Token]) -> float:
    """Convert a duration such as ``90s``, ``10m``, ``1h`` or ``1h30m`` to seconds.

    Raises ValueError for other texts, for 0, and above ``MAX_SECONDS``.
    """
    text = tokens[0].value
    if match := re.fullmatch(r"(?:(\d{1,8})h)?(?:(\d{1,8})m)?(?:(\d{1,8})s?)?", text, re.ASCII):
        hours, minutes, seconds = (int(number or 0) for number in match.groups())
        if 0 < (total := 3600 * hours + 60 * minutes + seconds) <= MAX_SECONDS:
            return float(total)
    raise ValueError(f"{text[:40]!r} is not a valid duration. Use for example 90s, 10m or 1h30m, at most 720h")


def parse_integer(_: object, tokens: Sequence[Token]) -> int:
    """Parse an integer. The built-in conversion of cyclopts would turn 2.5 into 2."""
    if re.fullmatch(r"-?\d{1,18}", tokens[0].value, re.ASCII):
        return int(tokens[0].value)
    raise ValueError(f"{tokens[0].value[:40]!r} is not a whole number")


def parse_levels(flag: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Parse the values of a load flag, such as ``--concurrency-levels``, and remove duplicates.

    A value is a number or an inclusive range ``start:step:end``.
    """
    # Imported lazily, because ``./tfb --help`` does not need pydantic.
    from harness.plan.profile import MAX_LEVEL, MAX_LOADS

    levels: dict[int, None] = {}
    for text in texts:
        numbers = [int(part) for part in text.split(":") if part.isdecimal() and len(part) < 9]
        if len(numbers) != text.count(":") + 1 or len(numbers) not in (1, 3) or min(numbers) < 1:
            raise UsageError(f"{flag}: {text[:40]!r} is neither a whole number above 0 nor a sequence start:step:end")
        first, step, last = numbers if len(numbers) == 3 else (numbers[0], 1, numbers[0])
        sequence = range(first, last + 1, step)
        if not sequence or sequence[-1] > MAX_LEVEL or len(sequence) > MAX_LOADS:
            raise UsageError(f"{flag}: {text[:40]}: give 1 to {MAX_LOADS} levels, each at most {MAX_LEVEL:,}")
        levels |= dict.fromkeys(sequence)
    return tuple(levels)


def frameworks_folders(names: Sequence[str]) -> tuple[Path, ...]:
    """Return the folders in ``--frameworks``, by default frameworks/. Raises UsageError if a folder is missing."""
    folders = []
    for folder in (Path(name).resolve() for name in names):
        if not _is_folder(folder):
            raise UsageError(f"--frameworks: {folder} is not a folder")
        folders.append(folder)
    return tuple(dict.fromkeys(folders)) or (FRAMEWORKS,)


def require_clone(command: str) -> None:
    """Raise UsageError if tfb was installed as a package."""
    if INSTALLED:
        raise UsageError(
            f"{command} needs files that only a clone of tfb has, but this tfb was installed as a package. Clone the "
            "repository, and run the command in the clone"
        )


def _is_folder(path: Path) -> bool:
    """Return whether a path is a folder. Return False for an invalid path."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def results_folder(text: str | None) -> Path:
    """Return the results folder that ``--results`` names, or the default folder."""
    return Path(text) if text else RESULTS


# ---- flag definitions ------------------------------------------------------------------------------------------------


def _flag(group: Group, text: str, metavar: str | None = None, **options: Any) -> Parameter:  # noqa: ANN401 - cyclopts'
    return Parameter(group=group, help=text, metavar=metavar, **options)


def _number(group: Group, text: str, minimum: int, maximum: int, metavar: str = "N") -> Parameter:
    return _flag(group, text, metavar, converter=parse_integer, validator=Number(gte=minimum, lte=maximum))


Strings = tuple[str, ...]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MachineFlags:
    """Flags that name the machines of a run."""

    server_host: Annotated[
        str | None,
        _flag(
            ENVIRONMENT,
            "machine that runs the implementations: [user@]name[:port][=address] or context:NAME",
            "HOST",
        ),
    ] = None
    database_host: Annotated[
        str | None,
        _flag(ENVIRONMENT, "machine that runs PostgreSQL, or postgresql://host:port of an existing server", "HOST"),
    ] = None
    client_host: Annotated[
        Strings,
        _flag(ENVIRONMENT, "machine that generates load; repeat the flag to split each load across machines", "HOST"),
    ] = ()
    hosts: Annotated[
        str | None, _flag(ENVIRONMENT, "all machines, from config/hosts/NAME.toml or from the file NAME", "NAME")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CommonFlags(MachineFlags):
    """Flags of ``run``, ``verify`` and ``debug``."""

    test_dir: Annotated[
        Strings,
        _flag(
            SELECTION, "only implementations in these folders of frameworks/, for example Java or Java/vertx-web", "DIR"
        ),
    ] = ()
    test_lang: Annotated[
        Strings,
        _flag(
            SELECTION,
            "only implementations in these languages (folder names in frameworks/)",
            "LANG",
            completer=complete_languages,
        ),
    ] = ()
    tag: Annotated[Strings, _flag(SELECTION, "only implementations with any of these tags", "TAG")] = ()
    exclude: Annotated[
        Strings, _flag(SELECTION, "leave out these implementations", "NAME", completer=complete_names)
    ] = ()
    type: Annotated[
        Strings,
        _flag(
            COMMON,
            "test types, such as json or db; all: TechEmpower's types; default: the profile's (for verify: every type)",
            "TYPE",
            completer=complete_test_types,
        ),
    ] = ()
    frameworks: Annotated[
        Strings, _flag(SELECTION, "folder to search instead of frameworks/, for example TechEmpower's", "DIR")
    ] = ()
    rules: Annotated[
        Literal["techempower", "tfb"] | None,
        _flag(
            SELECTION, "verification rules; default: tfb in this project's frameworks/, techempower in other folders"
        ),
    ] = None
    runtime: Annotated[
        Literal["auto", "docker", "local"],
        _flag(COMMON, "where servers run; auto: in Docker if an engine responds, else on this machine"),
    ] = "auto"
    network_mode: Annotated[
        Literal["host", "bridge"] | None, _flag(ENVIRONMENT, "container network; default: host on Linux")
    ] = None
    cpuset_cpus: Annotated[
        str | None,
        _flag(
            ENVIRONMENT,
            "CPUs for the server, for example 0-3; the database and the load generator use the remaining CPUs",
            "CPUS",
        ),
    ] = None
    test_container_memory: Annotated[
        str | None,
        _flag(ENVIRONMENT, "memory limit for the server's container, for example 2g; default: half of the RAM", "SIZE"),
    ] = None
    test_container_pids: Annotated[
        int | None, _number(ENVIRONMENT, "process limit for the server's container; default: 4096", 16, 4_000_000, "N")
    ] = None
    server_port: Annotated[
        int | None, _number(ENVIRONMENT, "port of the server; default: a free port", 1, 65535, "PORT")
    ] = None
    allow: Annotated[
        Strings,
        _flag(ENVIRONMENT, "permit implementation NAME to use io_uring or a privileged container", "NAME=PRIVILEGE"),
    ] = ()
    force_rm: Annotated[bool, _flag(ENVIRONMENT, "remove the images that this run built")] = False
    yes: Annotated[bool, _flag(COMMON, "install missing packages and build as root without asking")] = False
    no_install: Annotated[bool, _flag(ENVIRONMENT, "never install packages")] = False
    results_name: Annotated[
        str,
        _flag(
            OUTPUT,
            "title of the run; %Y, %m and other strftime fields are replaced",
            "TITLE",
            name=("--title", "--results-name"),
        ),
    ] = "%Y-%m-%d %H:%M:%S"
    results_environment: Annotated[
        str, _flag(OUTPUT, "description of the machine in the results; default: the host name", "TEXT")
    ] = field(default_factory=socket.gethostname)
    results: Annotated[str | None, _flag(OUTPUT, f"results folder; default: {RESULTS.name}/", "DIR")] = None
    quiet: Annotated[bool, _flag(OUTPUT, "print problems only, without progress")] = False
    json: Annotated[bool, _flag(OUTPUT, "print JSON to stdout")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class VerifyFlags(CommonFlags):
    """Flags of ``verify``."""

    format: Annotated[
        Literal["text", "github", "junit", "json"], _flag(COMMON, "output format; github and junit are for CI")
    ] = "text"
    watch: Annotated[bool, _flag(COMMON, "verify again whenever a file changes")] = False
    strict: Annotated[bool, _flag(COMMON, "check all requirements for pull requests, for example a README.md")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunFlags(CommonFlags):
    """Flags of ``run``."""

    profile: Annotated[
        str | None,
        _flag(
            COMMON,
            f"profile: {', '.join(complete_profiles())} (config/profiles/), or a .toml file; default: quick",
            "NAME",
            completer=complete_profiles,
        ),
    ] = None
    time: Annotated[
        float | None,
        _flag(
            COMMON,
            "duration of the whole measurement, excluding builds; for example 90s, 10m or 1h30m",
            "TIME",
            converter=parse_duration,
            n_tokens=1,
        ),
    ] = None
    part: Annotated[
        str | None, _flag(SELECTION, "measure one part of the selection, plus the baseline; for example 3/8", "N/COUNT")
    ] = None
    dry_run: Annotated[bool, _flag(COMMON, "print the plan and the expected duration, without measuring")] = False
    resume: Annotated[
        str | bool | None,
        _flag(COMMON, "resume a run; default: the newest interrupted run", "RUN", completer=complete_runs),
    ] = None
    duration: Annotated[int | None, _number(MEASUREMENT, "duration of each trial", 1, MAX_SECONDS, "SECONDS")] = None
    processes: Annotated[
        int | None, _number(MEASUREMENT, "how many times to start and measure each implementation", 1, 10_000)
    ] = None
    concurrency_levels: Annotated[
        Strings, _flag(MEASUREMENT, "connections for json, db and fortune: numbers, or start:step:end", "N")
    ] = ()
    pipeline_concurrency_levels: Annotated[Strings, _flag(MEASUREMENT, "connections for plaintext", "N")] = ()
    query_levels: Annotated[Strings, _flag(MEASUREMENT, "queries per request for query and update", "N")] = ()
    cached_query_levels: Annotated[Strings, _flag(MEASUREMENT, "queries per request for cached-query", "N")] = ()
    order_factors: Annotated[
        Strings, _flag(MEASUREMENT, "load factors for the order service; 1 is 1,000 requests per minute", "N")
    ] = ()
    generator: Annotated[
        Literal["loadgen", "wrk"] | None, _flag(MEASUREMENT, "load generator; default: the profile's")
    ] = None
    latency_goal: Annotated[
        str | None,
        _flag(MEASUREMENT, "latency limit that defines a server's capacity, for example p99=10ms", "GOAL"),
    ] = None
    seed: Annotated[
        int | None,
        _number(MEASUREMENT, "seed for the random measurement order; default: a new seed", -(10**18) + 1, 10**18 - 1),
    ] = None
    reverse_order: Annotated[
        bool, _flag(MEASUREMENT, "measure in reverse alphabetical order instead of random order")
    ] = False
    accept_command: Annotated[
        bool, _flag(MEASUREMENT, "with --resume: execute a command that a different user or machine recorded")
    ] = False
    profiler: Annotated[
        bool, _flag(MEASUREMENT, "profile an implementation under a test type's load, and draw a flame graph")
    ] = False
