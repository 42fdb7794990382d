"""``./tfb claims``: lists, measures and judges claims of conference talks."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from harness.cli.consent import resolve_consent
from harness.cli.flags import RunFlags, results_folder
from harness.cli.output import write_file
from harness.cli.run import run_benchmark
from harness.cli.settings import resolve_settings
from harness.cli.verbs import Invocation
from harness.errors import Exit, UsageError
from harness.experiment.dry_run import dry_run
from harness.extras.claims import assessment, measure, show
from harness.extras.claims.claim import Claim, chosen, read
from harness.host import machine
from harness.plain_text import json_text
from harness.plan.run_settings import Settings
from harness.records import claims as recorded
from harness.records.claims import ClaimsRecord, ClaimVerdict
from harness.report import terminal

command = App(name="claims", help="Claims of talks: list them with the latest verdicts, measure and judge them.")
ClaimNames = Annotated[str, Parameter(help="claims; default: all")]


@command.default
def listing(
    *names: ClaimNames,
    json: Annotated[bool, Parameter(help="machine-readable output")] = False,
    output: Annotated[Path | None, Parameter(help="write Markdown to this file, in the form of docs/claims.md")] = None,
    results: Annotated[str | None, Parameter(help="another results folder", metavar="DIR")] = None,
) -> int:
    """List claims with the latest verdicts; show every statement of the claims that are named."""
    claims, known = chosen(read(), names), recorded.latest_verdicts(results_folder(results))
    if output:
        write_file(output, show.page(claims, known))
    elif json:
        print(_recorded(claims, known))
    else:
        show.show(claims, known, terminal.make_console(), whole=bool(names))
    return Exit.OK


def _recorded(claims: Sequence[Claim], known: Mapping[str, ClaimVerdict]) -> str:
    record = ClaimsRecord(verdicts={each.name: known[each.name] for each in claims if each.name in known})
    return json_text(record.to_json())


@command.command
def run(*names: ClaimNames, flags: RunFlags = RunFlags()) -> int:  # noqa: B008 - frozen
    """Measure the undecided statements of these claims, and judge the claims. Earlier measurements count.

    Claims that share servers form a group, and each group is measured in a run. --time is divided among the groups.
    """
    if flags.resume:
        raise UsageError("--resume: ./tfb claims run always continues with earlier measurements. Remove the flag")
    claims = chosen(read(), names)
    flags = replace(flags, profile=flags.profile or "claims")
    command_line = ("claims", "run", *names)
    given = resolve_settings(Invocation(mode="benchmark", test=(), flags=flags, command=command_line))
    if flags.dry_run:
        return _show_plan(claims, given, flags.time)
    given = replace(given, consent=resolve_consent(given))
    known = recorded.read_claims(given.results).verdicts
    for claim in claims:
        if claim.program and (names or claim.name not in known):
            where = {"measured_at": time.time(), "profile": given.profile.name, "runtime": "local"}
            starts = [measure.run_program(claim) for _ in range(measure.PROGRAM_STARTS)]
            measure.keep(given.results, [assessment.judge_by_program(claim, starts, machine.read_machine(), **where)])
    code = _measured(claims, given, flags.time)
    known = recorded.read_claims(given.results).verdicts
    if flags.json:
        print(_recorded(claims, known))
    else:
        show.show(claims, known, terminal.make_console(), whole=True)
    return code


def _show_plan(claims: Sequence[Claim], given: Settings, seconds: float | None) -> int:
    """Print the groups of claims that would be measured, with the plan and the length of each run."""
    groups = measure.group_open_claims(claims, recorded.read_claims(given.results).verdicts)
    for claim in claims:
        if claim.program:
            print(f"{claim.name}: {' '.join(claim.program)}, {measure.PROGRAM_STARTS} starts")
        elif not any(claim.name == each.name for group in groups for each in group):
            print(f"{claim.name}: nothing to measure")
    for group in groups:
        together = measure.measurement_settings(group, given, seconds and seconds / len(groups))
        print(f"\n{', '.join(together.claims)}:", flush=True)
        dry_run(together)
    return Exit.OK


def _measured(claims: Sequence[Claim], given: Settings, seconds: float | None) -> Exit:
    """Measure each group in a run. Judge all claims before the first run and after every run."""
    until = time.monotonic() + (seconds or math.inf)
    groups = measure.group_open_claims(claims, _judged(claims, given))
    code = Exit.OK
    for number, group in enumerate(groups):
        room = (until - time.monotonic()) / (len(groups) - number)
        if room <= 0:
            break
        together = measure.measurement_settings(group, given, room if seconds else None)
        code = max(code, run_benchmark(together).exit_code)
        _judged(claims, given)
    return code


def _judged(claims: Sequence[Claim], given: Settings) -> dict[str, ClaimVerdict]:
    """Judge the claims by all usable runs in the results folder, record the verdicts and return them.

    If the usable runs lack a cell of a claim, for example after a kernel update, an earlier verdict on the claim
    remains.
    """
    records, behind = measure.evidence(given.results) or (None, {})
    known, verdicts = recorded.read_claims(given.results).verdicts, {}
    there = {(each.implementation, each.test_type, each.load) for each in records.trials} if records else set()
    for claim in claims:
        if claim.name in known and not there.issuperset(cell.key for cell in claim.cells):
            continue
        runs = {run.run_id: run for cell in claim.cells for run in behind.get(cell.implementation, ())}
        if records and runs:
            verdicts[claim.name] = assessment.judge_by_runs(claim, records, [runs[name] for name in sorted(runs)])
    measure.keep(given.results, verdicts.values())
    return verdicts
