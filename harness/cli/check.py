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
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.cli.consent import agreed
from harness.cli.stages import CPUS, NOT_JUDGED, UNTIL, Extent, Stage, lacking, stages, wanted
from harness.errors import Exit
from harness.host import engine, interruption, process, provision, toolchain
from harness.host.provision import Need
from harness.paths import REPOSITORY, state_folder
from harness.plan.config import Consent

SECONDS_OF_ALL = 32 * 60.0  # in which tests of other implementations may begin: the last ones take some minutes
TESTS_FAILED, NO_TESTS = 1, 5  # pytest's statuses: all were run and some failed; none was selected
NOT_FOUND = 127  # the exit status of a program that is not there, as a shell has it
ROOM = 1 << 30  # bytes of memory for the files of the fast tests


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


def check(found: Sequence[Stage], needs: Sequence[Need], consent: Consent, *, bring_engine: bool) -> Exit:
    """Bring what is missing, run what can be run, and say how each stage ended."""
    failed, unsteady = list[str](), list[str]()
    with facilities(needs, consent, bring_engine=bring_engine), tempfile.TemporaryDirectory(prefix="tfb-check-") as at:
        runner = Runner(Path(at))
        missing = lacking([need if need.tool else _again(need) for need in needs])
        reasons = {stage.name: [missing[name] for name in stage.needs if name in missing] for stage in found}
        not_run = [(name, "; ".join(why)) for name, why in reasons.items() if why]
        ready = [stage for stage in found if not reasons[stage.name]]
        for stages_of_a_turn in _turns(ready):
            for stage, status in runner.run(stages_of_a_turn):
                if status == TESTS_FAILED and stage.again and runner.passes_again(stage):
                    unsteady.append(stage.name)
                elif status not in (0, NO_TESTS if "pytest" in stage.command else 0):
                    failed.append(stage.name)
        not_run += runner.skips()
    return conclude(failed, not_run, unsteady)


def _again(need: Need) -> Need:
    """Looked for once more, since it may have been installed."""
    tool = toolchain.find(need.kind, need.condition)
    return Need(kind=need.kind, condition=need.condition, wanted_by=need.wanted_by, tool=tool)


def _turns(found: Sequence[Stage]) -> Iterator[list[Stage]]:
    """Stages that may run beside others all together, each other one by itself."""
    together = [stage for stage in found if stage.beside]
    for stage in found:
        if stage not in together:
            yield [stage]
        elif stage is together[0]:
            yield together


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
        if len(found) == 1:
            yield found[0], self._one(found[0], show=False)
            return
        print(f"== side by side, each shown when it has ended: {', '.join(stage.name for stage in found)}", flush=True)
        with ThreadPoolExecutor(max(2, CPUS)) as pool, self._ended_with_this():
            running = {pool.submit(self._one, stage, show=True): stage for stage in found}
            try:
                for done in as_completed(running):
                    yield running[done], done.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def passes_again(self, stage: Stage) -> bool:
        """Whether the tests that failed pass when they are run again, alone."""
        words = ("--last-failed", "--last-failed-no-failures=none")
        again = Stage(name=f"{stage.name}, failed ones again", command=(*stage.command, *words), cwd=stage.cwd)
        return self._one(again, show=False, kept=stage.name) == 0

    def skips(self) -> list[tuple[str, str]]:
        """The tests that pytest skipped, with why."""
        file = self._folder / "skipped.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(name, reason) for name, reason in map(json.loads, lines)]

    def _one(self, stage: Stage, *, show: bool, kept: str = "") -> int:
        began = time.monotonic()
        words = stage.command
        if "pytest" in words:
            words = (*words, "-o", f"cache_dir={self._folder / (kept or stage.name)}")
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(tempfile.TemporaryFile()) if show else None
            if output is None:
                print(f"== {stage.name}", flush=True)
                stack.enter_context(self._ended_with_this())
            try:
                with interruption.held():
                    child = subprocess.Popen(
                        words,
                        cwd=stage.cwd,
                        env=self._environment,
                        stdin=subprocess.DEVNULL,  # a stage asks nothing
                        stdout=output,
                        stderr=output,
                    )
                    self._children.append(child)
                status = child.wait()
            except FileNotFoundError:
                print(f"{words[0]} is not on this machine: ./tfb doctor", file=sys.stderr)
                status = NOT_FOUND
            word = "ok" if status in (0, NO_TESTS) else "failed"
            ended = f"== {stage.name}: {word} in {time.monotonic() - began:.0f} s"
            if output is None:
                print(ended, flush=True)
            else:
                output.seek(0)
                print(f"== {stage.name}\n{output.read().decode(errors='replace')}{ended}", flush=True)
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
    roomy = os.access(memory, os.W_OK) and room.f_bavail * room.f_frsize > ROOM
    return {"PYTEST_DEBUG_TEMPROOT": str(memory)} if roomy else {}


@contextmanager
def facilities(needs: Sequence[Need], consent: Consent, *, bring_engine: bool) -> Iterator[None]:
    """Bring what is missing, where there is consent and apt; stop in the end what was started."""
    packages = provision.packages(needs)
    bring_engine = bring_engine and engine.can_be_brought() and not engine.answers()
    commands = [f"apt-get install {' '.join(packages)}"] * bool(packages)
    commands += [f"{engine.SCRIPT.relative_to(REPOSITORY)} install"] * bring_engine
    started = False
    try:
        if commands and consent != "no" and agreed(consent, f"May this check run `{'; '.join(commands)}`?"):
            log = state_folder() / "apt.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            for note in provision.install_missing(needs, "yes", log):
                print(note, flush=True)
            if bring_engine and _does(engine.INSTALL):
                started = True  # before it runs: an interrupted start is stopped as well
                _does(engine.START)
                process.disown()  # asking a tool for its version, later, would end the engine
        yield
    finally:
        if started:
            _does(engine.STOP)


def _does(words: Sequence[str]) -> bool:
    print(f"== {' '.join(words)}", flush=True)
    return subprocess.run(words, check=False).returncode == 0


def conclude(failed: Sequence[str], not_run: Sequence[tuple[str, str]], unsteady: Sequence[str] = ()) -> Exit:
    """The closing line: what failed, what was not run with what it lacks, and what could not be judged at once."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in not_run:
        by_reason.setdefault(reason, []).append(name)
    missing = [reason for reason in by_reason if not reason.startswith(NOT_JUDGED)]
    words = [f"failed: {', '.join(failed)}"] if failed else []
    words += [f"not run ({reason}): {', '.join(by_reason[reason])}" for reason in missing]
    words = words or ["all passed"]
    words += [f"{reason}: {', '.join(names)}" for reason, names in by_reason.items() if reason not in missing]
    words += [f"failed once and passed when tried again: {', '.join(unsteady)}"] if unsteady else []
    wrong = bool(failed or missing)
    print(f"tfb check: {'; '.join(words)}", file=sys.stderr if wrong else sys.stdout, flush=True)
    return Exit.FAILED if failed else Exit.ENVIRONMENT if missing else Exit.OK
