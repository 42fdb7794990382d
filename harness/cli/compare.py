"""``./tfb compare``: two runs; or two commits of this repository, or implementations and their copies, side by side."""

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token
from rich.text import Text

from harness import extras
from harness.cli import compare_round, values
from harness.cli.asked import Asked
from harness.cli.consent import settled
from harness.cli.flags import RunFlags, Words
from harness.cli.settings import results_folder, settings
from harness.errors import Exit, UsageError
from harness.host import interruption, process
from harness.paths import REPOSITORY
from harness.plan.config import Settings, Twins
from harness.plan.service import FILE
from harness.records import store
from harness.records.models import RunRecords
from harness.report import comparison as report
from harness.report import terminal
from harness.stats.compare import compare, noise_floor
from harness.stats.model import Comparison


def percent(_: object, tokens: Sequence[Token]) -> float:
    """``5`` or ``5%``."""
    return float(tokens[0].value.removesuffix("%"))


BASE, COPY = "@base", "~copy"  # suffixes of the other side's names


def command(
    *run: Annotated[
        str, Parameter(help="run A and run B; A may be a results.json of TechEmpower's", completer=values.runs)
    ],
    base: Annotated[
        str | None, Parameter(help="a commit to measure against, instead of two runs", metavar="REV")
    ] = None,
    copy: Annotated[bool, Parameter(help="measure one against its copy: the noise floor")] = False,
    test: Annotated[Words, Parameter(help="with --base or --copy: implementations", completer=values.names)] = (),
    fail_over: Annotated[
        float,
        Parameter(
            help="differences up to this are the same; default 5 %", metavar="PERCENT", converter=percent, n_tokens=1
        ),
    ] = 5.0,
    head: Annotated[
        str | None,
        Parameter(help="of a service: what to compare with base; default: the working tree", metavar="REV"),
    ] = None,
    service: Annotated[
        str, Parameter(help="folder of a service with a tfb.toml; default: this one", metavar="DIR")
    ] = ".",
    strict: Annotated[bool, Parameter(help="of a service: cannot tell is exit code 1, not 4")] = False,
    markdown: Annotated[bool, Parameter(help="of a service: the verdict for a pull request")] = False,
    history: Annotated[
        str | None, Parameter(help="of a service: add the verdict to this file, and show the latest", metavar="FILE")
    ] = None,
    html: Annotated[str | None, Parameter(help="of a service: write a page that works offline", metavar="FILE")] = None,
    every: Annotated[bool, Parameter(name="--all", help="also every cell that is the same")] = False,
    flags: RunFlags = RunFlags(),  # noqa: B008 - frozen
) -> int:
    """Compare run B with run A; a service (tfb.toml) with another version of itself; or implementations with a commit.

    Exit code 0 where all is faster, or the same within --fail-over; 1 slower; 4 cannot tell.
    """
    folder = Path(service).resolve()
    if base and not test and (service != "." or (folder / FILE).is_file()):
        gate = import_module(extras.GATE)
        outputs = gate.Outputs(json=flags.json, markdown=markdown, history=history, html=html, strict=strict)
        code: int = gate.compare(folder, base, head, flags, fail_over / 100, outputs)
        return code
    results = results_folder(flags.results)
    if copy and (len(test) != 1 or test[0] in ("run", "all")):
        raise UsageError("--copy takes one implementation: --test NAME")
    if base or copy:
        asked = Asked(mode="benchmark", test=test or ("run",), flags=flags)
        words = ("--copy",) if copy else ("--base", str(base))
        chosen = settled(settings(asked, ("compare", *words, *test)))
        a, b = _of_copies(chosen) if copy else _of_commits(chosen, str(base))
    elif len(run) != 2:
        raise UsageError("compare takes two runs, or --base REV, or --copy")
    elif compare_round.is_round(run[0]):
        return compare_round.compare(Path(run[0]), store.find(results, run[1]), as_json=flags.json)
    else:
        a, b = (store.read(store.find(results, name)) for name in run)
    found = compare(a, b, fail_over / 100)
    return _show(found, as_json=flags.json, every=every)


def _of_commits(chosen: Settings, revision: str) -> tuple[RunRecords, RunRecords]:
    with checkout(revision) as tree:
        twins = Twins(suffix=BASE, frameworks=(tree / "frameworks",))
        return split(_measured(replace(chosen, twins=twins)), BASE)


def _of_copies(chosen: Settings) -> tuple[RunRecords, RunRecords]:
    """Both sides; what they differ by is kept: later runs on this machine with this profile quote it."""
    (name,) = chosen.selection.test
    records = _measured(replace(chosen, twins=Twins(suffix=COPY, frameworks=chosen.frameworks)))
    try:
        names = (name, name + COPY)
        measured_at = records.info.started_at
        floor = noise_floor(records.trials, names, profile=chosen.profile.name, measured_at=measured_at)
    except ValueError as error:
        raise UsageError(f"{error}: give --processes 5 or more") from error
    store.keep_noise_floor(chosen.results, records.info.machine, floor)
    return split(records, COPY)


def _measured(chosen: Settings) -> RunRecords:
    from harness.experiment import progress, workflow

    with interruption.deferred():
        shown = progress.Progress(progress.display(quiet=chosen.quiet or chosen.json))
        return workflow.benchmark(chosen, shown).records


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
    code = Exit.FAILED if "slower" in words else Exit.CANNOT_TELL
    code = Exit.OK if comparison.cells and not set(words) - {"same", "faster"} else code
    if as_json:
        print(json.dumps({**comparison.model_dump(mode="json"), "verdicts": dict(words)}))
        return code
    console = terminal.console()
    console.print(Text(report.first_line(comparison), style="bold red" if "slower" in words else "bold"))
    if words["cannot tell"]:
        console.print(Text(report.cannot_tell(comparison)))
    terminal.print_table(report.table(comparison, every=every), console)
    for note in comparison.notes:
        console.print(Text(f"· {note}", "dim"))
    return code
