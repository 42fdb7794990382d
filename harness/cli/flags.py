"""The flags of a run, TechEmpower's own and ours, and what a shell completes them with.

Loads no model: help and a key press wait for it.
"""

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

MOST = 1_000_000  # connections, or queries a request
MOST_LEVELS = 1000  # of one sweep, as of a profile's
LONGEST_SECONDS = 30 * 86_400
WHAT, HOW, WHERE, OUTPUT = (
    Group(name, sort_key=number) for number, name in enumerate(("what", "how", "where", "output"), 1)
)


# ---- what a shell completes ------------------------------------------------------------------------------------------


def complete_names(*_: object) -> list[str]:
    """Implementations, and the names of many; a broken configuration is told by every other command."""
    found = ["all", "run"]
    for path in sorted(FRAMEWORKS.glob(f"*/*/{CONFIG_FILE}")):
        with contextlib.suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
            document: Any = safe_read.parse_json(safe_read.read(path, 1 << 20))
            variants = [variant for tests in document["tests"] for variant in tests]
            found += [document["framework"] + ("" if each == "default" else f"-{each}") for each in variants]
    return found


def complete_languages(*_: object) -> list[str]:
    """The folders of frameworks/."""
    return sorted({path.parent.name for path in FRAMEWORKS.glob("*/*")})


def complete_runs(*_: object) -> list[str]:
    """Runs, newest first."""
    return sorted((path.parent.name for path in RESULTS.glob("*/run.json")), reverse=True)


def complete_profiles(*_: object) -> list[str]:
    """The profiles of config/."""
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


def complete_test_types(*_: object) -> list[str]:
    """The one list that needs the models."""
    from harness.plan.testtypes.registry import TEST_TYPES

    return [*TEST_TYPES, "all"]


# ---- what a flag's text means ----------------------------------------------------------------------------------------


def parse_duration(_: object, tokens: Sequence[Token]) -> float:
    """Seconds of a time such as ``90s``, ``10m``, ``1h`` or ``1h30m``."""
    text = tokens[0].value
    if match := re.fullmatch(r"(?:(\d{1,8})h)?(?:(\d{1,8})m)?(?:(\d{1,8})s?)?", text, re.ASCII):
        hours, minutes, seconds = (int(number or 0) for number in match.groups())
        if 0 < (found := 3600 * hours + 60 * minutes + seconds) <= LONGEST_SECONDS:
            return float(found)
    raise ValueError(f"{text[:40]!r} is not a time such as 90s, 10m or 1h30m, at most 720h")


def parse_integer(_: object, tokens: Sequence[Token]) -> int:
    """A whole number; the library would take 2.5 for 2."""
    if re.fullmatch(r"-?\d{1,18}", tokens[0].value, re.ASCII):
        return int(tokens[0].value)
    raise ValueError(f"{tokens[0].value[:40]!r} is not a whole number")


