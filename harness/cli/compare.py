"""``./tfb compare``: two runs; or two commits of this repository, or implementations and their copies, side by side."""

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from harness.cli import compare_round
from harness.cli.arguments import Parser, parser
from harness.cli.settings import results_folder, settings
from harness.errors import Exit, UsageError
from harness.experiment import progress, workflow
from harness.host import process
from harness.paths import REPOSITORY
from harness.plan.config import Settings, Twins
from harness.records import calibration, store
from harness.records.models import RunRecords
from harness.report import comparison as report
from harness.report import terminal
from harness.stats import noise
from harness.stats.compare import compare
from harness.stats.model import Comparison

BASE, COPY = "@base", "~copy"  # suffixes of the other side's names
SIDE_BY_SIDE = {"--base", "--copy"}


def arguments() -> Parser:
    """The flags of a comparison of two runs."""
    p = Parser(
        prog="./tfb compare",
        description="Compare run B with run A, cell by cell. With --base REV instead: measure that commit's "
        "implementations and the working tree's side by side, with --copy each beside a copy of itself: the noise "
        "floor of this machine (both take the flags of a run: --test, --profile, …). With a results.json of "
        "TechEmpower's as A: order and ratios beside that round.",
    )
    p.add_argument("run_a")
    p.add_argument("run_b")
    _add_common(p)
    p.add_argument("--json", action="store_true", help="machine-readable output")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    return p


def main(argv: Sequence[str]) -> int:
    """Compare; exit code 0 only where every cell is faster, or the same within ``--fail-over``."""
    words = list(argv)
    if SIDE_BY_SIDE & {word.partition("=")[0] for word in words}:
        return _side_by_side(words)
    if compare_round.is_round(words):
        return compare_round.main(words)
    options = arguments().parse_args(words)
    results = results_folder(options.results)
    a, b = (store.read(store.find(results, name)) for name in (options.run_a, options.run_b))
    return _show(compare(a, b, options.fail_over / 100), as_json=options.json, every=options.all)


def _add_common(p: Parser) -> None:
    p.add_argument("--base", metavar="REV", help="a commit to measure against, instead of two runs")
    p.add_argument("--copy", action="store_true", help="measure against copies, instead of two runs")
    p.add_argument(
        "--fail-over", type=float, default=5.0, metavar="PERCENT", help="differences up to this are the same; default 5"
    )
    p.add_argument("--all", action="store_true", help="also every cell that is the same")


def _side_by_side(words: Sequence[str]) -> int:
    p = parser()
    p.prog = "./tfb compare"
    _add_common(p)
    options = p.parse_args(list(words))
    chosen = settings(options, ("compare", *words))
    if options.copy:
        base, head = _measured(replace(chosen, twins=Twins(suffix=COPY, frameworks=chosen.frameworks)))
        _keep_floor(chosen, base, head)
    else:
        with checkout(options.base) as tree:
            base, head = _measured(replace(chosen, twins=Twins(suffix=BASE, frameworks=(tree / "frameworks",))))
    found = compare(base, head, options.fail_over / 100, interleaved=True)
    return _show(found, as_json=options.json, every=options.all)


def _measured(chosen: Settings) -> tuple[RunRecords, RunRecords]:
    assert chosen.twins is not None  # noqa: S101 - the caller's
    shown = progress.Progress(progress.display(quiet=chosen.quiet or chosen.json))
    return split(workflow.benchmark(chosen, shown).records, chosen.twins.suffix)


def _keep_floor(chosen: Settings, copy: RunRecords, own: RunRecords) -> None:
    """Later runs on this machine with this profile quote it."""
    floor = noise.measured(copy, own, profile=chosen.profile.name, measured_at=own.info.started_at)
    calibration.keep(chosen.results, own.info.machine, floor)


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A worktree of a commit, removed afterwards."""
    known = process.run(["git", "-C", str(REPOSITORY), "rev-parse", "--verify", f"{revision}^{{commit}}"], seconds=10)
    if known.status != 0:
        raise UsageError(f"--base: {revision!r} is no commit of this repository")
    commit = known.stdout.strip().splitlines()[-1]
    with tempfile.TemporaryDirectory(prefix="tfb-base-") as scratch:
        tree = Path(scratch) / "tree"
        git = ["git", "-C", str(REPOSITORY), "worktree"]
        process.run([*git, "add", "--detach", str(tree), commit], seconds=120)
        if not (tree / "frameworks").is_dir():
            raise UsageError(f"--base: commit {commit[:12]} holds no frameworks/ folder")
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=False, capture_output=True, timeout=60)


def split(records: RunRecords, suffix: str) -> tuple[RunRecords, RunRecords]:
    """The records of names with the suffix, under those without it, and of the others."""

    def side(*, other: bool) -> RunRecords:
        def mine(name: str) -> bool:
            return name.endswith(suffix) == other

        def own(name: str) -> dict[str, str]:
            return {"implementation": name.removesuffix(suffix)}

        known = [i for i in records.info.implementations if mine(i.name)]
        info = records.info.model_copy(
            update={
                "run_id": records.info.run_id + (suffix if other else ""),
                "implementations": tuple(i.model_copy(update={"name": i.name.removesuffix(suffix)}) for i in known),
            }
        )
        return RunRecords(
            info=info,
            trials=[t.model_copy(update=own(t.implementation)) for t in records.trials if mine(t.implementation)],
            processes=[p.model_copy(update=own(p.implementation)) for p in records.processes if mine(p.implementation)],
            verdicts=[v.model_copy(update=own(v.implementation)) for v in records.verdicts if mine(v.implementation)],
        )

    return side(other=True), side(other=False)


def _show(comparison: Comparison, *, as_json: bool, every: bool) -> int:
    words = Counter(report.verdict(cell, comparison.fail_over) for cell in comparison.cells)
    failed = set(words) - {"same", "faster"}
    if as_json:
        print(json.dumps({**comparison.model_dump(mode="json"), "verdicts": dict(words)}))
        return Exit.FAILED if failed else Exit.OK
    console = terminal.console()
    console.print(Text(report.first_line(comparison), style="bold red" if "slower" in words else "bold"))
    for line in report.sentences(comparison):
        console.print(line)
    terminal.print_table(report.table(comparison, every=every), console)
    for note in comparison.notes:
        console.print(Text(f"· {note}", "dim"))
    return Exit.FAILED if failed or not comparison.cells else Exit.OK
