"""What a load generator, a tool or the engine prints may be anything: an error of that load, never of the run."""

import json
import os
import sys
from functools import partial

from harness.errors import LoadError, TfbError
from harness.faults.case import BrokenPromise, Case, hold
from harness.faults.scene import Scene
from harness.host import process
from harness.measure.loadgen import Load, LoadGenerator
from harness.measure.loadgen.own import Own
from harness.measure.loadgen.wrk import Wrk
from harness.runtime.generator import started

LOAD = Load(url="http://127.0.0.1:1/json", host="x", accept="*/*", seconds=1, connections=1, threads=1)
GOOD = {
    "duration_us": 1_000_000,
    "requests": 10,
    "bytes": 1000,
    "cpu_seconds": 0.1,
    "errors": {},
    "latency_us": {"mean": 1, "stdev": 1, "min": 1, "max": 1, "percentiles": {}, "histogram": []},
}


def _changed(**values: object) -> str:
    return json.dumps({**GOOD, **values})


OUTPUTS: dict[str, tuple[str, str]] = {
    "nothing": ("nothing", ""),
    "text": ("a text", "unable to connect"),
    "half": ("half a line", json.dumps(GOOD)[:40]),
    "brackets": ("100,000 brackets", "{" + '"a":[' * 100_000),
    "digits": ("a number of 10,000 digits", _changed().replace("1000000", "1" * 10_000)),
    "zero": ("no duration", _changed(duration_us=0)),
    "negative": ("a negative duration", _changed(duration_us=-5)),
    "negative-requests": ("negative requests", _changed(requests=-5)),
    "infinite": ("an infinite figure", _changed().replace("0.1", "1e999")),
    "huge": ("10^300 requests", _changed(requests=10**300)),
    "list": ("a list", "[]"),
    "null": ("null values", _changed(latency_us=None)),
    "controls": ("control characters", "\x1b[2J\x00" * 100),
}


def _output(generator: LoadGenerator, text: str, _place: Scene) -> None:
    """LoadError with a bounded message."""
    try:
        result = generator.result(LOAD, text)
    except LoadError as error:
        hold(len(str(error)) < 2000, else_=f"a message of {len(str(error))} characters")
        return
    raise BrokenPromise(f"taken for a result: {result!r:.200}")


def _endless_output(_place: Scene) -> None:
    """A program that prints without end: bounded in memory, stopped in time."""
    try:
        done = process.run(["sh", "-c", "yes"], seconds=3)
    except process.CommandTimeoutError:
        return
    raise BrokenPromise(f"ended with {done.status}")


def _large_output(_place: Scene) -> None:
    code = f"import sys; sys.stdout.write('x' * {80 << 20})"
    with started([sys.executable, "-c", code]) as program:
        program.wait(60)
        try:
            program.output()
        except LoadError:
            return
    raise BrokenPromise("80 MiB of output were read")


def _endless_build_log(place: Scene) -> None:
    log = place.root / "build.log"
    try:
        process.run(["sh", "-c", "yes a line that nobody reads"], seconds=8, log=log)
    except process.CommandTimeoutError:
        size = log.stat().st_size
        process.bound(log)
        hold(log.stat().st_size <= process.LOG_BYTES, else_=f"{size} bytes of log")
        return
    raise BrokenPromise("it ended")


def _hanging_version(place: Scene) -> None:
    """A tool whose --version hangs: only what needs it is skipped."""
    folder = place.root / "bin"
    folder.mkdir()
    (folder / "hangs").write_text("#!/bin/sh\nsleep 600\n", encoding="utf-8")
    (folder / "hangs").chmod(0o755)
    place.add("good")
    place.add("bad", requires={"hangs": ">=1"})
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    answer = place.measure("--test", "good", "bad", "--type", "json", "--mode", "verify", env=path)
    answer.ends(1).says("good: verified", "bad", "hangs")


def _impossible(words: list[str], _place: Scene) -> None:
    """Words that no program can be given."""
    try:
        process.run(words, seconds=5)
    except TfbError:
        return
    raise BrokenPromise("it ran")


CASES = (
    *(
        Case(
            name=f"output/{program}-{name}",
            fault=f"{program} prints {fault}",
            promise="an error of that load, in a bounded message",
            produce=partial(_output, generator, text),
        )
        for program, generator in (("wrk", Wrk()), ("loadgen", Own()))
        for name, (fault, text) in OUTPUTS.items()
    ),
    Case(
        name="output/endless",
        fault="a command that prints without end",
        promise="stopped in its time",
        produce=_endless_output,
    ),
    Case(
        name="output/generator-large",
        fault="a load generator that prints 80 MiB",
        promise="an error of that load; not read",
        produce=_large_output,
    ),
    Case(
        name="output/build-log",
        fault="a build that prints without end",
        promise="stopped in its time; the log is bounded",
        produce=_endless_build_log,
    ),
    Case(
        name="output/version-hangs",
        fault="a tool whose --version hangs",
        promise="what needs it is skipped by name, the others run",
        produce=_hanging_version,
        runtime="local",
    ),
    *(
        Case(
            name=f"output/{name}",
            fault=f"a command with {fault}",
            promise="an error that names it",
            produce=partial(_impossible, words),
        )
        for name, fault, words in (
            ("nul", "NUL in a word", ["echo", "a\0b"]),
            ("surrogate", "half a character in a word", ["echo", "\ud800"]),
            ("no-program", "no program of that name", ["/no/such/program"]),
            ("folder", "a folder for a program", ["/"]),
            ("too-long", "words of 4 MB", ["echo", "x" * (4 << 20)]),
        )
    ),
)
