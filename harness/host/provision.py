"""Prepares what a run needs: names the missing tools and, on Debian or Ubuntu, installs exactly their packages."""

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.host import process, toolchain
from harness.host.toolchain import Tool
from harness.plan.config import Consent
from harness.plan.discovery import Implementation

INSTALL_SECONDS = 900.0
PACKAGED_AS_IS = frozenset({"cargo", "node"})  # their packages carry the version of the tool


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


def packages(wanted: Sequence[Need]) -> tuple[str, ...]:
    """What apt would have to install for all that is missing, by name."""
    return tuple(sorted({p for n in wanted if n.tool is None for p in toolchain.packages(n.kind, n.condition)}))


def install_missing(wanted: Sequence[Need], consent: Consent, log: Path) -> tuple[str, ...]:
    """Install the packages of missing tools where apt has them and consent is given; what was done or is to be done.

    Never asks, and never raises for a tool that can't be had: the caller looks again and decides what is skipped.
    """
    missing = [need for need in wanted if need.tool is None]
    if not missing:
        return ()
    apt = shutil.which("apt-get")
    if apt is None:
        return ("Install it with this system's package manager, then run again",)
    root = () if os.geteuid() == 0 or not (sudo := shutil.which("sudo")) else (sudo, "-n")
    if consent != "yes":
        return (f"To install: {'sudo ' if root else ''}apt-get install {' '.join(packages(missing))}",)
    notes: list[str] = []
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    process.run([*root, apt, "update"], seconds=INSTALL_SECONDS, env=environment, log=log)
    _no_default_cluster()
    old = {package: note for need in missing for package, note in _too_old(need).items()}
    notes += old.values()
    for package in (package for package in packages(missing) if package not in old):
        # One by one: a package that this release does not have must not keep the others out.
        done = process.run(
            [*root, apt, "install", "-y", "--no-install-recommends", package],
            seconds=INSTALL_SECONDS,
            env=environment,
            log=log,
        )
        notes.append(f"installed {package}" if done.status == 0 else f"apt-get install {package} failed; see {log}")
    toolchain.forget()
    return tuple(notes)


def _too_old(need: Need) -> dict[str, str]:
    """Package -> why there is no use in installing it: apt's version is not the one that is needed."""
    if need.kind not in PACKAGED_AS_IS:
        return {}
    package = toolchain.packages(need.kind, need.condition)[0]
    policy = process.run(["apt-cache", "policy", package], seconds=60).stdout
    match = re.search(r"^ *Candidate: (?:\d+:)?(\d+(?:\.\d+)*)", policy, re.MULTILINE)
    if match is None or toolchain.satisfies(tuple(int(part) for part in match[1].split(".")), need.condition):
        return {}
    return {package: f"apt has {package} {match[1]}: {need.missing} is needed"}


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
