"""Asks for consent: all that a run has to ask for in one question, before anything of it begins or is drawn.

Below the command line nothing asks: there consent is given or it is not.
"""

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
from harness.plan.settings import Consent, Settings
from harness.provisioning import requirements
from harness.records import safe_write
from harness.runtime import compose
from harness.runtime.choice import uses_local_runtime

CONSENTED = "TFB_CONSENTED"  # set by ./tfb where it has asked already, before there was a Python to ask
ANSWER = "builds-as-root"  # file of the state folder: somebody has consented on this machine


def resolve_consent(settings: Settings) -> Consent:
    """Consent to what the run would do, or none; raises EnvironmentLacksError where builds as root are refused.

    Asks at most once, and nobody where no terminal is: there root consents by starting it, and nobody else.
    """
    if settings.consent == "ask" and os.environ.get(CONSENTED):
        _remember()
        return "yes"
    if settings.consent == "yes" or not _at_a_terminal():
        return "yes" if ask_consent(settings.consent, "") else "no"
    local = uses_local_runtime(settings)
    as_root = local and os.geteuid() == 0 and not (state_folder() / ANSWER).exists()
    wishes = [*_wishes(settings, local=local)] if settings.consent == "ask" else []
    if as_root:
        wishes.append("build implementations as root, here and from now on")
    question = "\n".join(("This run would", *(f"  - {wish}" for wish in wishes), "Go on?"))
    given = bool(wishes) and ask_consent("ask", question, default=not as_root)
    if as_root and not given:
        raise EnvironmentLacksError(
            "builds would run as root: start ./tfb as an ordinary user, use --runtime docker, or consent with --yes"
        )
    if as_root:
        _remember()
    return "yes" if given and settings.consent == "ask" else "no"


def _remember() -> None:
    """Keep the consent to builds as root, so that nobody is asked again."""
    answer = state_folder() / ANSWER
    safe_write.make_folder(answer.parent)
    safe_write.replace(
        answer, b"Builds of implementations may run as root on this machine. Remove this file to be asked.\n"
    )


def ask_consent(consent: Consent, question: str, *, default: bool = True) -> bool:
    """As the flags say, else ask on a terminal; without one root consents by starting it, and nobody else."""
    if consent != "ask" or not _at_a_terminal():
        return consent == "yes" or (consent == "ask" and os.geteuid() == 0)
    print(f"{question} [{'Y/n' if default else 'y/N'}] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip().lower()
    return answer in ("y", "yes") or (default and not answer)


def ask_confirmation(question: str) -> bool | None:
    """Return the answer that somebody at a terminal gives, where silence means no; None where nobody can be asked."""
    if not _at_a_terminal():
        return None
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _at_a_terminal() -> bool:
    """Whether somebody can be asked, and sees the question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _wishes(settings: Settings, *, local: bool) -> Iterator[str]:
    """What the run would like to do on this machine, as far as it has the right to."""
    if local:
        chosen = settings.services or select_implementations(scan_folders(*settings.frameworks), settings.selection)
        wanted = requirements.tool_requirements(chosen, **settings.requirements)
        if (packages := requirements.missing_packages(wanted)) and _may_install():
            yield f"run `apt-get install {' '.join(packages)}`"
    found = leftovers.local_leftovers() if local else find_leftovers()
    if left := [str(leftover) for leftover in found if leftover.certain]:
        yield f"remove what a run that was killed has left: {', '.join(left)}"


def find_leftovers() -> Sequence[Leftover]:
    """What killed runs have left on this machine, and of containers where an engine answers."""
    try:
        return (*leftovers.local_leftovers(), *compose.engine_leftovers())
    except EnvironmentLacksError:
        return leftovers.local_leftovers()


def _may_install() -> bool:
    """Whether apt is there, with a right to it that asks for no password: its question would come under the display."""
    if shutil.which("apt-get") is None:
        return False
    if os.geteuid() == 0:
        return True
    sudo = shutil.which("sudo")
    return sudo is not None and subprocess.run([sudo, "-n", "true"], check=False, capture_output=True).returncode == 0
