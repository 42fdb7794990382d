"""A run whose servers misbehave, whose harness is killed, or whose PostgreSQL dies."""

import contextlib
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial

import psutil

from harness.faults.case import BrokenPromise, Case, hold
from harness.faults.scene import Scene, of

HOSTILE: dict[str, str] = {
    "endless-body": "a body without an end",
    "promises-a-petabyte": "Content-Length: 1000000000000000",
    "endless-header": "a header section without an end",
    "endless-chunks": "chunks without an end",
    "endless-interim": "100 Continue without an end",
    "drips": "a byte every 200 ms",
    "garbage": "random bytes in place of HTTP",
    "resets": "a reset for every request",
    "silent": "nothing at all",
    "endless-trailers": "trailers without an end",
    "chunks-of-a-byte": "chunks of a byte without an end",
    "gzip-bomb": "256 MiB packed by gzip into 256 kB",
    "brotli-bomb": "a broken brotli stream that promises 8 GB",
    "bombs-of-chunks": "a packed body as a transfer coding that nobody asked for",
    "large-answers": "1 MB to every request",
    "many-values": "330,000 empty objects to every request",
    "switches": "101 Switching Protocols, then bytes",
    "many-headers": "100,000 header lines",
    "huge-number": "Content-Length of 10,000 digits",
    "negative-length": "Content-Length: -1",
    "deep-json": "JSON of 100,000 brackets",
    "escape-body": "a terminal's escapes in the body",
    "escape-header": "a terminal's escapes in a header",
    "escape-log": "a terminal's escapes in its log, then an exit",
    "big-log": "60 MB of log, then an exit",
    "binary-log": "random bytes in its log, then an exit",
    "one-line-log": "a line of 30 MB in its log, then an exit",
    "forks": "200 children that sleep",
    "stops-itself": "SIGSTOP to itself",
    "odd-name": "a wrong answer, as a process whose name is no text",
}
FAKES = (
    "floods-under-load",
    "exits-at-once",
    "never-listens",
    "answers-500",
    "dies-in-verification",
    "leaves-a-daemon",
    "ignores-sigterm",
)
STAGES = {"building": "building", "database": "preparing", "verifying": "verifying", "measuring": "measure"}
KILLED_SECONDS = 10.0


def _hostile(name: str, place: Scene) -> None:
    """Beside a good one, by --mode verify: the good one passes, the other is named, nobody waits for ever."""
    entry_run = [sys.executable, "-m", "harness.faults.hostile", name]
    place.add("good")
    place.add("bad", run=entry_run)
    answer = place.measure("--test", "good", "bad", "--type", "json", "--mode", "verify", seconds=150)
    answer.ends(1).says("good: verified", "bad")
    big = [path for path in place.root.rglob("*.log") if path.stat().st_size > 25 << 20]
    hold(not big, else_=f"logs of {[path.stat().st_size for path in big]} bytes")


def _fake(name: str, place: Scene) -> None:
    place.add("good")
    place.add("bad", name)
    answer = place.measure("--test", "good", "bad", "--type", "json")
    good = [sample for sample in place.records().samples if sample.implementation == "good" and sample.rankable]
    hold(bool(good), else_=f"the good one was not measured: {answer.text[-300:]!r}")
    expected = (0, 1) if name in ("leaves-a-daemon", "ignores-sigterm") else (1,)
    answer.ends(*expected)


def _slow_build(place: Scene) -> None:
    place.add("good", build=["sh", "-c", "sleep 60"])


def _until(place: Scene, stage: str) -> None:
    if stage == "building":
        place.until(lambda: place.stage() == "building", "building")
    else:
        place.until(lambda: place.stage() == stage, stage)


def _killed(stage: str, number: signal.Signals, place: Scene) -> None:
    """SIGKILL: everything it started is gone within seconds; other signals: in order, with 130."""
    (_slow_build if stage == "building" else Scene.add)(place, *(() if stage == "building" else ("good",)))
    words = ("--test", "good", "--type", "json", "plaintext")
    run = place.started(*words)
    try:
        _until(place, STAGES[stage])
        run.send_signal(number)
        status = run.wait(40)
    finally:
        run.kill()
        run.wait()
    until = time.monotonic() + KILLED_SECONDS
    while (left := of(run.pid)) and time.monotonic() < until:
        time.sleep(0.1)
    hold(not left, else_=f"still running: {[process.name() for process in left]}")
    if number is not signal.SIGKILL:
        hold(status == 130, else_=f"exit status {status}: {place.log()[-300:]!r}")
        hold("Traceback" not in place.log(), else_=place.log()[-400:])
    folders = _wait_for_folders(place)
    hold(not folders, else_=f"folders are left: {folders}")


def _wait_for_folders(place: Scene) -> list[str]:
    until = time.monotonic() + KILLED_SECONDS
    while (found := [path.name for path in place.scratch.glob("tfb-*")]) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def _twice(first: signal.Signals, place: Scene) -> None:
    """Killed while it is stopping."""
    place.add("good", "ignores-sigterm")
    run = place.started("--test", "good", "--type", "json")
    try:
        place.until(lambda: place.stage() == "measure", "measure")
        run.send_signal(first)
        time.sleep(0.3)
        run.send_signal(signal.SIGKILL)
        run.wait(20)
    finally:
        run.kill()
        run.wait()
    until = time.monotonic() + KILLED_SECONDS
    while (left := of(run.pid)) and time.monotonic() < until:
        time.sleep(0.1)
    hold(not left, else_=f"still running: {[process.name() for process in left]}")


