"""Formats the verdict on a change as text, Markdown or JSON."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from rich.text import Text

from harness.console import SafeConsole
from harness.extras.gate.judge import ALL, GateResult, RequestVerdict
from harness.plain_text import markdown_block, markdown_code, one_line, printable
from harness.report.tables import Column, TextTable, draw_interval, format_ratio
from harness.report.terminal import print_table
from harness.stats.ranking_model import Ratio
from harness.units import format_micros, format_rate, format_seconds

# Column -> ``Column.order``. If a terminal is too narrow, the columns with the highest numbers move to a second table
# first.
COLUMNS = {
    "request": 0,
    "verdict": 0,
    "head ÷ base": 0,
    "base ÷ its copy": 3,
    "finds": 1,
    "base": 2,
    "head": 2,
    "at": 4,
    "p50": 5,
    "p99": 5,
    "req/s": 6,
}
STYLES = {"failed": "bold red", "slower": "bold red", "faster": "bold green", "cannot tell": "bold yellow"}

MAX_DRAWN_RATIO = 1e6  # an axis shows ratios between 1 / MAX_DRAWN_RATIO and MAX_DRAWN_RATIO


def headline(result: GateResult) -> str:
    """Return a headline, for example ``slower: items 1.21× [1.15, 1.27]`` or ``same within 5 %``."""
    deciding = [each for each in result.requests if each.verdict == result.verdict]
    match result.verdict:
        case "same":
            widest = max([each.threshold or result.threshold for each in deciding], default=result.threshold)
            return f"same within {widest * 100:.3g} %"
        case "cannot tell":
            undecidable = [each for each in deciding if not each.minutes_more]
            reason = next((_reason(each) for each in undecidable if each.reason), "")
            if not deciding:
                return "cannot tell: base supports none of the requests"
            minutes = "" if undecidable else _minutes(max(each.minutes_more or 0.0 for each in deciding))
            return f"cannot tell: {reason or minutes or 'this machine is too noisy: use a quieter machine'}"
        case "failed":
            return f"failed: {_reason(deciding[0])}"
        case _:
            return f"{result.verdict}: {', '.join(map(_difference, deciding))}"


def _difference(request: RequestVerdict) -> str:
    """Return a request's ratio. If a different reason (such as a budget) explains the verdict, return the reason."""
    shows = request.ratio and ((request.ratio.low or 0.0) > 1 or request.verdict == "faster" or not request.reason)
    return f"{request.request} {format_ratio(request.ratio)}" if shows else _reason(request)


def _reason(request: RequestVerdict) -> str:
    """Return the reason for a verdict, preceded by the request's name."""
    return request.reason if request.request == ALL else f"{request.request}: {request.reason}"


def _minutes(more: float) -> str:
    number = max(1, round(more))
    return f"needs {number} more minute{'s' if number > 1 else ''}"


def format_start(result: GateResult) -> str:
    """Return a session's start time, in UTC."""
    try:
        return datetime.fromtimestamp(result.started_at, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):  # a history file can contain any number
        return "unknown time"


def table_columns(result: GateResult) -> tuple[Column, ...]:
    """Return the table's columns, with a cell for each request. Omit empty columns."""
    cells = zip(*(_row(each, result.threshold) for each in result.requests), strict=True)
    columns = (Column(header=name, cells=each, order=COLUMNS[name]) for name, each in zip(COLUMNS, cells, strict=False))
    return tuple(each for each in columns if set(each.cells) != {"–"})


def table_rows(result: GateResult) -> list[tuple[str, ...]]:
    """Return the table's header and a row for each request. Omit empty columns."""
    columns = table_columns(result)
    return [tuple(each.header for each in columns), *zip(*(each.cells for each in columns), strict=True)]


def _row(one: RequestVerdict, margin: float) -> tuple[str, ...]:
    margin = one.threshold or margin
    verdict_text = f"same within {margin * 100:.3g} %" if one.verdict == "same" else one.verdict
    return (
        one.request,
        f"{verdict_text}: {_minutes(one.minutes_more)}"
        if verdict_text == "cannot tell" and one.minutes_more
        else verdict_text,
        format_ratio(one.ratio),
        format_ratio(one.noise),
        f"{one.detectable * 100:.2g} %" if one.detectable else "–",
        *(f"{format_micros(value)} µs" if value else "–" for value in one.values or (None, None)),
        f"{format_rate(one.rate)}/s" if one.rate else "–",
        *(_times(times) for times in (one.p50, one.p99)),
        format_ratio(one.throughput),
    )


