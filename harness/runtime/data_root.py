"""The disk of the engine's data root, on which images, containers and their logs lie: whether it is full."""

import os
from pathlib import Path

from harness.errors import TfbError
from harness.runtime.compose import docker

LEAST_BYTES = 4 << 20  # a container's own files take a few hundred kilobytes
NO_SPACE = "no space left on device"  # in whatever the engine, a build in it, or a program says


def data_root() -> Path | None:
    """Where the engine keeps what it has; None where it does not say, or that is no folder of this machine."""
    try:
        done = docker("info", "--format", "{{.DockerRootDir}}")
    except TfbError:  # it hangs: whoever needs it next says so
        return None
    said = (done.stdout.strip().splitlines() or [""])[-1]
    return Path(said) if done.status == 0 and said.startswith("/") and os.path.isdir(said) else None  # noqa: PTH112


def full(root: Path | None, said: str = "") -> str:
    """Why nothing can be built or started on this engine, and what to do; empty where its disk has room.

    ``said`` is what failed: a build that fills the disk gives the room back when it fails, and leaves its words alone.
    """
    try:
        disk = os.statvfs(root) if root else None
    except OSError:
        disk = None
    left = disk.f_bfree * disk.f_frsize if disk else None
    no_files = disk is not None and disk.f_files > 0 and disk.f_ffree == 0
    if NO_SPACE not in said.lower() and (left is None or left >= LEAST_BYTES) and not no_files:
        return ""
    where = f"{root} " if root else ""
    room = "" if left is None else f" ({'no further file' if no_files else f'{left / 2**20:.1f} MiB'} left)"
    return (
        f"the disk of the Docker engine's data root {where}is full{room}: make room there (docker builder prune frees "
        "the build cache, ./tfb clean removes images of runs), then begin again, or go on with --resume"
    )
