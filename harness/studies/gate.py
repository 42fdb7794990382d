"""Tests whether ./tfb compare detects slowdowns injected into five real services.

Usage: ``python -m harness.studies.gate FILE``. A session runs ``./tfb compare`` once and appends a line to FILE. In the
slower version (head), one of the three requests executes a loop that wastes CPU time. For each service, a calibration
session first measures the cost of a loop iteration. Repeat the command to continue an interrupted study. During each
session, ``--busy 2`` runs two other programs that use the CPU at intervals. ``--summary`` only prints the table.

With ``--releases``, the study compares pairs of library releases and appends Markdown reports to FILE. With
``--again``, FILE is a run folder that ``./tfb compare --results DIR`` wrote for two equal versions. The study then
resamples many sessions from the trials of this run.
"""

import argparse
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from harness.errors import Exit
from harness.extras.gate.judge import ComparedVersions, GateResult, judge
from harness.extras.gate.paired import HEAD, SIDES
from harness.paths import REPOSITORY
from harness.plan.service import FILE
from harness.records import store
from harness.records.record import Record
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial

WORK = Path(tempfile.gettempdir()) / "tfb-gate-study"  # the study builds the services in this folder
SERVICES = REPOSITORY / "harness" / "studies" / "services"
# Stack -> loop iterations that roughly double the request's cost.
STACKS = {"express": 50_000, "fastify": 30_000, "fastapi": 5_000, "go": 30_000, "spring": 60_000}
SHARES = (0, 3, 5, 10, 20)  # percent
SLOWED = "item"  # the request with the injected slowdown
CALIBRATION = -1  # marks calibration sessions in the field ``share``
TOGETHER = "all"  # name of the overall result, which includes the slowed request
# Stack -> (command that installs a library release, older release, newer release).
RELEASES = {
    "express": ("npm install --no-save --ignore-scripts express@{}", "4.22.1", "5.2.1"),
    "pg": ("npm install --no-save --ignore-scripts pg@{}", "8.11.6", "8.23.1"),
    "fastapi": (".venv/bin/python -m pip install -q pydantic=={}", "1.10.24", "2.14.4"),
}


# Program that alternates between computing and sleeping, each time for 0.2 to 3 s.
BUSY_PROGRAM = """
import random, sys, time
dice = random.Random(sys.argv[1])
while True:
    until = time.monotonic() + dice.uniform(0.2, 3)
    while time.monotonic() < until:
        sum(range(1000))
    time.sleep(dice.uniform(0.2, 3))
"""


@contextmanager
def busy_machine(programs: int) -> Iterator[None]:
    """Keep the machine busy with ``programs`` background programs while the context is active."""
    with ExitStack() as stack:
        for number in range(programs):
            child = subprocess.Popen([sys.executable, "-c", BUSY_PROGRAM, str(number)])
            stack.callback(child.wait)
            stack.callback(child.kill)
        yield


class StudySession(Record):
    """A line of the study's file: the result of one ``./tfb compare`` session."""

    stack: str
    share: int  # injected slowdown in percent of the request's CPU time
    number: int  # session number, counted from 0 for each stack and share
    turns: int  # loop iterations in head
    busy: int = 0  # number of background programs that used the CPU
    result: GateResult | None
    error: str = ""

    @property
    def verdict(self) -> str:
        """Return the verdict on the request with the injected slowdown, or "failed" if the session has no result."""
        return next((r.verdict for r in self.result.requests if r.request == SLOWED), "") if self.result else "failed"

    @property
    def false_alarm(self) -> bool:
        """Return whether any verdict reports a nonexistent difference, or a difference in the wrong direction."""
        for request in self.result.requests if self.result else ():
            slowed = self.share > 0 and request.request in (SLOWED, TOGETHER)
            if request.verdict == "faster" or (request.verdict == "slower" and not slowed):
                return True
        return False


def run_session(stack: str, share: int, number: int, iterations: int, options: argparse.Namespace) -> StudySession:
    """Run a session in which head's loop has ``iterations`` iterations.

    ``options`` provides the session's duration (``time``) and the number of background programs (``busy``).
    """
    base, head = build_service(stack), WORK / f"{stack}-head"
    if not head.is_dir():
        shutil.copytree(base, head, symlinks=True)
    write_service_file(stack, base, 0)
    write_service_file(stack, head, iterations)
    with busy_machine(options.busy):
        completed = run_compare(base, head, "--json", "--time", options.time)
    if completed.returncode == Exit.INTERRUPTED:
        raise KeyboardInterrupt
    result, error = None, ""
    try:
        result = GateResult.model_validate_json(completed.stdout)
    except ValueError:
        error = completed.stderr.strip()[-500:]
    own = {"stack": stack, "share": share, "number": number, "turns": iterations, "busy": options.busy}
    return StudySession.model_validate({**own, "result": result, "error": error})


