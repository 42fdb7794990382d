"""``./tfb compare``: two runs, or two commits of this repository measured in turns."""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.table import Table
from rich.text import Text

from harness.cli import compare_round
from harness.cli.arguments import Parser, parser
from harness.cli.settings import results_folder, settings
from harness.errors import Exit, UsageError
from harness.host import process
from harness.paths import REPOSITORY
from harness.plan.config import Twins
from harness.records import store
from harness.records.models import RunRecords
from harness.report import terminal
from harness.report.cells import ratio
from harness.report.wording import counted
from harness.run import progress, workflow
from harness.stats.compare import compare
from harness.stats.model import CellComparison, Comparison, Effect

SUFFIX = "@base"
STYLES = {"faster": "green", "slower": "red", "tie": "", "missing": "dim"}


def arguments() -> Parser:
    """The flags of a comparison of two runs."""
    p = Parser(
        prog="./tfb compare",
        description="Compare run B with run A, cell by cell. With --base REV instead: measure that commit's "
        "implementations and the working tree's in the same blocks (takes the flags of a run: --test, --profile, …). "
        "With a results.json of TechEmpower's as A: order and ratios beside that round.",
    )
    p.add_argument("run_a")
    p.add_argument("run_b")
    p.add_argument("--base", metavar="REV", help="a commit to measure against, instead of two runs")
    _add_common(p)
    p.add_argument("--json", action="store_true", help="machine-readable output")
    p.add_argument("--results", metavar="DIR", help="another results folder")
    return p


def main(argv: Sequence[str]) -> int:
    """Compare; exit code 1 on a regression beyond ``--fail-over``."""
    words = list(argv)
    if "--base" in words:
        return _commits(words)
    if compare_round.is_round(words):
        return compare_round.main(words)
    options = arguments().parse_args(words)
    results = results_folder(options.results)
    sides = [store.read(store.find(results, name)) for name in (options.run_a, options.run_b)]
    return _show(compare(sides[0], sides[1], options.fail_over / 100), as_json=options.json, every=options.all)


def _add_common(p: Parser) -> None:
    p.add_argument(
        "--fail-over", type=float, default=5.0, metavar="PERCENT", help="regressions above this fail; default 5"
    )
    p.add_argument("--all", action="store_true", help="also every cell without a difference")


def _commits(words: Sequence[str]) -> int:
    p = parser()
    p.prog = "./tfb compare"
    p.add_argument("--base", required=True, metavar="REV")
    _add_common(p)
    options = p.parse_args(list(words))
    chosen = settings(options, ("compare", *words))
    with checkout(options.base) as tree:
        chosen = replace(chosen, twins=Twins(suffix=SUFFIX, frameworks=(tree / "frameworks",)))
        outcome = workflow.benchmark(chosen, progress.Progress(progress.display(quiet=chosen.quiet or chosen.json)))
    base, head = split(outcome.records)
    return _show(
        compare(base, head, options.fail_over / 100, interleaved=True), as_json=options.json, every=options.all
    )


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


def split(records: RunRecords) -> tuple[RunRecords, RunRecords]:
    """The base's records under the implementations' own names, and the working tree's."""

    def is_base(name: str) -> bool:
        return name.endswith(SUFFIX)

    def renamed(side: RunRecords) -> RunRecords:
        def own(name: str) -> dict[str, str]:
            return {"implementation": name.removesuffix(SUFFIX)}

        return RunRecords(
            info=side.info.model_copy(
                update={
                    "run_id": f"{side.info.run_id}{SUFFIX}",
                    "implementations": tuple(
                        i.model_copy(update={"name": i.name.removesuffix(SUFFIX)}) for i in side.info.implementations
                    ),
                }
            ),
            samples=[s.model_copy(update=own(s.implementation)) for s in side.samples],
            replicates=[r.model_copy(update=own(r.implementation)) for r in side.replicates],
            verdicts=[v.model_copy(update=own(v.implementation)) for v in side.verdicts],
        )

    def part(*, base: bool) -> RunRecords:
        return RunRecords(
            info=records.info.model_copy(
                update={"implementations": tuple(i for i in records.info.implementations if is_base(i.name) == base)}
            ),
            samples=[s for s in records.samples if is_base(s.implementation) == base],
            replicates=[r for r in records.replicates if is_base(r.implementation) == base],
            verdicts=[v for v in records.verdicts if is_base(v.implementation) == base],
        )

    return renamed(part(base=True)), part(base=False)


def _show(comparison: Comparison, *, as_json: bool, every: bool) -> int:
    regressions = [c for c in comparison.cells if c.throughput.regression or c.cpu_per_request.regression]
    if as_json:
        print(json.dumps(comparison.model_dump(mode="json")))
        return Exit.FAILED if regressions else Exit.OK
    console = terminal.console()
    ties = [] if every else [cell for cell in comparison.cells if _verdicts(cell) == {"tie"}]
    shown = [cell for cell in comparison.cells if cell not in ties]
    console.print(Text(f"{comparison.run_b} over {comparison.run_a}", style="italic"))
    if shown:
        console.print(_table(shown))
    for line in _folded(ties):
        console.print(line, style="dim")
    for note in comparison.notes:
        console.print(Text(f"· {note}", "dim"))
    over = f"{comparison.fail_over:.0%}"
    found = counted(len(regressions), "regression") if regressions else "no regression"
    console.print(f"{found} beyond {over}", style="bold red" if regressions else "bold")
    return Exit.FAILED if regressions else Exit.OK


def _verdicts(cell: CellComparison) -> set[str]:
    return {cell.throughput.verdict, cell.cpu_per_request.verdict}


def _table(cells: Sequence[CellComparison]) -> Table:
    """As they come: regressions first, then what differs, then what is missing."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for header in ("test", "level", "implementation", "throughput", "", "CPU per request", "", ""):
        table.add_column(header, overflow="fold")
    for cell in cells:
        effects = [text for effect in (cell.throughput, cell.cpu_per_request) for text in _effect(effect)]
        table.add_row(cell.test_type, cell.level.label, cell.implementation, *effects, cell.reason)
    return table


def _folded(ties: Sequence[CellComparison]) -> list[str]:
    """The cells without a difference: an implementation a line."""
    if not ties:
        return []
    by_name: dict[str, list[str]] = {}
    for cell in ties:
        by_name.setdefault(cell.implementation, []).append(f"{cell.test_type} {cell.level.label}")
    lines = [f"  {name}: {', '.join(cells)}" for name, cells in sorted(by_name.items())]
    return [f"no difference in {counted(len(ties), 'cell')} (--all shows them):", *lines]


def _effect(effect: Effect) -> tuple[Text, Text]:
    style = STYLES[effect.verdict]
    return Text(ratio(effect.ratio)), Text(effect.verdict + (" (regression)" if effect.regression else ""), style)
