"""The stages of ``./tfb check`` in their order, and what each needs of the machine beside Python."""

import os
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.host import engine, provision, toolchain
from harness.host.provision import Need
from harness.paths import REPOSITORY, TOOLSET
from harness.plan.discovery import Selection, scan, select

WEB = REPOSITORY / "harness" / "dashboard" / "web"
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
BUILD_PAGE = "from harness.dashboard.build import ensure_built; print(ensure_built().name)"
NODE = (("node", ">=20.19"), ("npm", ">=0"))
BROWSER = (("chromium", ">=0"),)
RUST = "1.85"  # where no Cargo.toml of the toolset says otherwise
ENGINE = "engine"
# Marks of the tests.
FAST, GALLERY = "not e2e and not docker and not gallery", "gallery"
REAL = "(e2e or docker) and not machines and not every"
EVERY, SEVERAL, SEVERAL_AT_LENGTH = "every", "machines and not lengthy", "machines"
# The fast tests and the gallery on all CPUs; those of real servers one after the other, since they measure.
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
PARALLEL = ("-n", str(CPUS), "--dist", "loadgroup")
# Whole implementations with a database each: a gibibyte and more each.
FEW_PARALLEL = ("-n", str(min(CPUS, 4)), "--dist", "loadgroup")
# How the reason of a skipped test begins that nothing can be installed for: the machine was too busy for it to say
# anything, or does not let this user make machines of network namespaces.
NOT_JUDGED = "not judged: "
ROOM = 1 << 30  # bytes; the fast tests leave 100 MB
NO_TESTS = (5,)  # pytest's status where none was selected, as by -- -k


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One command of the check; ``needs`` are names of tools, or ENGINE, without which it is not run."""

    name: str
    command: tuple[str, ...]
    cwd: Path = REPOSITORY
    needs: tuple[str, ...] = ()
    also_fine: tuple[int, ...] = ()  # exit statuses beside 0 that are no failure
    environment: Mapping[str, str] = field(default_factory=dict)
    fast: bool = True  # False: starts real servers, containers or a browser, or compiles for minutes
    tried_again: bool = False  # tests of real servers, by pytest: a busy machine can fail one of them
    beside: bool = False  # may run beside others that may, too: it measures nothing
    long: bool = False  # of those, one that begins before all others, on all CPUs
    after: str = ""  # of those, the one that it needs the result of


# What the tests of several machines and of queues use; without them they are skipped, by name.
MACHINES = (
    *(("sshd", ">=0 by sshd -V"), ("ip", ">=0 by ip -V"), ("parallel", ">=0"), ("rsync", ">=0")),
    # The package of slurmctld brings sbatch, too, which says its version only where there is a cluster.
    *(("munged", ">=0"), ("slurmctld", ">=0 by slurmctld -V"), ("slurmd", ">=0 by slurmd -V")),
)


def stages(*, fast: bool, arguments: Sequence[str], every: bool = False) -> tuple[Stage, ...]:
    """All stages in their order; the fast check leaves the slow ones out.

    ``every`` adds of several machines what takes long.
    """
    python = (sys.executable, "-m")
    pytest = (*python, "pytest", "-ra", *arguments)
    node = tuple(kind for kind, _ in NODE)
    found = (
        Stage(name="lint", command=(*python, "ruff", "check", "."), beside=True),
        Stage(name="format", command=(*python, "ruff", "format", "--check", "."), beside=True),
        Stage(name="types", command=(*python, "mypy"), beside=True),
        Stage(name="directions of imports", command=(sys.executable, "-c", LINT_IMPORTS), beside=True),
        Stage(name="documentation", command=(*python, "harness", "docs"), beside=True),
        Stage(name="page", command=(sys.executable, "-c", BUILD_PAGE), needs=node, beside=True),
        *(
            Stage(
                name=f"page {name}",
                command=("npm", "run", "--silent", script),
                cwd=WEB,
                needs=node,
                beside=True,
                after="page",
            )
            for name, script in (("format", "format:check"), ("lint", "lint"), ("tests", "test"))
        ),
        Stage(
            name="tests",
            command=(*pytest, "-m", FAST, *PARALLEL),
            also_fine=NO_TESTS,
            environment=temporary_files(),
            beside=True,
            long=True,
        ),
        *(_cargo(manifest) for manifest in crates()),
        Stage(
            name="page in a browser",
            command=("npm", "run", "--silent", "e2e"),
            cwd=WEB,
            needs=(*node, "chromium"),
            fast=False,
        ),
        Stage(name="base image", command=engine.BASE_IMAGE, needs=(ENGINE,), fast=False),
        _of_servers("gallery", (*pytest, "-m", GALLERY, *PARALLEL)),
        _of_servers("tests of real servers", (*pytest, "-m", REAL)),
    )
    # They send images that the stages before have built.
    several = _of_servers("several machines", (*pytest, "-m", SEVERAL_AT_LENGTH if every else SEVERAL))
    # Last: what time is left for, where it is limited.
    others = _of_servers("other implementations", (*pytest, "-m", EVERY, *FEW_PARALLEL))
    return tuple(stage for stage in (*found, several, others) if stage.fast or not fast)


def _of_servers(name: str, command: tuple[str, ...]) -> Stage:
    timed = (*command, "--durations=20", "--durations-min=5")  # where the time of the check goes
    return Stage(name=name, command=timed, also_fine=NO_TESTS, fast=False, tried_again=True)


def temporary_files() -> Mapping[str, str]:
    """Where pytest keeps the files of the fast tests: in memory, where that is large enough.

    They replace small files thousands of times, and on a disk each replacement waits for it.
    """
    memory = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own in it, for this user alone
    try:
        roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM
    except OSError:
        roomy = False
    return {"PYTEST_DEBUG_TEMPROOT": str(memory)} if roomy else {}


def bytecode(state: Path) -> Mapping[str, str]:
    """Where all stages keep compiled Python, also where the environment says to write none.

    Without it each process of the tests compiles all modules again, and rewrites the assertions of all tests: ten
    seconds of CPU each.
    """
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(state / "bytecode")}


def crates() -> tuple[Path, ...]:
    """The manifests of the toolset's Rust programs."""
    return tuple(sorted(TOOLSET.glob("*/Cargo.toml")))


