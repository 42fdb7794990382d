"""Whether one of PostgreSQL's processes was killed: the others then end their sessions, and servers lose their work."""

import re
from pathlib import Path

CRASH = re.compile(rb"process \(PID \d+\) (was terminated by signal \d+[^\n]*|exited with exit code [^\n]*)")
MOST_BYTES = 1 << 20  # of a log that are searched


def size_of(log: Path) -> int:
    """Bytes so far; 0 without a log."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def crash(log: Path, offset: int) -> str | None:
    """What PostgreSQL's log says of a killed process behind ``offset``, or None."""
    try:
        with log.open("rb") as file:
            file.seek(offset)
            found = CRASH.search(file.read(MOST_BYTES))
    except OSError:
        return None
    return f"one of PostgreSQL's processes {found[1].decode(errors='replace').strip()}; log: {log}" if found else None
