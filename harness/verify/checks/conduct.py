"""Checks of an implementation's process and folder, which do not depend on responses."""

import json
from collections.abc import Callable, Iterator

from harness.records.models import Outcome
from harness.verify.checks import CONDUCT, Finding, check
from harness.verify.checks.evidence import Conduct, Evidence, Folder

HERE = frozenset({CONDUCT})
STOP_SECONDS = 5.0  # after SIGTERM


def _saw(what: Callable[[Conduct], object]) -> Callable[[Evidence], bool]:
    return lambda evidence: evidence.conduct is not None and bool(what(evidence.conduct))


def _of(evidence: Evidence) -> tuple[Conduct, Outcome]:
    """Return the evidence, and the outcome of a violated rule for pull requests."""
    conduct = evidence.conduct
    assert conduct is not None  # noqa: S101 - needs
    return conduct, Outcome.FAIL if conduct.strict else Outcome.WARN


def _folder(evidence: Evidence) -> Folder:
    folder = _of(evidence)[0].folder
    assert folder is not None  # noqa: S101 - needs
    return folder


@check("process.1", HERE, lambda evidence: evidence.conduct is not None)
def database_as_told(evidence: Evidence) -> Iterator[Finding]:
    """The server connects to the database that its environment names."""
    for mistake in _of(evidence)[0].mistakes:
        yield Finding(
            f"the server {mistake}",
            expected="DBHOST, DBPORT, DBNAME, DBUSER and DBPASS read from the environment at every start",
        )


@check("process.2", HERE, _saw(lambda conduct: conduct.stopped))
def stops_when_asked(evidence: Evidence) -> Iterator[Finding]:
    """The server ends within 5 s of SIGTERM."""
    conduct, outcome = _of(evidence)
    if conduct.stop_seconds is None or conduct.stop_seconds > STOP_SECONDS:
        took = f"{conduct.stop_seconds:.1f} s" if conduct.stop_seconds is not None else "it still ran then"
        yield Finding(
            "the server does not stop after SIGTERM. Handle the signal, or start the program with exec so that no "
            "shell keeps the signal",
            expected=f"end within {STOP_SECONDS:.0f} s",
            actual=took,
            outcome=outcome,
        )


@check("process.3", HERE, _saw(lambda conduct: conduct.as_root is not None))
def not_root(evidence: Evidence) -> Iterator[Finding]:
    """The processes of the container are unprivileged."""
    if names := _of(evidence)[0].as_root:
        yield Finding(
            "the server runs as root in its container. Name an unprivileged account by USER in the Dockerfile",
            expected="an unprivileged account",
            actual=f"root: {', '.join(names[:5])}",
        )


@check("folder.1", HERE, _saw(lambda conduct: conduct.folder))
def dockerfile_complete(evidence: Evidence) -> Iterator[Finding]:
    """The Dockerfile exists, copies only existing files and names an unprivileged account."""
    _, outcome = _of(evidence)
    for wrong in _folder(evidence).whole:
        yield Finding(wrong, outcome=outcome)


@check("folder.2", HERE, _saw(lambda conduct: conduct.folder and conduct.folder.run and conduct.folder.image_command))
def same_command(evidence: Evidence) -> Iterator[Finding]:
    """The container starts what the local runtime starts."""
    _, outcome = _of(evidence)
    folder = _folder(evidence)
    if not folder.same_command:
        yield Finding(
            f"{folder.dockerfile} starts something else than local.run of {folder.file}",
            expected=f"CMD {json.dumps(folder.run)}",
            actual=f"CMD {json.dumps(folder.image_command)}" if folder.image_command else "no CMD",
            outcome=outcome,
        )


@check("folder.3", HERE, _saw(lambda conduct: conduct.folder))
def readme_written(evidence: Evidence) -> Iterator[Finding]:
    """README.md says more than ``./tfb new`` wrote."""
    _, outcome = _of(evidence)
    if wrong := _folder(evidence).readme:
        yield Finding(wrong, outcome=outcome)


@check("folder.4", HERE, _saw(lambda conduct: conduct.folder))
def maintainers_named(evidence: Evidence) -> Iterator[Finding]:
    """The configuration names a maintainer."""
    _, outcome = _of(evidence)
    folder = _folder(evidence)
    if not any(name.strip() for name in folder.maintainers):
        yield Finding(
            f"maintainers of {folder.file} is empty",
            expected='the GitHub name of whoever answers for the folder: "maintainers": ["octocat"]',
            actual=str(list(folder.maintainers)),
            outcome=outcome,
        )
