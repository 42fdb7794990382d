"""Where results go, stdout or a file: a place that takes nothing more is an error with the machine's exit code."""

import contextlib
import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from harness.errors import OutputError, UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

WRONG_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)  # the command line names it


class _Stream(io.FileIO):
    """stdout or stderr. What stdout does not take is told once, and what comes later goes nowhere, as at Python's end.

    A run is not given up because nobody hears of it: stderr takes all, as far as the caller can tell.
    """

    essential = False
    broken = False

    def write(self, data: "Buffer", /) -> int:
        """All of it; raises BrokenPipeError where the reader has left, OutputError where the place is full or shut."""
        size = memoryview(data).nbytes
        if self.broken:
            return size
        try:
            return super().write(data) or size
        except OSError as error:
            if not self.essential:
                return size
            self.broken = True
            if isinstance(error, BrokenPipeError):
                raise
            raise OutputError(f"stdout: {_reason(error)}") from error


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """Both streams as the block sees them; stdout is flushed at its end, with the same errors."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _stream(sys.stdout, essential=True), _stream(sys.stderr, essential=False)
    try:
        yield
        sys.stdout.flush()
    finally:
        with contextlib.suppress(OSError, OutputError):
            sys.stdout.flush()
        if sys.stdout is not before[0]:
            sys.stdout.detach()  # type: ignore[attr-defined] # a TextIOWrapper of ours
        sys.stdout, sys.stderr = before


def _stream(stream: TextIO, *, essential: bool) -> TextIO:
    """The stream with its errors told or swallowed; one that is no file, as a test's, stays what it is."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return stream
    stream.flush()
    raw = _Stream(number, "w", closefd=False)
    raw.essential = essential
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",  # what the terminal's encoding lacks is spelled out
        line_buffering=not essential or stream.isatty(),
    )


def put(target: Path, text: str) -> None:
    """Write a file whole or not at all, a device or pipe as it is. Raises OutputError; UsageError: no such folder."""
    part = target.with_name(f".{target.name}.part")
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            with target.open("w", encoding="utf-8") as file:
                file.write(text)
            return
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        if error.errno in WRONG_PLACE:
            raise UsageError(f"{target}: cannot be written: {os.strerror(error.errno or 0)}") from error
        raise OutputError(f"{target}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return f"cannot be written: {error.strerror}; what runs have measured is kept"
