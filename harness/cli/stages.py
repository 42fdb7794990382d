"""The stages of ``./tfb check`` in their order, and what each needs of the machine beside Python."""

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.host import engine, provision, toolchain
from harness.host.provision import Need
from harness.paths import REPOSITORY, TOOLSET
from harness.plan.discovery import Selection, scan, select

WEB = REPOSITORY / "harness" / "dashboard" / "web"
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
BUILD_PAGE = "from harness.dashboard.build import ensure_built; print(ensure_built().name)"
NODE = (("node", ">=20.19"), ("npm", ">=0"))
BROWSER = (("chromium", ">=0"),)
# What the tests of several machines use; without them they are skipped, by name.
MACHINES = (("sshd", ">=0 by sshd -V"), ("ip", ">=0 by ip -V"), ("rsync", ">=0"))
ENGINE = "engine"
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
# How the reason of a skipped test begins that nothing can be installed for: the machine was too busy for it to say
# anything, or does not let this user make machines of network namespaces.
NOT_JUDGED = "not judged: "
UNTIL = "TFB_CHECK_UNTIL"  # when tests of other implementations begin no more, in seconds since 1970; unset: never
Extent = Literal["fast", "usual", "all"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One command of the check; ``needs`` are names of tools, or ENGINE, without which it is not run."""

    name: str
    command: tuple[str, ...]
    cwd: Path = REPOSITORY
    needs: tuple[str, ...] = ()
    extent: Extent = "usual"  # of the check that it begins to belong to
    beside: bool = False  # may run beside others: it measures nothing
    again: bool = False  # tests of real servers, by pytest: a busy machine can fail one, which is then tried again


def stages(extent: Extent) -> tuple[Stage, ...]:
    """Those of a check of this extent, in their order; those that may run beside others come first."""
    python = (sys.executable, "-m")
    pytest = (*python, "pytest", "-ra", "--durations=10", "--durations-min=5")
    every_cpu = ("-n", str(CPUS), "--dist", "loadgroup")
    few = ("-n", str(min(CPUS, 4)), "--dist", "loadgroup")  # whole implementations with a database: a gibibyte each
    node = tuple(kind for kind, _ in NODE)

    def of_page(name: str, script: str) -> Stage:
        return Stage(name=f"page {name}", command=_npm(script), cwd=WEB, needs=node, extent="fast", beside=True)

    def of_servers(name: str, marks: str, *words: str) -> Stage:
        return Stage(name=name, command=(*pytest, "-m", marks, *words), extent="all", again=True)

    found = (
        Stage(name="page", command=(sys.executable, "-c", BUILD_PAGE), needs=node, extent="fast"),
        Stage(
            name="tests",
            command=(*pytest, "-m", "not e2e and not docker and not gallery and not fault", *every_cpu),
            extent="fast",
            beside=True,
        ),
        Stage(name="types", command=(*python, "mypy"), extent="fast", beside=True),
        Stage(name="lint", command=(*python, "ruff", "check", "."), extent="fast", beside=True),
        Stage(name="format", command=(*python, "ruff", "format", "--check", "."), extent="fast", beside=True),
        Stage(name="imports", command=(sys.executable, "-c", LINT_IMPORTS), extent="fast", beside=True),
        of_page("tests", "test"),
        of_page("lint", "lint"),
        of_page("format", "format:check"),
        Stage(name="page in a browser", command=_npm("e2e"), cwd=WEB, needs=(*node, "chromium")),
        Stage(
            name="four servers verified",
            command=(*python, "harness", "verify", "--runtime", "local", "--no-install"),
            needs=("postgres",),
        ),
        *(_cargo(manifest) for manifest in crates()),
        Stage(name="base image", command=engine.BASE_IMAGE, needs=(ENGINE,), extent="all"),
        of_servers("gallery", "gallery", *every_cpu),
        of_servers("faults", "fault and not docker", *every_cpu),
        of_servers("tests of real servers", "(e2e or docker) and not machines and not every"),
        of_servers("several machines", "machines"),  # they send images that the stages before have built
        of_servers("other implementations", "every", *few),
    )
    order: tuple[Extent, ...] = ("fast", "usual", "all")
    return tuple(stage for stage in found if order.index(stage.extent) <= order.index(extent))


def _npm(script: str) -> tuple[str, ...]:
    return ("npm", "run", "--silent", script)


def crates() -> tuple[Path, ...]:
    """The manifests of the toolset's Rust programs."""
    return tuple(sorted(TOOLSET.glob("*/Cargo.toml")))


def _cargo(manifest: Path) -> Stage:
    command = ("cargo", "test", "--release", "--locked", "--quiet")
    name = f"{manifest.parent.name} tests"
    return Stage(name=name, command=command, cwd=manifest.parent, needs=("cargo",), extent="all")


def wanted(extent: Extent) -> tuple[Need, ...]:
    """The tools of a check's stages, and whether they are here."""
    if extent == "fast":
        return _here(NODE)
    known = scan().implementations
    chosen = known if extent == "all" else select(known, Selection(test=("run",)))
    more = [*MACHINES, ("cargo", f">={rust()}")] if extent == "all" else []
    return (*_here([*NODE, *BROWSER, *more]), *provision.needs(chosen, own_database=True))


def _here(tools: Sequence[tuple[str, str]]) -> tuple[Need, ...]:
    return tuple(
        Need(kind=kind, condition=condition, wanted_by=(), tool=toolchain.find(kind, condition))
        for kind, condition in tools
    )


def rust() -> str:
    """The newest ``rust-version`` that a program of the toolset asks for."""
    packages = (tomllib.loads(manifest.read_text(encoding="utf-8")).get("package", {}) for manifest in crates())
    asked = [str(package["rust-version"]) for package in packages if "rust-version" in package]
    return max(asked, key=lambda version: tuple(map(int, version.split("."))), default="0")


def lacking(needs: Sequence[Need]) -> Mapping[str, str]:
    """Name of each missing facility -> what is missing and what brings it."""
    missing = {need.kind: f"{need.missing} is missing: {_mend(need)}" for need in needs if need.tool is None}
    if not engine.answers():
        missing[ENGINE] = f"no container engine answers: {engine.MEND}"
    return missing


def _mend(need: Need) -> str:
    """The command that brings a tool."""
    match need.kind:
        case "cargo":
            return "apt-get install cargo where it is new enough, otherwise rustup (https://rustup.rs)"
        case "chromium":
            return (
                "apt-get install chromium; where that is a snap, "
                f"npx --prefix {WEB.relative_to(REPOSITORY)} playwright-core install --with-deps chromium"
            )
        case kind:
            return f"apt-get install {' '.join(toolchain.packages(kind, need.condition))}"
