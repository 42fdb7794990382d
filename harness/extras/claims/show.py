"""The verdicts on claims: on a terminal, as a Markdown table, and as a page."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.extras.claims.claim import Claim
from harness.records.claims import WORDS, ClaimVerdict, StatementVerdict

STYLES = {"supported": "green", "direction only": "yellow", "refuted": "red", "undecided": "dim"}
SAME = 0.01  # ratios nearer than this are told once
NEVER = "not measured yet"
AGAIN = "./tfb claims run"


def measured(statement: StatementVerdict) -> str:
    """``2.31× [2.20, 2.43]``, a count of errors, or an en dash."""
    if statement.value is None:
        return "–"
    if not statement.to:
        return f"{statement.value:,.0f}"
    ends = "" if statement.low is None or statement.high is None else f" [{_n(statement.low)}, {_n(statement.high)}]"
    return f"{_n(statement.value)}×{ends}"


def _n(value: float) -> str:
    return f"{value:,.{3 if value < 1 else 2 if value < 100 else 0}f}"


def expected(statement: StatementVerdict) -> str:
    """What was said, and what theory makes of it on these CPUs where that differs."""
    if statement.expected is not None:
        said = float(statement.said.removesuffix("×").replace(",", ""))
        if abs(said / statement.expected - 1) >= SAME:
            return f"{statement.said}, here {_n(statement.expected)}×"
    return statement.said


def counts(verdict: ClaimVerdict) -> str:
    """``2 supported, 1 refuted`` of its source's statements."""
    found = Counter(statement.verdict for statement in verdict.statements if not statement.ours)
    return ", ".join(f"{found[word]} {word}" for word in WORDS if found[word])


def listing(rows: Sequence[tuple[Claim, ClaimVerdict | None]], console: Console) -> None:
    """Every claim with its last verdict."""
    table = _grid("claim", "last verdict", "what is claimed, by whom")
    for claim, verdict in rows:
        word = Text(verdict.verdict, STYLES[verdict.verdict]) if verdict else Text(NEVER, "dim")
        if verdict and len(verdict.statements) > 1:
            word.append(f"\n{counts(verdict)}", "dim")
        table.add_row(claim.name, word, Text.assemble(claim.title, (f"\n{claim.talk}", "dim")))
    console.print(table)


def show(verdicts: Sequence[ClaimVerdict], console: Console) -> None:
    """The statements of these claims with what was measured."""
    for verdict in verdicts:
        console.print(Text.assemble("\n", (f"{verdict.verdict}: {verdict.title}", "bold"), f"  {verdict.talk}"))
        table = _grid("verdict", "statement", "said", "measured")
        for each in verdict.statements:
            name = Text.assemble(
                _name(each), (f"\n{each.reason}{f'; takes {each.takes}' if each.takes else ''}", "dim")
            )
            table.add_row(Text(each.verdict, STYLES[each.verdict]), name, expected(each), measured(each))
        console.print(table)


def _grid(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for header in others:
        table.add_column(header)
    return table


def _name(statement: StatementVerdict) -> str:
    return f"{statement.name} (of ours)" if statement.ours else statement.name


def page(verdicts: Sequence[ClaimVerdict], unmeasured: Sequence[Claim], out: TextIO) -> None:
    """A page of Markdown: all verdicts, and the claims without one."""
    out.write(
        "# The claims of the talks, and what was measured\n\n"
        f"Written by `./tfb claims report --output FILE` from the verdicts that `{AGAIN}` recorded; edit "
        "`config/claims/`, not this page. docs/claims.md says what the four verdicts mean.\n\n"
    )
    places = Counter((each.machine, each.grade, each.profile, each.runtime, _day(each)) for each in verdicts)
    for (machine, grade, profile, runtime, day), count in places.items():
        graded = f", grade {grade}" if grade else ""
        out.write(f"- {count} on {machine}{graded}: profile `{profile}`, {runtime or 'local'} runtime, {day}\n")
    out.write("\n## All of them\n\n" + table(verdicts, unmeasured, link=True))
    out.writelines("\n" + _section(verdict) for verdict in verdicts)


def table(verdicts: Sequence[ClaimVerdict], unmeasured: Sequence[Claim] = (), *, link: bool = False) -> str:
    """A Markdown table of the claims."""
    lines = ["| claim | talk | verdict | measured |", "|---|---|---|---|"]
    for verdict in verdicts:
        title = f"[{_cell(verdict.title)}](#{verdict.claim})" if link else _cell(verdict.title)
        told = [each for each in verdict.statements if each.value is not None and (not each.to or each.low is not None)]
        several = len(verdict.statements) > 1
        figures = "; ".join(f"{_name(each)} {measured(each)}" if several else measured(each) for each in told)
        mixed = len({each.verdict for each in verdict.statements if not each.ours}) > 1
        word = f"**{verdict.verdict}**{f' ({counts(verdict)})' if mixed else ''}"
        lines.append(f"| {title} | {_cell(verdict.talk)} | {word} | {_cell(figures)} |")
    lines += [f"| {_cell(claim.title)} | {_cell(claim.talk)} | {NEVER} | |" for claim in unmeasured]
    return "\n".join(lines) + "\n"


def _section(verdict: ClaimVerdict) -> str:
    on = f" ({verdict.claimed_cpus} when it was said)" if verdict.claimed_cpus else ""
    run = f", run {verdict.run_id}" if verdict.run_id else ""
    unfinished = f" ({verdict.status})" if verdict.status != "complete" else ""
    lines = [
        f'<a id="{verdict.claim}"></a>\n\n## {verdict.title}\n',
        f"**{verdict.verdict}** · {verdict.talk}, {verdict.page}\n",
        f"- Said: {verdict.said}.",
        f"- Conditions: {verdict.conditions}.",
        *([f"- Here: {verdict.here}."] if verdict.here else []),
        f"- Measured on {verdict.cpus} CPUs{on}{run}{unfinished}; again: `{AGAIN} {verdict.claim}`.",
        *([f"- What disturbed the measurement: {'; '.join(verdict.concerns)}."] if verdict.concerns else []),
        "\n| statement | said | measured | processes | verdict | why |\n|---|---|---|---|---|---|",
    ]
    for each in verdict.statements:
        sides = f"{each.of} ÷ {each.to}" if each.to else each.of
        what = f"{each.metric} of {sides}" if each.metric else sides
        takes = f"it would take {each.takes}" if each.takes else ""
        remarks = f"remarks: {', '.join(each.remarks)}" if each.remarks else ""
        why = "; ".join(part for part in (each.reason, takes, each.theory, remarks) if part)
        row = (f"{_name(each)}: {what}", expected(each), measured(each), each.processes or "", each.verdict, why)
        lines.append("| " + " | ".join(_cell(str(text)) for text in row) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text that may stand in a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def _day(verdict: ClaimVerdict) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(verdict.measured_at))
