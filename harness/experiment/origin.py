"""Marks the runs that this user started on this machine. ``--resume`` asks before it executes any other run's command.

The folder of a run contains a seal (HMAC) of the run's command. The key is a secret in the state folder and is never
part of a results folder. A person who sends a results folder can therefore only repeat a command that this user has
given. The seal includes the folders and machines that the command names.
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

FILE = ".origin"  # file in a run's folder
KEY_BYTES = 32
MAX_BYTES = 1 << 20

logger = logging.getLogger("tfb.origin")


def seal_run(folder: Path, info: RunInfo, settings: Settings) -> None:
    """Seal a new run. If the state folder cannot be written, resuming the run requires consent."""
    try:
        key = _key(make=True)
        places = list_places(settings)
        record = {"places": places, "seal": _seal(key, info, places)} if key else {}
        safe_write.replace(folder / FILE, json.dumps(record).encode())
    except (OSError, StoreError) as error:
        logger.warning("cannot mark the run as started on this machine, so --resume will ask: %s", error)


def is_own(folder: Path, info: RunInfo) -> bool:
    """Return whether this user started this run on this machine with exactly this command."""
    return _sealed_places(folder, info) is not None


def require_same_places(folder: Path, info: RunInfo, settings: Settings) -> None:
    """Raise UsageError if the command of the user's run refers to other folders or machines than at the start."""
    before, now = _sealed_places(folder, info), list_places(settings)
    if before != now:
        raise UsageError(
            f"run {info.run_id} cannot be resumed: the command names other folders or machines than at the start: "
            f"{_format_places(before)} then, {_format_places(now)} now. Resume the run from the folder in which it was "
            "started"
        )


def _sealed_places(folder: Path, info: RunInfo) -> list[object] | None:
    """Return the sealed places of this user's run, or None if the seal is not valid.

    The file may change between two readings. Places are therefore valid only with the seal of the same reading.
    """
    record = _read(folder)
    places, seal = record.get("places"), record.get("seal")
    if not isinstance(places, list) or not isinstance(seal, str) or not seal.isascii():
        return None
    with suppress(OSError, StoreError):
        if (key := _key(make=False)) and hmac.compare_digest(seal, _seal(key, info, places)):
            return places
    return None


def list_places(settings: Settings) -> list[str]:
    """Return the folders and machines that a command names, with paths that do not depend on the current folder."""
    return [*(str(folder) for folder in settings.frameworks), repr(settings.hosts)]


def _format_places(places: object) -> str:
    return ", ".join(map(str, places)) if isinstance(places, list) else "none"


def _read(folder: Path) -> dict[str, object]:
    """Return the mark of a run, or an empty mark if it is missing or unreadable."""
    try:
        with safe_write.read(folder.resolve() / FILE) as file:
            record = safe_read.parse_json(file.read(MAX_BYTES))
    except (OSError, ValueError, StoreError):
        return {}
    return record if isinstance(record, dict) else {}


def _seal(key: bytes, info: RunInfo, places: list[object] | list[str]) -> str:
    """Return the seal of all recorded values that determine the command of a resumed run."""
    sealed = [list(info.command), info.seed, info.name, info.started_at, places]
    return hmac.new(key, json.dumps(sealed).encode(), "sha256").hexdigest()


def _key(*, make: bool) -> bytes | None:
    """Return this user's secret, or None if it is missing or if other users could have accessed it."""
    place = state_folder() / f"own-runs-{os.geteuid()}"
    with _private(place, make=make) as folder:
        if folder is None:
            return None
        with suppress(FileNotFoundError):
            descriptor = os.open("key", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                status, key = os.fstat(descriptor), file.read(KEY_BYTES + 1)
            if _is_private(status) and stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and len(key) == KEY_BYTES:
                return key
            if not make:
                return None
            os.unlink("key", dir_fd=folder)
        if not make:
            return None
        key = secrets.token_bytes(KEY_BYTES)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open("key", flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        return key


@contextmanager
def _private(place: Path, *, make: bool) -> Iterator[int | None]:
    """Lock a folder and yield its descriptor, or None if the folder is missing or other users may enter it."""
    try:
        with safe_write.folder(place.parent, make=make) as parent:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(place.name, 0o700, dir_fd=parent)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            folder = os.open(place.name, flags, dir_fd=parent)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # two first runs at the same time must use the same key
        if make and os.fstat(folder).st_uid == os.geteuid():
            os.fchmod(folder, 0o700)
        yield folder if _is_private(os.fstat(folder)) else None
    finally:
        os.close(folder)


def _is_private(status: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user, and other users have no permissions."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077
