"""``./tfb compare``: two runs, or a run beside a published round; or what is measured now beside a commit or a copy."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Parameter, Token
from rich.text import Text

from harness.cli.consent import resolve_consent
from harness.cli.flags import RunFlags, Strings, complete_names, complete_runs, results_folder
from harness.cli.output import VerdictOutputs, print_problems
from harness.cli.run import resolve_settings, run_benchmark
from harness.cli.verbs import Invocation
from harness.errors import Exit, UsageError
from harness.host import accounts, ownership
from harness.host.git import Repository
from harness.paths import INSTALLED, PROGRAM, REPOSITORY
from harness.plain_text import json_text, printable
from harness.plan.config import Settings, Twins
from harness.plan.service import FILE
from harness.plugins import Hook
from harness.records import store
from harness.records.record import Record
from harness.records.run_records import RunRecords
from harness.report import comparison as report
from harness.report import terminal
from harness.report.tables import TableRows
from harness.stats.cell_comparison import compare, noise_floor
from harness.stats.published import compare_with_round, read_round
from harness.stats.ranking import rank
from harness.stats.ranking_model import Comparison

COMPARE_SERVICE: Hook[Callable[[Path, str, str | None, RunFlags, float, VerdictOutputs], int]] = Hook(
    name="compare_service", purpose="the comparison of two versions of a service"
)
Of = TypeVar("Of", bound=Record)
BASE, COPY = "@base", "~copy"  # suffixes of the other side's names
ROUND = (
    "Other machines, other generator, other network, often other versions: requests per second of the two are not "
    "divided by each other. × mean: over the geometric mean of those that both have; ranks are among these alone."
)


def percent(_: object, tokens: Sequence[Token]) -> float:
    """``5`` or ``5%``."""
    return float(tokens[0].value.removesuffix("%"))


def command(
    *run: Annotated[
        str, Parameter(help="run A and run B; A may be a results.json of TechEmpower's", completer=complete_runs)
    ],
    base: Annotated[
        str | None, Parameter(help="a commit to measure against, instead of two runs", metavar="REV")
    ] = None,
    copy: Annotated[bool, Parameter(help="measure one against its copy: the noise floor")] = False,
    test: Annotated[Strings, Parameter(help="with --base or --copy: implementations", completer=complete_names)] = (),
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

    Exit code 0 where all is faster, or the same within --fail-over; 1 slower; 4 cannot tell. Beside the first group of
    flags a service takes --profile, --time, --duration, --processes, --seed, --cpuset-cpus, --yes, --no-install,
    --quiet, --json, --results, --results-name and --results-environment.
    """
    folder = Path(service).resolve()
    if base and not test and (service != "." or (folder / FILE).is_file() or base.startswith("dir:")):
        if run or copy or every:
            raise UsageError("of a service --base and --head say what is compared: leave out runs, --copy and --all")
        outputs = VerdictOutputs(json=flags.json, markdown=markdown, history=history, html=html, strict=strict)
        return COMPARE_SERVICE.load()(folder, base, head, flags, fail_over / 100, outputs)
    if head or markdown or history or html or strict or (base and INSTALLED):
        raise UsageError(
            f"a service is compared with --base REV, where its {FILE} is ({PROGRAM} init writes one) or by --service"
        )
    results = results_folder(flags.results)
    if len(run) != (0 if base or copy else 2) or (base and copy):
        raise UsageError("compare takes two runs, or --base REV, or --copy")
    if copy and (len(test) != 1 or test[0] in ("run", "all")):
        raise UsageError("--copy takes one implementation: --test NAME")
    if base or copy:
        asked = Invocation(mode="benchmark", test=test, flags=flags)
        arguments = ("--copy",) if copy else ("--base", str(base))
        chosen = resolve_settings(asked, ("compare", *arguments, *test))
        chosen = replace(chosen, consent=resolve_consent(chosen))
        a, b = _of_copies(chosen) if copy else _of_commits(chosen, str(base))
    elif run[0].endswith(".json") and Path(run[0]).is_file():  # runs are folders
        return beside_round(Path(run[0]), store.find(results, run[1]), as_json=flags.json)
    else:
        a, b = (store.read(store.find(results, name)) for name in run)
    unread = print_problems(dict.fromkeys((*a.problems, *b.problems)))
    code = _show(compare(a, b, fail_over / 100), as_json=flags.json, every=every)
    return Exit.CANNOT_TELL if unread and code == Exit.OK else code  # what was not read may say something else


