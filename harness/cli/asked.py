"""``./tfb run``, ``verify`` and ``debug``, and TechEmpower's flags, which need no verb: what they ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from harness.cli import values
from harness.cli.flags import WHAT, Flags, RunFlags, VerifyFlags, Words
from harness.errors import UsageError

# TechEmpower's flags whose work is done by something else here, with what does it.
REPLACED = {
    "--clean": "./tfb clean removes the images of runs; a run's results are a folder of results/, removed by hand",
    "--audit": "./tfb list names every broken configuration, ./tfb verify NAME checks what an implementation answers",
    "--parse": "./tfb report RUN --format techempower writes the results.json of a run again from its files",
    "--results-upload-uri": "./tfb site --output DIR makes static pages, ./tfb report --format techempower the file",
    "--extra-docker-runtime-args": "--cpuset-cpus, --test-container-memory and --network-mode limit the containers",
}
Names = Annotated[
    str, Parameter(group=WHAT, help="implementations; run: the core ones, all: all", completer=values.names)
]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a command line asks for, as it was written."""

    mode: Literal["benchmark", "verify", "debug"]
    test: Words
    flags: Flags
    listed: bool = False  # --list-tests, --list-tag
    tag: str | None = None
    new: bool = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Alone(RunFlags):
    """The flags that verbs stand for."""

    mode: Annotated[Literal["benchmark", "verify", "debug"], Parameter(alias="-m")] = "benchmark"
    test: Words = ()
    list_tests: bool = False
    list_tag: str | None = None
    new: bool = False


def run(*names: Names, flags: RunFlags = RunFlags()) -> Asked:  # noqa: B008 - frozen
    """Build, verify, measure and rank implementations; --dry-run shows the plan."""
    return Asked(mode="benchmark", test=names or ("run",), flags=flags)


def verify(*names: Names, flags: VerifyFlags = VerifyFlags()) -> Asked:  # noqa: B008 - frozen
    """Check every answer thoroughly, without load: what was expected, what came, and the rule that says so."""
    return Asked(mode="verify", test=names or ("run",), flags=flags)


def debug(*names: Names, flags: Flags = Flags()) -> Asked:  # noqa: B008 - frozen
    """Start one implementation with its database, print addresses and its log, and stay until Ctrl-C."""
    return Asked(mode="debug", test=names or ("run",), flags=flags)


def flags_alone(*, flags: _Alone = _Alone()) -> Asked:
    """TechEmpower's command line."""
    return Asked(
        mode=flags.mode,
        test=flags.test,
        flags=flags,
        listed=flags.list_tests or flags.list_tag is not None,
        tag=flags.list_tag,
        new=flags.new,
    )


def require_none_replaced(words: Sequence[str]) -> None:
    """Raise UsageError for a flag of TechEmpower's that something else stands for: it says what."""
    for word in words:
        if (flag := word.partition("=")[0]) in REPLACED:
            raise UsageError(f"{flag} is TechEmpower's; here {REPLACED[flag]}")
