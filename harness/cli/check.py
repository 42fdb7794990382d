"""``./tfb check``: the project's own lint, types and tests, and before them what they need of the machine."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated, Literal

from cyclopts import Parameter

from harness.cli.consent import agreed
from harness.errors import Exit
from harness.host import interruption, provision, toolchain
from harness.host.provision import Need
from harness.paths import DOCKER, REPOSITORY, TOOLSET, state_folder
from harness.plan.config import Consent
from harness.plan.discovery import Selection, scan, select

WEB = REPOSITORY / "harness" / "dashboard" / "web"
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
BUILD_PAGE = "from harness.dashboard.build import ensure_built; print(ensure_built().name)"
FAST = (("node", ">=20.19"), ("npm", ">=0"))  # tools that the fast stages need beside Python
USUAL = (*FAST, ("chromium", ">=0"))
# What the tests of several machines use; without them they are skipped, by name.
ALL = (*USUAL, ("sshd", ">=0 by sshd -V"), ("ip", ">=0 by ip -V"), ("cargo", ">=1.85"))
MENDS = {
    "cargo": "apt-get install cargo where it is new enough, otherwise rustup (https://rustup.rs)",
    "chromium": "apt-get install chromium; where that is a snap, npx --prefix harness/dashboard/web playwright-core "
    "install --with-deps chromium",
}
ENGINE = "engine"  # stands among a stage's needs for a container engine
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
# How the reason of a skipped test begins that nothing can be installed for: the machine was too busy for it to say
# anything, or does not let this user make machines of network namespaces.
NOT_JUDGED = "not judged: "
UNTIL = "TFB_CHECK_UNTIL"  # when tests of other implementations begin no more, in seconds since 1970; unset: never
SECONDS_OF_ALL = 32 * 60.0  # the last ones that begin by then take some minutes
TESTS_FAILED, NO_TESTS = 1, 5  # pytest's statuses: all were run and some failed; none was selected
Extent = Literal["fast", "usual", "all"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One command of the check; ``needs`` are names of tools, or ENGINE, without which it is not run."""

    name: str
    command: tuple[str, ...]
    cwd: Path = REPOSITORY
    needs: tuple[str, ...] = ()
    again: bool = False  # tests of real servers, by pytest: a busy machine can fail one, which is then tried again