def parse_levels(flag: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Levels, and TechEmpower's sequences ``start:step:end`` (inclusive), each level once."""
    found: dict[int, None] = {}
    for word in texts:
        numbers = [int(part) for part in word.split(":") if part.isdecimal() and len(part) < 9]
        if len(numbers) != word.count(":") + 1 or len(numbers) not in (1, 3) or min(numbers) < 1:
            raise UsageError(f"{flag}: {word[:40]!r} is neither a whole number above 0 nor a sequence start:step:end")
        first, step, last = numbers if len(numbers) == 3 else (numbers[0], 1, numbers[0])
        sequence = range(first, last + 1, step)
        if not sequence or sequence[-1] > MOST or len(sequence) > MOST_LEVELS:
            raise UsageError(f"{flag}: {word[:40]}: at least one level, at most {MOST_LEVELS}, none above {MOST:,}")
        found |= dict.fromkeys(sequence)
    return tuple(found)


def frameworks_folders(names: Sequence[str]) -> tuple[Path, ...]:
    """Return other folders of implementations; raise UsageError for one that is no folder."""
    if not names and INSTALLED:  # a wheel brings none
        return ()
    folders = []
    for folder in (Path(name).resolve() for name in names):
        if not _is_folder(folder):
            raise UsageError(f"--frameworks: {folder} is not a folder")
        folders.append(folder)
    return tuple(dict.fromkeys(folders)) or (FRAMEWORKS,)


def _is_folder(path: Path) -> bool:
    """Return whether there is such a folder; a name that no file system takes is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def results_folder(text: str | None) -> Path:
    """Another results folder, for the verbs."""
    return Path(text) if text else RESULTS


# ---- the flags -------------------------------------------------------------------------------------------------------


def _flag(group: Group, text: str, metavar: str | None = None, **more: Any) -> Parameter:  # noqa: ANN401 - the library's
    return Parameter(group=group, help=text, metavar=metavar, **more)


def _number(group: Group, text: str, least: int, most: int, metavar: str = "N") -> Parameter:
    return _flag(group, text, metavar, converter=parse_integer, validator=Number(gte=least, lte=most))


Strings = tuple[str, ...]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MachineFlags:
    """The machines of a run."""

    server_host: Annotated[
        str | None, _flag(WHERE, "machine of the implementations: [user@]name[:port][=address], context:NAME", "HOST")
    ] = None
    database_host: Annotated[
        str | None, _flag(WHERE, "machine of PostgreSQL, or postgresql://host:port: one that exists", "HOST")
    ] = None
    client_host: Annotated[Strings, _flag(WHERE, "machine of the load generator; several share each load", "HOST")] = ()
    hosts: Annotated[
        str | None, _flag(WHERE, "these machines from config/hosts/NAME.toml, or a .toml file", "NAME")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CommonFlags(MachineFlags):
    """What every mode takes."""

    test_dir: Annotated[Strings, _flag(WHAT, "folders: Java, Java/vertx-web", "DIR")] = ()
    test_lang: Annotated[
        Strings, _flag(WHAT, "languages: folders of frameworks/", "LANG", completer=complete_languages)
    ] = ()
    tag: Annotated[Strings, _flag(WHAT, "with one of these tags", "TAG")] = ()
    exclude: Annotated[Strings, _flag(WHAT, "leave these out", "NAME", completer=complete_names)] = ()
    type: Annotated[
        Strings,
        _flag(
            WHAT, "json …, or all; default: the profile's; verify: all declared", "TYPE", completer=complete_test_types
        ),
    ] = ()
    frameworks: Annotated[Strings, _flag(WHAT, "other folders of implementations, TechEmpower's too", "DIR")] = ()
    rules: Annotated[Literal["techempower", "tfb"] | None, _flag(WHAT, "of verification; default: by the folder")] = (
        None
    )
    runtime: Annotated[Literal["auto", "docker", "local"], _flag(WHERE, "auto: Docker where it answers")] = "auto"
    network_mode: Annotated[
        Literal["host", "bridge"] | None, _flag(WHERE, "of the containers; default: host on Linux")
    ] = None
    cpuset_cpus: Annotated[str | None, _flag(WHERE, "CPUs of the server, such as 0-3; others get the rest", "CPUS")] = (
        None
    )
    test_container_memory: Annotated[
        str | None, _flag(WHERE, "memory limit of the server's container: 2g; default: half of this machine's", "SIZE")
    ] = None
    test_container_pids: Annotated[
        int | None, _number(WHERE, "process limit of the server's container; default: 4096", 16, 4_000_000, "N")
    ] = None
    server_port: Annotated[int | None, _number(WHERE, "fixed port; default: a free one", 1, 65535, "PORT")] = None
    allow: Annotated[Strings, _flag(WHERE, "of its container: io_uring, privileged", "NAME=WHAT")] = ()
    force_rm: Annotated[bool, _flag(WHERE, "remove the images that this run built")] = False
    yes: Annotated[bool, _flag(WHERE, "install missing packages, build as root: without asking")] = False
    no_install: Annotated[bool, _flag(WHERE, "never install packages")] = False
    results_name: Annotated[str, _flag(OUTPUT, "may hold strftime fields", "NAME")] = "%Y-%m-%d %H:%M:%S"
    results_environment: Annotated[str, _flag(OUTPUT, "default: the host's name", "TEXT")] = field(
        default_factory=socket.gethostname
    )
    results: Annotated[str | None, _flag(OUTPUT, f"another results folder; default: {RESULTS.name}/", "DIR")] = None
    quiet: Annotated[bool, _flag(OUTPUT, "no progress, problems only")] = False
    json: Annotated[bool, _flag(OUTPUT, "machine-readable output on stdout")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class VerifyFlags(CommonFlags):
    """What verification takes beside."""

    format: Annotated[Literal["text", "github", "junit", "json"], _flag(OUTPUT, "of verdicts")] = "text"
    watch: Annotated[bool, _flag(OUTPUT, "verify again whenever a file changes")] = False
    strict: Annotated[bool, _flag(OUTPUT, "fail what a pull request needs, such as README.md")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunFlags(CommonFlags):
    """What a measurement takes."""

    profile: Annotated[
        str | None, _flag(HOW, "a file of config/profiles, or a path; default quick", completer=complete_profiles)
    ] = None
    duration: Annotated[int | None, _number(HOW, "of a trial", 1, LONGEST_SECONDS, "SECONDS")] = None
    time: Annotated[
        float | None,
        _flag(HOW, "measuring time without builds: 90s, 10m, 1h30m", "TIME", converter=parse_duration, n_tokens=1),
    ] = None
    processes: Annotated[int | None, _number(HOW, "fresh processes of each, exactly", 1, 10_000)] = None
    concurrency_levels: Annotated[
        Strings, _flag(HOW, "connections of json, db and fortune; also start:step:end", "N")
    ] = ()
    pipeline_concurrency_levels: Annotated[Strings, _flag(HOW, "connections of plaintext", "N")] = ()
    query_levels: Annotated[Strings, _flag(HOW, "queries a request of query and update", "N")] = ()
    cached_query_levels: Annotated[Strings, _flag(HOW, "queries a request of cached-query", "N")] = ()
    order_factors: Annotated[Strings, _flag(HOW, "factors of the order service's arrivals", "N")] = ()
    generator: Annotated[Literal["loadgen", "wrk"] | None, _flag(HOW, "of all loads; default: the profile's")] = None
    latency_goal: Annotated[str | None, _flag(HOW, "what a capacity must hold: p99=10ms", "GOAL")] = None
    seed: Annotated[
        int | None, _number(HOW, "of the random order; default: a new one, recorded", -(10**18) + 1, 10**18 - 1)
    ] = None
    reverse_order: Annotated[bool, _flag(HOW, "by name from the end instead of random order")] = False
    resume: Annotated[
        str | bool | None,
        _flag(HOW, "go on with a run, by default the newest interrupted", "RUN", completer=complete_runs),
    ] = None
    accept_command: Annotated[
        bool, _flag(HOW, "with --resume: execute the command that a run of another machine has recorded")
    ] = False
    dry_run: Annotated[bool, _flag(HOW, "print the plan and how long it takes")] = False
    profiler: Annotated[bool, _flag(HOW, "a flame graph of one implementation under one test type's load")] = False