def _postmaster(harness: int) -> psutil.Process:
    ours = [process for process in of(harness) if process.name() == "postgres"]
    roots = [process for process in ours if process.ppid() not in {other.pid for other in ours}]
    if not roots:
        raise BrokenPromise("no PostgreSQL of this run is there")
    return roots[0]


def _database(strike: Callable[[psutil.Process], None], profile: str, place: Scene) -> None:
    """PostgreSQL dies in a run: named, restarted on its port, and every implementation is measured."""
    place.profile.write_text(place.profile.read_text(encoding="utf-8") + profile, encoding="utf-8")
    place.add("one")
    place.add("two")
    run = place.started("--test", "one", "two", "--type", "json")
    try:
        place.until(lambda: place.stage() == "measure", "measure")
        strike(_postmaster(run.pid))
        status = run.wait(150)
    finally:
        run.kill()
        run.wait()
    log = place.log()
    hold("PostgreSQL" in log, else_=f"PostgreSQL's end is not named: {log[-600:]!r}")
    hold("Traceback" not in log, else_=log[-600:])
    records = place.records()
    measured = {sample.implementation for sample in records.samples if sample.rankable}
    hold(measured == {"one", "two"}, else_=f"measured: {measured}; {log[-600:]!r}")
    hold(status == 0, else_=f"exit status {status}: {records.info.problems}")


def _kill_backend(postmaster: psutil.Process) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for child in postmaster.children():
            if "background writer" in " ".join(child.cmdline()):
                child.kill()
                return
        time.sleep(0.05)
    raise BrokenPromise("PostgreSQL has no background writer")


def _kill_all(postmaster: psutil.Process) -> None:
    for process in (*postmaster.children(recursive=True), postmaster):
        with contextlib.suppress(psutil.NoSuchProcess):  # the first death is the end of others
            process.kill()


def _taken_port(place: Scene) -> None:
    place.add("good")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = place.measure("--test", "good", "--type", "json", "--server-port", port)
    answer.ends(1).says(f"port {port} is taken by")


ROUNDS = "[rounds]\ntime_seconds = 12\nheadline_seconds = 1\nother_seconds = 1\n"
CASES = (
    *(
        Case(
            name=f"server/{name}",
            fault=f"a server that sends {fault}" if "log" not in name else f"a server that writes {fault}",
            promise="named with a reason in bounded time and memory; the one beside it passes",
            produce=partial(_hostile, name),
            runtime="local",
        )
        for name, fault in HOSTILE.items()
    ),
    *(
        Case(
            name=f"server/{name}",
            fault=f"a server that {name.replace('-', ' ')}",
            promise="the one beside it is measured; the exit status says whether all were",
            produce=partial(_fake, name),
            runtime="local",
        )
        for name in FAKES
    ),
    Case(
        name="server/taken-port",
        fault="a port that somebody else listens on",
        promise="named with its holder; exit status 1",
        produce=_taken_port,
        runtime="local",
    ),
    *(
        Case(
            name=f"signal/{number.name.removeprefix('SIG').lower()}-while-{stage}",
            fault=f"{number.name} to the harness while it is {stage}",
            promise="no process and no scratch folder is left"
            + ("" if number is signal.SIGKILL else "; exit status 130"),
            produce=partial(_killed, stage, number),
            runtime="local",
        )
        for stage in STAGES
        for number in (signal.SIGKILL, signal.SIGTERM)
        if (stage, number) != ("database", signal.SIGTERM)
    ),
    *(
        Case(
            name=f"signal/{number.name.removeprefix('SIG').lower()}-while-measuring",
            fault=f"{number.name} to the harness while it is measuring",
            promise="no process and no scratch folder is left; exit status 130",
            produce=partial(_killed, "measuring", number),
            runtime="local",
        )
        for number in (signal.SIGINT, signal.SIGHUP)
    ),
    Case(
        name="signal/kill-while-stopping",
        fault="SIGINT, and SIGKILL while a server that ignores SIGTERM is being stopped",
        promise="no process is left",
        produce=partial(_twice, signal.SIGINT),
        runtime="local",
    ),
    *(
        Case(
            name=f"database/{name}-in-{design}",
            fault=f"PostgreSQL: {fault}, in a run of {design}",
            promise="named; restarted on its port with the seeded state; what it took is measured again; exit status 0",
            produce=partial(_database, how, profile),
            runtime="local",
        )
        for name, fault, how in (
            ("killed", "its first process killed", psutil.Process.kill),
            ("all-killed", "all of its processes killed", _kill_all),
            ("crashed", "one of its processes killed", _kill_backend),
            ("stopped", "stopped by SIGTERM", psutil.Process.terminate),
        )
        for design, profile in (("blocks", ""), ("rounds", ROUNDS))
    ),
)
