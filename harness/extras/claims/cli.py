"""``./tfb claims``: what talks claim, measured and judged."""

import argparse
import io
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.cli.arguments import Parser, parser
from harness.cli.parsing import duration
from harness.cli.settings import results_folder
from harness.cli.settings import settings as settings_of
from harness.errors import Exit
from harness.experiment import progress, workflow
from harness.extras.claims import judge, measure, recorded, show
from harness.extras.claims.claim import Claim, chosen, read
from harness.extras.claims.recorded import ClaimsRecord, ClaimVerdict
from harness.host import machine
from harness.plan.config import Settings
from harness.report import put, terminal
from harness.units import format_seconds

SECONDS = 15 * 60.0  # of a claim's run


def arguments() -> Parser:
    """The flags of ``./tfb claims``."""
    p = Parser(
        prog="./tfb claims",
        description="List what talks claim, with the last verdict on each.",
        epilog="also: ./tfb claims run [NAME …] measures and judges, ./tfb claims report prints what was found",
    )
    p.add_argument("--json", action="store_true", help="machine-readable output")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    return p


def main(argv: Sequence[str]) -> int:
    """List the claims, or ``run`` or ``report`` them."""
    if argv and argv[0] in VERBS:
        return VERBS[argv[0]](argv[1:])
    options = arguments().parse_args(list(argv))
    record = recorded.read(results_folder(options.results))
    if options.json:
        print(record.model_dump_json())
    else:
        show.listing([(one, record.verdicts.get(name)) for name, one in read().items()], terminal.console())
    return Exit.OK


def _run(words: Sequence[str]) -> int:
    """Measure each claim in a run of its own, judge it, and record the verdict at once."""
    p = Parser(
        prog="./tfb claims run",
        description="Measure what each claim compares, in rounds on servers side by side; judge, and record the verdict.",
    )
    p.add_argument("names", nargs="*", metavar="NAME", help="claims; default: all")
    p.add_argument("--time", type=duration, default=SECONDS, metavar="TIME", help="of each claim, builds apart; 15m")
    p.add_argument("--resume", action="store_true", help="go on: finish what was interrupted, leave out what is done")
    p.add_argument("--profile", default="claims", help="default claims")
    p.add_argument("--runtime", choices=("auto", "docker", "local"), default="auto")
    p.add_argument("--yes", action="store_true", help="install missing packages without asking")
    p.add_argument("--no-install", action="store_true", help="never install packages")
    p.add_argument("--dry-run", action="store_true", help="print the cells of each claim and how long it takes")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    p.add_argument("--quiet", action="store_true", help="no progress, problems only")
    p.add_argument("--json", action="store_true", help="the verdicts as JSON")
    options = p.parse_args(list(words))
    claims = chosen(read(), options.names)
    if options.dry_run:
        return _show_plan(claims, options.time)
    settings = _settings(options, words)
    code = Exit.OK
    found: list[ClaimVerdict] = []
    for claim in claims:
        if claim.program:
            verdict = _of_program(claim, settings)
        else:
            verdict, ended = _of_run(claim, settings, options)
            code = max(code, ended)
        recorded.keep(settings.results, verdict)
        found.append(verdict)
    if options.json:
        print(ClaimsRecord(verdicts={verdict.claim: verdict for verdict in found}).model_dump_json())
    else:
        show.show(found, terminal.console())
    return code


def _show_plan(claims: Sequence[Claim], seconds: float) -> int:
    for claim in claims:
        if claim.program:
            print(f"{claim.name}: {' '.join(claim.program.command)}, {measure.PROGRAM_STARTS} starts")
            continue
        print(f"{claim.name}: {format_seconds(seconds)}, builds apart")
        for name, kinds in measure.cells_of(claim).items():
            loads = ", ".join(f"{kind} {load.label}" for kind, loads in kinds.items() for load in loads)
            print(f"  {name}: {loads}")
    return Exit.OK


def _settings(options: argparse.Namespace, words: Sequence[str]) -> Settings:
    """The settings of a run with what this command's flags say."""
    flags = ["--profile", options.profile, "--runtime", options.runtime]
    flags += [flag for flag in ("--yes", "--no-install", "--quiet", "--json") if flag in words]
    if options.results:
        flags += ["--results", options.results]
    return settings_of(parser().parse_args(flags), ("claims", "run", *words))


def _progress(settings: Settings) -> progress.Progress:
    return progress.Progress(progress.display(quiet=settings.quiet or settings.json))


def _of_run(claim: Claim, settings: Settings, options: argparse.Namespace) -> tuple[ClaimVerdict, Exit]:
    """The verdict from a run, begun now or earlier, and the run's exit code."""
    asked = measure.settings_of(claim, settings, options.time)
    before = measure.begun(claim, settings) if options.resume else None
    if before and before.info.status in ("complete", "failed"):  # the same would fail again
        return judge.of_run(claim, before), Exit.OK
    if before:
        asked = replace(asked, resume=before.info.run_id, seed=before.info.seed)
    outcome = workflow.benchmark(asked, _progress(settings))
    return judge.of_run(claim, outcome.records), outcome.exit_code


def _of_program(claim: Claim, settings: Settings) -> ClaimVerdict:
    assert claim.program is not None  # noqa: S101 - the caller chose
    started = time.time()
    figures = [measure.figures_of(claim.name, claim.program) for _ in range(measure.PROGRAM_STARTS)]
    facts = {"measured_at": started, "profile": settings.profile.name, "runtime": "local"}
    return judge.of_program(claim, figures, machine.facts(), **facts)


def _report(words: Sequence[str]) -> int:
    """Print the recorded verdicts."""
    p = Parser(prog="./tfb claims report", description="Print the recorded verdicts.")
    p.add_argument("names", nargs="*", metavar="NAME", help="claims; default: all")
    p.add_argument(
        "--format", choices=("text", "markdown", "table", "json"), help="table: one of Markdown, for a README"
    )
    p.add_argument("--output", metavar="FILE", help="write there instead of stdout; Markdown unless --format says")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    options = p.parse_args(list(words))
    record = recorded.read(results_folder(options.results)).verdicts
    claims = chosen(read(), options.names)
    verdicts = [record[claim.name] for claim in claims if claim.name in record]
    missing = [claim for claim in claims if claim.name not in record]
    out = io.StringIO() if options.output else sys.stdout
    match options.format or ("markdown" if options.output else "text"):
        case "markdown":
            show.page(verdicts, missing, out)
        case "table":
            out.write(show.table(verdicts, missing))
        case "json":
            out.write(ClaimsRecord(verdicts={v.claim: v for v in verdicts}).model_dump_json(indent=1) + "\n")
        case _:
            show.show(verdicts, terminal.console(out))
    if isinstance(out, io.StringIO):
        put(Path(options.output), out.getvalue())
    return Exit.OK


VERBS = {"run": _run, "report": _report}
