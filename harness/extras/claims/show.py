"""Formats verdicts on claims as text and diagrams for a terminal and for docs/reference/claim-verdicts.md."""

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.extras.claims.claim import Claim
from harness.plain_text import escape_markdown
from harness.records.claims import ClaimVerdict, StatementVerdict
from harness.records.verdicts import CLAIM_CONCLUSIONS, ClaimConclusion
from harness.report.tables import draw_interval, format_ratio
from harness.stats.ranking_model import Ratio

TEMPLATE = Path(__file__).with_name("page.md")
STYLES: Mapping[ClaimConclusion, str] = dict(
    zip(CLAIM_CONCLUSIONS, ("green", "yellow", "red", "cyan", "dim"), strict=True)
)
SUMMARIES: Mapping[ClaimConclusion, str] = {
    "supported": "Holds here",
    "direction only": "Order as claimed, but not the ratio",
    "refuted": "Does not hold here",
    "needs a larger machine": "Not observable on this machine",
    "undecided": "Undecided",
}
NOT_MEASURED = "not measured yet"
MIN_DIAGRAM_WIDTH = math.log(1.25)  # minimum range of a diagram's axis, as the natural logarithm of a ratio


def sentence(conclusion: ClaimConclusion, statements: Sequence[StatementVerdict]) -> str:
    """Return the verdict on a claim as a sentence that includes the deciding figures."""
    deciding = [each for each in statements if each.verdict == conclusion]
    shown = deciding[: 1 if conclusion == "needs a larger machine" else 3]
    parts = [f"{each.name}: {_describe(each)}" if len(statements) > 1 else _describe(each) for each in shown]
    parts += [f"and {len(deciding) - len(shown)} more"] if deciding[len(shown) :] else []
    among = f" ({len(deciding)} of {len(statements)} statements)" if 0 < len(deciding) < len(statements) else ""
    lead = SUMMARIES[conclusion]
    if conclusion == "direction only" and (sizes := sum(each.more > 0 for each in deciding)):
        lead = f"Order as claimed, ratio {'undecided' if sizes == len(deciding) else 'different or undecided'}"
    return f"{lead}{among}: {'; '.join(parts)}."


def _describe(each: StatementVerdict) -> str:
    if each.verdict == "needs a larger machine" or each.value is None or not each.to:
        return each.reason
    open_size = f"; to decide: {each.takes}" if each.takes else ""
    return f"{measured(each)}, claimed {expected(each)}{open_size}"


def measured(statement: StatementVerdict) -> str:
    """Format the measured value: ``2.31× [2.20, 2.43]``, a count, or an en dash if there is no value."""
    if statement.value is None:
        return "–"
    if not statement.to:
        return f"{statement.value:,.0f}"
    return format_ratio(Ratio(value=statement.value, low=statement.low, high=statement.high))


def expected(statement: StatementVerdict) -> str:
    """Format the claimed value. If this machine's CPU count implies a different value, append that value."""
    here = statement.expected
    differs = here is not None and abs(float(statement.said.removesuffix("×")) / here - 1) >= 0.01
    return f"{statement.said}, here {here:.3g}×" if here and differs else statement.said


def picture(statement: StatementVerdict) -> str:
    """Draw the interval and the claimed range on a logarithmic axis. Return an empty string if there is no interval."""
    if statement.value is None or statement.low is None or statement.high is None:
        return ""
    values = [1.0, statement.low, statement.high, *(end for end in (statement.least, statement.most) if end)]
    factor = math.exp(1.1 * max(math.log(max(values) / min(values)), MIN_DIAGRAM_WIDTH) / 2)
    middle = math.sqrt(min(values) * max(values))
    claimed = statement.least or 0.0, statement.most or math.inf
    return draw_interval(statement.value, statement.low, statement.high, claimed, (middle / factor, middle * factor))


def show(
    claims: Sequence[Claim], verdicts: Mapping[str, ClaimVerdict], console: Console, *, with_statements: bool
) -> None:
    """Print the latest verdicts on claims. If ``with_statements`` is set, add statements with measured values."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for header in ("claim", "verdict", "claim and measurement"):
        table.add_column(header, no_wrap=header == "claim")
    for claim in claims:
        verdict = verdicts.get(claim.name)
        words = [f"\n{verdict.sentence}"] if verdict else []
        table.add_row(claim.name, _styled(verdict.verdict if verdict else None), Text.assemble(claim.title, *words))
        for statement in verdict.statements if verdict and with_statements else ():
            name = f"{statement.name} (context)" if statement.context else statement.name
            measurement = f"{name}: {measured(statement)}, claimed {expected(statement)}\n"
            explanation = f"{statement.reason}{f'; to decide: {statement.takes}' if statement.takes else ''}"
            table.add_row(
                "",
                _styled(statement.verdict),
                Text.assemble(measurement, (f"{picture(statement)} {explanation}".strip(), "dim")),
            )
    console.print(table)


def _styled(word: ClaimConclusion | None) -> Text:
    return Text(word, STYLES[word]) if word else Text(NOT_MEASURED, "dim")


def page(claims: Sequence[Claim], verdicts: Mapping[str, ClaimVerdict]) -> str:
    """Return the content of claim-verdicts.md: an introduction and a table of claims and verdicts."""
    measured_claims = [verdicts[claim.name] for claim in claims if claim.name in verdicts]
    counts = Counter(each.verdict for each in measured_claims)
    verdict_counts = Counter(
        f"{each.machine}, grade {each.grade}, {each.runtime} runtime, "
        f"{time.strftime('%Y-%m-%d', time.gmtime(each.measured_at))}"
        for each in measured_claims
    )
    lines = [f"- {count} on {escape_markdown(place)}" for place, count in verdict_counts.items()]
    concerns = _merge_concerns(concern for verdict in measured_claims for concern in verdict.concerns)
    noise = "\nThe runs reported these sources of noise:\n\n" if concerns else ""
    noise += "".join(f"- {escape_markdown(concern)}\n" for concern in concerns)
    rows = [
        f"| {escape_markdown(v.title)} | **{v.verdict}** | {escape_markdown(v.sentence)} | {_deciding(v)} |"
        for v in measured_claims
    ]
    rows += [
        f"| {escape_markdown(claim.title)} | {NOT_MEASURED} | | |" for claim in claims if claim.name not in verdicts
    ]
    return TEMPLATE.read_text(encoding="utf-8").format(
        counts=", ".join(f"{counts[word]} {word}" for word in CLAIM_CONCLUSIONS if counts[word])
        or f"all {NOT_MEASURED}",
        places="\n".join(lines) or f"- {NOT_MEASURED}",
        noise=noise,
        rows="\n".join(rows),
    )


def _merge_concerns(concerns: Iterable[str]) -> list[str]:
    """Return the distinct concerns. If concerns differ only in a number, merge them: ``load average 1.1 to 6.9``."""
    merged: dict[tuple[str, str], list[str]] = {}
    for concern in concerns:
        before, number, after = (*re.split(r"(\d+(?:\.\d+)?)", concern, maxsplit=1), "", "")[:3]
        merged.setdefault((before, after), []).append(number)
    ranges = ((key, sorted(set(numbers), key=lambda text: float(text or 0))) for key, numbers in merged.items())
    return [before + " to ".join(dict.fromkeys((n[0], n[-1]))) + after for (before, after), n in ranges]


def _deciding(verdict: ClaimVerdict) -> str:
    """Return the diagram of the first statement that determined the verdict and has an interval, or an empty string."""
    drawn = (picture(each) for each in verdict.statements if each.verdict == verdict.verdict and not each.context)
    return next((f"`{text}`" for text in drawn if text), "")
