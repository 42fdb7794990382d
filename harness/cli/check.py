"""``./tfb check``: the project's own lint, types and tests, and before them what they need of the machine."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from harness.cli.consent import ask_consent
from harness.cli.scans import NOT_JUDGED, SKIPPED_VARIABLE
from harness.errors import Exit
from harness.host import interruption
from harness.paths import DOCKER, REPOSITORY, TOOLSET, state_folder
from harness.plan.discovery import Selection, scan_folders, select_implementations
from harness.plan.run_settings import Consent
from harness.provisioning import advice, requirements, toolchain
from harness.provisioning.requirements import ToolRequirement

WEB = REPOSITORY / "harness" / "dashboard" / "web"
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
BUILD_PAGE = "from harness.dashboard.build import ensure_built; print(ensure_built().name)"
CONDITIONS = {
    "node": ">=20.19",
    "cargo": ">=1.85",
    "go": ">=1.24",
    "postgres": ">=12",
}  # of tools; any version of another will do
MENDS = {
    "chromium": "apt-get install chromium; where that is a snap, npx --prefix harness/dashboard/web playwright-core "
    "install --with-deps chromium",
}
ENGINE = "engine"  # stands among a stage's needs for a container engine
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
DEADLINE_VARIABLE = (
    "TFB_CHECK_UNTIL"  # when tests of other implementations begin no more, in seconds since 1970; unset: never
)
SECONDS_OF_ALL = 32 * 60.0  # the last ones that begin by then take some minutes
FUZZ_SECONDS = 60.0  # of all fuzz targets together, builds apart
FAST = "not simulation and not gallery and not fault and not adversarial and not e2e and not docker"  # a minute
REAL_SERVERS = "docker or (e2e and not adversarial)"
TESTS_FAILED = 1  # pytest's status where all were run and some failed
Extent = Literal["fast", "usual", "all"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One command of the check; ``needs`` are names of tools, or ENGINE, without which it is not run."""

    name: str
    command: tuple[str, ...]
    cwd: Path = REPOSITORY
    needs: tuple[str, ...] = ()
    again: bool = False  # tests of real servers, by pytest: a busy machine can fail one, which is then tried again
    beside: tuple[str, ...] = ()  # what uses CPUs that this one leaves idle; what it says and how it ends is not told


def command(
    *,
    everything: Annotated[
        bool,
        Parameter(
            name="--all",
            help="a run in a browser, simulations, gallery, faults, Docker, several machines, all implementations",
        ),
    ] = False,
    fast: Annotated[bool, Parameter(help="leave out what starts real servers, containers or a browser")] = False,
    yes: Annotated[bool, Parameter(help="install what is missing without asking")] = False,
    no_install: Annotated[bool, Parameter(help="never install anything: run what can be run")] = False,
) -> int:
    """Lint, types and fast tests of the project itself, its page in a browser, and its four servers verified.

    Every stage is run, also when one fails; exit code 1 when one did, 3 when something could not be run. A test that
    could not judge, since the machine was busy with something else or does not let this user, is named and no failure;
    so is a test of real servers that failed, and then passed when it was tried again.
    """
    extent: Extent = "all" if everything else "fast" if fast else "usual"
    consent: Consent = "no" if no_install or fast else "yes" if yes else "ask"
    return check(stages(extent), wanted(extent), consent, bring_engine=everything)


