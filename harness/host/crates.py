"""Builds a Rust program of the toolset once per state of its sources, outside the source tree."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from harness.errors import BuildError, EnvironmentLacksError
from harness.host import advice, process
from harness.paths import PREBUILT, TOOLSET, state_folder

SOURCES = ("Cargo.toml", "Cargo.lock", "src/**/*.rs")


def program(crate: str, binary: str) -> Path:
    """A binary of ``toolset/<crate>``, built with ``cargo build --release --locked`` if its sources have changed.

    Raises EnvironmentLacksError without cargo, BuildError with the log's end and path when the build fails.
    """
    if there := built(crate, binary):
        return there
    source = TOOLSET / crate
    folder = state_folder() / "cargo" / crate
    made = folder / digest(source)
    if shutil.which("cargo") is None:
        raise EnvironmentLacksError(
            f"toolset/{crate}: {advice.lacking('cargo', '>=1.85')}; "
            f"then `cargo build --release --locked --manifest-path toolset/{crate}/Cargo.toml` must pass"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as alone:  # one build at a time, over all processes of the machine
        fcntl.flock(alone, fcntl.LOCK_EX)
        if not (made / binary).is_file():
            _build(source, folder, made)
    return made / binary


def built(crate: str, binary: str) -> Path | None:
    """The binary of these sources, built before or brought by a wheel; None: it has yet to be built."""
    name = digest(TOOLSET / crate)
    places = (state_folder() / "cargo" / crate / name, TOOLSET / PREBUILT / crate / name)
    return next((place / binary for place in places if (place / binary).is_file()), None)


def available(crate: str, binary: str) -> bool:
    """Whether ``program`` has what it takes: it is built already, or there is cargo to build it."""
    return built(crate, binary) is not None or shutil.which("cargo") is not None


def digest(source: Path, patterns: Sequence[str] = SOURCES) -> str:
    """Of everything that the build of a crate reads, or of other files, names included: 16 hexadecimal digits."""
    sums = hashlib.sha256()
    for pattern in patterns:
        for file in sorted(path for path in source.glob(pattern) if path.is_file()):
            sums.update(f"{file.relative_to(source)}\0{file.stat().st_size}\0".encode())
            sums.update(file.read_bytes())
    return sums.hexdigest()[:16]


def _build(source: Path, folder: Path, built: Path) -> None:
    log = folder / "build.log"
    log.unlink(missing_ok=True)
    target = folder / "target"  # kept: a change of one file does not build the dependencies again
    done = process.run(
        ["cargo", "build", "--release", "--locked", "--manifest-path", str(source / "Cargo.toml")],
        seconds=900,
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
        log=log,
    )
    if done.status:
        raise BuildError(
            f"toolset/{source.name}: cargo build failed ({process.describe_status(done.status)}), "
            f"whole log in {log}:\n{process.tail(log)}"
        )
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        made = Path(fresh) / built.name
        made.mkdir()
        for file in (target / "release").iterdir():
            if file.is_file() and os.access(file, os.X_OK):
                shutil.copy2(file, made)
        made.rename(built)


loadgen = partial(program, "loadgen", "loadgen")  # the load generator
upstream = partial(program, "upstream", "upstream")  # the slow upstream of the fan-out test
reference_server = partial(program, "upstream", "reference-server")  # with known delays: generators are tried on it
