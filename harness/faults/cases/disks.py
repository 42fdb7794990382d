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
)
