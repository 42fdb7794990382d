"""``./tfb claims``: what talks claim, measured and judged."""

import io
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from harness.cli.asked import Asked
from harness.cli.consent import settled
from harness.cli.flags import RunFlags
from harness.cli.output import put
from harness.cli.settings import results_folder, settings
from harness.errors import Exit
from harness.experiment import progress, workflow
from harness.extras.claims import judge, measure, show
from harness.extras.claims.claim import Claim, chosen, read
from harness.host import interruption, machine
from harness.plan.config import Settings
from harness.records import claims as recorded
from harness.records.claims import ClaimsRecord, ClaimVerdict
from harness.report import terminal

SECONDS = 15 * 60.0  # of a claim's run

command = App(name="claims", help="What talks claim: list it with the last verdicts, measure and judge it, print it.")
Results = Annotated[str | None, Parameter(help="another results folder", metavar="DIR")]
Names = Annotated[str, Parameter(help="claims; default: all")]


@command.default
def listing(
    *, json: Annotated[bool, Parameter(help="machine-readable output")] = False, results: Results = None
) -> int:
    """List what talks claim, with the last verdict on each."""
    record = recorded.read(results_folder(results))
    if json:
        print(record.model_dump_json())
    else:
        show.listing([(one, record.verdicts.get(name)) for name, one in read().items()], terminal.console())
    return Exit.OK


@command.command
def run(*names: Names, flags: RunFlags = RunFlags()) -> int:  # noqa: B008 - frozen
    """Measure each claim in a run of its own (--time each, 15m), in rounds on servers side by side; judge it.

    Every verdict is recorded at once. --resume finishes what was interrupted, and leaves out what is done.
    """
    claims = chosen(read(), names)
    seconds = flags.time or SECONDS
    asked = Asked(mode="benchmark", test=(), flags=replace(flags, profile=flags.profile or "claims", resume=None))
    given = settings(asked, ("claims", "run", *names))
    if flags.dry_run:
        return max(map(partial(_show_plan, given, seconds), claims))
    given = settled(given)
    code = Exit.OK
    found: list[ClaimVerdict] = []
    for claim in claims:
        if claim.program:
            verdict = _of_program(claim, given)
        else:
            verdict, ended = _of_run(claim, given, seconds, resume=bool(flags.resume))
            code = max(code, ended)
        measure.keep(given.results, verdict)
        found.append(verdict)
    if flags.json:
        print(ClaimsRecord(verdicts={verdict.claim: verdict for verdict in found}).model_dump_json())
    else:
        show.show(found, terminal.console())
    return code


def _show_plan(given: Settings, seconds: float, claim: Claim) -> int:
    """What is measured for a claim, by the design that measures it."""
    print(f"{claim.name}:", flush=True)
    if claim.program:
        print(f"{' '.join(claim.program.command)}, {measure.PROGRAM_STARTS} starts")
        return Exit.OK
    return workflow.dry_run(measure.settings_of(claim, given, seconds))


def _of_run(claim: Claim, given: Settings, seconds: float, *, resume: bool) -> tuple[ClaimVerdict, Exit]:
    """The verdict from a run, begun now or earlier, and the run's exit code."""
    asked = measure.settings_of(claim, given, seconds)
    before = measure.begun(claim, given) if resume else None
    if before and before.info.status in ("complete", "failed"):  # the same would fail again
        return judge.of_run(claim, before), Exit.OK
    if before:
        asked = replace(asked, resume=before.info.run_id, seed=before.info.seed)
    with interruption.deferred():
        shown = progress.Progress(progress.display(quiet=given.quiet or given.json))
        outcome = workflow.benchmark(asked, shown)
    return judge.of_run(claim, outcome.records), outcome.exit_code


def _of_program(claim: Claim, given: Settings) -> ClaimVerdict:
    assert claim.program is not None  # noqa: S101 - the caller chose
    began = time.time()
    figures = [measure.figures_of(claim.name, claim.program) for _ in range(measure.PROGRAM_STARTS)]
    return judge.of_program(
        claim, figures, machine.facts(), measured_at=began, profile=given.profile.name, runtime="local"
    )


@command.command
def report(
    *names: Names,
    format: Annotated[  # noqa: A002 - the flag
        Literal["text", "markdown", "table", "json"] | None, Parameter(help="table: one of Markdown, for a README")
    ] = None,
    output: Annotated[Path | None, Parameter(help="write there, Markdown unless --format says", metavar="FILE")] = None,
    results: Results = None,
) -> int:
    """Print the recorded verdicts."""
    known = recorded.read(results_folder(results)).verdicts
    claims = chosen(read(), names)
    verdicts = [known[claim.name] for claim in claims if claim.name in known]
    missing = [claim for claim in claims if claim.name not in known]
    out = io.StringIO() if output else sys.stdout
    match format or ("markdown" if output else "text"):
        case "markdown":
            show.page(verdicts, missing, out)
        case "table":
            out.write(show.table(verdicts, missing))
        case "json":
            out.write(ClaimsRecord(verdicts={v.claim: v for v in verdicts}).model_dump_json(indent=1) + "\n")
        case _:
            show.show(verdicts, terminal.console(out))
    if output and isinstance(out, io.StringIO):
        put(output, out.getvalue())
    return Exit.OK
