"""Prepares what a run needs: names the missing tools and, on Debian or Ubuntu, installs exactly their packages."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Exit
from harness.host import process, toolchain
from harness.host.toolchain import Tool
from harness.request.config import Consent
from harness.request.discovery import Implementation, scan

INSTALL_SECONDS = 900.0


@dataclass(frozen=True, kw_only=True)
class Need:
    """A tool that something needs, and what was found."""

    kind: str
    condition: str
    wanted_by: tuple[str, ...]  # implementation names, or () for the harness itself
    tool: Tool | None

    @property
    def missing(self) -> str:
        """``java >=25``, as messages name it."""
        return self.kind if self.condition == ">=0" else f"{self.kind} {self.condition}"


def needs(implementations: Iterable[Implementation], *, own_database: bool) -> tuple[Need, ...]:
    """What the harness and the implementations need on the local runtime."""
    wanted: dict[tuple[str, str], list[str]] = {("wrk", ">=4.1"): []}
    if own_database:
        wanted["postgres", ">=12"] = []
    for implementation in implementations:
        if implementation.local:
            for kind, condition in implementation.local.requires.items():
                wanted.setdefault((kind, condition), []).append(implementation.name)
    return tuple(
        Need(kind=kind, condition=condition, wanted_by=tuple(names), tool=toolchain.find(kind, condition))
        for (kind, condition), names in wanted.items()
    )


def install_missing(wanted: Sequence[Need], consent: Consent, log: Path) -> tuple[str, ...]:
    """Install the packages of missing tools where apt has them and consent is given; what was done or is to be done.

    Never raises for a tool that can't be had: the caller looks again and decides what is skipped.
    """
    missing = [need for need in wanted if need.tool is None]
    if not missing:
        return ()
    packages = sorted({p for need in missing for p in toolchain.packages(need.kind, need.condition)})
    apt = shutil.which("apt-get")
    words = ", ".join(need.missing for need in missing)
    if apt is None:
        return ("Install it with this system's package manager, then run again",)
    command = f"apt-get install {' '.join(packages)}"
    if not _consents(consent, f"missing: {words}. Run `{command}`?"):
        return (f"To install: {command}",)
    notes = []
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    process.run([apt, "update"], seconds=INSTALL_SECONDS, env=environment, log=log)
    _no_default_cluster()
    for package in packages:
        # One by one: a package that this release does not have must not keep the others out.
        done = process.run(
            [apt, "install", "-y", "--no-install-recommends", package],
            seconds=INSTALL_SECONDS,
            env=environment,
            log=log,
        )
        notes.append(f"installed {package}" if done.status == 0 else f"apt-get install {package} failed; see {log}")
    toolchain.forget()
    return tuple(notes)


def _consents(consent: Consent, question: str) -> bool:
    if consent != "ask":
        return consent == "yes"
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(f"{question} [Y/n] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("", "y", "yes")
    return os.geteuid() == 0


def _no_default_cluster() -> None:
    """Keep Debian's PostgreSQL package from starting a server of its own: the run makes and removes its own."""
    folder = Path("/etc/postgresql-common/createcluster.d")
    if os.geteuid() == 0 and not Path("/usr/share/postgresql-common").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tfb.conf").write_text("create_main_cluster = false\n", encoding="utf-8")


def lacking(implementation: Implementation, wanted: Sequence[Need]) -> tuple[str, ...]:
    """What this implementation still lacks."""
    return tuple(n.missing for n in wanted if n.tool is None and implementation.name in n.wanted_by)


def tools_for(implementation: Implementation) -> Mapping[str, Tool]:
    """The chosen tool of each kind that it requires; kinds that are missing are left out."""
    requires = implementation.local.requires if implementation.local else {}
    chosen = {kind: toolchain.find(kind, condition) for kind, condition in requires.items()}
    return {kind: tool for kind, tool in chosen.items() if tool}


def main() -> int:
    """Install what the shipped implementations and the harness need on the local runtime, before the tests use it."""
    implementations = scan().implementations
    wanted = needs(implementations, own_database=True)
    if all(need.tool for need in wanted):
        return Exit.OK
    log = Path(tempfile.mkdtemp(prefix="tfb-provision-")) / "install.log"
    for note in install_missing(wanted, "ask", log):
        print(note, flush=True)
    missing = [need.missing for need in needs(implementations, own_database=True) if need.tool is None]
    if missing:
        print(f"still missing: {', '.join(missing)}; ./tfb doctor shows what was looked for", file=sys.stderr)
    return Exit.ENVIRONMENT if missing else Exit.OK


if __name__ == "__main__":
    sys.exit(main())
