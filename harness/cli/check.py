"""The command ``./tfb check``, which installs required tools, then lints and tests this project."""

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
from harness.cli.flags import require_clone
from harness.cli.scans import NOT_JUDGED, SKIPPED_VARIABLE
from harness.errors import Exit, UsageError
from harness.host import interruption
from harness.paths import DOCKER, REPOSITORY, TOOLSET, state_folder
from harness.plan.discovery import Selection, scan_folders, select_implementations
from harness.plan.run_settings import Consent
from harness.plan.suggestions import suggest
from harness.provisioning import advice, requirements, toolchain
from harness.provisioning.requirements import ToolRequirement

WEB = REPOSITORY / "harness" / "dashboard" / "web"
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
BUILD_PAGE = "from harness.dashboard.build import ensure_built; print(ensure_built().name)"
# Minimum versions of tools. Other tools may have any version.
MINIMUM_VERSIONS = {"node": ">=20.19", "cargo": ">=1.85", "go": ">=1.24", "postgres": ">=12"}
REMEDIES = {
    "chromium": "apt-get install chromium; if that is a snap, npx --prefix harness/dashboard/web playwright-core "
    "install --with-deps chromium",
}
ENGINE = "engine"  # marks a stage that needs a container engine
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
# Environment variable that holds a deadline (Unix time). After the deadline, the check skips the remaining
# implementations. If the variable is unset, there is no deadline.
DEADLINE_VARIABLE = "TFB_CHECK_UNTIL"
CHECK_SECONDS = 32 * 60.0  # seconds from the start of the check to the deadline
# Environment variable with the time (Unix time) after which no more tests start. On slow machines, the check then ends
# within an hour and lists the skipped tests.
END_VARIABLE = "TFB_CHECK_END"
END_SECONDS = 54 * 60.0  # seconds from the start of the check to this time
TEMPORARY_BYTES = 4 << 30  # minimum free space in /dev/shm for the tests' temporary files
FAST = "not simulation and not gallery and not fault and not adversarial and not e2e and not docker and not recipe"
Extent = Literal["fast", "usual", "all"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of the check: a command and its requirements."""

    name: str
    command: tuple[str, ...]
    cwd: Path = REPOSITORY
    needs: tuple[str, ...] = ()  # required tools, or ENGINE; the stage is skipped if any is missing
    retry: bool = False  # whether to repeat failed tests; tests of real servers can fail on a busy machine
    alongside: tuple[str, ...] = ()  # command to run in parallel on idle CPUs; the output and status are ignored


def command(
    *,
    everything: Annotated[
        bool,
        Parameter(
            name="--all",
            help="run everything: simulations, faults, Docker, several machines and all implementations",
        ),
    ] = False,
    fast: Annotated[bool, Parameter(help="skip stages that start real servers, containers or a browser")] = False,
    yes: Annotated[bool, Parameter(help="install missing tools without asking")] = False,
    no_install: Annotated[bool, Parameter(help="never install tools: skip stages whose tools are missing")] = False,
    only: Annotated[tuple[str, ...], Parameter(help="run only these stages, for example lint or tests")] = (),
) -> int:
    """Lint and test this project, and verify its four core servers.

    All stages run, even if one fails. The exit code is 1 if a stage failed, and
    3 if a stage or test was skipped because a requirement is missing. The check
    also reports inconclusive tests (for example on a busy machine) and server
    tests that passed only on retry. Neither changes the exit code.
    """
    require_clone("check")
    extent: Extent = "all" if everything else "fast" if fast else "usual"
    consent: Consent = "no" if no_install or fast else "yes" if yes else "ask"
    planned = stages(extent)
    names = [stage.name for stage in planned]
    for name in only:
        if name not in names:
            raise UsageError(f"--only: unknown stage {name!r}; {suggest(name, names)}")
    selected = [stage for stage in planned if not only or stage.name in only]
    bring_engine = everything and any(
        ENGINE in stage.needs or "docker" in " ".join(stage.command) for stage in selected
    )
    return check(selected, required_tools(selected, extent), consent, bring_engine=bring_engine)


def stages(extent: Extent) -> tuple[Stage, ...]:
    """Return the stages of the check in execution order."""
    python = (sys.executable, "-m")
    pytest = (*python, "pytest", "-ra", "--durations=10", "--durations-min=5")
    per_cpu = ("-n", str(CPUS), "--dist", "loadgroup")
    waiting_options = ("-n", str(CPUS + 1), "--dist", "loadgroup")  # for tests that mostly wait
    # Options for tests that start an implementation and a database. Each test needs 1 GiB of memory.
    four_at_most = ("-n", str(min(CPUS, 4)), "--dist", "loadgroup")
    # Options for tests that start containers, or that give a server the whole machine.
    two_at_most = ("-n", str(min(CPUS, 2)), "--dist", "loadgroup")
    cargo = ("cargo", "test", "--locked", "--quiet")
    fuzz = (*python, "harness.tests.fuzz", "--seconds", "60")  # total time for all targets, excluding builds
    site = (*python, "mkdocs", "build", "--strict", "--site-dir", str(state_folder() / "site"))
    verified = (*python, "harness", "verify", "--runtime", "local", "--no-install")

    def scan_stage(name: str, scan: str, *needs: str) -> Stage:
        return Stage(name=name, command=(*python, "harness.cli.scans", scan), needs=needs)

    def page_stage(name: str, script: str, *more: str) -> Stage:
        return Stage(name=name, command=("npm", "run", "--silent", script), needs=("node", "npm", *more), cwd=WEB)

    def server_stage(name: str, marks: str, *arguments: str) -> Stage:
        return Stage(name=name, command=(*pytest, "-m", marks, *arguments), retry=True)

    # While npm downloads packages, compile the tests to bytecode for all later stages.
    compile_tests = (*python, "pytest", "--collect-only", "-q", "-m", FAST)
    fast = (
        Stage(name="page", command=(sys.executable, "-c", BUILD_PAGE), needs=("node", "npm"), alongside=compile_tests),
        Stage(name="lint", command=(*python, "ruff", "check", ".")),
        Stage(name="format", command=(*python, "ruff", "format", "--check", ".")),
        Stage(name="imports", command=(sys.executable, "-c", LINT_IMPORTS)),
        Stage(name="types", command=(*python, "mypy", "--num-workers", str(CPUS))),
        page_stage("page types", "types:check"),
        page_stage("page tests", "test"),
        page_stage("page lint", "lint"),
        page_stage("page format", "format:check"),
        scan_stage("spelling", "spelling"),
        scan_stage("Markdown structure", "markdown"),
        scan_stage("Markdown style", "prose"),
        scan_stage("shell scripts", "shell"),
        scan_stage("workflows", "workflows"),
        Stage(name="documentation site", command=("env", "NO_MKDOCS_2_WARNING=1", *site)),
        Stage(name="tests", command=(*pytest, "-m", FAST, *waiting_options)),
    )
    usual_stages = (
        scan_stage("audit of Python packages", "audit-python"),
        scan_stage("audit of npm packages", "audit-npm", "node", "npm"),
        scan_stage("audit of crates", "audit-rust", "cargo"),
        page_stage("page in a browser", "e2e", "chromium"),
        Stage(name="four servers verified", command=verified, needs=("postgres",)),
    )
    slow_stages = (
        page_stage("run in a browser", "e2e:run", "chromium", "cargo", "postgres"),
        *(
            Stage(name=f"{path.parent.name} tests", command=cargo, needs=("cargo",), cwd=path.parent)
            for path in sorted(TOOLSET.glob("*/Cargo.toml"))
        ),
        scan_stage("workflow syntax", "actionlint", "go"),
        Stage(name="fuzz", command=fuzz, needs=("cargo", "g++")),
        Stage(name="base image", command=(str(DOCKER / "bootstrap-base"),), needs=(ENGINE,)),
        Stage(name="consistency of records", command=(*python, "harness.studies.consistency")),
        Stage(name="simulations", command=(*pytest, "-m", "simulation", *per_cpu)),
        server_stage(
            "gallery, faults and adversarial tests",
            "(gallery or fault or adversarial) and not docker",
            *waiting_options,
        ),
        server_stage(
            "tests of real servers",
            "(docker or (e2e and not adversarial and not gallery)) and not machines and not every and not recipe",
            *two_at_most,
        ),
        server_stage("several machines", "machines"),  # uses images built by earlier stages
        server_stage("other implementations", "every", *four_at_most),
    )
    return (*fast, *(usual_stages if extent != "fast" else ()), *(slow_stages if extent == "all" else ()))


def required_tools(planned: Sequence[Stage], extent: Extent) -> tuple[ToolRequirement, ...]:
    """Return the tools that the stages need, with the detected versions."""
    kinds = {kind for stage in planned for kind in stage.needs} - {ENGINE}
    tests_servers = any(stage.retry or "postgres" in stage.needs for stage in planned)
    # Tests need these tools, but no stage lists them.
    kinds |= {"sshd", "ip", "h2load"} if tests_servers and extent == "all" else set()
    conditions = ((kind, MINIMUM_VERSIONS.get(kind, ">=0")) for kind in sorted(kinds))
    tools = tuple(
        ToolRequirement(kind=kind, condition=condition, required_by=(), tool=toolchain.find_tool(kind, condition))
        for kind, condition in conditions
    )
    if not tests_servers:
        return tools
    scan = scan_folders()
    selected = scan.implementations if extent == "all" else select_implementations(scan, Selection(test=("run",)))
    return (*tools, *requirements.tool_requirements(selected, own_database=True, loads=False))


def check(planned: Sequence[Stage], tools: Sequence[ToolRequirement], consent: Consent, *, bring_engine: bool) -> Exit:
    """Install missing tools, run the stages and print the results.

    ``bring_engine`` permits installing and starting a container engine.
    """
    failed, flaky = list[str](), list[str]()
    skipped: list[tuple[str, str]] = []
    with facilities(tools, consent, bring_engine=bring_engine), tempfile.TemporaryDirectory(prefix="tfb-check-") as at:
        missing = _missing_facilities(tools)
        skipped_tests = Path(at, "skipped.jsonl")  # tests/conftest.py writes this file
        environment = _environment(Path(at), skipped_tests)
        for stage in planned:
            if reasons := [missing[name] for name in stage.needs if name in missing]:
                skipped.append((stage.name, "; ".join(reasons)))
                continue
            status = _run(stage, stage.command, environment)
            # pytest exits with status 1 if all tests ran and some failed.
            if status == 1 and stage.retry:
                last_failed = (*stage.command, "--last-failed", "--last-failed-no-failures=none")
                # Without time limits. Otherwise, a failed test would be skipped, and would count as passed on retry.
                status = _run(stage, last_failed, {**environment, DEADLINE_VARIABLE: "", END_VARIABLE: ""})
                flaky += [stage.name] * (status == 0)
            failed += [stage.name] * (status != 0)
        if skipped_tests.exists():
            skipped += [(name, reason) for name, reason in map(json.loads, skipped_tests.read_text().splitlines())]
    return conclude(failed, skipped, flaky)


def _missing_facilities(tools: Sequence[ToolRequirement]) -> Mapping[str, str]:
    """Map each missing tool, and ``ENGINE`` if no engine responds, to a message with a remedy."""
    missing = {}
    for tool in tools:
        if tool.tool is None and toolchain.find_tool(tool.kind, tool.condition) is None:
            remedy = REMEDIES.get(tool.kind) or (
                f"{advice.describe_installed(tool.kind)}; {advice.suggest_remedy(tool.kind, tool.condition)}"
            )
            missing[tool.kind] = f"{tool.description} is missing: {remedy}"
    if requirements.engine_responds():
        return missing
    return {**missing, ENGINE: f"no container engine responds: {requirements.ENGINE_REMEDY}"}


def _environment(folder: Path, skipped_tests: Path) -> Mapping[str, str]:
    """Return the environment variables for all stages. pytest records failed tests in ``folder``, for retries."""
    state = state_folder()
    chromium = toolchain.find_tool("chromium")
    memory = "/dev/shm"  # noqa: S108 - tests create private folders there
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > TEMPORARY_BYTES
    return {
        **os.environ,
        **(chromium.env if chromium else {}),
        # Let Python write bytecode. Otherwise, each test process would spend ten seconds compiling all modules.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(state / "bytecode"),
        # Keep temporary files in memory, because replacing a file atomically waits for the disk.
        **({"TMPDIR": memory} if has_room else {}),
        "PYTEST_ADDOPTS": f"-o cache_dir={folder / 'pytest'}",
        "PYTHONPATH": str(REPOSITORY),
        "TFB_PYTHON": sys.executable,
        "TFB_STATE": str(state),
        SKIPPED_VARIABLE: str(skipped_tests),
        DEADLINE_VARIABLE: str(time.time() + CHECK_SECONDS),
        END_VARIABLE: str(time.time() + END_SECONDS),
    }


def _run(stage: Stage, command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a stage's command and return the exit status. Terminate the command if tfb is interrupted."""
    started_at = time.monotonic()
    print(f"== {stage.name}", flush=True)
    children = list[subprocess.Popen[bytes]]()
    null = subprocess.DEVNULL
    try:
        with interruption.held_while_loading():
            children.append(subprocess.Popen(command, cwd=stage.cwd, env=environment, stdin=null))
            if stage.alongside:
                children.append(
                    subprocess.Popen(stage.alongside, env=environment, stdin=null, stdout=null, stderr=null)
                )
        status, *_ = [child.wait() for child in children]
    except BaseException:
        for child in children:
            child.terminate()
        for child in children:
            child.wait()
        raise
    print(f"== {stage.name}: {'failed' if status else 'ok'} in {time.monotonic() - started_at:.0f} s", flush=True)
    return status


@contextmanager
def facilities(tools: Sequence[ToolRequirement], consent: Consent, *, bring_engine: bool) -> Iterator[None]:
    """If the user consents, install missing tools with apt and start a container engine. After the block, stop it."""
    packages = requirements.missing_packages(tools)
    bring_engine = bring_engine and requirements.can_install_engine() and not requirements.engine_responds()
    commands = [f"apt-get install {' '.join(packages)}"] * bool(packages)
    commands += [f"{requirements.ENGINE_SCRIPT.relative_to(REPOSITORY)} install"] * bring_engine
    started = False
    try:
        if commands and consent != "no" and ask_consent(consent, f"Allow the check to run `{'; '.join(commands)}`?"):
            log = state_folder() / "apt.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            for note in requirements.install_missing(tools, "yes", log):
                print(note, flush=True)
            if bring_engine and _succeeds(requirements.ENGINE_INSTALL):
                started = True  # set before the start, so that an interrupted start is also undone
                _succeeds(requirements.ENGINE_START)
        yield
    finally:
        if started:
            _succeeds(requirements.ENGINE_STOP)


def _succeeds(command: Sequence[str]) -> bool:
    """Print and run a command. Return whether it succeeded."""
    print(f"== {' '.join(command)}", flush=True)
    return subprocess.run(command, check=False).returncode == 0


def conclude(failed: Sequence[str], skipped: Sequence[tuple[str, str]], flaky: Sequence[str]) -> Exit:
    """Print the check's summary line and return the exit code.

    ``skipped`` contains (stage or test, reason) pairs. ``flaky`` names the stages that passed only on retry.
    """
    by_reason: dict[str, list[str]] = {}
    for name, reason in skipped:
        by_reason.setdefault(reason, []).append(name)
    missing = [reason for reason in by_reason if not reason.startswith(NOT_JUDGED)]
    parts = [f"failed: {', '.join(failed)}"] if failed else []
    parts += [f"not run ({reason}): {', '.join(by_reason[reason])}" for reason in missing]
    parts = parts or ["all passed"]
    parts += [f"{reason}: {', '.join(names)}" for reason, names in by_reason.items() if reason not in missing]
    parts += [f"failed once and passed on retry: {', '.join(flaky)}"] if flaky else []
    print(f"tfb check: {'; '.join(parts)}", flush=True)
    return Exit.FAILED if failed else Exit.ENVIRONMENT if missing else Exit.OK
