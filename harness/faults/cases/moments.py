"""Signals that come more than once, readers that leave a run, and a clock that is set in one."""

import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from harness.faults.case import CannotBeProducedError, Case, Runtime, hold
from harness.faults.cases import engine
from harness.faults.cases.runs import KILLED_SECONDS, STAGES
from harness.faults.scene import Scene, of, patience
from harness.paths import REPOSITORY

BETWEEN_SECONDS = 0.3
STOPPED_SECONDS = 4.0
DAY = 86_400
MOST_SECONDS = 10.0  # of a sample of one second
# What every program of the run, also wrk and PostgreSQL, is told of the time of day: the machine's, and so many
# seconds, which stand in a file that all of them have mapped. The kernel's own clock stays as it is: others work by it.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *set_by;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *map = mmap(NULL, sizeof *set_by, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED) set_by = map;
}

static int64_t seconds(void) { return set_by ? *set_by : 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += seconds();
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void) zone;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (where) *where = found.tv_sec;
    return found.tv_sec;
}
"""
UNDER_WAY_SECONDS = 0.5  # of a load of a second
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


def _library(place: Scene) -> Path:
    """The clock, as a library that programs load before their own."""
    source, library = place.root / "clock.c", place.root / "clock.so"
    source.write_text(CLOCK, encoding="ascii")
    try:
        made = subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
    except OSError as error:
        raise CannotBeProducedError(f"needs a C compiler: {error}") from error
    if made.returncode != 0:
        raise CannotBeProducedError(f"the clock cannot be compiled: {made.stderr.strip()[:200]}")
    return library


def _clock(stage: str, seconds: int, place: Scene) -> None:
    """The clock of all programs of the run is set in it, that of the harness, the servers, wrk and PostgreSQL."""
    library = _library(place)
    clock = place.root / "clock"
    clock.write_bytes(struct.pack("q", 0))
    place.environment |= {"FAULT_CLOCK": str(clock), "LD_PRELOAD": str(library)}
    place.add("one")
    place.add("two")
    run = place.started("--test", "one", "two", "--type", "json")
    try:
        place.until(lambda: place.stage() == STAGES[stage] or run.poll() is not None, stage, seconds=120)
        time.sleep(UNDER_WAY_SECONDS if stage == "measuring" else 0)
        with clock.open("r+b") as file:
            file.write(struct.pack("q", seconds))
        status = run.wait(240)
    finally:
        run.kill()
        run.wait()
    log = place.log()
    hold("Traceback" not in log, else_=log[-400:])
    hold(status == 0, else_=f"exit status {status}: {log[-500:]!r}")
    measured = [sample for sample in place.records().samples if sample.rankable]
    names = {sample.implementation for sample in measured}
    hold(names == {"one", "two"}, else_=f"measured: {names}")
    odd = [sample.duration for sample in measured if not 0 < sample.duration < MOST_SECONDS]
    hold(not odd, else_=f"samples of {odd} s")
    days = {int(sample.started_at // DAY) for sample in place.records().samples}
    hold(stage != "building" or len(days) == 1, else_=f"the clock was set later: {days}")


STARTS = 40
FIRST_SECONDS = 0.6  # in which shell and Python start, and libraries are loaded


def _hear() -> None:
    """As a terminal starts a program: a shell's background had it ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _starting(place: Scene) -> None:
    """./tfb run is asked to end at a random moment of its start, again and again."""
    locks = [Path(folder, "requirements-dev.lock") for folder in (sys.prefix, REPOSITORY)]
    if not all(lock.exists() for lock in locks) or locks[0].read_bytes() != locks[1].read_bytes():
        raise CannotBeProducedError("this Python's environment is not one that ./tfb made of the present lock")
    place.add("good")
    dice = random.Random(1)
    for _ in range(STARTS):
        number, after = dice.choice((signal.SIGINT, signal.SIGTERM)), dice.uniform(0, FIRST_SECONDS)
        with (place.root / "log").open("wb") as log:
            run = subprocess.Popen(
                [str(REPOSITORY / "tfb"), *place.words("run", "good", "--type", "json")],
                cwd=place.root,
                env={**place.environment, "TFB_VENV": sys.prefix},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=_hear,  # noqa: PLW1509 - no thread is there beside this one
            )
        try:
            time.sleep(after)
            run.send_signal(number)
            status = run.wait(20 * patience())
        except subprocess.TimeoutExpired:
            status = None
        finally:
            run.kill()
            run.wait()
        what = f"{number.name} after {after:.3f} s: exit status {status}: {place.log()[-300:]!r}"
        hold(status in (130, -number), else_=what)
        hold("Traceback" not in place.log(), else_=what)
        hold(not (left := _left(place, run.pid)), else_=f"{number.name} after {after:.3f} s leaves {left}")


RUNTIMES: tuple[tuple[str, Runtime], ...] = (("", "local"), ("docker/", "docker"))
CASES = (
    Case(
        name="signal/while-starting",
        fault=f"SIGINT or SIGTERM to ./tfb at random moments of its first {FIRST_SECONDS} s, {STARTS} times",
        promise="ends by it, or with exit status 130, without a traceback; no process is left",
        produce=_starting,
        runtime="local",
    ),
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
            fault=f"the time of day of all programs of a run is set {way} by a day while the harness is {stage}",
            promise="verified again where that was under way; both are measured; exit status 0",
            produce=partial(_clock, stage, seconds),
            runtime="local",
        )
        for stage in ("building", "verifying", "measuring")
        for way, seconds in (("forward", DAY), ("back", -DAY))
    ),
)
