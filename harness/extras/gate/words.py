"""The verdict on a change, in words: for a terminal, and as Markdown for a comment on a pull request."""

from collections.abc import Sequence
from datetime import UTC, datetime

from harness.extras.gate.judge import GateResult, RequestVerdict
from harness.stats.model import Ratio
from harness.units import format_micros, format_rate, format_seconds


def headline(result: GateResult) -> str:
    """``slower: items 1.21× [1.15, 1.27]``; ``the same within 5 %``; ``cannot tell: 4 minutes more would``."""
    of = [each for each in result.requests if each.verdict == result.verdict]
    match result.verdict:
        case "the same":
            return f"the same within {result.fail_over * 100:.3g} %"
        case "cannot tell":
            more = max((each.minutes_more for each in of if each.minutes_more), default=0.0)
            minutes = f"{max(1, round(more))} minutes more would" if more else ""
            without = [each for each in of if not each.minutes_more]
            if not without:
                return f"cannot tell: {minutes}"
            reason = next((f"{each.request}: {each.reason}" for each in without if each.reason), "")
            others = f"; {minutes} tell of the others" if minutes else ""
            return f"cannot tell: {reason or 'this machine is too noisy'}{others}"
        case "failed":
            return f"failed: {of[0].request}: {of[0].reason}"
        case _:
            return f"{result.verdict}: {', '.join(f'{each.request} {_ratio(each.ratio)}' for each in of)}"


def when(result: GateResult) -> str:
    """Its beginning, in UTC."""
    return datetime.fromtimestamp(result.started_at, UTC).strftime("%Y-%m-%d %H:%M")


def rows(result: GateResult) -> list[tuple[str, ...]]:
    """A header and a row a request."""
    header = (
        "request",
        "verdict",
        "head ÷ base",
        "base ÷ its copy",
        "finds",
        "base",
        "head",
        "at",
        "p50",
        "p99",
        "req/s",
    )
    return [header, *(_row(each, result.fail_over) for each in result.requests)]


def _row(one: RequestVerdict, margin: float) -> tuple[str, ...]:
    verdict = f"the same within {margin * 100:.3g} %" if one.verdict == "the same" else one.verdict
    if one.verdict == "cannot tell" and one.minutes_more:
        verdict += f": {max(1, round(one.minutes_more))} min more would"
    noise = one.noise and Ratio(
        value=1 / one.noise.value,
        low=1 / one.noise.high if one.noise.high else None,
        high=1 / one.noise.low if one.noise.low else None,
    )
    values = one.values or (None, None)
    return (
        one.request,
        verdict,
        _ratio(one.ratio),
        _ratio(noise),
        f"{one.detectable * 100:.2g} %" if one.detectable else "–",
        *(f"{format_micros(value)} µs" if value else "–" for value in values),
        f"{format_rate(one.rate)}/s" if one.rate else "–",
        *(_times(three) for three in (one.p50, one.p99)),
        _ratio(one.throughput),
    )


def _times(three: tuple[float, float, float] | None) -> str:
    """Base and head; then base's copy, which says what a difference is worth."""
    if three is None:
        return "–"
    base, head, copy = map(format_seconds, three)
    return f"{base} → {head} ({copy})"


def _ratio(found: Ratio | None) -> str:
    if found is None:
        return "–"
    interval = f" [{found.low:.2f}, {found.high:.2f}]" if found.low and found.high else ""
    return f"{found.value:.2f}×{interval}"


def remarks(result: GateResult) -> list[str]:
    """What else is known, a line each."""
    kind = {each.metric for each in result.requests if each.ratio}
    lines = [f"{each.request}: {each.reason}" for each in result.requests if each.reason]
    lines += [f"memory {_ratio(result.memory)}"] if result.memory else []
    lines += [f"startup time {_ratio(result.startup_time)}"] if result.startup_time else []
    if kind:
        lines += [f"{' and '.join(sorted(kind))} at one rate for both sides decides; below 1 head is the cheaper one"]
        lines += ["finds: the smallest change that such a session finds in four of five cases"]
    return [*lines, *result.notes]


def scale(ratios: Sequence[Ratio | None], margin: float = 0.05) -> tuple[float, float]:
    """From where to where intervals are drawn: all of them, and what counts as the same."""
    known = [ratio for ratio in ratios if ratio and ratio.low and ratio.high]
    low = min([1 / (1 + margin), *(ratio.low or 1.0 for ratio in known)])
    high = max([1 + margin, *(ratio.high or 1.0 for ratio in known)])
    return low - 0.02, high + 0.02


def text(result: GateResult) -> str:
    """For a terminal."""
    table = rows(result)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join(
        (
            headline(result),
            f"head {result.head} against base {result.base}, {result.minutes:.1f} minutes",
            "",
            *lines,
            "",
            *(f"· {line}" for line in remarks(result)),
        )
    )


def markdown(result: GateResult) -> str:
    """For a pull request."""
    header, *others = rows(result)
    lines = [f"| {' | '.join(row)} |" for row in (header, *others)]
    lines.insert(1, f"|{' --- |' * len(header)}")
    return "\n".join(
        (
            f"**{headline(result)}**",
            "",
            f"head `{result.head}` against base `{result.base}`, {result.minutes:.1f} minutes",
            "",
            *lines,
            "",
            *(f"- {line}" for line in remarks(result)),
            "",
        )
    )
