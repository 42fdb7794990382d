"""``./tfb claims``: what talks claim, measured and judged."""

import argparse
import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from harness.claims.claim import Claim, Claims, read
from harness.claims.planning import Piece
from harness.cli.arguments import Parser, parser
from harness.cli.parsing import duration
from harness.cli.report import put
from harness.cli.settings import results_folder
from harness.cli.settings import settings as settings_of
from harness.errors import Exit
from harness.plan.config import Settings
from harness.records import claims as recorded
from harness.records.claims import ClaimsRecord, ClaimVerdict
from harness.report import claims as report
from harness.report import terminal
from harness.run import claims as running
from harness.run import progress
from harness.run.running import Dependencies
from harness.units import format_seconds

PROFILE = "claims"
PIECE_SECONDS = 18 * 60.0


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
    words = list(argv)
    if words and words[0] in VERBS:
        return VERBS[words[0]](words[1:])
    options = arguments().parse_args(words)
    known = read()
    record = recorded.read(results_folder(options.results))
    if options.json:
        print(record.model_dump_json())
        return _complain(known, quiet=True)
    rows = [(c.name, c.title, c.talk, record.verdicts.get(c.name)) for c in known.claims.values()]
    report.listing(rows, terminal.console())
    return _complain(known)


def _complain(known: Claims, *, quiet: bool = False) -> int:
    """Name the files that cannot be read."""
    for problem in known.problems:
        print(f"tfb: {problem}", file=sys.stderr)
    if not quiet:
        print("\nmeasure: ./tfb claims run [NAME …]   print: ./tfb claims report", file=sys.stderr)
    return Exit.FAILED if known.problems else Exit.OK


# ---- run -------------------------------------------------------------------------------------------------------------


def _run(words: Sequence[str]) -> int:
    p = Parser(
        prog="./tfb claims run",
        description="Measure only what the claims need, in turns or in blocks of fresh processes, until it is settled "
        "or its time is over; judge, and record the verdicts. What takes long is cut into runs of --time each.",
    )
    p.add_argument("names", nargs="*", metavar="NAME", help="claims; default: all")
    p.add_argument("--time", type=duration, default=PIECE_SECONDS, metavar="TIME", help="of a run, builds apart; 18m")
    p.add_argument("--resume", action="store_true", help="go on: finish what was interrupted, leave out what is done")
    p.add_argument("--profile", default=PROFILE, help="default claims, short windows; standard: figures to publish")
    p.add_argument("--runtime", choices=("auto", "docker", "local"), default="auto")
    p.add_argument("--yes", action="store_true", help="install missing packages without asking")
    p.add_argument("--no-install", action="store_true", help="never install packages")
    p.add_argument("--dry-run", action="store_true", help="print the runs, their cells and how long they take")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    p.add_argument("--quiet", action="store_true", help="no progress, problems only")
    p.add_argument("--json", action="store_true", help="the verdicts as JSON")
    options = p.parse_args(list(words))
    known = read()
    chosen = known.chosen(tuple(options.names))
    settings = _settings(options, words)
    pieces = running.plan(chosen, settings, options.time)
    programs = tuple(claim for claim in chosen if claim.program)
    if options.dry_run:
        _show_plan(pieces, programs, terminal.console())
        return Exit.OK
    code = Exit.OK
    found: list[ClaimVerdict] = []
    done = recorded.read(settings.results).verdicts
    for claim in programs:
        if not (options.resume and claim.name in done):
            found += _keep(settings, (running.run_program(claim, settings, _progress(settings), Dependencies()),))
    for number, piece in enumerate(pieces, 1):
        current = replace(settings, resume=None)
        if options.resume and (before := running.earlier(settings, piece)):
            info = before.info
            if running.ended(before, settings):
                found += _keep(settings, running.verdicts(piece, before))
                continue
            current = replace(settings, resume=info.run_id, seed=info.seed)
        names = ", ".join(claim.name for claim in piece.claims)
        _say(settings, f"run {number} of {len(pieces)}, about {format_seconds(piece.seconds)} or more: {names}")
        outcome = running.measure(piece, current, _progress(settings), options.time)
        code = max(code, outcome.exit_code)
        verdicts = running.verdicts(piece, outcome.records)
        _write_for_site(settings, outcome.records.info.run_id, verdicts)
        found += _keep(settings, verdicts)
    if options.json:
        print(ClaimsRecord(verdicts={verdict.claim: verdict for verdict in found}).model_dump_json())
    else:
        report.show(found, terminal.console())
    return max(code, _complain(known, quiet=True))


