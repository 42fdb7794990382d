"""``./tfb history FILE``: the sessions that ``./tfb compare --history FILE`` has kept, drawn."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.errors import Exit, UsageError
from harness.extras.gate.judge import GateResult
from harness.extras.gate.words import headline, picture, scale, when
from harness.records import bounded

FILE = "tfb-history.jsonl"
SHOWN = 10  # the latest, after a session
MOST_BYTES = 64 << 20  # of a file; a session takes some kilobytes


def command(
    file: Annotated[str, Parameter(help=f"of ./tfb compare --history; default: {FILE}", metavar="FILE")] = FILE,
) -> int:
    """Draw the verdicts that ./tfb compare --history FILE has kept: of each request every session's interval."""
    found = read(Path(file))
    for request in dict.fromkeys(one.request for result in found for one in result.requests):
        print("\n".join((f"{request}:", *drawn(found, request), "")))
    print("\n".join(lines(found)))
    return Exit.OK


def read(path: Path) -> list[GateResult]:
    """All sessions of a file, in order; raises UsageError that names what is none."""
    try:
        text = bounded.read(path, MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a file of ./tfb compare --history: it is not UTF-8") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: ./tfb compare --base REV --history {path} begins one") from error
    found = []
    for number, line in enumerate(filter(str.strip, text.split("\n")), 1):
        try:
            found.append(GateResult.model_validate_json(line))
        except ValueError as error:
            raise UsageError(f"{path}: line {number} is no session of ./tfb compare: {line[:80]}") from error
    return found


def lines(found: Sequence[GateResult]) -> Iterator[str]:
    """The latest sessions, a line each."""
    return (f"{when(result)}  {result.head:<24} {headline(result).splitlines()[0]}" for result in found[-SHOWN:])


def drawn(found: Sequence[GateResult], request: str) -> Iterator[str]:
    """Each session's interval of a request, all to one scale."""
    of = [(result, one.ratio) for result in found for one in result.requests if one.request == request]
    ends = scale([ratio for _, ratio in of])
    for result, ratio in of:
        said = f"{picture(ratio, result.fail_over, ends)} {ratio.value:.2f}x" if ratio else "no interval"
        yield f"  {when(result)}  {result.head:<20.20} {said}"
