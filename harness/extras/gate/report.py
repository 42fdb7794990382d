"""The verdict on a change, in words: for a terminal, and as Markdown for a comment on a pull request."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from harness.extras.gate.judge import ALL, GateResult, RequestVerdict
from harness.plain_text import inert_lines, markdown_block, markdown_code, one_line, printable
from harness.report.tables import draw_interval, format_ratio
from harness.stats.ranking_model import Ratio
from harness.units import format_micros, format_rate, format_seconds

HEADER = ("request", "verdict", "head ÷ base", "base ÷ its copy", "finds", "base", "head", "at", "p50", "p99", "req/s")


def headline(result: GateResult) -> str:
    """``slower: items 1.21× [1.15, 1.27]``; ``same within 5 %``; ``cannot tell: 4 minutes more would``."""
    of = [each for each in result.requests if each.verdict == result.verdict]
    match result.verdict:
        case "same":
            return f"same within {result.threshold * 100:.3g} %"
        case "cannot tell":
            never = [each for each in of if not each.minutes_more]
            reason = next((_said(each) for each in never if each.reason), "")
            minutes = "" if never else _minutes(max(each.minutes_more or 0.0 for each in of))
            return f"cannot tell: {reason or minutes or 'this machine is too noisy'}"
        case "failed":
            return f"failed: {_said(of[0])}"
        case _:
            return f"{result.verdict}: {', '.join(f'{each.request} {format_ratio(each.ratio)}' for each in of)}"


def _said(one: RequestVerdict) -> str:
    """Its reason, without a name where it is of no single request."""
    return one.reason if one.request == ALL else f"{one.request}: {one.reason}"


def _minutes(more: float) -> str:
    number = max(1, round(more))
    return f"{number} minute{'s' if number > 1 else ''} more would"


def when(result: GateResult) -> str:
    """Return the beginning of a session, in UTC."""
    try:
        return datetime.fromtimestamp(result.started_at, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):  # a file may hold any number
        return "unknown time"


def rows(result: GateResult) -> list[tuple[str, ...]]:
    """A header and a row a request."""
    return [HEADER, *(_row(each, result.threshold) for each in result.requests)]


def _row(one: RequestVerdict, margin: float) -> tuple[str, ...]:
    verdict = f"same within {margin * 100:.3g} %" if one.verdict == "same" else one.verdict
    return (
        one.request,
        f"{verdict}: {_minutes(one.minutes_more)}" if verdict == "cannot tell" and one.minutes_more else verdict,
        format_ratio(one.ratio),
        format_ratio(one.noise),
        f"{one.detectable * 100:.2g} %" if one.detectable else "–",
        *(f"{format_micros(value)} µs" if value else "–" for value in one.values or (None, None)),
        f"{format_rate(one.rate)}/s" if one.rate else "–",
        *(_times(three) for three in (one.p50, one.p99)),
        format_ratio(one.throughput),
    )


def _times(three: tuple[float, float, float] | None) -> str:
    """Base and head; then base's copy, which says what a difference is worth."""
    return "{} → {} ({})".format(*map(format_seconds, three)) if three else "–"


def remarks(result: GateResult) -> list[str]:
    """What else is known, a line each."""
    later = [each for each in result.requests if each.reason and each.verdict == "slower"]
    others = [each for each in result.requests if each.reason and each not in later and len(result.requests) > 1]
    lines = [_said(each) for each in (*later, *others)]
    lines += [f"memory {format_ratio(result.memory)}"] if result.memory else []
    lines += [f"startup time {format_ratio(result.startup_time)}"] if result.startup_time else []
    if kind := sorted({each.metric for each in result.requests if each.ratio and each not in later}):
        lines += [f"{' or '.join(kind)} at one rate for both sides decides; below 1 head is the cheaper one"]
        lines += ["finds: the smallest change that such a session finds in four of five cases"]
    return [*lines, *result.notes]


def scale(ratios: Sequence[Ratio | None], margin: float = 0.05) -> tuple[float, float]:
    """From where to where intervals are drawn: all of them, and what counts as the same."""
    known = [bound for found in ratios if found for bound in (found.low, found.high) if bound]
    return 0.98 * min([1 / (1 + margin), *known]), 1.02 * max([1 + margin, *known])


def picture(found: Ratio | None, margin: float, ends: tuple[float, float]) -> str:
    """The interval on a line from one end to the other, with what counts as the same; empty where there is none."""
    if found is None or not found.low or not found.high:
        return ""
    return draw_interval(found.value, found.low, found.high, (1 / (1 + margin), 1 + margin), ends)


def text(result: GateResult) -> str:
    """Return the result for a terminal; what a service said moves no cursor and gives a CI service no command."""
    table = [tuple(map(one_line, row)) for row in rows(result)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    notes = (f"· {line}" for line in map(_indented, remarks(result)))
    return safe("\n".join((_indented(headline(result)), _sides(result), "", *lines, "", *notes)))


def safe(text: str) -> str:
    """Return lines without control characters, and without commands of CI services."""
    return inert_lines(text)


def as_json(result: GateResult) -> str:
    """Return the result as one line of ASCII, in which no command of a CI service stands either."""
    return json.dumps(json.loads(result.model_dump_json())).replace("##", "#\\u0023")


def _sides(result: GateResult) -> str:
    head, base = one_line(result.head), one_line(result.base)
    return f"head {head} against base {base}, {result.minutes:.1f} minutes"


def _indented(text: str) -> str:
    """Return a text whose later lines, such as those of a log, are marked as parts of it."""
    first, *more = printable(text).splitlines() or [""]
    return "\n".join((first, *(f"  │ {line}" for line in more)))


def markdown(result: GateResult) -> str:
    """Return the result for a pull request; what a service said is no markup, mention or link."""
    lines = [f"| {' | '.join(map(markdown_code, row))} |" for row in rows(result)]
    lines.insert(1, f"|{' --- |' * len(HEADER)}")
    sides = f"head {markdown_code(result.head)} against base {markdown_code(result.base)}, {result.minutes:.1f} minutes"
    first, *more = headline(result).splitlines()
    said = (f"**{markdown_code(first)}**", "", *((markdown_block(more), "") if more else ()))
    notes = (f"- {markdown_code(line)}" for line in remarks(result))
    return "\n".join((*said, sides, "", *lines, "", *notes, ""))