def _settings(options: argparse.Namespace, words: Sequence[str]) -> Settings:
    """The settings of a run with what this command's flags say."""
    flags = ["--profile", options.profile, "--runtime", options.runtime]
    flags += [flag for flag in ("--yes", "--no-install", "--quiet", "--json") if flag in words]
    if options.results:
        flags += ["--results", options.results]
    chosen = settings_of(parser().parse_args(flags), ("claims", "run", *words))
    return replace(chosen, profile=chosen.profile.model_copy(update={"latency": None}))


def _progress(settings: Settings) -> progress.Progress:
    return progress.Progress(progress.display(quiet=settings.quiet or settings.json))


def _say(settings: Settings, text: str) -> None:
    if not (settings.quiet or settings.json):
        print(f"tfb: {text}", file=sys.stderr)


def _keep(settings: Settings, verdicts: tuple[ClaimVerdict, ...]) -> tuple[ClaimVerdict, ...]:
    """Record verdicts at once: a later run's failure loses none."""
    recorded.keep(settings.results, verdicts)
    return verdicts


def _write_for_site(settings: Settings, run_id: str, verdicts: Sequence[ClaimVerdict]) -> None:
    text = running.for_the_site(verdicts, lambda claim, index: report.measured(claim.statements[index]))
    put(settings.results / run_id / running.SITE_FILE, text + "\n")


def _show_plan(pieces: Sequence[Piece], programs: Sequence[Claim], console: Console) -> None:
    for claim in programs:
        assert claim.program is not None  # noqa: S101 - chosen by it
        console.print(
            f"{claim.name}: {' '.join(claim.program.command)}, {running.PROGRAM_STARTS} starts", highlight=False
        )
    for number, piece in enumerate(pieces, 1):
        names = ", ".join(claim.name for claim in piece.claims)
        console.print(
            f"run {number}, about {format_seconds(piece.seconds)} at least, builds apart: {names}", highlight=False
        )
        for name, kinds in piece.cells.items():
            cells = "; ".join(f"{kind} {' '.join(level.label for level in levels)}" for kind, levels in kinds.items())
            console.print(f"  {name}: {cells}", highlight=False)


# ---- report ----------------------------------------------------------------------------------------------------------


def _report(words: Sequence[str]) -> int:
    p = Parser(prog="./tfb claims report", description="Print the recorded verdicts.")
    p.add_argument("names", nargs="*", metavar="NAME", help="claims; default: all")
    p.add_argument(
        "--format", choices=("text", "markdown", "table", "json"), help="table: one of Markdown, for a README"
    )
    p.add_argument("--output", metavar="FILE", help="write there instead of stdout; Markdown unless --format says")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    options = p.parse_args(list(words))
    known = read()
    chosen = known.chosen(tuple(options.names))
    record = recorded.read(results_folder(options.results))
    verdicts = [record.verdicts[claim.name] for claim in chosen if claim.name in record.verdicts]
    missing = [(claim.name, claim.title, claim.talk) for claim in chosen if claim.name not in record.verdicts]
    out = io.StringIO()
    match options.format or ("markdown" if options.output else "text"):
        case "markdown":
            report.page(verdicts, missing, out)
        case "table":
            out.write(report.table(verdicts, missing))
        case "json":
            out.write(ClaimsRecord(verdicts={v.claim: v for v in verdicts}).model_dump_json(indent=1) + "\n")
        case _ if not options.output:
            report.show(verdicts, terminal.console())
        case _:
            report.show(verdicts, terminal.console(out))
    if options.output:
        put(Path(options.output), out.getvalue())
    else:
        sys.stdout.write(out.getvalue())
    return _complain(known, quiet=True)


VERBS = {"run": _run, "report": _report}