def stages(extent: Extent) -> tuple[Stage, ...]:
    """Those of a check of this extent, in their order."""
    python = (sys.executable, "-m")
    pytest = (*python, "pytest", "-ra", "--durations=10", "--durations-min=5")
    every_cpu = ("-n", str(CPUS), "--dist", "loadgroup")
    one_more = ("-n", str(CPUS + 1), "--dist", "loadgroup")  # of tests that wait now and then
    few = ("-n", str(min(CPUS, 4)), "--dist", "loadgroup")  # whole implementations with a database: a gibibyte each
    two = ("-n", str(min(CPUS, 2)), "--dist", "loadgroup")  # containers beside what starts on the machine itself
    cargo = ("cargo", "test", "--locked", "--quiet")
    fuzz = (*python, "harness.tests.fuzz", "--seconds", f"{FUZZ_SECONDS:g}")
    verified = (*python, "harness", "verify", "--runtime", "local", "--no-install")

    def scan_of(name: str, scan: str, *needs: str) -> Stage:
        return Stage(name=name, command=(*python, "harness.cli.scans", scan), needs=needs)

    def of_page(name: str, script: str, *more: str) -> Stage:
        return Stage(name=name, command=("npm", "run", "--silent", script), needs=("node", "npm", *more), cwd=WEB)

    def of_servers(name: str, marks: str, *arguments: str) -> Stage:
        return Stage(name=name, command=(*pytest, "-m", marks, *arguments), again=True)

    # The first process that imports the tests compiles them for all others, while npm waits for its packages.
    compiled = (*python, "pytest", "--collect-only", "-q", "-m", FAST)
    fast = (
        Stage(name="page", command=(sys.executable, "-c", BUILD_PAGE), needs=("node", "npm"), beside=compiled),
        Stage(name="lint", command=(*python, "ruff", "check", ".")),
        Stage(name="format", command=(*python, "ruff", "format", "--check", ".")),
        Stage(name="imports", command=(sys.executable, "-c", LINT_IMPORTS)),
        Stage(name="types", command=(*python, "mypy", "--num-workers", str(CPUS))),
        of_page("page types", "types:check"),
        of_page("page tests", "test"),
        of_page("page lint", "lint"),
        of_page("page format", "format:check"),
        scan_of("spelling", "spelling"),
        scan_of("form of Markdown", "markdown"),
        scan_of("style of Markdown", "prose"),
        scan_of("shell scripts", "shell"),
        scan_of("workflows", "workflows"),
        Stage(name="tests", command=(*pytest, "-m", FAST, *one_more)),
    )
    usual = (
        scan_of("audit of Python packages", "audit-python"),
        scan_of("audit of npm packages", "audit-npm", "node", "npm"),
        scan_of("audit of crates", "audit-rust", "cargo"),
        of_page("page in a browser", "e2e", "chromium"),
        Stage(name="four servers verified", command=verified, needs=("postgres",)),
    )
    everything = (
        of_page("run in a browser", "e2e:run", "chromium", "cargo", "postgres"),
        *(
            Stage(name=f"{path.parent.name} tests", command=cargo, needs=("cargo",), cwd=path.parent)
            for path in sorted(TOOLSET.glob("*/Cargo.toml"))
        ),
        scan_of("workflow syntax", "actionlint", "go"),
        Stage(name="fuzz", command=fuzz, needs=("cargo", "g++")),
        Stage(name="base image", command=(str(DOCKER / "bootstrap-base"),), needs=(ENGINE,)),
        Stage(name="simulations", command=(*pytest, "-m", "simulation", *every_cpu)),
        of_servers("gallery", "gallery and not adversarial", *one_more),
        of_servers("faults", "fault and not docker and not adversarial", *one_more),
        of_servers("adversarial tests", "adversarial and not docker", *one_more),
        of_servers(
            "tests of real servers", "(docker or (e2e and not adversarial)) and not machines and not every", *two
        ),
        of_servers("several machines", "machines"),  # they send images that the stages before have built
        of_servers("other implementations", "every", *few),
    )
    return (*fast, *(usual if extent != "fast" else ()), *(everything if extent == "all" else ()))


def wanted(extent: Extent) -> tuple[ToolRequirement, ...]:
    """The tools of a check's stages, and whether they are here."""
    kinds = {kind for stage in stages(extent) for kind in stage.needs} - {ENGINE}
    kinds |= {"sshd", "ip"} if extent == "all" else set()  # of several machines; their tests say what they lack
    tools = ((kind, CONDITIONS.get(kind, ">=0")) for kind in sorted(kinds))
    found = tuple(
        ToolRequirement(kind=kind, condition=condition, required_by=(), tool=toolchain.find_tool(kind, condition))
        for kind, condition in tools
    )
    if extent == "fast":
        return found
    known = scan_folders()
    chosen = known.implementations if extent == "all" else select_implementations(known, Selection(test=("run",)))
    return (*found, *requirements.tool_requirements(chosen, own_database=True, loads=False))


def check(found: Sequence[Stage], needs: Sequence[ToolRequirement], consent: Consent, *, bring_engine: bool) -> Exit:
    """Bring what is missing, run what can be run, and say how each stage ended."""
    failed, unsteady = list[str](), list[str]()
    not_run: list[tuple[str, str]] = []
    with facilities(needs, consent, bring_engine=bring_engine), tempfile.TemporaryDirectory(prefix="tfb-check-") as at:
        missing = _lacking(needs)
        skipped = Path(at, "skipped.jsonl")  # tests/conftest.py writes it
        environment = _environment(Path(at), skipped)
        for stage in found:
            if lacks := [missing[name] for name in stage.needs if name in missing]:
                not_run.append((stage.name, "; ".join(lacks)))
                continue
            status = _run(stage, stage.command, environment)
            if status == TESTS_FAILED and stage.again:
                last_failed = (*stage.command, "--last-failed", "--last-failed-no-failures=none")
                status = _run(stage, last_failed, environment)
                unsteady += [stage.name] * (status == 0)
            failed += [stage.name] * (status != 0)
        if skipped.exists():
            not_run += [(name, reason) for name, reason in map(json.loads, skipped.read_text().splitlines())]
    return conclude(failed, not_run, unsteady)


