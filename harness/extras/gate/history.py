"""``./tfb history FILE``: the sessions that ``./tfb compare --history FILE`` has kept, drawn."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.errors import Exit, UsageError
from harness.extras.gate.judge import GateResult
from harness.extras.gate.report import headline, picture, safe, scale, when
from harness.plain_text import one_line
from harness.records import safe_read

FILE = "tfb-history.jsonl"
FILE_BYTES = 64 << 20
SHOWN = 10  # the latest, after a session


def command(
    file: Annotated[
        str, Parameter(help=f"file that `compare --history` wrote; default: {FILE}", metavar="FILE")
    ] = FILE,
) -> int:
    """Draw the verdicts that ./tfb compare --history FILE saved: an interval for each request and comparison."""
    found = read(Path(file))
    for request in dict.fromkeys(one.request for result in found for one in result.requests):
        print(safe("\n".join((f"{one_line(request)}:", *drawn(found, request), ""))))
    print(safe("\n".join(lines(found))))
    return Exit.OK


def read(path: Path) -> list[GateResult]:
    """Return all sessions of a file, in order; raise UsageError for a line that is no session."""
    found = []
    for number, line in enumerate(filter(str.strip, text(path).split("\n")), 1):
        try:
            found.append(GateResult.model_validate_json(line))
        except ValueError as error:
            raise UsageError(f"{path}: line {number} is no session of ./tfb compare: {line[:80]!r}") from error
    return found


def text(path: Path) -> str:
    """Return what a file of sessions holds; raise UsageError where there is none, or one that is too large."""
    try:
        return safe_read.read(path, FILE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: ./tfb compare --base REV --history {path} begins one") from error


def lines(found: Sequence[GateResult]) -> Iterator[str]:
    """Return the latest sessions, a line each."""
    return (f"{when(result)}  {one_line(result.head):<24} {_first(headline(result))}" for result in found[-SHOWN:])


def _first(text: str) -> str:
    return one_line((text.splitlines() or [""])[0])


def drawn(found: Sequence[GateResult], request: str) -> Iterator[str]:
    """Each session's interval of a request, all to one scale."""
    of = [(result, one.ratio) for result in found for one in result.requests if one.request == request]
    ends = scale([ratio for _, ratio in of])
    for result, ratio in of:
        said = f"{picture(ratio, result.threshold, ends)} {ratio.value:.2f}x" if ratio else "no interval"
        yield f"  {when(result)}  {one_line(result.head):<20.20} {said}"