def _of_commits(chosen: Settings, revision: str) -> tuple[RunRecords, RunRecords]:
    with ownership.make_scratch_folder("base") as scratch:
        git = Repository.of(REPOSITORY)
        for note in git.export(git.commit(revision), scratch, "frameworks"):
            print(f"tfb: {printable(note)}", file=sys.stderr)
        if not (scratch / "frameworks").is_dir():
            raise UsageError(f"--base: commit {revision!r} has no folder frameworks/")
        accounts.share_folder(scratch)  # servers have accounts of their own
        twins = Twins(suffix=BASE, frameworks=(scratch / "frameworks",))
        return split(run_benchmark(replace(chosen, twins=twins)).records, BASE)


def _of_copies(chosen: Settings) -> tuple[RunRecords, RunRecords]:
    """Both sides; what they differ by is kept: later runs on this machine with this profile quote it."""
    (name,) = chosen.selection.test
    records = run_benchmark(replace(chosen, twins=Twins(suffix=COPY, frameworks=chosen.frameworks))).records
    try:
        both, at = (name, name + COPY), records.info.started_at
        floor = noise_floor(records.trials, both, profile=chosen.profile.name, measured_at=at)
    except ValueError as error:
        raise UsageError(f"{error}: give --processes 5 or more") from error
    store.keep_noise_floor(chosen.results, records.info.machine, floor)
    return split(records, COPY)


def split(records: RunRecords, suffix: str) -> tuple[RunRecords, RunRecords]:
    """The records of names with the suffix, under those without it, and of the others."""

    def side(*, other: bool) -> RunRecords:
        def own(of: Sequence[Of], key: str = "implementation") -> list[Of]:
            names = [(one, str(getattr(one, key))) for one in of]
            mine = ((one, name) for one, name in names if name.endswith(suffix) == other)
            return [one.model_copy(update={key: name.removesuffix(suffix)}) for one, name in mine]

        run_id = records.info.run_id + (suffix if other else "")
        known = tuple(own(records.info.implementations, "name"))
        return RunRecords(
            info=records.info.model_copy(update={"run_id": run_id, "implementations": known}),
            trials=own(records.trials),
            processes=own(records.processes),
            verdicts=own(records.verdicts),
        )

    return side(other=True), side(other=False)


def _show(comparison: Comparison, *, as_json: bool, every: bool) -> int:
    verdicts = Counter(report.cell_verdict(cell, comparison.fail_over) for cell in comparison.cells)
    code = Exit.FAILED if "slower" in verdicts else Exit.CANNOT_TELL
    code = Exit.OK if comparison.cells and not set(verdicts) - {"same", "faster"} else code
    if as_json:
        print(json_text(json.dumps({**comparison.model_dump(mode="json"), "verdicts": dict(verdicts)})))
        return code
    console = terminal.make_console()
    first, *others = report.summarize_comparison(comparison)
    console.print(Text(first, style="bold red" if "slower" in verdicts else "bold"))
    for told in others:
        console.print(Text(told))
    terminal.print_table(report.comparison_table(comparison, every=every), console)
    for note in comparison.notes:
        console.print(Text(f"· {note}", "dim"))
    return code


def beside_round(round_: Path, run: Path, *, as_json: bool) -> int:
    """A run beside a round of TechEmpower's; it decides nothing, so the exit code is 0 where they share something."""
    published, records = read_round(round_), store.read(run)
    print_problems(records.problems)
    info = records.info
    held = compare_with_round(published, rank(info, records.trials, records.processes, records.verdicts))
    if not held.rows:
        raise UsageError(f"{round_} and {run} have no implementation in common")
    if as_json:
        print(json_text(json.dumps({"round": published.name, "environment": published.environment, **asdict(held)})))
        return Exit.OK
    machine = f"{info.machine.cpu_model}, {len(info.machine.cpus_usable)} CPUs, {info.runtime} runtime"
    rows = TableRows(held.rows)
    table = rows.table(
        f"Round {published.name} ({published.environment}) beside run {info.run_id} ({machine})",
        rows.column("test", lambda row: row.test_type),
        rows.column("implementation", lambda row: row.implementation),
        rows.column("rank there", lambda row: str(row.round_rank)),
        rows.column("rank here", lambda row: str(row.run_rank)),
        rows.column("× mean there", lambda row: f"{row.round_share:.2f}"),
        rows.column("× mean here", lambda row: f"{row.run_share:.2f}"),
        rows.column("here ÷ there", lambda row: f"{row.run_share / row.round_share:.2f}"),
    )
    console = terminal.make_console()
    terminal.print_table(table, console)
    for found in held.agreements:
        against = "; ".join(f"{fast} before {slow}" for fast, slow in found.reversed_decided)
        told = f", against the round's order and decided here: {against}" if against else ""
        console.print(f"{found.test_type}: {found.same} of {found.pairs} pairs in the same order{told}")
    if held.only_run:
        console.print(f"not in the round: {', '.join(held.only_run)}")
    console.print(Text(f"· {ROUND}", "dim"))
    return Exit.OK
