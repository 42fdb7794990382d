"""docs/faults.md: every case, what is promised, and what the last run of the suite showed."""

import json
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from harness.errors import TfbError
from harness.faults.case import Case
from harness.host import process
from harness.paths import REPOSITORY
from harness.plain_text import printable

PAGE = REPOSITORY / "docs" / "faults.md"
HEAD = """# Faults: what is promised, and whether it is kept

Each case below is really produced by `python -m harness.faults` (real files, processes, signals, servers, databases,
containers): the command prints a line a case and ends with 1 when a promise was broken. `--list` lists the cases,
`--runtime local` or `docker` takes those of one runtime, words choose cases, groups or patterns (`config/*`);
`--record FILE` keeps the results, `--write FILE` makes this page of them. A sample of the cases, and fuzz tests of the
same readers, run in every check. What is trusted and what is not is in [SECURITY.md](../SECURITY.md).

Whatever a command is given, it ends in time, with an exit status of its own, without a traceback, without control
characters on the terminal, and with less than 300 MiB: every case that runs a command is held to that as well.

An engine that is stopped or hangs in a run is produced by a relay before the engine's socket: for the harness it is the
same, and nobody else's engine is harmed. Not produced: a full disk in the engine's own data root.

What "in time" means grows with the machine's load average, up to five times: a suite beside other programs judges the
harness, not them. It wants a machine of its own all the same.

A result is the newest of its case: cases are run when their subject changes, so that not all are of the same day or
commit; the last column says which.

"""


# What a page that others read has no use for: where things are on the machine that it was made on.
PLACES = {str(REPOSITORY): ".", sys.prefix: "VENV", sys.base_prefix: "PYTHON", tempfile.gettempdir(): "TMP"}


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a case came out: ``kept``, ``broken``, or ``not here`` where the machine lacks what it needs."""

    case: Case
    word: str
    detail: str
    seconds: float
    commit: str = ""  # of the code that it was produced with, where that was recorded
    when: str = ""  # likewise: day and minute, UTC


def record(result: Result, file: Path) -> None:
    """Append a result to a file of JSON lines."""
    with file.open("a", encoding="utf-8") as lines:
        words = {"case": result.case.name, "word": result.word, "detail": result.detail, "seconds": result.seconds}
        words |= {"commit": result.commit, "when": result.when}
        lines.write(json.dumps(words) + "\n")


def read(file: Path, cases: Sequence[Case]) -> list[Result]:
    """The last result of every case; ``not run`` for one that is not in the file."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    last = {line["case"]: line for line in lines}
    nothing = {"word": "not run", "detail": "", "seconds": 0.0}
    found = ((case, nothing | last.get(case.name, {})) for case in cases)
    return [
        Result(
            case=case,
            word=line["word"],
            detail=line["detail"],
            seconds=line["seconds"],
            commit=line.get("commit", ""),
            when=line.get("when", ""),
        )
        for case, line in found
    ]


def present_commit() -> str:
    """That of the working tree, with ``-dirty`` where files differ from it; empty without git."""
    try:
        done = process.run(["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--exclude=*"], seconds=10)
    except TfbError:
        return ""
    return done.stdout.strip() if done.status == 0 else ""


def now() -> str:
    """The minute, UTC, as the page shows it."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime())


def ages(results: Sequence[Result]) -> str:
    """How many results are of which commit."""
    counts = Counter(result.commit or "one that was not recorded" for result in results if result.word != "not run")
    return ", ".join(f"{number} of {commit}" for commit, number in counts.most_common())


def span(results: Sequence[Result]) -> str:
    """From when to when they were produced; empty where that was not recorded."""
    known = sorted(result.when for result in results if result.when)
    return f" Produced from {known[0]} to {known[-1]} UTC." if known else ""


def summary(results: Sequence[Result]) -> str:
    """How many of each."""
    words = Counter(result.word for result in results)
    seconds = sum(result.seconds for result in results)
    return f"{len(results)} cases: " + ", ".join(f"{n} {word}" for word, n in words.items()) + f"; {seconds:.0f} s"


def page(results: Sequence[Result]) -> str:
    """The page."""
    lines = [
        HEAD,
        f"Last results: {summary(results)} (Linux {platform.release()}). By commit: {ages(results)}.{span(results)}\n",
    ]
    for group, found in groupby(results, key=lambda result: result.case.group):
        lines += [f"\n## {group}\n", "| case | fault | promise | result | commit, UTC |", "|---|---|---|---|---|"]
        for result in found:
            case = result.case
            how = result.word + (f": {result.detail}" if result.detail else "")
            words = (case.name, case.fault, case.promise, how, f"{result.commit} {result.when}".strip())
            lines.append(f"| {' | '.join(_cell(word) for word in words)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A cell of a Markdown table: one line, no further column, nothing that HTML would take for its own."""
    for path, name in PLACES.items():
        text = text.replace(path, name)
    return printable(text[:200].replace("\n", " ")).replace("|", "\\|").replace("<", "&lt;")


def write(results: Sequence[Result]) -> None:
    """Write it."""
    PAGE.write_text(page(results), encoding="utf-8")
