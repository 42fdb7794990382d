"""Asks the user once, before a run, for consent to all changes that the run would make to the machine."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

from harness.errors import EnvironmentLacksError
from harness.host import leftovers
from harness.host.leftovers import Leftover
from harness.paths import state_folder
from harness.plan.discovery import scan_folders, select_implementations
from harness.plan.run_settings import Consent, Settings
from harness.provisioning import requirements
from harness.records import safe_write
from harness.runtime import compose
from harness.runtime.choice import uses_local_runtime

CONSENTED = "TFB_CONSENTED"  # ./tfb sets this environment variable if the user has already consented
CONSENT_FILE = "builds-as-root"  # file in the state folder; it exists if the user allowed builds to run as root


def resolve_consent(settings: Settings) -> Consent:
    """Return "yes" if the run may install packages and remove leftovers, otherwise "no".

    Ask at most once, and only on a terminal. Without a terminal, assume that root consents and other users refuse.
    Raises EnvironmentLacksError if builds would run as root, and the user refuses.
    """
    if settings.consent == "ask" and os.environ.get(CONSENTED):
        _remember_consent()
        return "yes"
    if settings.consent == "yes" or not _at_a_terminal():
        return "yes" if ask_consent(settings.consent, "") else "no"
    local = uses_local_runtime(settings)
    as_root = local and os.geteuid() == 0 and not (state_folder() / CONSENT_FILE).exists()
    changes = [*_planned_changes(settings, local=local)] if settings.consent == "ask" else []
    if as_root:
        changes.append("build implementations as root, in this run and in later runs")
    question = "\n".join(("This run would", *(f"  - {change}" for change in changes), "Continue?"))
    consented = bool(changes) and ask_consent("ask", question, default=not as_root)
    if as_root and not consented:
        raise EnvironmentLacksError(
            "builds would run as root: start ./tfb as an ordinary user, add --runtime docker, or consent with --yes"
        )
    if as_root:
        _remember_consent()
    return "yes" if consented and settings.consent == "ask" else "no"


def _remember_consent() -> None:
    """Record that the user allows builds to run as root, so that later runs do not ask again."""
    path = state_folder() / CONSENT_FILE
    safe_write.make_folder(path.parent)
    safe_write.replace(
        path, b"Builds of implementations may run as root on this machine. Remove this file to be asked again.\n"
    )


def ask_consent(consent: Consent, question: str, *, default: bool = True) -> bool:
    """Return whether the user consents. An empty reply means ``default``.

    Without a terminal, assume that root consents and other users refuse.
    """
    if consent != "ask" or not _at_a_terminal():
        return consent == "yes" or (consent == "ask" and os.geteuid() == 0)
    reply = _ask(f"{question} [{'Y/n' if default else 'y/N'}] ")
    return reply in ("y", "yes") or (default and not reply)


def ask_confirmation(question: str) -> bool | None:
    """Ask a yes-or-no question and return the reply, or None without a terminal. An empty reply means no."""
    return _ask(f"{question} [y/N] ") in ("y", "yes") if _at_a_terminal() else None


def _ask(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower()


def _at_a_terminal() -> bool:
    """Return whether stdin and stderr are a terminal, so that a user can read a question and reply."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _planned_changes(settings: Settings, *, local: bool) -> Iterator[str]:
    """Yield the changes that the run would make to this machine. Omit changes that this user may not make."""
    if local:
        selected = settings.services or select_implementations(scan_folders(*settings.frameworks), settings.selection)
        needs = requirements.tool_requirements(selected, **settings.requirements)
        if (packages := requirements.missing_packages(needs)) and _may_install():
            yield f"run `apt-get install {' '.join(packages)}`"
    found_leftovers = leftovers.local_leftovers() if local else find_leftovers()
    if is_certain := [str(leftover) for leftover in found_leftovers if leftover.is_certain]:
        yield f"remove leftovers from killed runs: {', '.join(is_certain)}"


def find_leftovers() -> Sequence[Leftover]:
    """Return the leftovers of killed runs on this machine. Include containers if a container engine responds."""
    try:
        return (*leftovers.local_leftovers(), *compose.engine_leftovers())
    except EnvironmentLacksError:
        return leftovers.local_leftovers()


def _may_install() -> bool:
    """Return whether apt-get can run without a password prompt. The progress display would hide the prompt."""
    if shutil.which("apt-get") is None:
        return False
    if os.geteuid() == 0:
        return True
    sudo = shutil.which("sudo")
    return sudo is not None and subprocess.run([sudo, "-n", "true"], check=False, capture_output=True).returncode == 0
