"""Disks that are full in a run, and an engine that goes away or hangs in one: on both runtimes."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from harness.faults.case import CannotBeProducedError, Case, Runtime, hold
from harness.faults.cases.engine import add, client, docker, mine
from harness.faults.own_engine import OwnEngine, own_engine
from harness.faults.relay import Relay, relay
from harness.faults.scene import Scene

SMALL, LARGE = "size=96k", "size=64m"
BOUND_SECONDS = 200.0  # what a run may go on after its engine went away: every docker command in it has its time
RUNTIMES: dict[str, Runtime] = {"disk": "local", "docker": "docker"}
RUN = ("--test", "one", "--type", "json")


@contextmanager
def _small(folder: Path) -> Iterator[None]:
    """A file system of its own at a folder, with room for little."""
    if os.geteuid() != 0:
        raise CannotBeProducedError("a file system of its own needs root")
    made = _mount("-t", "tmpfs", "-o", SMALL, "tmpfs", str(folder))
    if made.returncode != 0:
        raise CannotBeProducedError(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True)


def _mount(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["mount", *words], check=False, capture_output=True, text=True)


def _full(place: Scene) -> None:
    """The results' disk is full when the first sample is written: it is said; with room again the run goes on."""
    place.add("one") if place.runtime == "local" else add(place, "one")
    with _small(place.results):
        (place.results / "other").write_bytes(b"x" * (72 << 10))
        answer = place.measure(*RUN, seconds=240)
        answer.ends(1, 3).says("No space left on device")
        (place.results / "other").unlink()
        hold(_mount("-o", f"remount,{LARGE}", str(place.results)).returncode == 0, else_="no room could be made")
        time.sleep(1.1)  # a run's name has seconds
        place.measure(*RUN, seconds=240).ends(0)
        hold(any(sample.rankable for sample in place.records().samples), else_="with room again nothing was measured")


def _engine_fails(how: Callable[[Relay], None], stage: str, place: Scene) -> None:
    """The engine fails in a run: an exit status and a line in bounded time; doctor and clean find what it left."""
    client()
    add(place, "one")
    with relay(place.root) as between:
        place.environment["DOCKER_HOST"] = between.address
        run = place.started(*RUN)
        try:
            place.until(lambda: place.stage() == stage or run.poll() is not None, stage, seconds=240)
            hold(run.poll() is None, else_=f"ended before {stage}: {place.log()[-500:]!r}")
            how(between)
            began = time.monotonic()
            try:
                status: int | None = run.wait(BOUND_SECONDS)
            except subprocess.TimeoutExpired:
                status = None
            took = time.monotonic() - began
        finally:
            run.kill()
            run.wait()
            del place.environment["DOCKER_HOST"]
            left = mine(place)
            for identity in left:
                docker("rm", "--force", identity)
    log = place.log()
    hold(status is not None, else_=f"still running after {BOUND_SECONDS:.0f} s: {log[-500:]!r}")
    hold(status in (1, 3), else_=f"exit status {status} after {took:.0f} s: {log[-500:]!r}")
    hold("Traceback" not in log and "a mistake of the harness" not in log, else_=log[-600:])
    hold("engine" in log.lower() or "docker" in log.lower(), else_=f"the engine is not named: {log[-500:]!r}")


# ---- the engine's own disk ---------------------------------------------------------------------------------------

BIG = "RUN --network=none head -c 300m /dev/urandom >/big"
SLOW = "RUN --network=none sleep 12"
FULL = "the disk of the Docker engine's data root"
ROOM = 100 << 20  # bytes: for containers, and not for what ``BIG`` writes
TWO = ("--test", "one", "two", "--type", "json")


def _add_with(place: Scene, name: str, line: str) -> None:
    """An implementation whose image has one more line."""
    add(place, name)
    file = place.frameworks / "Python" / name / f"{name}.dockerfile"
    file.write_text(f"{file.read_text(encoding='utf-8')}{line} # {place.root.name}\n", encoding="utf-8")


def _nothing_left(engine: OwnEngine) -> None:
    left = engine.docker("ps", "--all", "--format", "{{.Names}}").split()
    hold(not left, else_=f"containers are left: {left}")


def _full_before(place: Scene) -> None:
    """No room from the beginning: named with what to do, and nothing is tried for long."""
    engine = own_engine()
    engine.used_by(place)
    add(place, "one")
    engine.fill()
    place.measure(*RUN, seconds=120).ends(3).says(FULL, str(engine.root), "docker builder prune")
    _nothing_left(engine)


