"""The answer of a run as plain HTML, for the pages of a published site. Pure."""

import html
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from harness.dashboard.documents import RunDocument
from harness.dashboard.titles import name_of
from harness.stats.model import Estimate, Quantity, Ratio, Row, Score
from harness.units import format_micros, format_rate

HEADERS = ("Possible ranks", "Implementation", "Requests/s", "95 %", "× reference", "CPU µs/req", "95 %", "Remarks")
OVERALL_HEADERS = ("Possible ranks", "Implementation", "Score", "95 %", "Missing")


def escape(text: object) -> str:
    """Text that means nothing to HTML."""
    return html.escape(str(text), quote=True)


def run_section(document: RunDocument) -> str:
    """Title, answers and tables of a run."""
    run, ranking = document.run, document.ranking
    parts = [
        f"<h1>{escape(document.title)}</h1>",
        f"<p>{day(run.started_at)} · profile {escape(run.profile)} · {escape(run.status)}"
        f"{' · <strong>example</strong>' if document.example else ''}</p>",
    ]
    if ranking.overall:
        parts += ["<h2>Overall</h2>", answer(document, "overall"), overall_table(ranking.overall, ranking.leading)]
    for kind, test in ranking.test_types.items():
        parts += [f"<h2>{escape(name_of(kind))}</h2>", answer(document, kind), ranking_table(test.headline.rows)]
    parts += [f"<p>{escape(note)}</p>" for note in ranking.notes]
    return "\n".join(parts)


def answer(document: RunDocument, kind: str) -> str:
    """The sentences on a test type."""
    said = document.sentences.get(kind, {}).get(document.ranking.leading, ())
    return f'<p class="answer">{escape(" ".join(part for part in said if part))}</p>' if said else ""


def overall_table(scores: Iterable[Score], leading: Quantity) -> str:
    """Scores by the figure that leads, best first."""
    standings = ((score, score.cpu if leading == "cpu" else score.throughput) for score in scores)
    return _table(
        OVERALL_HEADERS,
        (
            (
                standing.rank.label if standing else "–",
                score.implementation,
                f"{standing.estimate.median:.2f}×" if standing else "–",
                bounds(standing.estimate) if standing else "–",
                ", ".join(score.missing),
            )
            for score, standing in standings
        ),
    )


def ranking_table(rows: Iterable[Row]) -> str:
    """A ranking, best first."""
    return _table(
        HEADERS,
        (
            (
                row.throughput.rank.label if row.throughput and row.ranked else "–",
                row.implementation,
                format_rate(row.throughput.estimate.median if row.throughput else None),
                interval(row.throughput.estimate if row.throughput else None, micros=False),
                ratio(row.throughput.to_reference if row.throughput else None),
                format_micros(row.cpu_per_request.estimate.median if row.cpu_per_request else None),
                interval(row.cpu_per_request.estimate if row.cpu_per_request else None, micros=True),
                ", ".join((row.reason, *row.flags) if row.reason else row.flags),
            )
            for row in rows
        ),
    )


def interval(estimate: Estimate | None, *, micros: bool) -> str:
    """``[low, high]``."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return "–"
    show = format_micros if micros else format_rate
    return f"[{show(estimate.low)}, {show(estimate.high)}]"


def ratio(value: Ratio | None) -> str:
    """``1.12× [1.08, 1.17]``."""
    if value is None:
        return "–"
    found = bounds(value)
    return f"{value.value:.2f}×" if found == "–" else f"{value.value:.2f}× {found}"


def bounds(value: Ratio | Estimate) -> str:
    """``[1.08, 1.17]``."""
    if value.low is None or value.high is None or value.low == value.high:
        return "–"
    return f"[{value.low:.2f}, {value.high:.2f}]"


def day(epoch: float) -> str:
    """Epoch seconds as a date, UTC."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d") if 0 < epoch < 8.64e12 else "undated"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(header)}</th>' for header in headers)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="table-frame"><table class="plain-table"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
