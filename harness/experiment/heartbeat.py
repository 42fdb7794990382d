"""Says that something slow is still at work: how long, and the last line of its log."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.units import whole_seconds

EVERY_SECONDS = 5.0
TAIL_BYTES = 4096
LONGEST = 100  # characters of a log's line


@contextmanager
def beats(tell: Callable[[float], None], every: float = EVERY_SECONDS) -> Iterator[None]:
    """Call ``tell`` with the seconds so far, every few seconds until the block ends."""
    over = threading.Event()

    def beat() -> None:
        count = 1
        while not over.wait(every):
            tell(count * every)
            count += 1

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def still(seconds: float, log: Path) -> str:
    """``25 s, compiling core`` with the log's last line, where it has one."""
    return ", ".join(part for part in (whole_seconds(seconds), last_line(log)) if part)


def last_line(log: Path) -> str:
    """The last line of a log that says something, without control characters; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    lines = ["".join(c for c in line if c.isprintable()).strip() for line in text.replace("\r", "\n").splitlines()]
    return next((line[:LONGEST] for line in reversed(lines) if line), "")
