"""Output streams and a console that keep untrusted text from controlling a terminal or a CI system."""

import logging
import re
import sys
import threading
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from harness.plain_text import inert_line, printable

# Matches a colon or # at the end of an incomplete line, because the next write could complete a CI command.
_UNFINISHED = re.compile(r"(?<!\S)(:)\Z|(#)\Z")


class _Lines:
    """A stream that escapes CI commands line by line, but keeps rich's control sequences."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._buffer = ""  # the last line, if it is still incomplete
        self._line_started = False  # whether part of the current line has already been written
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        """Write all complete lines, and buffer the rest."""
        with self._lock:
            *lines, incomplete_line = (self._buffer + text).split("\n")
            self._stream.write("".join(f"{self._inert(line)}\n" for line in lines))
            self._buffer = incomplete_line
        return len(text)

    def flush(self) -> None:
        """Write the buffered part of the last line."""
        with self._lock:
            if self._buffer:
                part = self._inert(self._buffer)
                self._stream.write(_UNFINISHED.sub(lambda match: f"\\x{ord(match[0]):02x}", part))
                self._buffer, self._line_started = "", True
            self._stream.flush()

    def _inert(self, line: str) -> str:
        """Escape CI commands in a line, or in the rest of a line whose beginning has already been written."""
        escaped = inert_line(f"|{line}")[1:] if self._line_started else inert_line(line)
        self._line_started = False
        return escaped

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of the stream
        return getattr(self._stream, name)


class InertStream(_Lines):
    """A replacement for stdout or stderr that escapes control characters and CI commands."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.commands = stream  # unescaped stream for CI commands from tfb, for example ::group::
        self.rich_proxied_file = _Lines(stream)  # rich writes here, so rich's control sequences stay unescaped

    def write(self, text: str) -> int:
        """Write text with control characters and CI commands escaped."""
        super().write(printable(text))
        return len(text)


def write_commands(text: str) -> None:
    """Write CI commands to stdout without escaping them."""
    sys.stdout.flush()
    getattr(sys.stdout, "commands", sys.stdout).write(text)


class SafeConsole(Console):
    """A rich console on which only rich can move the cursor or change colours."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - rich's own options
        # Disable markup, because names and messages may contain brackets and colons. Use rich's Text for styles.
        super().__init__(**{"markup": False, "emoji": False, **options})

    def _innermost(self) -> Any:  # noqa: ANN401 - rich wraps streams of any type
        """Return the innermost stream, without the wrappers that rich's live displays add."""
        stream = Console.file.fget(self)  # type: ignore[attr-defined]
        while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
            stream = inner
        return stream

    file = property(_innermost, Console.file.fset)  # type: ignore[attr-defined]

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render like rich, but escape control characters."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)


class PlainFormatter(logging.Formatter):
    """A log formatter that escapes control characters and redacts secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text, escaped and redacted."""
        return printable(super().format(record))
