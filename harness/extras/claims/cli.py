"""The command ``./tfb claims``, which lists, measures and judges claims made in conference talks."""

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from harness.cli.consent import resolve_consent
from harness.cli.flags import RunFlags, require_clone, results_folder
from harness.cli.output import write_file
from harness.cli.run import run_benchmark
from harness.cli.settings import resolve_settings
from harness.cli.verbs import Invocation
from harness.errors import Exit, UsageError
from harness.experiment.predicted import dry_run
from harness.extras.claims import assessment, measure, show
from harness.extras.claims.claim import Claim, read_claims, select_claims
from harness.host import machine
from harness.plain_text import json_text
from harness.plan.run_settings import Settings
from harness.records import claims as recorded
from harness.records.claims import ClaimsRecord, ClaimVerdict
from harness.report import terminal

command = App(name="claims", help="List, measure and judge claims made in conference talks.")
ClaimNames = Annotated[str, Parameter(help="names of claims; default: all")]


@command.default
def listing(
    *names: ClaimNames,
    json: Annotated[bool, Parameter(help="print JSON to stdout")] = False,
    output: Annotated[Path | None, Parameter(help="write a Markdown page to this file")] = None,
    results: Annotated[str | None, Parameter(help="results folder; default: results/", metavar="DIR")] = None,
) -> int:
    """List claims and their latest verdicts. If you name claims, also list their statements."""
    claims, verdicts_by_claim = select_claims(read_claims(), names), recorded.latest_verdicts(results_folder(results))
    if output:
        write_file(output, show.page(claims, verdicts_by_claim))
    elif json:
        print(_as_json(claims, verdicts_by_claim))
    else:
        show.show(claims, verdicts_by_claim, terminal.make_console(), with_statements=bool(names))
    return Exit.OK


def _as_json(claims: Sequence[Claim], verdicts_by_claim: Mapping[str, ClaimVerdict]) -> str:
    record = ClaimsRecord(
        verdicts={each.name: verdicts_by_claim[each.name] for each in claims if each.name in verdicts_by_claim}
    )
    return json_text(record.to_json())


@command.command
def run(*names: ClaimNames, flags: RunFlags = RunFlags()) -> int:  # noqa: B008 - frozen
    """Measure the claims' undecided statements, then judge the claims by all measurements so far.

    Claims that share servers form a group. tfb measures each group in a separate run and divides --time among the runs.
    """
    require_clone("claims run")
    if flags.part:
        raise UsageError("--part: claims determine the implementations. Remove the flag, and name fewer claims")
    if flags.resume:
        raise UsageError("--resume: ./tfb claims run always continues with earlier measurements, so remove the flag")
    claims = select_claims(read_claims(), names)
    flags = replace(flags, profile=flags.profile or "claims")
    command_line = ("claims", "run", *names)
    settings = resolve_settings(Invocation(mode="benchmark", test=(), flags=flags, command=command_line))
    if flags.dry_run:
        return _show_plan(claims, settings, flags.time)
    settings = replace(settings, consent=resolve_consent(settings))
    verdicts_by_claim = recorded.read_claims(settings.results).verdicts
    for claim in claims:
        if claim.program and (names or claim.name not in verdicts_by_claim):
            where = {"measured_at": time.time(), "profile": settings.profile.name, "runtime": "local"}
            starts = [_run_program(claim, number) for number in range(1, measure.PROGRAM_STARTS + 1)]
            measure.record_verdicts(
                settings.results, [assessment.judge_by_program(claim, starts, machine.read_machine(), **where)]
            )
    code = _measure_groups(claims, settings, flags.time)
    verdicts_by_claim = recorded.read_claims(settings.results).verdicts
    if flags.json:
        print(_as_json(claims, verdicts_by_claim))
    else:
        show.show(claims, verdicts_by_claim, terminal.make_console(), with_statements=True)
    return code


def _run_program(claim: Claim, number: int) -> Mapping[str, float]:
    """Run a claim's program and return the figures. Announce the start, because the program shows no progress."""
    print(f"{claim.name}: start {number} of {measure.PROGRAM_STARTS}: {' '.join(claim.program)}", file=sys.stderr)
    return measure.run_program(claim)


def _show_plan(claims: Sequence[Claim], settings: Settings, seconds: float | None) -> int:
    """Print the groups of claims that tfb would measure. For each group, print the plan and the expected duration."""
    groups = measure.group_open_claims(claims, recorded.read_claims(settings.results).verdicts)
    for claim in claims:
        if claim.program:
            print(f"{claim.name}: {' '.join(claim.program)}, {measure.PROGRAM_STARTS} starts")
        elif not any(claim.name == each.name for group in groups for each in group):
            print(f"{claim.name}: nothing to measure")
    for group in groups:
        run_settings = measure.measurement_settings(group, settings, seconds and seconds / len(groups))
        print(f"\n{', '.join(run_settings.claims)}:", flush=True)
        dry_run(run_settings)
    return Exit.OK


def _measure_groups(claims: Sequence[Claim], settings: Settings, seconds: float | None) -> Exit:
    """Measure each group in a separate run. Judge all claims before the first run and after every run."""
    deadline = time.monotonic() + (seconds or math.inf)
    groups = measure.group_open_claims(claims, _judge_claims(claims, settings))
    failed = False
    for number, group in enumerate(groups):
        seconds_left = (deadline - time.monotonic()) / (len(groups) - number)
        if seconds_left <= 0:
            break
        run_settings = measure.measurement_settings(group, settings, seconds_left if seconds else None)
        failed |= run_benchmark(run_settings).exit_code is not Exit.OK
        _judge_claims(claims, settings)
    return Exit.FAILED if failed else Exit.OK


def _judge_claims(claims: Sequence[Claim], settings: Settings) -> dict[str, ClaimVerdict]:
    """Judge the claims from all comparable runs in the results folder. Record and return the new verdicts.

    If the comparable runs do not cover all of a claim's cells, keep the earlier verdict on the claim. After a kernel
    update, for example, earlier runs are no longer comparable.
    """
    records, runs_by_implementation = measure.evidence(settings.results) or (None, {})
    verdicts_by_claim, verdicts = recorded.read_claims(settings.results).verdicts, {}
    measured_cells = {(each.implementation, each.test_type, each.load) for each in records.trials} if records else set()
    for claim in claims:
        if claim.name in verdicts_by_claim and not measured_cells.issuperset(cell.key for cell in claim.cells):
            continue
        runs = {run.run_id: run for cell in claim.cells for run in runs_by_implementation.get(cell.implementation, ())}
        if records and runs:
            verdicts[claim.name] = assessment.judge_by_runs(claim, records, [runs[name] for name in sorted(runs)])
    measure.record_verdicts(settings.results, verdicts.values())
    return verdicts