def _full_by_a_build(place: Scene) -> None:
    """One image does not fit: named; the others are built and measured."""
    engine = own_engine()
    engine.used_by(place)
    _add_with(place, "big", BIG)
    add(place, "one")
    engine.limit(ROOM)
    answer = place.measure("--test", "big", "one", "--type", "json", seconds=240)
    answer.ends(1).says("big", FULL, str(engine.root), "docker builder prune")
    measured = {sample.implementation for sample in place.records().samples if sample.rankable}
    hold(measured == {"one"}, else_=f"measured: {measured}; {answer.text[-400:]!r}")
    _nothing_left(engine)


def _fills_up(when: str, place: Scene, *, room_again: bool) -> None:
    """No room from a moment of the run on: named; what was measured is kept, the rest follows once there is room."""
    engine = own_engine()
    engine.used_by(place)
    add(place, "one")
    _add_with(place, "two", SLOW) if when == "building" else add(place, "two")

    def moment() -> bool:
        if when == "building":
            return place.stage() == "building" and "building two" in place.log()
        return any(path.stat().st_size for path in place.results.glob("*/samples.jsonl"))

    run = place.started(*TWO)
    try:
        place.until(lambda: moment() or run.poll() is not None, when, seconds=240)
        hold(run.poll() is None, else_=f"ended before: {place.log()[-500:]!r}")
        engine.fill()
        if room_again:
            place.until(lambda: FULL in place.log() or run.poll() is not None, "the disk named", seconds=120)
            engine.make_room()
        status = run.wait(240)
    finally:
        run.kill()
        run.wait()
    log = place.log()
    hold("Traceback" not in log and "a mistake of the harness" not in log, else_=log[-600:])
    hold(FULL in log and str(engine.root) in log, else_=f"the disk is not named: {log[-600:]!r}")
    hold(status == (0 if room_again else 3), else_=f"exit status {status}: {log[-600:]!r}")
    _nothing_left(engine)
    before = [sample.id for sample in place.records().samples]
    if not room_again:
        hold(bool(before) == (when == "measuring"), else_=f"kept: {before}; {log[-400:]!r}")
        engine.make_room()
        words = ("--resume", place.folder().name, "--results", str(place.results), "--no-install")
        place.tfb(*words, seconds=240).ends(0)
    samples = place.records().samples
    hold([sample.id for sample in samples][: len(before)] == before, else_="what was measured was not kept")
    measured = {sample.implementation for sample in samples if sample.rankable}
    hold(measured == {"one", "two"}, else_=f"measured: {measured}")
    _nothing_left(engine)


CASES = (
    *(
        Case(
            name=f"{group}/results-full",
            fault="a full disk behind the results, in a run",
            promise="named; the exit status says it; with room again the next run measures",
            produce=_full,
            runtime=runtime,
        )
        for group, runtime in RUNTIMES.items()
    ),
    *(
        Case(
            name=f"docker/engine-{name}-while-{word}",
            fault=f"an engine that {fault} while the harness is {word}",
            promise="named; an exit status of its own in bounded time",
            produce=partial(_engine_fails, how, stage),
            runtime="docker",
        )
        for word, stage in (("building", "building"), ("measuring", "measure"))
        for name, fault, how in (("stops", "is stopped", Relay.stop), ("hangs", "hangs", Relay.hang))
    ),
    Case(
        name="docker/root-full",
        fault="a full disk behind the engine's data root, before a run",
        promise="named, with what to do; exit status 3; no container is left",
        produce=_full_before,
        runtime="docker",
    ),
    Case(
        name="docker/root-full-by-a-build",
        fault="a build that fills the disk behind the engine's data root",
        promise="named, with what to do; the other is measured; exit status 1; no container is left",
        produce=_full_by_a_build,
        runtime="docker",
    ),
    *(
        Case(
            name=f"docker/root-full-while-{when}",
            fault=f"the disk behind the engine's data root fills up while the harness is {when}",
            promise="named; exit status 3; no container is left; with room again --resume measures the rest: 0",
            produce=partial(_fills_up, when, room_again=False),
            runtime="docker",
        )
        for when in ("building", "measuring")
    ),
    Case(
        name="docker/root-full-for-seconds",
        fault="the disk behind the engine's data root is full for seconds while the harness is measuring",
        promise="named; what it took is measured again once there is room; exit status 0; no container is left",
        produce=partial(_fills_up, "measuring", room_again=True),
        runtime="docker",
    ),
)
