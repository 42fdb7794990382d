"""``./tfb claims``: what talks claim, measured and judged."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from harness.cli.consent import settled
from harness.cli.flags import RunFlags
from harness.cli.output import put
from harness.cli.settings import results_folder, settings
from harness.cli.verbs import Asked
from harness.errors import Exit, UsageError
from harness.experiment import progress, workflow
from harness.extras.claims import judge, measure, show
from harness.extras.claims.claim import Claim, Statement, chosen, read
from harness.host import interruption, machine
from harness.plan.config import Settings
from harness.records import claims as recorded
from harness.records.claims import ClaimsRecord, ClaimVerdict
from harness.report import terminal
from harness.report.tables import counted
from harness.units import whole_seconds

command = App(name="claims", help="What talks claim: list it with the last verdicts, measure and judge it, print it.")
Results = Annotated[str | None, Parameter(help="another results folder", metavar="DIR")]
Names = Annotated[str, Parameter(help="claims; default: all")]


@command.default
def listing(
    *, json: Annotated[bool, Parameter(help="machine-readable output")] = False, results: Results = None
) -> int:
    """List what talks claim, with the last verdict on each."""
    known = recorded.latest(results_folder(results))
    if json:
        print(ClaimsRecord(verdicts=known).recorded())
    else:
        show.show(list(read().values()), known, terminal.console(), whole=False)
    return Exit.OK


@command.command
def run(*names: Names, flags: RunFlags = RunFlags()) -> int:  # noqa: B008 - frozen
    """Measure what is open of these claims, and judge them after every run; what earlier runs measured counts.

    Claims that share servers are measured together: each such group once, or until --time has passed.
    """
    if flags.resume:
        raise UsageError("--resume: ./tfb claims run goes on with what it has, without being told to")
    claims = chosen(read(), names)
    asked = Asked(mode="benchmark", test=(), flags=replace(flags, profile=flags.profile or "claims"))
    given = settings(asked, ("claims", "run", *names))
    if flags.dry_run:
        return _show_plan(claims, given, flags.time)
    given = settled(given)
    known = recorded.read(given.results).verdicts
    starts = [claim for claim in claims if claim.program and (names or claim.name not in known)]
    measure.keep(given.results, [_of_program(claim, given) for claim in starts])
    code = _measured(claims, given, flags.time)
    known = recorded.read(given.results).verdicts
    if flags.json:
        verdicts = {claim.name: known[claim.name] for claim in claims if claim.name in known}
        print(ClaimsRecord(verdicts=verdicts).recorded())
    else:
        show.show(claims, known, terminal.console(), whole=True)
    return code


def _show_plan(claims: Sequence[Claim], given: Settings, seconds: float | None) -> int:
    """How long each claim takes by itself, and what is measured together."""
    known = recorded.read(given.results).verdicts
    for claim in claims:
        left = measure.left_open([claim], known)
        takes = f"{whole_seconds(measure.seconds_of(measure.settings_of(left, given)))} by itself" if left else ""
        program = f"{' '.join(claim.program.command)}, {measure.PROGRAM_STARTS} starts" if claim.program else ""
        print(f"{claim.name}: {program or takes or 'nothing is open'}")
    total = 0.0
    for number, group in enumerate(measure.groups(measure.left_open(claims, known)), 1):
        together = measure.settings_of(group, given, seconds)
        print(f"\ntogether, run {number}: {', '.join(together.claims)}", flush=True)
        workflow.dry_run(together)
        total += measure.seconds_of(together)
    print(f"\n{counted(len(claims), 'claim')}: {whole_seconds(total)}, builds apart")
    return Exit.OK


def _measured(claims: Sequence[Claim], given: Settings, seconds: float | None) -> Exit:
    """Run after run, the one with the widest interval first; judges all claims after each."""
    began, code, runs = time.monotonic(), Exit.OK, 0
    tried: set[tuple[str, str]] = set()  # statements that are measured no more now
    while True:
        verdicts = judged(claims, given)
        measure.keep(given.results, verdicts.values())
        left = measure.left_open(claims, verdicts)
        groups = measure.groups([each for each in left if each.key not in tried])
        room = None if seconds is None else seconds - (time.monotonic() - began)
        fits = (each for each in groups if not runs or room is None or measure.pace(each, given) <= room)
        if (group := next(fits, None)) is None:
            return code
        asked = measure.settings_of(group, given, None if room is None else min(room, measure.SLICE_SECONDS))
        with interruption.deferred():
            shown = progress.Progress(progress.display(quiet=given.quiet or given.json))
            code, runs = max(code, workflow.benchmark(asked, shown).exit_code), runs + 1
        without = {each.key for each in measure.left_open(claims, judged(claims, given)) if each.width == float("inf")}
        tried |= {each.key for each in group if seconds is None or each.key in without}


def judged(claims: Sequence[Claim], given: Settings) -> dict[str, ClaimVerdict]:
    """What all runs in the results folder say of those claims that they measured."""
    found = measure.evidence(given.results)
    if found is None:
        return {}
    records, behind = found

    def pace(said: Statement) -> float:
        return measure.pace([measure.Open(claim="", statement=said, width=0.0)], given)

    verdicts = {}
    for claim in claims:
        servers = {cell.implementation for each in claim.compare for cell in each.cells}
        if runs := sorted({run for name in servers for run in behind.get(name, ())}):
            verdicts[claim.name] = judge.of_runs(claim, records, runs, pace)
    return verdicts


def _of_program(claim: Claim, given: Settings) -> ClaimVerdict:
    """From starts now and, on the same machine, before."""
    assert claim.program is not None  # noqa: S101 - the caller chose
    began = time.time()
    known = recorded.read(given.results).verdicts.get(claim.name)
    figures = [measure.figures_of(claim.name, claim.program) for _ in range(measure.PROGRAM_STARTS)]
    facts = machine.facts()
    where = {"measured_at": began, "profile": given.profile.name, "runtime": "local"}
    new = judge.of_program(claim, figures, facts, **where)
    if known is None or known.machine != new.machine:
        return new
    return judge.of_program(claim, [*known.figures, *figures], facts, **where)


@command.command
def report(
    *names: Names,
    output: Annotated[Path | None, Parameter(help="write Markdown, or JSON, there: FILE.md, FILE.json")] = None,
    results: Results = None,
) -> int:
    """Print the recorded verdicts, every statement; or write them, as the page docs/claims.md is."""
    claims, known = chosen(read(), names), recorded.latest(results_folder(results))
    verdicts = {claim.name: known[claim.name] for claim in claims if claim.name in known}
    if output is None:
        show.show(claims, verdicts, terminal.console(), whole=True)
    elif output.suffix == ".json":
        put(output, ClaimsRecord(verdicts=verdicts).recorded(indent=1) + "\n")
    else:
        put(output, show.page(claims, verdicts))
    return Exit.OK
