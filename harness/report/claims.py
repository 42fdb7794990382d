"""The verdicts on claims: a line each for a terminal, and the page docs/claims.md."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

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
    if statement.low is None or statement.high is None:
        return f"{_number(statement.value)}×"
    return f"{_number(statement.value)}× [{_number(statement.low)}, {_number(statement.high)}]"


def _number(value: float) -> str:
    digits = 3 if value < 1 else 2 if value < 100 else 0
    return f"{value:,.{digits}f}"


def expected(statement: StatementVerdict) -> str:
    """What was said, and what theory makes of it on these CPUs where that differs."""
    if statement.theory and statement.expected is not None and _differs(statement):
        return f"{statement.said}, here {_number(statement.expected)}×"
    return statement.said


def _differs(statement: StatementVerdict) -> bool:
    said = float(statement.said.removesuffix("×").replace(",", ""))
    return statement.expected is not None and abs(said / statement.expected - 1) >= SAME


def counts(verdict: ClaimVerdict) -> str:
    """``2 supported, 1 refuted`` of its statements."""
    found = Counter(statement.verdict for statement in verdict.statements)
    return ", ".join(f"{found[word]} {word}" for word in WORDS if found[word])


def listing(rows: Sequence[tuple[str, str, str, ClaimVerdict | None]], console: Console) -> None:
    """Every claim with its talk and its last verdict; a row is name, title, talk, verdict."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("claim", no_wrap=True)
    table.add_column("last verdict")
    table.add_column("what is claimed, by whom")
    for name, title, talk, verdict in rows:
        word = Text(verdict.verdict, STYLES[verdict.verdict]) if verdict else Text(NEVER, "dim")
        if verdict and len(verdict.statements) > 1:
            word.append(f"\n{counts(verdict)}", "dim")
        table.add_row(name, word, Text.assemble(title, (f"\n{talk}", "dim")))
    console.print(table)


def show(verdicts: Sequence[ClaimVerdict], console: Console) -> None:
    """The statements of these claims with what was measured."""
    for verdict in verdicts:
        console.print(Text.assemble("\n", (verdict.title, "bold"), f"  {verdict.talk}"))
        table = Table(box=None, padding=(0, 2, 0, 0))
        for header in ("verdict", "statement", "said", "measured"):
            table.add_column(header)
        for statement in verdict.statements:
            takes = f"; takes {statement.takes}" if statement.takes else ""
            table.add_row(
                Text(statement.verdict, STYLES[statement.verdict]),
                Text.assemble(statement.name, (f"\n{statement.reason}{takes}", "dim")),
                expected(statement),
                measured(statement),
            )
        console.print(table)


def page(verdicts: Sequence[ClaimVerdict], unmeasured: Sequence[tuple[str, str, str]], out: TextIO) -> None:
    """docs/claims.md: all verdicts; ``unmeasured`` are name, title and talk of claims without one."""
    out.write(
        "# The claims of the talks, and what was measured\n\n"
        f"Written by `./tfb claims report --output docs/claims.md` from the verdicts that `{AGAIN}` recorded; edit "
        "`config/claims/`, not this page. [Method](method.md#claims) says what the four verdicts mean.\n\n"
    )
    out.writelines(f"- {line}\n" for line in machines(verdicts))
    out.write("\n## All of them\n\n" + table(verdicts, unmeasured, link=True))
    out.writelines("\n" + _section(verdict) for verdict in verdicts)


def machines(verdicts: Sequence[ClaimVerdict]) -> tuple[str, ...]:
    """Where and how these were measured: one line for each machine and profile, with its dates."""
    groups: dict[tuple[str, str, str, str], list[ClaimVerdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.machine, verdict.grade, verdict.profile, verdict.runtime), []).append(verdict)
    found = []
    for (machine, grade, profile, runtime), members in groups.items():
        days = sorted({_day(member.measured_at) for member in members})
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        graded = f", grade {grade}" if grade else ""
        found.append(f"{len(members)} on {machine}{graded}: profile `{profile}`, {runtime or 'local'} runtime, {when}")
    return tuple(found)


def table(
    verdicts: Sequence[ClaimVerdict], unmeasured: Sequence[tuple[str, str, str]] = (), *, link: bool = False
) -> str:
    """A Markdown table of the claims: also the one of README.md."""
    lines = ["| claim | talk | verdict | measured |", "|---|---|---|---|"]
    for verdict in verdicts:
        title = f"[{_cell(verdict.title)}](#{verdict.claim})" if link else _cell(verdict.title)
        figures = "; ".join(f"{_short(s, verdict)}{measured(s)}" for s in verdict.statements if _tells(s))
        word = f"**{verdict.verdict}**"
        if len({statement.verdict for statement in verdict.statements}) > 1:
            word += f" ({counts(verdict)})"
        lines.append(f"| {title} | {_cell(verdict.talk)} | {word} | {_cell(figures)} |")
    lines += [f"| {_cell(title)} | {_cell(talk)} | {NEVER} | |" for _, title, talk in unmeasured]
    return "\n".join(lines) + "\n"


def _tells(statement: StatementVerdict) -> bool:
    """Whether a figure may stand without its reasons: a count, or a ratio with an interval."""
    return statement.value is not None and (not statement.to or statement.low is not None)


def _short(statement: StatementVerdict, verdict: ClaimVerdict) -> str:
    return f"{statement.name} " if len(verdict.statements) > 1 else ""


def _section(verdict: ClaimVerdict) -> str:
    lines = [
        f'<a id="{verdict.claim}"></a>',
        "",
        f"## {verdict.title}",
        "",
        f"**{verdict.verdict}** · {verdict.talk}, {verdict.page}",
        "",
        f"- Said: {verdict.said}.",
        f"- Conditions: {verdict.conditions}.",
    ]
    if verdict.here:
        lines.append(f"- Here: {verdict.here}.")
    on = f" ({verdict.claimed_cpus} when it was said)" if verdict.claimed_cpus else ""
    run = f", run {verdict.run_id}" if verdict.run_id else ""
    unfinished = f" ({verdict.status})" if verdict.status != "complete" else ""
    lines += [
        f"- Measured on {verdict.cpus} CPUs{on}{run}{unfinished}; again: `{AGAIN} {verdict.claim}`.",
        *([f"- What disturbed the measurement: {'; '.join(verdict.concerns)}."] if verdict.concerns else []),
        "",
        "| statement | said | measured | processes | verdict | why |",
        "|---|---|---|---|---|---|",
    ]
    for statement in verdict.statements:
        sides = f"{statement.of} ÷ {statement.to}" if statement.to else statement.of
        what = f"{statement.metric} of {sides}" if statement.metric else sides
        why = "; ".join(
            part
            for part in (
                statement.reason,
                f"it would take {statement.takes}" if statement.takes else "",
                statement.theory,
                f"remarks: {', '.join(statement.remarks)}" if statement.remarks else "",
            )
            if part
        )
        confidence = f" at {statement.confidence:.1%}" if statement.confidence and statement.low else ""
        lines.append(
            f"| {_cell(statement.name)}: {_cell(what)} | {_cell(expected(statement))} | "
            f"{_cell(measured(statement))}{confidence} | {statement.processes or ''} | {statement.verdict} | "
            f"{_cell(why)} |"
        )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text that may stand in a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