def _cargo(manifest: Path) -> Stage:
    command = ("cargo", "test", "--release", "--locked", "--quiet")
    return Stage(
        name=f"{manifest.parent.name} tests", command=command, cwd=manifest.parent, needs=("cargo",), fast=False
    )


def wanted(*, every: bool, fast: bool = False) -> tuple[Need, ...]:
    """The tools of all stages, and whether they are here; ``every`` asks for those of all implementations.

    The fast stages need Node alone: a dozen other tools are then not asked for their versions.
    """
    if fast:
        return _here(NODE)
    known = scan().implementations
    chosen = known if every else select(known, Selection(test=("run",)))
    own = [*NODE, *BROWSER, *MACHINES, *([("cargo", f">={rust()}")] if crates() else [])]
    return (*_here(own), *provision.needs(chosen, own_database=True))


def _here(tools: Sequence[tuple[str, str]]) -> tuple[Need, ...]:
    return tuple(
        Need(kind=kind, condition=condition, wanted_by=(), tool=toolchain.find(kind, condition))
        for kind, condition in tools
    )


def rust() -> str:
    """The newest ``rust-version`` that a program of the toolset asks for."""
    asked = [RUST]
    for manifest in crates():
        package = tomllib.loads(manifest.read_text(encoding="utf-8")).get("package", {})
        asked.append(str(package.get("rust-version", RUST)))
    return max(asked, key=lambda version: tuple(int(part) for part in version.split(".")))


def lacking(needs: Sequence[Need]) -> Mapping[str, str]:
    """Name of each missing facility -> what is missing and what brings it."""
    missing = {need.kind: f"{need.missing} is missing: {mend(need)}" for need in needs if need.tool is None}
    if not engine.answers():
        missing[ENGINE] = f"no container engine answers: {engine.MEND}"
    return missing


def mend(need: Need) -> str:
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


def brought() -> Mapping[str, str]:
    """Variables of the environment by which stages find what is not on PATH."""
    chromium = toolchain.find("chromium")
    return chromium.env if chromium else {}
