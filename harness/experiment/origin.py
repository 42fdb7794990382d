"""Marks the runs that this user started on this machine. ``--resume`` asks before it executes any other run's command.

A run's folder contains a seal: an HMAC of the run's command, and of the folders and machines that the command names.
The secret key is stored in the state folder, never in a results folder. Without the key, other people cannot create a
valid seal for a different command. They can only copy the seal of a run that this user has started.
"""

import fcntl
import hmac
import json
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import StoreError, UsageError
from harness.paths import state_folder
from harness.plan.run_settings import Settings
from harness.records import safe_read, safe_write
from harness.records.run_info import RunInfo

FILE = ".origin"  # name of the file with the seal, in the run's folder
KEY_BYTES = 32
MAX_BYTES = 1 << 20

logger = logging.getLogger("tfb.origin")


def seal_run(folder: Path, info: RunInfo, settings: Settings) -> None:
    """Seal a new run. If this fails, log a warning that ``--resume`` will ask for consent."""
    problem: object = f"other users can access {state_folder()}"
    try:
        if key := _key(create=True):
            places = list_places(settings)
            record = {"places": places, "seal": _seal(key, info, places)}
            safe_write.replace(folder / FILE, json.dumps(record).encode())
            return
    except (OSError, StoreError) as error:
        problem = error
    logger.warning("cannot mark the run as started on this machine, so --resume will ask for consent: %s", problem)


def is_own(folder: Path, info: RunInfo) -> bool:
    """Return whether this user started this run on this machine with exactly this command."""
    return _sealed_places(folder, info) is not None


def require_same_places(folder: Path, info: RunInfo, settings: Settings) -> None:
    """Raise UsageError if the folders or machines in the run's command have changed since the run started."""
    before, now = _sealed_places(folder, info), list_places(settings)
    if before != now:
        raise UsageError(
            f"run {info.run_id} cannot be resumed: its command now refers to {_format_places(now)}, but referred to "
            f"{_format_places(before)} when the run started. Resume the run from the folder in which it was started"
        )


def _sealed_places(folder: Path, info: RunInfo) -> list[object] | None:
    """Return the sealed folders and machines of a run, or None if the seal is not valid.

    Read the seal and the sealed values in a single read, because the file may change between two reads.
    """
    record = _read(folder)
    places, seal = record.get("places"), record.get("seal")
    if not isinstance(places, list) or not isinstance(seal, str) or not seal.isascii():
        return None
    with suppress(OSError, StoreError):
        if (key := _key(create=False)) and hmac.compare_digest(seal, _seal(key, info, places)):
            return places
    return None


def list_places(settings: Settings) -> list[str]:
    """Return the folders (as absolute paths) and machines that a command names."""
    return [*(str(folder) for folder in settings.frameworks), repr(settings.hosts)]


def _format_places(places: object) -> str:
    return ", ".join(map(str, places)) if isinstance(places, list) else "none"


def _read(folder: Path) -> dict[str, object]:
    """Return the content of a run's ``.origin``, or an empty document if the file is missing or unreadable."""
    try:
        with safe_write.read(folder.resolve() / FILE) as file:
            record = safe_read.parse_json(file.read(MAX_BYTES))
    except (OSError, ValueError, StoreError):
        return {}
    return record if isinstance(record, dict) else {}


def _seal(key: bytes, info: RunInfo, places: list[object] | list[str]) -> str:
    """Return the seal of a run: the HMAC of all recorded values that determine what a resumed run executes."""
    sealed = [list(info.command), info.seed, info.name, info.started_at, places]
    return hmac.new(key, json.dumps(sealed).encode(), "sha256").hexdigest()


def _key(*, create: bool) -> bytes | None:
    """Return this user's secret key, or None if there is no key that only this user can read.

    If ``create`` is set, first create a missing key, and replace a key that other users could have read.
    """
    place = state_folder() / f"own-runs-{os.geteuid()}"
    with _private(place, create=create) as folder:
        if folder is None:
            return None
        with suppress(FileNotFoundError):
            descriptor = os.open("key", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                status, key = os.fstat(descriptor), file.read(KEY_BYTES + 1)
            if _is_private(status) and stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and len(key) == KEY_BYTES:
                return key
            if not create:
                return None
            os.unlink("key", dir_fd=folder)
        if not create:
            return None
        key = secrets.token_bytes(KEY_BYTES)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open("key", flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        return key


@contextmanager
def _private(path: Path, *, create: bool) -> Iterator[int | None]:
    """Lock a folder and yield its descriptor, or None if the folder is missing or other users may enter it."""
    try:
        with safe_write.folder(path.parent, create=create) as parent:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(path.name, 0o700, dir_fd=parent)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            folder = os.open(path.name, flags, dir_fd=parent)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # without the lock, two runs that start together could create different keys
        if create and os.fstat(folder).st_uid == os.geteuid():
            os.fchmod(folder, 0o700)
        yield folder if _is_private(os.fstat(folder)) else None
    finally:
        os.close(folder)


def _is_private(status: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user, and other users have no permissions."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077
