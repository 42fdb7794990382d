"""Builds the Rust programs in toolset/, and rebuilds them when their sources change."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from harness.errors import BuildError, EnvironmentLacksError
from harness.host import process
from harness.paths import PREBUILT, TOOLSET, state_folder
from harness.provisioning import advice, step

SOURCES = ("Cargo.toml", "Cargo.lock", "src/**/*.rs")
NAMES = {  # crate -> description of the program
    "loadgen": "the load generator",
    "upstream": "the upstream service of the fan-out test",
    "websocket-witness": "the WebSocket witness",
}


def ensure_built(crate: str, binary: str) -> Path:
    """Return the path of a program in ``toolset/<crate>``. Build it with cargo if the sources have changed.

    Raises EnvironmentLacksError if cargo is missing, or BuildError, with the end of the log, if the build fails.
    """
    if existing := find_built(crate, binary):
        return existing
    source = TOOLSET / crate
    folder = state_folder() / "cargo" / crate
    target = folder / source_digest(source)
    if shutil.which("cargo") is None:
        raise EnvironmentLacksError(
            f"toolset/{crate}: {advice.describe_missing('cargo', '>=1.85')}. To check the installation, "
            f"run `cargo build --release --locked --manifest-path toolset/{crate}/Cargo.toml`"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # other tfb processes may be building the same crate
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / binary).is_file():
            with step(f"build {NAMES.get(crate, crate)} (cargo build)"):
                _build(source, folder, target)
    return target / binary


def find_built(crate: str, binary: str) -> Path | None:
    """Return the path of a program that was built from the current sources, or None if there is none.

    The program is in the state folder or in the installed wheel.
    """
    name = source_digest(TOOLSET / crate)
    places = (state_folder() / "cargo" / crate / name, TOOLSET / PREBUILT / crate / name)
    return next((place / binary for place in places if (place / binary).is_file()), None)


def can_provide(crate: str, binary: str) -> bool:
    """Return whether the program has been built or cargo is installed."""
    return find_built(crate, binary) is not None or shutil.which("cargo") is not None


def source_digest(source: Path, patterns: Sequence[str] = SOURCES) -> str:
    """Return 16 hexadecimal digits: a digest of the files below ``source`` that match ``patterns``."""
    sums = hashlib.sha256()
    for pattern in patterns:
        for file in sorted(path for path in source.glob(pattern) if path.is_file()):
            sums.update(f"{file.relative_to(source)}\0{file.stat().st_size}\0".encode())
            sums.update(file.read_bytes())
    return sums.hexdigest()[:16]


def _build(source: Path, folder: Path, target: Path) -> None:
    """Build a crate in ``folder`` and copy the programs to ``target``."""
    log = folder / "build.log"
    log.unlink(missing_ok=True)
    cargo_target = folder / "target"  # not removed, so that the next build reuses compiled dependencies
    completed = process.run(
        ["cargo", "build", "--release", "--locked", "--manifest-path", str(source / "Cargo.toml")],
        seconds=900,
        env={**os.environ, "CARGO_TARGET_DIR": str(cargo_target)},
        log=log,
    )
    if completed.status:
        raise BuildError(
            f"toolset/{source.name}: cargo build failed ({process.describe_status(completed.status)}), "
            f"log: {log}\n{process.tail(log)}"
        )
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        programs = Path(temporary) / target.name
        programs.mkdir()
        for file in (cargo_target / "release").iterdir():
            if file.is_file() and os.access(file, os.X_OK):
                shutil.copy2(file, programs)
        programs.rename(target)


loadgen_program = partial(ensure_built, "loadgen", "loadgen")
upstream_program = partial(ensure_built, "upstream", "upstream")  # the slow upstream server of the fan-out test type
reference_server_program = partial(ensure_built, "upstream", "reference-server")  # a server with known delays for tests