def _times(times: tuple[float, float, float] | None) -> str:
    """Format three times as ``base → head (control copy)``."""
    return "{} → {} ({})".format(*map(format_seconds, times)) if times else "–"


def remark_lines(result: GateResult) -> list[str]:
    """Return the lines below the table: reasons, ratios of memory and startup time, and notes."""
    later = [each for each in result.requests if each.reason and each.verdict == "slower"]
    others = [each for each in result.requests if each.reason and each not in later and len(result.requests) > 1]
    lines = [_reason(each) for each in (*later, *others)]
    lines += [f"memory {format_ratio(result.memory)}"] if result.memory else []
    lines += [f"startup time {format_ratio(result.startup_time)}"] if result.startup_time else []
    if metrics := sorted({each.metric for each in result.requests if each.ratio and each not in later}):
        lines += [f"verdicts compare {' or '.join(metrics)} at the same rate; ratios below 1 mean that head needs less"]
        lines += ["finds: the smallest change that four out of five such sessions would detect"]
    return [*lines, *result.notes]


def drawing_range(ratios: Sequence[Ratio | None], margin: float = 0.05) -> tuple[float, float]:
    """Return the ends of an axis that includes all intervals and the margin."""
    intervals = [interval for ratio in ratios if (interval := _drawable_interval(ratio))]
    bounds = [min(max(bound, 1 / MAX_DRAWN_RATIO), MAX_DRAWN_RATIO) for interval in intervals for bound in interval]
    return 0.98 * min([1 / (1 + margin), *bounds]), 1.02 * max([1 + margin, *bounds])


def draw_ratio(ratio: Ratio | None, margin: float, ends: tuple[float, float]) -> str:
    """Draw an interval and the margin on an axis between ``ends``. Return "" if there is no interval."""
    interval = _drawable_interval(ratio)
    if ratio is None or interval is None:
        return ""
    return draw_interval(ratio.value, *interval, (1 / (1 + margin), 1 + margin), ends)


def _drawable_interval(ratio: Ratio | None) -> tuple[float, float] | None:
    """Return a ratio's interval, or None if there is no interval or a logarithmic axis cannot show it.

    A ratio from a history file can have any value.
    """
    if ratio is None or ratio.low is None or ratio.high is None or min(ratio.low, ratio.high) <= 0:
        return None
    return ratio.low, ratio.high


def print_text(result: GateResult, console: SafeConsole) -> None:
    """Print the result. Move columns that exceed the console's width to additional tables."""
    console.print(Text(_indented(headline(result)), STYLES.get(result.verdict, "bold")))
    columns = (replace(each, cells=tuple(map(one_line, each.cells))) for each in table_columns(result))
    print_table(TextTable(title=_sides(result), columns=tuple(columns)), console)
    console.print()
    for line in remark_lines(result):
        console.print(Text(f"· {_indented(line)}"))


def format_json(result: GateResult) -> str:
    """Format the result as a line of ASCII JSON. Escape ``##``, which some CI systems interpret as a command."""
    return json.dumps(json.loads(result.model_dump_json())).replace("##", "#\\u0023")


def _sides(result: GateResult) -> str:
    head, base = one_line(result.head), one_line(result.base)
    return f"head {head} against base {base}, {result.minutes:.1f} minutes"


def _indented(text: str) -> str:
    """Indent all lines of a string except the first."""
    first, *more = printable(text).splitlines() or [""]
    return "\n".join((first, *(f"  │ {line}" for line in more)))


def format_markdown(result: GateResult) -> str:
    """Format the result for a pull request. Escape markup, mentions and links in the service's output."""
    rows = table_rows(result)
    lines = [f"| {' | '.join(map(markdown_code, row))} |" for row in rows]
    lines.insert(1, f"|{' --- |' * len(rows[0])}")
    sides = f"head {markdown_code(result.head)} against base {markdown_code(result.base)}, {result.minutes:.1f} minutes"
    first, *more = headline(result).splitlines()
    heading = (f"**{markdown_code(first)}**", "", *((markdown_block(more), "") if more else ()))
    notes = (f"- {markdown_code(line)}" for line in remark_lines(result))
    return "\n".join((*heading, sides, "", *lines, "", *notes, ""))
