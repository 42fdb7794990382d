"""Fuzzes all targets for a given time: ``python -m harness.tests.fuzz --seconds 60``.

The state folder keeps inputs that violate a contract, and inputs that reach new code. Later runs start with the latter.
``--replay FILE --target NAME`` repeats an input that violated a contract.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from harness.cli.scans import NOT_JUDGED, SKIPPED_VARIABLE
from harness.paths import REPOSITORY, state_folder
from harness.plain_text import printable
from harness.tests.fuzz.seeds import CORPUS
from harness.tests.fuzz.targets import TARGETS

CRATE = Path(__file__).parent / "rust"
RUST_TARGETS = tuple(sorted(path.stem.replace("_", "-") for path in (CRATE / "fuzz_targets").glob("*.rs")))
# What cargo-fuzz passes if no sanitizer is selected. Stable compilers accept these flags too.
COVERAGE = ("inline-8bit-counters", "pc-table", "trace-compares")
RUST_FLAGS = (
    "--cfg", "fuzzing", "-Cpasses=sancov-module", "-Cllvm-args=-sanitizer-coverage-level=4",
    *(f"-Cllvm-args=-sanitizer-coverage-{kind}" for kind in COVERAGE),
)  # fmt: skip
INPUT_SECONDS = 20  # time limit per input on a busy machine; parsing should take linear time
SEED = 1  # fixed, so that a repeated check uses the same inputs in the same order
MEMORY_MB = 2048
MEMORY = Path("/dev/shm")  # noqa: S108 - only for a private folder in it
MOST_BYTES = 16_384  # maximum size of an input in bytes
WORDS = ("null", "true", "NaN", "1e999", "-0", "1" * 400, "\\ud800", "\\u0000", "[", "{", "\r\n\r\n", "\xff")
WITHOUT_ATHERIS = f"{NOT_JUDGED}atheris has no package for this machine"
STATISTICS = re.compile(r"^stat::number_of_executed_units:\s+(\d+)", re.MULTILINE)
COVERED = re.compile(r"\bcov: (\d+) ft: (\d+)")


@dataclass(kw_only=True)
class Fuzzing:
    """A running fuzz target."""

    name: str
    log: Path
    process: "subprocess.Popen[bytes]"

    def figures(self) -> tuple[int, int, int]:
        """Return the number of executions, of covered edges and of features (pairs of edge and hit count)."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        executions = STATISTICS.search(text)
        edges, features = (COVERED.findall(text) or [("0", "0")])[-1]
        return int(executions[1]) if executions else 0, int(edges), int(features)


def main() -> int:
    """Run the command line. Return 1 if an input violated a contract."""
    parser = argparse.ArgumentParser(prog="python -m harness.tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together (default 60)")
    parser.add_argument(
        "--target", action="append", choices=[*TARGETS, *RUST_TARGETS], help="fuzz only this target; repeatable"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="targets at a time")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run this input once, with its whole output")
    options = parser.parse_args()
    names = options.target or [*TARGETS, *RUST_TARGETS]
    if find_spec("atheris") is None:
        names = [name for name in names if name not in TARGETS]
        _skipped()
    binaries = _built() if set(names) & set(RUST_TARGETS) else Path()
    if options.replay:
        return subprocess.run(
            [*_command(names[0], binaries), str(options.replay)], cwd=REPOSITORY, check=False
        ).returncode
    if not names:
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="tfb-fuzz-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        os.environ["TMPDIR"] = folder  # for temporary files of the targets
        return campaign(names, binaries, seconds=options.seconds, jobs=options.jobs)


def campaign(names: Sequence[str], binaries: Path, *, seconds: float, jobs: int) -> int:
    """Fuzz ``jobs`` targets at a time and print figures and findings. All targets get the same share of ``seconds``."""
    pending, running = list(names), list[Fuzzing]()
    seconds_each = max(1, round(seconds * min(jobs, len(names)) / len(names)))
    total = failed = 0
    try:
        while pending or running:
            while pending and len(running) < jobs:
                running.append(_start(pending.pop(0), binaries, seconds_each))
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                executions, edges, features = one.figures()
                print(f"{one.name:18} {executions:>12,} executions {edges:>6} edges {features:>6} features", flush=True)
                total += executions
                failed += bool(one.process.returncode)
                if one.process.returncode:
                    print("\n".join(_finding(one)), flush=True)
            time.sleep(0.1)
    finally:
        for one in running:
            one.process.kill()
            one.process.wait()
    print(f"{total:,} executions of {len(names)} targets; {failed} failed")
    return int(failed > 0)


def _start(name: str, binaries: Path, seconds: int) -> Fuzzing:
    """Start fuzzing a target with its committed corpus and the inputs that earlier runs stored."""
    folder = state_folder() / "fuzz" / name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    words = folder / "words.dict"
    words.write_text("".join(_dictionary(name)), encoding="ascii")
    command = (
        *_command(name, binaries), f"-seed={SEED}", f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}", f"-max_len={MOST_BYTES}", f"-dict={words}", f"-artifact_prefix={folder}/",
        "-print_final_stats=1", "-reload=0", str(corpus), str(CORPUS / name),
    )  # fmt: skip
    log = folder / "log"
    with log.open("wb") as output:
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=REPOSITORY, stdin=nothing, stdout=output, stderr=output)
    return Fuzzing(name=name, log=log, process=process)


def _command(name: str, binaries: Path) -> tuple[str, ...]:
    if name in RUST_TARGETS:
        return (str(binaries / name),)
    return (sys.executable, "-m", "harness.tests.fuzz.guided", name)


def _dictionary(name: str) -> Iterator[str]:
    """Yield the lines of a libFuzzer dictionary: words from the committed corpus and edge cases."""
    texts = b"\n".join(path.read_bytes() for path in sorted((CORPUS / name).iterdir())).decode("latin-1")
    for word in dict.fromkeys((*WORDS, *re.findall(r'"[\w.-]{1,30}"|[\w-]{3,30}', texts, re.ASCII))):
        escaped = "".join(c if c.isalnum() and c.isascii() else f"\\x{ord(c):02x}" for c in word)
        yield f'"{escaped}"\n'


def _finding(fuzzing: Fuzzing) -> Iterator[str]:
    """Yield the end of a failed target's log, and the command that repeats the input."""
    text = fuzzing.log.read_text(encoding="utf-8", errors="replace")
    yield f"{fuzzing.name} failed; the end of {fuzzing.log}:"
    yield from map(printable, text.splitlines()[-40:])
    if found := re.search(r"Test unit written to (\S+)", text):
        again = ("python", "-m", "harness.tests.fuzz", "--target", fuzzing.name, "--replay", found[1])
        yield f"Run it again: {shlex.join(again)}"


def _built() -> Path:
    """Build the instrumented Rust targets and return the folder of their programs."""
    output = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = next(line.removeprefix("host: ") for line in output.splitlines() if line.startswith("host: "))
    target = state_folder() / "cargo" / "fuzz"
    # Without --target, the flags would also apply to build scripts, which do not link the coverage runtime.
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--bins", "--target", host]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "RUSTFLAGS": " ".join(RUST_FLAGS)}
    subprocess.run(command, cwd=CRATE, env=environment, check=True)
    return target / host / "release"


def _skipped() -> None:
    """Report to ``./tfb check`` that the Python targets were skipped."""
    print(WITHOUT_ATHERIS)
    if path := os.environ.get(SKIPPED_VARIABLE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(["Python fuzz targets", WITHOUT_ATHERIS]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
