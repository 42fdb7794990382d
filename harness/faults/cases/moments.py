"""Signals that come more than once, readers that leave a run, and a clock that is set in one."""

import signal
import time
from collections.abc import Sequence
from functools import partial

from harness.faults.case import Case, Runtime, hold
from harness.faults.cases import engine
from harness.faults.cases.runs import KILLED_SECONDS, STAGES
from harness.faults.scene import Scene, of, patience
from harness.paths import REPOSITORY

BETWEEN_SECONDS = 0.3
STOPPED_SECONDS = 4.0
DAY = 86_400
# Every Python process of the run, server and harness, has the clock of one machine, which is set by writing a file.
CLOCK = """
import time, os
_real, _path = time.time, os.environ.get("FAULT_CLOCK", "")
def _shifted():
    try:
        with open(_path) as file:
            return _real() + float(file.read() or 0)
    except OSError:
        return _real()
time.time = _shifted
"""
SEVERAL: dict[str, Sequence[signal.Signals]] = {
    "twice": (signal.SIGINT, signal.SIGINT),
    "thrice": (signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
    "quit": (signal.SIGQUIT,),
}
READERS: dict[str, tuple[str, str, int]] = {
    "reader-leaves": ("the reader of all that a run says leaves after a line", '"$@" 2>&1 | head -n 1', 0),
    "reader-never-came": (
        "nobody reads what a run says",
        '{ "$@"; echo $? >status; } 2>&1 | true; exit $(cat status)',
        0,
    ),
    "output-full": ("a full disk behind all that a run says", '"$@" >/dev/full 2>&1', 1),
    "output-closed": ("a run with all streams closed", '"$@" <&- >&- 2>&-', 0),
}


def _add(place: Scene, *, build: str = "") -> None:
    if place.runtime == "docker":
        engine.client()
        engine.add(place, "good")
        if build:
            file = place.frameworks / "Python" / "good" / "good.dockerfile"
            file.write_text(file.read_text(encoding="utf-8") + f"RUN {build} # {place.root.name}\n", encoding="utf-8")
    else:
        place.add("good", build=["sh", "-c", build] if build else [])


def _left(place: Scene, pid: int) -> list[str]:
    """Names of what a harness has left after some seconds: processes, scratch folders, containers."""
    until = time.monotonic() + KILLED_SECONDS
    while True:
        left = [process.name() for process in of(pid)] + [path.name for path in place.scratch.glob("tfb-*")]
        left += engine.mine(place) if place.runtime == "docker" and any(place.results.iterdir()) else []
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.1)


def _several(stage: str, numbers: Sequence[signal.Signals], place: Scene) -> None:
    """Several signals, one after the other: in order, with 130, as after one of them."""
    _add(place, build="sleep 60" if stage == "building" else "")
    run = place.started("--test", "good", "--type", "json")
    try:
        place.until(lambda: place.stage() == STAGES[stage] or run.poll() is not None, stage, seconds=240)
        for number in numbers:
            run.send_signal(number)
            time.sleep(BETWEEN_SECONDS)
        status = run.wait(60 * patience())
    finally:
        run.kill()
        run.wait()
    hold(status == 130, else_=f"exit status {status}: {place.log()[-300:]!r}")
    hold("Traceback" not in place.log(), else_=place.log()[-400:])
    left = _left(place, run.pid)
    hold(not left, else_=f"left: {left}")


def _stopped(place: Scene) -> None:
    """The harness is stopped for seconds, as by Ctrl-Z, while it measures: the run goes on to its end."""
    _add(place)
    run = place.started("--test", "good", "--type", "json")
    try:
        place.until(lambda: place.stage() == "measure" or run.poll() is not None, "measure", seconds=240)
        run.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_SECONDS)
        run.send_signal(signal.SIGCONT)
        status = run.wait(240)
    finally:
        run.kill()
        run.wait()
    hold("Traceback" not in place.log(), else_=place.log()[-400:])
    hold(status in (0, 1), else_=f"exit status {status}: {place.log()[-400:]!r}")
    hold(bool(place.records().samples), else_=f"nothing was measured: {place.log()[-400:]!r}")


def _reader(script: str, status: int, place: Scene) -> None:
    """Nobody hears of the run, and it is made all the same."""
    _add(place)
    words = place.words("--test", "good", "--type", "json")
    place.tfb(*words, before=("sh", "-c", script, "sh"), seconds=240).ends(status)
    records = place.records()
    hold(records.info.status == "complete", else_=f"{records.info.status}: {records.info.problems}")
    hold(any(sample.rankable for sample in records.samples), else_=f"nothing was measured: {records.info.problems}")


def _clock(stage: str, seconds: float, place: Scene) -> None:
    """The clock of harness and server is set in a run."""
    site = place.root / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(CLOCK, encoding="utf-8")
    clock = place.root / "clock"
    clock.write_text("0", encoding="ascii")
    shown = {"FAULT_CLOCK": str(clock), "PYTHONPATH": f"{site}:{REPOSITORY}"}
    place.add("one", env=shown)
    place.add("two", env=shown)
    place.environment |= shown
    run = place.started("--test", "one", "two", "--type", "json")
    try:
        place.until(lambda: place.stage() == STAGES[stage] or run.poll() is not None, stage, seconds=120)
        clock.write_text(str(seconds), encoding="ascii")
        status = run.wait(240)
    finally:
        run.kill()
        run.wait()
    log = place.log()
    hold("Traceback" not in log, else_=log[-400:])
    hold(status == 0, else_=f"exit status {status}: {log[-500:]!r}")
    measured = {sample.implementation for sample in place.records().samples if sample.rankable}
    hold(measured == {"one", "two"}, else_=f"measured: {measured}")


RUNTIMES: tuple[tuple[str, Runtime], ...] = (("", "local"), ("docker/", "docker"))
CASES = (
    *(
        Case(
            name=f"{prefix or 'signal/'}{name}-while-{stage}",
            fault=f"{', '.join(number.name for number in numbers)} to the harness while it is {stage}",
            promise="exit status 130; no process, scratch folder or container is left",
            produce=partial(_several, stage, numbers),
            runtime=runtime,
        )
        for prefix, runtime in RUNTIMES
        for name, numbers in SEVERAL.items()
        for stage in STAGES
    ),
    *(
        Case(
            name=f"{prefix or 'signal/'}stopped-while-measuring",
            fault=f"SIGSTOP to the harness while it is measuring, SIGCONT {STOPPED_SECONDS:.0f} s later",
            promise="the run goes on to its end; exit status 0, or 1 where a sample was spoilt",
            produce=_stopped,
            runtime=runtime,
        )
        for prefix, runtime in RUNTIMES
    ),
    *(
        Case(
            name=f"{prefix or 'surroundings/'}run-{name}",
            fault=fault,
            promise=f"the run is made all the same, and its records are whole; exit status {status}",
            produce=partial(_reader, script, status),
            runtime=runtime,
        )
        for prefix, runtime in RUNTIMES
        for name, (fault, script, status) in READERS.items()
    ),
    *(
        Case(
            name=f"surroundings/clock-{way}-while-{stage}",
            fault=f"the machine's clock is set {way} by a day while the harness is {stage}",
            promise="verified again where that was under way; both are measured; exit status 0",
            produce=partial(_clock, stage, seconds),
            runtime="local",
        )
        for stage in ("building", "verifying", "measuring")
        for way, seconds in (("forward", DAY), ("back", -DAY))
    ),
)