def run_compare(base: Path, head: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run ``./tfb compare`` on two service folders, with additional arguments."""
    sides = ("--base", f"dir:{base}", "--head", f"dir:{head}", "--service", str(base))
    command = [sys.executable, "-m", "harness", "compare", *sides, "--yes", "--quiet", *words]
    own = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=REPOSITORY, env=own)


def compare_releases(stack: str, time: str) -> str:
    """Compare two releases of a library and return the report as Markdown."""
    install, *versions = RELEASES[stack]
    base, head = sides = [WORK / f"{stack}-{version}" for version in versions]
    for version, side in zip(versions, sides, strict=True):
        if not side.is_dir():
            folder = shutil.copytree(build_service(stack), WORK / f"{stack}.new", symlinks=True, dirs_exist_ok=True)
            subprocess.run(["sh", "-c", install.format(version)], check=True, cwd=folder, timeout=600)
            write_service_file(stack, folder, 0)
            folder.rename(side)
    done = run_compare(base, head, "--markdown", "--time", time)
    return f"# {install.split()[-1].format(' → '.join(versions))}\n\n{done.stdout or done.stderr}\n"


def build_service(stack: str) -> Path:
    """Build a service, unless an earlier call has built it, and return its folder."""
    folder = WORK / stack
    if not folder.is_dir():
        temporary = shutil.copytree(SERVICES / stack, WORK / f"{stack}.new", dirs_exist_ok=True)
        build = tomllib.loads((temporary / FILE).read_text(encoding="utf-8"))["service"]["build"]
        print(f"{stack}: {build}", file=sys.stderr)
        subprocess.run(["sh", "-c", build], check=True, cwd=temporary, timeout=1800)
        temporary.rename(folder)
    return folder


def write_service_file(stack: str, folder: Path, iterations: int) -> None:
    """Write a tfb.toml that sets the loop to ``iterations`` iterations and omits the build command."""
    lines = (SERVICES / stack / FILE).read_text(encoding="utf-8").splitlines()
    service_lines = [line for line in lines if not line.startswith("build")]
    requests = (SERVICES / "requests.toml").read_text(encoding="utf-8")
    (folder / FILE).write_text(
        "\n".join((*service_lines, f'env = {{ BURN = "{iterations}" }}', "", requests)), encoding="utf-8"
    )


def calibrated_turns(calibration: StudySession, share: int) -> int:
    """Return how many loop iterations make the request ``share`` percent more expensive.

    Raises SystemExit if the calibration session failed, or measured no clear cost.
    """
    result = calibration.result
    values = next((r.values for r in result.requests if r.request == SLOWED), None) if result else None
    if not values or values[1] <= values[0] * 1.1:
        why = calibration.error or f"the loop hardly changed CPU per request: {values}"
        raise SystemExit(
            f"{calibration.stack}: the calibration session did not measure the loop's cost: {why}. Delete the "
            "session's line from the file, then repeat the command"
        )
    turns: int = round(share / 100 * values[0] * calibration.turns / (values[1] - values[0]))
    return turns


def read_sessions(file: Path) -> list[StudySession]:
    """Return the sessions in a file, or an empty list if the file does not exist."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return [StudySession.model_validate_json(line) for line in text.splitlines() if line.strip()]


def resample(records: RunRecords, processes: int, sessions: int = 200) -> Iterator[str]:
    """Resample sessions from a run in which base and head were equal. Yield a line of results for each slowdown.

    Each session draws ``processes`` of the run's processes. Within each process, it assigns the names base, control
    copy and head to the three sides at random. To inject a slowdown, it increases head's CPU cost of the request
    ``SLOWED``. The noise is therefore real, and only the slowdown is simulated.
    """
    processes_in_run = sorted({trial.process for trial in records.trials})
    for share in SHARES:
        generator, session_results = random.Random(f"{records.info.run_id} {processes} {share}"), []
        for number in range(sessions):
            draws = {
                process: dict(zip(SIDES, generator.sample(SIDES, 3), strict=True))
                for process in generator.sample(processes_in_run, processes)
            }
            trials = [
                _with_slowdown(t, draws[t.process][t.implementation], share)
                for t in records.trials
                if t.process in draws
            ]
            result = judge(replace(records, trials=trials), ComparedVersions(base="base", head="head"))
            session_results.append(
                StudySession(stack=records.info.run_id, share=share, number=number, turns=0, result=result)
            )
        detected = sum(session.verdict == "slower" for session in session_results)
        false_alarms = sum(session.false_alarm for session in session_results)
        yield f"{share:>3} % injected: detected in {detected} of {sessions} sessions, {false_alarms} false alarms"


def _with_slowdown(trial: Trial, side: str, share: int) -> Trial:
    cost = trial.cpu_per_request
    slowed = cost and cost * (1 + share / 100) if side == HEAD and trial.test_type == SLOWED else cost
    return trial.model_copy(update={"implementation": side, "cpu_per_request": slowed})


def format_table(sessions: Sequence[StudySession]) -> Iterator[str]:
    """Yield a table's lines: results by stack, background load and injected slowdown, then totals across all stacks."""
    header = f"{'stack':<9}{'busy':>5}{'injected':>9}{'sessions':>9}{'found':>7}{'false':>7}"
    yield f"{header}{'cannot tell':>13}{'minutes':>9}"
    counted = [one for one in sessions if one.share != CALIBRATION]
    stacks = (*sorted({one.stack for one in counted}), "")
    groups = itertools.product(stacks, sorted({one.busy for one in counted}), sorted({one.share for one in counted}))
    for stack, busy, share in groups:
        group = [one for one in counted if (one.busy, one.share) == (busy, share) and stack in ("", one.stack)]
        if not group:
            continue
        minutes = [one.result.minutes for one in group if one.result]
        detected = str(sum(one.verdict == "slower" for one in group)) if share else "–"
        unknown = sum(one.verdict in ("cannot tell", "failed") for one in group)
        yield (
            f"{stack or 'all':<9}{busy:>5}{share:>7} %{len(group):>9}{detected:>7}"
            f"{sum(one.false_alarm for one in group):>7}{unknown:>13}{median(minutes) if minutes else 0.0:>9.1f}"
        )


def main() -> None:
    """Run the missing sessions in random order, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="file with one line per session; recorded sessions are not repeated")
    parser.add_argument("--stacks", nargs="+", default=list(STACKS), choices=STACKS)
    parser.add_argument(
        "--shares", nargs="+", type=int, default=list(SHARES), choices=SHARES, help="injected slowdowns in %%"
    )
    parser.add_argument("--sessions", type=int, default=20, help="sessions per stack and injected slowdown")
    parser.add_argument("--busy", type=int, default=0, help="number of background programs that use the CPU")
    parser.add_argument("--summary", action="store_true", help="print the table of recorded sessions and exit")
    parser.add_argument("--time", default="5m")
    parser.add_argument(
        "--again", type=int, metavar="PROCESSES", help="resample sessions with PROCESSES processes from a run"
    )
    parser.add_argument(
        "--releases", action="store_true", help="compare library releases instead of injecting slowdowns"
    )
    options = parser.parse_args()
    if options.again:
        print("\n".join(resample(store.read_run(options.file), options.again)))
        return
    if options.summary:
        print("\n".join(format_table(read_sessions(options.file))))
        return
    WORK.mkdir(parents=True, exist_ok=True)
    if options.releases:
        for stack in RELEASES:
            with options.file.open("a", encoding="utf-8") as file:
                file.write(compare_releases(stack, options.time))
        return
    sessions = read_sessions(options.file)

    def session(stack: str, share: int, number: int, turns: int) -> StudySession:
        session_record = run_session(stack, share, number, turns, options)
        with options.file.open("a", encoding="utf-8") as file:
            file.write(session_record.model_dump_json() + "\n")
        sessions.append(session_record)
        print(
            f"{stack} {share} % {number}: {session_record.error or session_record.verdict}", file=sys.stderr, flush=True
        )
        return session_record

    rows = [(n, stack, share) for n in range(options.sessions) for stack in options.stacks for share in options.shares]
    rows.sort(key=lambda row: (row[0], random.Random(str(row)).random()))
    done = {(recorded.number, recorded.stack, recorded.share) for recorded in sessions if recorded.busy == options.busy}
    for number, stack, share in (row for row in rows if row not in done):
        calibration = next(
            (
                session_record
                for session_record in sessions
                if (session_record.stack, session_record.share) == (stack, CALIBRATION) and session_record.result
            ),
            None,
        )
        if share and not calibration:
            calibration = session(stack, CALIBRATION, 0, STACKS[stack])
        session(stack, share, number, calibrated_turns(calibration, share) if calibration else 0)
    print("\n".join(format_table(sessions)))


if __name__ == "__main__":
    main()
