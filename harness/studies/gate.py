"""``python -m harness.studies.gate FILE``: tests ./tfb compare with planted slowdowns on five real services.

Head wastes a share of the CPU time of one of three requests in a loop. A calibration session for each stack measures
the cost of a turn of the loop. Each session is a run of ``./tfb compare`` and a line of FILE. Repeat the command to
continue an interrupted study.

With ``--releases``, FILE receives the reports on pairs of library releases as Markdown. With ``--again``, FILE is a run
with equal sides (``./tfb compare --results DIR``), and many sessions are resampled from its trials.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from harness.extras.gate.judge import ComparedVersions, GateResult, judge
from harness.extras.gate.paired import HEAD, SIDES
from harness.paths import REPOSITORY
from harness.plan.service import FILE
from harness.records import store
from harness.records.record import Record
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial

WORK = Path(tempfile.gettempdir()) / "tfb-gate-study"  # folder of the built services
SERVICES = REPOSITORY / "harness" / "studies" / "services"
# Turns of the loop that about double the cost of the request.
STACKS = {"express": 50_000, "fastify": 30_000, "fastapi": 5_000, "go": 30_000, "spring": 60_000}
SHARES = (0, 3, 5, 10, 20)  # percent
PLANTED = "item"
CALIBRATION = -1  # marks a calibration session in the field ``share``
TOGETHER = "all"  # result for the mix of requests, which contains part of the planted slowdown
# Package -> (install command, older release, newer release).
RELEASES = {
    "express": ("npm install --no-save --ignore-scripts express@{}", "4.22.1", "5.2.1"),
    "pg": ("npm install --no-save --ignore-scripts pg@{}", "8.11.6", "8.23.1"),
    "fastapi": (".venv/bin/python -m pip install -q pydantic=={}", "1.10.24", "2.14.4"),
}


class StudySession(Record):
    """A session of ``./tfb compare``: a line of the file."""

    stack: str
    share: int
    number: int
    turns: int
    result: GateResult | None
    error: str = ""

    @property
    def found(self) -> str:
        """The verdict on the planted request."""
        return next((r.verdict for r in self.result.requests if r.request == PLANTED), "") if self.result else "failed"

    @property
    def false_alarm(self) -> bool:
        """Whether a verdict reports a nonexistent difference, or a difference in the wrong direction."""
        for one in self.result.requests if self.result else ():
            planted = self.share > 0 and one.request in (PLANTED, TOGETHER)
            if one.verdict == "faster" or (one.verdict == "slower" and not planted):
                return True
        return False


def run_session(stack: str, share: int, number: int, turns: int, time: str) -> StudySession:
    """Run a session with a number of turns in head; ``time`` is the argument of ``--time``."""
    base, head = build_service(stack), WORK / f"{stack}-head"
    if not head.is_dir():
        shutil.copytree(base, head, symlinks=True)
    write_service_file(stack, base, 0)
    write_service_file(stack, head, turns)
    done = run_compare(base, head, "--json", "--time", time)
    result, error = None, ""
    try:
        result = GateResult.model_validate_json(done.stdout)
    except ValueError:
        error = done.stderr.strip()[-500:]
    return StudySession(stack=stack, share=share, number=number, turns=turns, result=result, error=error)


def run_compare(base: Path, head: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run ``./tfb compare`` on two folders with further arguments."""
    sides = ("--base", f"dir:{base}", "--head", f"dir:{head}", "--service", str(base))
    command = [sys.executable, "-m", "harness", "compare", *sides, "--yes", "--quiet", *words]
    own = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=REPOSITORY, env=own)


def compare_releases(stack: str, time: str) -> str:
    """Compare two releases of a library, and return the report as Markdown."""
    install, *versions = RELEASES[stack]
    base, head = sides = [WORK / f"{stack}-{version}" for version in versions]
    for version, side in zip(versions, sides, strict=True):
        if not side.is_dir():
            place = shutil.copytree(build_service(stack), WORK / f"{stack}.new", symlinks=True, dirs_exist_ok=True)
            subprocess.run(["sh", "-c", install.format(version)], check=True, cwd=place, timeout=600)
            write_service_file(stack, place, 0)
            place.rename(side)
    done = run_compare(base, head, "--markdown", "--time", time)
    return f"# {install.split()[-1].format(' → '.join(versions))}\n\n{done.stdout or done.stderr}\n"


def build_service(stack: str) -> Path:
    """Return the folder of a service; build the service if necessary."""
    folder = WORK / stack
    if not folder.is_dir():
        place = shutil.copytree(SERVICES / stack, WORK / f"{stack}.new", dirs_exist_ok=True)
        build = tomllib.loads((place / FILE).read_text(encoding="utf-8"))["service"]["build"]
        print(f"{stack}: {build}", file=sys.stderr)
        subprocess.run(["sh", "-c", build], check=True, cwd=place, timeout=1800)
        place.rename(folder)
    return folder


def write_service_file(stack: str, folder: Path, turns: int) -> None:
    """Write a tfb.toml without a build command that wastes a number of turns."""
    lines = (SERVICES / stack / FILE).read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if not line.startswith("build")]
    asked = (SERVICES / "requests.toml").read_text(encoding="utf-8")
    (folder / FILE).write_text("\n".join((*own, f'env = {{ BURN = "{turns}" }}', "", asked)), encoding="utf-8")


