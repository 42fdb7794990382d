"""Checks for an implementation's process and folder, independent of responses."""

import json
from collections.abc import Callable, Iterator

from harness.host.process import STOP_SECONDS
from harness.records.verification_record import Outcome
from harness.verify.checks import CONDUCT, Finding, check
from harness.verify.checks.evidence import ConductFacts, Evidence, FolderFacts

CONDUCT_ONLY = frozenset({CONDUCT})


def _observed(select: Callable[[ConductFacts], object]) -> Callable[[Evidence], bool]:
    return lambda evidence: evidence.conduct is not None and bool(select(evidence.conduct))


def _facts(evidence: Evidence) -> tuple[ConductFacts, Outcome]:
    """Return the facts, and the outcome to report for a violation of a folder rule or of the rule about SIGTERM.

    These rules are binding in pull requests (``strict``). Elsewhere, violations are warnings.
    """
    conduct = evidence.conduct
    assert conduct is not None  # noqa: S101 - guaranteed by ``needs``
    return conduct, Outcome.FAIL if conduct.strict else Outcome.WARN


def _folder(evidence: Evidence) -> FolderFacts:
    folder = _facts(evidence)[0].folder
    assert folder is not None  # noqa: S101 - guaranteed by ``needs``
    return folder


@check("process.1", CONDUCT_ONLY, lambda evidence: evidence.conduct is not None)
def database_as_told(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server connects to the database that the environment variables specify."""
    for mistake in _facts(evidence)[0].database_mistakes:
        yield Finding(
            f"the server {mistake}",
            expected="DBHOST, DBPORT, DBNAME, DBUSER and DBPASS read from the environment at every start",
        )


@check("process.2", CONDUCT_ONLY, _observed(lambda conduct: conduct.stop_requested))
def stops_when_asked(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server exits within 5 s of SIGTERM."""
    conduct, outcome = _facts(evidence)
    if conduct.stop_seconds is None or conduct.stop_seconds > STOP_SECONDS:
        yield Finding(
            "the server does not stop after SIGTERM. Handle the signal, or start the program with exec so that the "
            "signal reaches it instead of a shell",
            expected=f"exit within {STOP_SECONDS:.0f} s",
            actual="still running" if conduct.stop_seconds is None else f"exit after {conduct.stop_seconds:.1f} s",
            outcome=outcome,
        )


@check("process.3", CONDUCT_ONLY, _observed(lambda conduct: conduct.root_processes is not None))
def not_root(evidence: Evidence) -> Iterator[Finding]:
    """Require that no process in the container runs as root."""
    if names := _facts(evidence)[0].root_processes:
        yield Finding(
            "the server runs as root in the container. Specify an unprivileged account with USER in the Dockerfile",
            expected="an unprivileged account",
            actual=f"root: {', '.join(names[:5])}",
        )


@check("folder.1", CONDUCT_ONLY, _observed(lambda conduct: conduct.folder))
def dockerfile_complete(evidence: Evidence) -> Iterator[Finding]:
    """Require a Dockerfile that copies only existing files and names an unprivileged account."""
    _, outcome = _facts(evidence)
    for defect in _folder(evidence).dockerfile_defects:
        yield Finding(defect, outcome=outcome)


@check(
    "folder.2",
    CONDUCT_ONLY,
    _observed(lambda conduct: conduct.folder and conduct.folder.local_command and conduct.folder.image_command),
)
def same_command(evidence: Evidence) -> Iterator[Finding]:
    """Require that the container and the local runtime start the same command."""
    _, outcome = _facts(evidence)
    folder = _folder(evidence)
    if not folder.same_command:
        yield Finding(
            f"the command in {folder.dockerfile} differs from local.run in {folder.config_file}. Use the same command "
            "in both",
            expected=f"CMD {json.dumps(folder.local_command)}",
            actual=f"CMD {json.dumps(folder.image_command)}" if folder.image_command else "no CMD",
            outcome=outcome,
        )
    if folder.missing_variables:
        assignments = " ".join(folder.missing_variables)
        yield Finding(
            f"{folder.dockerfile} does not set {', '.join(folder.missing_variables)}, so the container does not start "
            f"the same variant as the local runtime. Set the variables in the Dockerfile, too: local.env in "
            f"{folder.config_file} does not apply to containers",
            expected=f"ENV {assignments}, or a docker_cmd that begins with env {assignments}",
            outcome=outcome,
        )


@check("folder.3", CONDUCT_ONLY, _observed(lambda conduct: conduct.folder))
def readme_written(evidence: Evidence) -> Iterator[Finding]:
    """Require a complete README.md, without placeholder lines from ``./tfb new``."""
    _, outcome = _facts(evidence)
    if defect := _folder(evidence).readme_defect:
        yield Finding(defect, outcome=outcome)
