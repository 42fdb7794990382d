"""Prepares what a run needs: names the missing tools and, on Debian or Ubuntu, installs exactly their packages.

A container engine is brought by toolset/provision/docker-engine.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.host import advice, crates, process, toolchain
from harness.host.toolchain import Tool
from harness.paths import TOOLSET
from harness.plan.config import Consent
from harness.plan.discovery import Implementation

INSTALL_SECONDS = 900.0
ENGINE_SCRIPT = TOOLSET / "provision" / "docker-engine"
ENGINE_INSTALL = (str(ENGINE_SCRIPT), "install")
ENGINE_START = (str(ENGINE_SCRIPT), "start")
ENGINE_STOP = (str(ENGINE_SCRIPT), "stop")
ENGINE_MEND = (
    "as root on Debian or Ubuntu: toolset/provision/docker-engine install, then start; else Docker with compose v2"
)


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


def needs(
    implementations: Iterable[Implementation], *, own_database: bool, wrk: bool = True, loads: bool = True
) -> tuple[Need, ...]:
    """What the harness and the implementations need on the local runtime; ``loads``: to measure them."""
    wanted: dict[tuple[str, str], list[str]] = {("wrk", ">=4.1"): []} if wrk else {}
    if loads and crates.built("loadgen", "loadgen") is None:
        wanted["cargo", ">=1.85"] = []
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


def packages(wanted: Sequence[Need]) -> tuple[str, ...]:
    """Return the names of what apt can install of all that is missing, in versions that meet the conditions."""
    missing = (n for n in wanted if n.tool is None and advice.obtainable(n.kind, n.condition))
    return tuple(sorted({name for n in missing for name in toolchain.packages(n.kind, n.condition)}))


def by_hand(wanted: Sequence[Need]) -> tuple[str, ...]:
    """Return what to do for each missing tool that apt has in no version that fits."""
    missing = (need for need in wanted if need.tool is None and not advice.obtainable(need.kind, need.condition))
    return tuple(advice.lacking(need.kind, need.condition) for need in missing)


def install_missing(wanted: Sequence[Need], consent: Consent, log: Path) -> tuple[str, ...]:
    """Install the packages of missing tools where apt has them and consent is given; what was done or is to be done.

    Never asks, and never raises for a tool that can't be had: the caller looks again and decides what is skipped.
    """
    missing = [need for need in wanted if need.tool is None]
    if not missing:
        return ()
    apt = shutil.which("apt-get")
    if apt is None:
        return tuple(advice.lacking(need.kind, need.condition) for need in missing)
    root = () if os.geteuid() == 0 or not (sudo := shutil.which("sudo")) else (sudo, "-n")
    if consent != "yes":
        to_install = f"To install: {'sudo ' if root else ''}apt-get install {' '.join(packages(missing))}"
        return (*([to_install] if packages(missing) else []), *by_hand(missing))
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    process.run([*root, apt, "update"], seconds=INSTALL_SECONDS, env=environment, log=log)
    advice.candidate.cache_clear()
    _no_default_cluster()
    notes = [*by_hand(missing)]
    for package in packages(missing):
        # One by one: a package that this release does not have must not keep the others out.
        command = [*root, apt, "install", "-y", "--no-install-recommends", "--no-remove", "--", package]
        done = process.run(command, seconds=INSTALL_SECONDS, env=environment, log=log)
        notes.append(f"installed {package}" if done.status == 0 else f"apt-get install {package} failed; see {log}")
    toolchain.forget()
    return tuple(notes)


def _no_default_cluster() -> None:
    """Keep Debian's PostgreSQL package from starting a server of its own: the run makes and removes its own."""
    folder = Path("/etc/postgresql-common/createcluster.d")
    if os.geteuid() == 0 and not Path("/usr/share/postgresql-common").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tfb.conf").write_text("create_main_cluster = false\n", encoding="utf-8")


def tools_for(implementation: Implementation) -> Mapping[str, Tool]:
    """Return the chosen tool of each kind that it requires; kinds that are missing are left out.

    Runs the tools to learn their versions: only for an implementation that the user has consented to build.
    """
    requires = implementation.local.requires if implementation.local else {}
    chosen = {kind: toolchain.find(kind, condition, consented=True) for kind, condition in requires.items()}
    return {kind: tool for kind, tool in chosen.items() if tool}


def engine_answers() -> bool:
    """Whether an engine answers that this user may ask."""
    if shutil.which("docker") is None:
        return False
    command = ("docker", "version", "--format", "{{.Server.Version}}")
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0


def engine_can_be_brought() -> bool:
    """Whether ``docker-engine install`` has what it takes: apt, and the right to use it."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0