def _lacking(needs: Sequence[ToolRequirement]) -> Mapping[str, str]:
    """Name of each facility that is missing still -> what brings it."""
    missing = {
        need.kind: f"{need.description} is missing: "
        + (
            MENDS.get(need.kind)
            or f"{advice.describe_installed(need.kind)}; {advice.suggest_remedy(need.kind, need.condition)}"
        )
        for need in needs
        if need.tool is None and toolchain.find_tool(need.kind, need.condition) is None
    }
    if requirements.engine_responds():
        return missing
    return {**missing, ENGINE: f"no container engine answers: {requirements.ENGINE_REMEDY}"}


def _environment(folder: Path, skipped: Path) -> Mapping[str, str]:
    """Of every stage; ``folder`` goes when all of them have ended."""
    state = state_folder()
    chromium = toolchain.find_tool("chromium")
    memory = "/dev/shm"  # noqa: S108 - whoever writes there makes a folder of its own, for this user alone
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30
    return {
        **os.environ,
        **(chromium.env if chromium else {}),
        # Without a place for compiled Python each process of the tests compiles all of it again: ten seconds each.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(state / "bytecode"),
        # On a disk each replacement of a file waits for it.
        **({"TMPDIR": memory} if roomy else {}),
        "PYTEST_ADDOPTS": f"-o cache_dir={folder / 'pytest'}",
        "PYTHONPATH": str(REPOSITORY),
        "TFB_PYTHON": sys.executable,
        "TFB_STATE": str(state),
        SKIPPED_VARIABLE: str(skipped),
        DEADLINE_VARIABLE: str(time.time() + SECONDS_OF_ALL),
    }


def _run(stage: Stage, command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Its exit status; interrupted, it is asked to end and waited for: tests stop the servers that they started."""
    began = time.monotonic()
    print(f"== {stage.name}", flush=True)
    children = list[subprocess.Popen[bytes]]()
    no = subprocess.DEVNULL  # a stage asks nothing
    try:
        with interruption.held_while_loading():
            children.append(subprocess.Popen(command, cwd=stage.cwd, env=environment, stdin=no))
            if stage.beside:
                children.append(subprocess.Popen(stage.beside, env=environment, stdin=no, stdout=no, stderr=no))
        status, *_ = [child.wait() for child in children]
    except BaseException:
        for child in children:
            child.terminate()
        for child in children:
            child.wait()
        raise
    print(f"== {stage.name}: {'failed' if status else 'ok'} in {time.monotonic() - began:.0f} s", flush=True)
    return status


@contextmanager
def facilities(needs: Sequence[ToolRequirement], consent: Consent, *, bring_engine: bool) -> Iterator[None]:
    """Bring what is missing, where there is consent and apt; stop in the end what was started."""
    packages = requirements.missing_packages(needs)
    bring_engine = bring_engine and requirements.can_install_engine() and not requirements.engine_responds()
    commands = [f"apt-get install {' '.join(packages)}"] * bool(packages)
    commands += [f"{requirements.ENGINE_SCRIPT.relative_to(REPOSITORY)} install"] * bring_engine
    started = False
    try:
        if commands and consent != "no" and ask_consent(consent, f"May this check run `{'; '.join(commands)}`?"):
            log = state_folder() / "apt.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            for note in requirements.install_missing(needs, "yes", log):
                print(note, flush=True)
            if bring_engine and _does(requirements.ENGINE_INSTALL):
                started = True  # before it runs: an interrupted start is stopped as well
                _does(requirements.ENGINE_START)
        yield
    finally:
        if started:
            _does(requirements.ENGINE_STOP)


def _does(arguments: Sequence[str]) -> bool:
    print(f"== {' '.join(arguments)}", flush=True)
    return subprocess.run(arguments, check=False).returncode == 0


def conclude(failed: Sequence[str], not_run: Sequence[tuple[str, str]], unsteady: Sequence[str]) -> Exit:
    """The closing line: what failed, what was not run with what it lacks, and what could not be judged at once."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in not_run:
        by_reason.setdefault(reason, []).append(name)
    missing = [reason for reason in by_reason if not reason.startswith(NOT_JUDGED)]
    parts = [f"failed: {', '.join(failed)}"] if failed else []
    parts += [f"not run ({reason}): {', '.join(by_reason[reason])}" for reason in missing]
    parts = parts or ["all passed"]
    parts += [f"{reason}: {', '.join(names)}" for reason, names in by_reason.items() if reason not in missing]
    parts += [f"failed once and passed when tried again: {', '.join(unsteady)}"] if unsteady else []
    print(f"tfb check: {'; '.join(parts)}", flush=True)
    return Exit.FAILED if failed else Exit.ENVIRONMENT if missing else Exit.OK
