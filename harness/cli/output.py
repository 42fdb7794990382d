"""Where results go, stdout or a file: text of others is inert there, and a full place is an error of the machine."""

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
    """Where ``compare --base`` writes the verdict on a service, apart from the terminal."""

    json: bool = False
    markdown: bool = False
    history: str | None = None
    html: str | None = None
    strict: bool = False


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
    """Guard both streams for a block: printed text is inert (``harness.console``), and nothing fails by a full stream.

    Raises EnvironmentLacksError at the end of the block where stdout was full or closed.
    """
    errors: list[OSError] = []
    before = sys.stdout, sys.stderr
    inert: list[Any] = [InertStream(_stream(sys.stdout, errors)), InertStream(_stream(sys.stderr, []))]
    sys.stdout, sys.stderr = inert
    try:
        yield
    finally:
        for stream in inert:
            with contextlib.suppress(OSError, ValueError):  # a test's, which is closed
                stream.flush()
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


def write_file(target: Path, text: str) -> None:
    """Write a file that the user has named, whole or not at all; a device or pipe is written as it is.

    The file itself must not be a link, which could lie in a folder that somebody else filled. Links to its folder are
    followed. Raises EnvironmentLacksError and UnsafePathError.
    """
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
        else:
            safe_write.replace(target.parent.resolve() / target.name, text.encode())
    except OSError as error:
        raise _lacking(str(target), error) from error


def write_managed_file(folder: Path, name: str, text: str) -> Path:
    """Write a file of a folder that tfb manages, where no link is followed; returns its path. Raises as ``write_file``."""
    target = folder.parent.resolve() / folder.name / name
    try:
        safe_write.make_folder(target.parent)
        safe_write.replace(target, text.encode())
    except OSError as error:
        raise _lacking(str(target), error) from error
    return target


def print_problems(problems: Iterable[str]) -> bool:
    """Name on stderr what of a run's files could not be read; return whether there is anything."""
    found = list(problems)
    for problem in found:
        print(f"tfb: {printable(problem)}", file=sys.stderr)
    return bool(found)


def _lacking(place: str, error: OSError) -> EnvironmentLacksError:
    return EnvironmentLacksError(f"{place}: cannot be written: {error.strerror}; what runs have measured is kept")
