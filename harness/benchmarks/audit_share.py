"""``python -m harness.benchmarks.audit_share RUN…``: how much of a run's time its audits take, from its own log.

An audit begins when the generator that writes its answers out is started, and ends when the next program is started
or stopped: the load, the looks at the tables and the judgement of the answers.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness.benchmarks.command import command

LOG = Path("logs") / "harness.log"
AUDIT = "--sample-file"  # as harness.measure.audit asks for the answers
_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]+ \S+ (.*)")


@dataclass(frozen=True, kw_only=True)
class Share:
    """Of one run."""

    audits: int
    audit_seconds: float
    run_seconds: float


def share(log: str) -> Share:
    """Of the text of a run's log; raises ValueError for one without a line."""
    events = [(datetime.fromisoformat(found[1]), found[2]) for found in map(_LINE.match, log.splitlines()) if found]
    if not events:
        raise ValueError("no line of a run's log")
    programs = [(at, text) for at, text in events if text.startswith(("start: ", "stop: "))]
    ends = [at for at, _ in programs[1:]] + [events[-1][0]]
    seconds = [
        (end - at).total_seconds()
        for (at, text), end in zip(programs, ends, strict=True)
        if AUDIT in text and text.startswith("start: ")
    ]
    return Share(
        audits=len(seconds),
        audit_seconds=sum(seconds),
        run_seconds=(events[-1][0] - events[0][0]).total_seconds(),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line a run."""
    p = argparse.ArgumentParser(description="How much of a run's time its audits take.")
    p.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the folder of a run")
    for folder in p.parse_args(argv).runs:
        found = share((folder / LOG).read_text(encoding="utf-8"))
        print(
            f"{folder.name}: {found.audits} audits took {found.audit_seconds:.0f} s of {found.run_seconds:.0f} s, "
            f"{found.audit_seconds / found.run_seconds:.1%}"
        )
    return 0


if __name__ == "__main__":
    command(main)
