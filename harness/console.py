"""Where everything is shown: streams and a console on which text of others moves no cursor and gives no command."""

import logging
import re
import sys
import threading
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from harness.plain_text import inert_line, printable

_UNFINISHED = re.compile(
    r"(?<!\S)(:)\Z|(#)\Z"
)  # at the end of a part of a line: the next part could make a command of it


class _Lines:
    """Writes whole lines that no CI system takes for commands; rich writes its own colours through it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held = ""  # the line that is not at its end yet
        self._begun = False  # a part of the line is written
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        """Write all lines that are complete, and keep the rest."""
        with self._lock:
            *lines, held = (self._held + text).split("\n")
            self._stream.write("".join(f"{self._inert(line)}\n" for line in lines))
            self._held = held
        return len(text)

    def flush(self) -> None:
        """Write the part of a line that is kept, too."""
        with self._lock:
            if self._held:
                part = self._inert(self._held)
                self._stream.write(_UNFINISHED.sub(lambda match: f"\\x{ord(match[0]):02x}", part))
                self._held, self._begun = "", True
            self._stream.flush()

    def _inert(self, line: str) -> str:
        """Return the line, or what follows of one that has begun."""
        found = inert_line(f"|{line}")[1:] if self._begun else inert_line(line)
        self._begun = False
        return found

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)


class InertStream(_Lines):
    """stdout or stderr on which printed text is inert: control characters are shown as escapes."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.commands = stream  # for lines that a CI system shall act on
        self.rich_proxied_file = _Lines(stream)  # rich looks for this name: its own control sequences stay

    def write(self, text: str) -> int:
        """Write a text, escaped."""
        super().write(printable(text))
        return len(text)


def write_commands(text: str) -> None:
    """Write lines to stdout that a CI system shall act on; all other output is kept from being commands."""
    sys.stdout.flush()
    getattr(sys.stdout, "commands", sys.stdout).write(text)


class SafeConsole(Console):
    """rich's console, on which only rich itself may move the cursor or change colours."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - rich's own options
        # Names and messages hold brackets and colons that are no markup: what is styled says so with rich's Text.
        super().__init__(**{"markup": False, "emoji": False, **options})

    def _innermost(self) -> Any:  # noqa: ANN401 - as rich has it
        """Return the stream below all that redirect it: a live display puts one more in its place."""
        found = Console.file.fget(self)  # type: ignore[attr-defined]
        while (inner := getattr(found, "rich_proxied_file", None)) is not None:
            found = inner
        return found

    file = property(_innermost, Console.file.fset)  # type: ignore[attr-defined]

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does, with the active characters of texts escaped."""
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else printable(segment.text)
            yield segment if shown == segment.text else Segment(shown, segment.style)


class PlainFormatter(logging.Formatter):
    """Formats records of a log so that a terminal shows them as they stand, without declared secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text, escaped and redacted."""
        return printable(super().format(record))