def calibrated_turns(calibration: StudySession, share: int) -> int:
    """Return the turns that cost ``share`` percent of the request, from a calibration session."""
    result = calibration.result
    values = next((r.values for r in result.requests if r.request == PLANTED), None) if result else None
    if not values or values[1] <= values[0] * 1.1:
        raise SystemExit(
            f"{calibration.stack}: the calibration does not show the cost of a turn: {calibration.error or values}"
        )
    turns: int = round(share / 100 * values[0] * calibration.turns / (values[1] - values[0]))
    return turns


def read_sessions(file: Path) -> list[StudySession]:
    """Return the sessions in a file; an empty list without the file."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return [StudySession.model_validate_json(line) for line in text.splitlines() if line.strip()]


def resample(records: RunRecords, processes: int, sessions: int = 200) -> Iterator[str]:
    """Resample sessions from a run with equal sides, and yield a line with the detections for each share.

    Each session draws ``processes`` processes and assigns the sides at random. Head's cost of the planted request is
    raised by the share. This simulates a slowdown in the real noise of the machine.
    """
    known = sorted({trial.process for trial in records.trials})
    for share in SHARES:
        dice, made = random.Random(f"{records.info.run_id} {processes} {share}"), []
        for number in range(sessions):
            drawn = {
                process: dict(zip(SIDES, dice.sample(SIDES, 3), strict=True))
                for process in dice.sample(known, processes)
            }
            trials = [
                _with_slowdown(t, drawn[t.process][t.implementation], share)
                for t in records.trials
                if t.process in drawn
            ]
            result = judge(replace(records, trials=trials), ComparedVersions(base="base", head="head"))
            made.append(StudySession(stack=records.info.run_id, share=share, number=number, turns=0, result=result))
        found, false = sum(one.found == "slower" for one in made), sum(one.false_alarm for one in made)
        yield f"{share:>3} % planted: {found} of {sessions} found, {false} false alarms"


def _with_slowdown(trial: Trial, side: str, share: int) -> Trial:
    cost = trial.cpu_per_request
    planted = cost and cost * (1 + share / 100) if side == HEAD and trial.test_type == PLANTED else cost
    return trial.model_copy(update={"implementation": side, "cpu_per_request": planted})


def format_table(sessions: Sequence[StudySession]) -> Iterator[str]:
    """Yield the lines of a table by stack and share, followed by totals."""
    yield f"{'stack':<9}{'planted':>8}{'sessions':>9}{'found':>7}{'false':>7}{'cannot tell':>13}{'minutes':>9}"
    counted = [one for one in sessions if one.share != CALIBRATION]
    for stack in (*sorted({one.stack for one in counted}), ""):
        for share in sorted({one.share for one in counted}):
            own = [one for one in counted if one.share == share and stack in ("", one.stack)]
            if not own:
                continue
            minutes = [one.result.minutes for one in own if one.result]
            found = str(sum(one.found == "slower" for one in own)) if share else "–"
            unknown = sum(one.found in ("cannot tell", "failed") for one in own)
            yield (
                f"{stack or 'all':<9}{share:>6} %{len(own):>9}{found:>7}{sum(one.false_alarm for one in own):>7}"
                f"{unknown:>13}{median(minutes) if minutes else 0.0:>9.1f}"
            )


def main() -> None:
    """Run the missing sessions in random order, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="file with a line for each session; recorded sessions are not repeated")
    parser.add_argument("--stacks", nargs="+", default=list(STACKS), choices=STACKS)
    parser.add_argument("--shares", nargs="+", type=int, default=list(SHARES), choices=SHARES, help="percent")
    parser.add_argument("--sessions", type=int, default=20, help="per stack and share; 0: print the table only")
    parser.add_argument("--time", default="5m")
    parser.add_argument("--again", type=int, metavar="PROCESSES", help="resample sessions of this size from a run")
    parser.add_argument("--releases", action="store_true", help="compare releases of libraries")
    asked = parser.parse_args()
    if asked.again:
        print("\n".join(resample(store.read_run(asked.file), asked.again)))
        return
    WORK.mkdir(parents=True, exist_ok=True)
    if asked.releases:
        for stack in RELEASES:
            with asked.file.open("a", encoding="utf-8") as file:
                file.write(compare_releases(stack, asked.time))
        return
    sessions = read_sessions(asked.file)

    def session(stack: str, share: int, number: int, turns: int, time: str) -> StudySession:
        one = run_session(stack, share, number, turns, time)
        with asked.file.open("a", encoding="utf-8") as file:
            file.write(one.model_dump_json() + "\n")
        sessions.append(one)
        print(f"{stack} {share} % {number}: {one.error or one.found}", file=sys.stderr, flush=True)
        return one

    rows = [(n, stack, share) for n in range(asked.sessions) for stack in asked.stacks for share in asked.shares]
    rows.sort(key=lambda row: (row[0], random.Random(str(row)).random()))
    done = {(one.number, one.stack, one.share) for one in sessions}
    for number, stack, share in (row for row in rows if row not in done):
        known = next((one for one in sessions if (one.stack, one.share) == (stack, CALIBRATION) and one.result), None)
        if share and not known:
            known = session(stack, CALIBRATION, 0, STACKS[stack], asked.time)
        session(stack, share, number, calibrated_turns(known, share) if known else 0, asked.time)
    print("\n".join(format_table(sessions)))


if __name__ == "__main__":
    main()
