"""The command ``./tfb history FILE``, which draws the verdicts that ``./tfb compare --history FILE`` saved.

Each line of the file contains the result of a comparison.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.errors import Exit, UsageError
from harness.extras.gate.judge import GateResult
from harness.extras.gate.report import draw_ratio, drawing_range, format_start, headline
from harness.plain_text import inert_lines, one_line
from harness.records import safe_read

FILE = "tfb-history.jsonl"
FILE_BYTES = 64 << 20


def command(
    file: Annotated[
        str, Parameter(help=f"file that `compare --history` wrote; default: {FILE}", metavar="FILE")
    ] = FILE,
) -> int:
    """Draw the verdicts that ./tfb compare --history FILE saved, with each request's interval."""
    results = read_history(Path(file))
    for request in dict.fromkeys(one.request for each in results for one in each.requests):
        print(inert_lines("\n".join((f"{one_line(request)}:", *request_lines(results, request), ""))))
    print(inert_lines("\n".join(latest_lines(results))))
    return Exit.OK


def read_history(path: Path) -> list[GateResult]:
    """Return the results in a file, oldest first. Raises UsageError for an invalid line."""
    results = []
    for number, line in enumerate(filter(str.strip, read_text(path).split("\n")), 1):
        try:
            results.append(GateResult.model_validate_json(line))
        except ValueError as error:
            raise UsageError(
                f"{path}: line {number} is not a result of ./tfb compare: {line[:80]!r}; remove it or use a new file"
            ) from error
    return results


def read_text(path: Path) -> str:
    """Return a history file's text. Raises UsageError if the file is missing or too large."""
    try:
        return safe_read.read(path, FILE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}. To create a history, run `./tfb compare --base REV --history {path}`"
        ) from error


def latest_lines(results: Sequence[GateResult]) -> Iterator[str]:
    """Yield a line for each of the last ten comparisons, with start time, head and headline."""
    return (
        f"{format_start(result)}  {one_line(result.head):<24} {_first(headline(result))}" for result in results[-10:]
    )


def _first(text: str) -> str:
    return one_line((text.splitlines() or [""])[0])


def request_lines(results: Sequence[GateResult], request: str) -> Iterator[str]:
    """Yield a line for each comparison, with the request's interval drawn on a common axis."""
    ratios = [(result, one.ratio) for result in results for one in result.requests if one.request == request]
    ends = drawing_range([ratio for _, ratio in ratios])
    for result, ratio in ratios:
        interval = f"{draw_ratio(ratio, result.threshold, ends)} {ratio.value:.2f}x" if ratio else "no interval"
        yield f"  {format_start(result)}  {one_line(result.head):<20.20} {interval}"