def command(
    *,
    everything: Annotated[
        bool, Parameter(name="--all", help="gallery, faults, Docker, several machines, all implementations as well")
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


def stages(extent: Extent) -> tuple[tuple[Stage, ...], ...]:
    """Those of a check of this extent in their order; those of a group run side by side: they measure nothing."""
    python = (sys.executable, "-m")
    pytest = (*python, "pytest", "-ra", "--durations=10", "--durations-min=5")
    every_cpu = ("-n", str(CPUS), "--dist", "loadgroup")
    few = ("-n", str(min(CPUS, 4)), "--dist", "loadgroup")  # whole implementations with a database: a gibibyte each
    npm = ("npm", "run", "--silent")
    cargo = ("cargo", "test", "--release", "--locked", "--quiet")

    def stage(name: str, *arguments: str, needs: tuple[str, ...] = (), cwd: Path = REPOSITORY) -> Stage:
        return Stage(name=name, command=arguments, needs=needs, cwd=cwd)

    def of_page(name: str, script: str, *more: str) -> Stage:
        return stage(name, *npm, script, needs=("node", "npm", *more), cwd=WEB)

    def of_servers(name: str, marks: str, *arguments: str) -> tuple[Stage]:
        return (Stage(name=name, command=(*pytest, "-m", marks, *arguments), again=True),)

    fast = (
        (stage("page", sys.executable, "-c", BUILD_PAGE, needs=("node", "npm")),),
        (
            stage("tests", *pytest, "-m", "not e2e and not docker and not gallery and not fault", *every_cpu),
            stage("types", *python, "mypy"),
            stage("lint", *python, "ruff", "check", "."),
            stage("format", *python, "ruff", "format", "--check", "."),
            stage("imports", sys.executable, "-c", LINT_IMPORTS),
            of_page("page tests", "test"),
            of_page("page lint", "lint"),
            of_page("page format", "format:check"),
        ),
    )
    verified = (*python, "harness", "verify", "--runtime", "local", "--no-install")
    usual = (
        (of_page("page in a browser", "e2e", "chromium"),),
        (stage("four servers verified", *verified, needs=("postgres",)),),
    )
    manifests = sorted(TOOLSET.glob("*/Cargo.toml"))
    everything = (
        *((stage(f"{path.parent.name} tests", *cargo, needs=("cargo",), cwd=path.parent),) for path in manifests),
        (stage("base image", str(DOCKER / "bootstrap-base"), needs=(ENGINE,)),),
        of_servers("gallery", "gallery", *every_cpu),
        of_servers("faults", "fault and not docker", *every_cpu),
        of_servers("tests of real servers", "(e2e or docker) and not machines and not every"),
        of_servers("several machines", "machines"),  # they send images that the stages before have built
        of_servers("other implementations", "every", *few),
    )
    return (*fast, *(usual if extent != "fast" else ()), *(everything if extent == "all" else ()))


def wanted(extent: Extent) -> tuple[Need, ...]:
    """The tools of a check's stages, and whether they are here."""
    tools = {"fast": FAST, "usual": USUAL, "all": ALL}[extent]
    found = tuple(
        Need(kind=kind, condition=condition, wanted_by=(), tool=toolchain.find(kind, condition))
        for kind, condition in tools
    )
    if extent == "fast":
        return found
    known = scan().implementations
    chosen = known if extent == "all" else select(known, Selection(test=("run",)))
    return (*found, *provision.needs(chosen, own_database=True))


def check(groups: Sequence[Sequence[Stage]], needs: Sequence[Need], consent: Consent, *, bring_engine: bool) -> Exit:
    """Bring what is missing, run what can be run, and say how each stage ended."""
    failed, unsteady = list[str](), list[str]()
    with facilities(needs, consent, bring_engine=bring_engine), tempfile.TemporaryDirectory(prefix="tfb-check-") as at:
        runner = Runner(Path(at))
        missing = _lacking(needs)
        reasons = {s.name: [missing[name] for name in s.needs if name in missing] for group in groups for s in group}
        not_run = [(name, "; ".join(why)) for name, why in reasons.items() if why]
        for group in groups:
            for stage, status in runner.run([stage for stage in group if not reasons[stage.name]]):
                if status == TESTS_FAILED and stage.again and runner.passes_again(stage):
                    unsteady.append(stage.name)
                elif status not in (0, NO_TESTS if "pytest" in stage.command else 0):
                    failed.append(stage.name)
        not_run += runner.skips()
    return conclude(failed, not_run, unsteady)


def _lacking(needs: Sequence[Need]) -> Mapping[str, str]:
    """Name of each facility that is missing still -> what brings it."""
    missing = {
        need.kind: f"{need.missing} is missing: "
        + MENDS.get(need.kind, f"apt-get install {' '.join(toolchain.packages(need.kind, need.condition))}")
        for need in needs
        if need.tool is None and toolchain.find(need.kind, need.condition) is None
    }
    if provision.engine_answers():
        return missing
    return {**missing, ENGINE: f"no container engine answers: {provision.ENGINE_MEND}"}


class Runner:
    """Runs stages; an interruption ends what it has started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []
        state = state_folder()
        chromium = toolchain.find("chromium")
        self._environment = {
            **os.environ,
            **(chromium.env if chromium else {}),
            # Without a place for compiled Python each process of the tests compiles all of it again: ten seconds each.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(state / "bytecode"),
            **_files_in_memory(),
            "PYTHONPATH": str(REPOSITORY),
            "TFB_PYTHON": sys.executable,
            "TFB_STATE": str(state),
            "TFB_SKIPPED": str(folder / "skipped.jsonl"),
            UNTIL: str(time.time() + SECONDS_OF_ALL),
        }

    def run(self, found: Sequence[Stage]) -> Iterator[tuple[Stage, int]]:
        """Each stage with its exit status, as they end: the output of one as it comes, of several in one piece each."""
        if len(found) > 1:
            print(f"== side by side, each shown when it has ended: {', '.join(s.name for s in found)}", flush=True)
        with ThreadPoolExecutor(max(2, CPUS)) as pool, self._ended_with_this():
            running = {pool.submit(self._one, stage, whole=len(found) > 1): stage for stage in found}
            try:
                for done in as_completed(running):
                    yield running[done], done.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def passes_again(self, stage: Stage) -> bool:
        """Whether the tests that failed pass when they are run again, alone."""
        arguments = (*stage.command, "--last-failed", "--last-failed-no-failures=none")
        again = replace(stage, name=f"{stage.name}, failed ones again", command=arguments)
        return self._one(again, whole=False, kept=stage.name) == 0

    def skips(self) -> list[tuple[str, str]]:
        """The tests that pytest skipped, with why."""
        file = self._folder / "skipped.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(name, reason) for name, reason in map(json.loads, lines)]

    def _one(self, stage: Stage, *, whole: bool, kept: str = "") -> int:
        """Its exit status; ``whole``: its output is shown when it has ended."""
        began = time.monotonic()
        cache = ("-o", f"cache_dir={self._folder / (kept or stage.name)}") if "pytest" in stage.command else ()
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(tempfile.TemporaryFile()) if whole else None
            if output is None:
                print(f"== {stage.name}", flush=True)
            try:
                with interruption.held():
                    child = subprocess.Popen(
                        (*stage.command, *cache),
                        cwd=stage.cwd,
                        env=self._environment,
                        stdin=subprocess.DEVNULL,  # a stage asks nothing
                        stdout=output,
                        stderr=output,
                    )
                    self._children.append(child)
                status = child.wait()
            except FileNotFoundError:
                print(f"{stage.command[0]} is not on this machine: ./tfb doctor", file=sys.stderr)
                status = 127  # as a shell has it
            text = f"== {stage.name}\n{_text(output)}" if output else ""
            word = "ok" if status in (0, NO_TESTS) else "failed"
            print(f"{text}== {stage.name}: {word} in {time.monotonic() - began:.0f} s", flush=True)
        return status

    @contextmanager
    def _ended_with_this(self) -> Iterator[None]:
        """What runs is asked to end, and waited for, when the block ends early: tests stop the servers they started."""
        try:
            yield
        except BaseException:
            for child in self._children:
                child.terminate()
            for child in self._children:
                child.wait()
            raise


def _files_in_memory() -> Mapping[str, str]:
    """Where pytest keeps files: in memory, where there is room; on a disk each of their replacements waits for it."""
    memory = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own in it, for this user alone
    try:
        room = os.statvfs(memory)
    except OSError:
        return {}
    roomy = os.access(memory, os.W_OK) and room.f_bavail * room.f_frsize > 1 << 30
    return {"PYTEST_DEBUG_TEMPROOT": str(memory)} if roomy else {}


@contextmanager
def facilities(needs: Sequence[Need], consent: Consent, *, bring_engine: bool) -> Iterator[None]:
    """Bring what is missing, where there is consent and apt; stop in the end what was started."""
    packages = provision.packages(needs)
    bring_engine = bring_engine and provision.engine_can_be_brought() and not provision.engine_answers()
    commands = [f"apt-get install {' '.join(packages)}"] * bool(packages)
    commands += [f"{provision.ENGINE_SCRIPT.relative_to(REPOSITORY)} install"] * bring_engine
    started = False
    try:
        if commands and consent != "no" and agreed(consent, f"May this check run `{'; '.join(commands)}`?"):
            log = state_folder() / "apt.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            for note in provision.install_missing(needs, "yes", log):
                print(note, flush=True)
            if bring_engine and _does(provision.ENGINE_INSTALL):
                started = True  # before it runs: an interrupted start is stopped as well
                _does(provision.ENGINE_START)
        yield
    finally:
        if started:
            _does(provision.ENGINE_STOP)


def _does(arguments: Sequence[str]) -> bool:
    print(f"== {' '.join(arguments)}", flush=True)
    return subprocess.run(arguments, check=False).returncode == 0


def conclude(failed: Sequence[str], not_run: Sequence[tuple[str, str]], unsteady: Sequence[str] = ()) -> Exit:
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
    wrong = bool(failed or missing)
    print(f"tfb check: {'; '.join(parts)}", file=sys.stderr if wrong else sys.stdout, flush=True)
    return Exit.FAILED if failed else Exit.ENVIRONMENT if missing else Exit.OK


def _text(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read().decode(errors="replace")
