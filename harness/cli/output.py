"""Writes to stdout, stderr and files, escapes untrusted text, and reports a full disk as an error."""

import contextlib
import io
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from harness.console import InertStream
from harness.errors import EnvironmentLacksError
from harness.plain_text import printable
from harness.records import safe_write

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


@dataclass(frozen=True, kw_only=True)
class VerdictOutputs:
    """Output flags of ``compare --base`` for a service."""

    json: bool = False
    markdown: bool = False
    history: str | None = None
    html: str | None = None
    strict: bool = False
    bisect: bool = False
    confirm: bool = False  # measure again after "slower"


class _LossyFile(io.FileIO):
    """A raw stream that records its first write error and raises none. A run can then continue without output."""

    errors: list[OSError]  # the first write error, if any

    def write(self, data: "Buffer", /) -> int:
        size = memoryview(data).nbytes
        try:
            return super().write(data) or size
        except OSError as error:
            self.errors[:] = self.errors or [error]
            return size


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """Escape untrusted text on stdout and stderr, and suppress write errors within the block.

    At the end of the block, raise EnvironmentLacksError if stdout was full or closed.
    """
    errors: list[OSError] = []
    originals = sys.stdout, sys.stderr
    guarded: list[Any] = [
        InertStream(_tolerant_stream(sys.stdout, errors)),
        InertStream(_tolerant_stream(sys.stderr, [])),
    ]
    sys.stdout, sys.stderr = guarded
    try:
        yield
    finally:
        for stream in guarded:
            with contextlib.suppress(OSError, ValueError):  # a test may already have closed the stream
                stream.flush()
        sys.stdout, sys.stderr = originals
    if errors and not isinstance(errors[0], BrokenPipeError):  # a pipe to `head` may close early
        raise _write_error("stdout", errors[0]) from errors[0]


def _tolerant_stream(stream: TextIO, errors: list[OSError]) -> TextIO:
    """Return a stream that appends its first write error to ``errors``.

    If ``stream`` has no file descriptor, as in tests, return it unchanged.
    """
    try:
        raw = _LossyFile(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError):
        return stream
    raw.errors = errors
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream is sys.stderr or stream.isatty(),
    )


def write_file(target: Path, text: str) -> None:
    """Write a file to a path that the user chose. Replace it atomically, unless it is a device or a pipe.

    Follow links in the parent folder's path. Raises UnsafePathError if the file itself is a link, or
    EnvironmentLacksError if it cannot be written.
    """
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
        else:
            safe_write.replace(target.parent.resolve() / target.name, text.encode())
    except OSError as error:
        raise _write_error(str(target), error) from error


def write_managed_file(folder: Path, name: str, text: str) -> Path:
    """Write a file in one of tfb's folders and return the path. Neither the folder nor the file may be a link.

    Raises the same errors as ``write_file``.
    """
    target = folder.parent.resolve() / folder.name / name
    try:
        safe_write.make_folder(target.parent)
        safe_write.replace(target, text.encode())
    except OSError as error:
        raise _write_error(str(target), error) from error
    return target


def print_problems(problems: Iterable[str]) -> bool:
    """Print the problems with a run's files to stderr. Return whether there are any."""
    all_problems = list(problems)
    for problem in all_problems:
        print(f"tfb: {printable(problem)}", file=sys.stderr)
    return bool(all_problems)


def _write_error(place: str, error: OSError) -> EnvironmentLacksError:
    return EnvironmentLacksError(
        f"cannot write {place}: {error.strerror}. Free up space or choose a different path; no measurement is lost"
    )
