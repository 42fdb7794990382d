"""Where results go, stdout or a file: a place that takes nothing more is an error with the machine's exit code."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from harness.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


class _Stream(io.FileIO):
    """stdout or stderr, which take all as far as the writer can tell: no run is given up because nobody hears of it."""

    errors: list[OSError]  # the first one

    def write(self, data: "Buffer", /) -> int:
        size = memoryview(data).nbytes
        try:
            return super().write(data) or size
        except OSError as error:
            self.errors[:] = self.errors or [error]
            return size


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """Both streams as the block sees them; raises EnvironmentLacksError at its end where stdout was full or closed."""
    errors: list[OSError] = []
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _stream(sys.stdout, errors), _stream(sys.stderr, [])
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stdout, sys.stderr = before
    if errors and not isinstance(errors[0], BrokenPipeError):  # `./tfb report | head`: the reader has had enough
        raise _lacking("stdout", errors[0]) from errors[0]


def _stream(stream: TextIO, errors: list[OSError]) -> TextIO:
    """The stream with its errors gathered; one that is no file, as a test's, stays what it is."""
    try:
        raw = _Stream(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError):
        return stream
    raw.errors = errors
    stream.flush()
    # What the terminal's encoding lacks is spelled out.
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream is sys.stderr or stream.isatty(),
    )


def put(target: Path, text: str) -> None:
    """Write a file as a whole or not at all, a device or pipe as it is; raise EnvironmentLacksError.

    No link is followed: it could lie in a folder that others filled.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
        else:
            part.unlink(missing_ok=True)  # a link there would lead elsewhere
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb") as file:
                file.write(text.encode())
            part.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise _lacking(str(target), error) from error


def _lacking(place: str, error: OSError) -> EnvironmentLacksError:
    return EnvironmentLacksError(f"{place}: cannot be written: {error.strerror}; what runs have measured is kept")
