"""docs/faults.md: every case, what is promised, and what the last run of the suite showed."""

import json
import platform
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

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
`--record FILE` keeps the results, `--write FILE…` puts them into this page, which keeps the others as they are. A
sample of the cases, and fuzz tests of the same readers, run in every check. What is trusted and what is not is in
[SECURITY.md](../SECURITY.md).

Whatever a command is given, it ends in time, with an exit status of its own, without a traceback, without control
characters on the terminal, and with less than 300 MiB: every case that runs a command is held to that as well.

An engine that is stopped or hangs in a run is produced by a relay before the engine's socket: for the harness it is the
same, and nobody else's engine is harmed. A disk that is full behind the engine's data root is that of an engine of the
suite's own, with a socket, a containerd and a data root in memory that is made as small as what it holds. A clock that
is set is what all programs of a run are told of the time of day, by a library that they load before their own (it needs
a C compiler): others on the machine work by the kernel's.

What "in time" means grows with the machine's load average, up to five times: a suite beside other programs judges the
harness, not them. It wants a machine of its own all the same.

A result is the newest of its case: cases are run when their subject changes, so that not all are of the same day or
commit; the last column says which.

"""


CELLS = re.compile(r"(?<!\\)\|")  # between the cells of a row
COLUMNS = 5
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


def read(files: Sequence[Path], cases: Sequence[Case], page: str = "") -> list[Result]:
    """The newest result of every case, of such files and a page made before; ``not run`` for one that none has.

    Of two results of the same minute, and of those without one, the one that comes later in the files is taken.
    """
    last = _rows(page)
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            known = last.get(found["case"], {})
            if found.get("when", "") >= known.get("when", ""):
                last[found["case"]] = found
    return [_result(case, last.get(case.name, {})) for case in cases]


def _result(case: Case, line: Mapping[str, Any]) -> Result:
    return Result(
        case=case,
        word=line.get("word", "not run"),
        detail=line.get("detail", ""),
        seconds=line.get("seconds", 0.0),
        commit=line.get("commit", ""),
        when=line.get("when", ""),
    )


def _rows(page: str) -> dict[str, dict[str, Any]]:
    """The results of a page by case, as lines of a file have them."""
    found = {}
    for line in page.splitlines():
        cells = [_text(cell) for cell in CELLS.split(line)[1:-1]]
        if len(cells) == COLUMNS and "/" in cells[0]:
            word, _, detail = cells[3].partition(": ")
            commit, _, when = cells[4].partition(" ")
            found[cells[0]] = {"word": word, "detail": detail, "commit": commit, "when": when}
    return found


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
    """How many of each, and the time that they took."""
    return f"{counts(results)}; {sum(result.seconds for result in results):.0f} s"


def counts(results: Sequence[Result]) -> str:
    """How many of each."""
    words = Counter(result.word for result in results)
    return f"{len(results)} cases: " + ", ".join(f"{n} {word}" for word, n in words.items())


def page(results: Sequence[Result]) -> str:
    """The page."""
    lines = [
        HEAD,
        f"Last results: {counts(results)} (Linux {platform.release()}). By commit: {ages(results)}.{span(results)}\n",
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


def _text(cell: str) -> str:
    """What such a cell was made of."""
    return cell.strip().replace("\\|", "|").replace("&lt;", "<")


def write(results: Sequence[Result]) -> None:
    """Write it."""
    PAGE.write_text(page(results), encoding="utf-8")
