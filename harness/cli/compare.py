"""``./tfb compare``: compares two runs, a run and a round published by TechEmpower, or two versions measured now."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Parameter, Token
from rich.text import Text

from harness.cli.consent import resolve_consent
from harness.cli.flags import RunFlags, Strings, complete_names, complete_runs, results_folder
from harness.cli.output import VerdictOutputs, print_problems
from harness.cli.run import run_benchmark
from harness.cli.settings import resolve_settings
from harness.cli.verbs import Invocation
from harness.errors import Exit, UsageError
from harness.host import accounts, ownership
from harness.host.git import Repository
from harness.paths import INSTALLED, PROGRAM, REPOSITORY
from harness.plain_text import json_text, printable
from harness.plan.run_settings import ControlCopy, Settings
from harness.plan.service import FILE
from harness.plugins import Hook
from harness.records import store
from harness.records.record import Record
from harness.records.run_folders import find_run
from harness.records.run_records import RunRecords
from harness.report import comparison as report
from harness.report import terminal
from harness.report.tables import TableRows
from harness.stats import published
from harness.stats.cell_comparison import compare, noise_floor
from harness.stats.published import read_round
from harness.stats.ranking import rank
from harness.stats.ranking_model import Comparison

COMPARE_SERVICE: Hook[Callable[[Path, str, str | None, RunFlags, float, VerdictOutputs], int]] = Hook(
    name="compare_service", purpose="the comparison of two versions of a service"
)
RecordType = TypeVar("RecordType", bound=Record)
BASE, COPY = "@base", "~copy"  # suffixes of implementation names on the second side
ROUND_NOTE = (
    "The published round used other machines, load generators, networks and often other versions, so requests per "
    "second are not compared. × mean: relative to the geometric mean of the implementations that both have; ranks "
    "count only these implementations."
)


def parse_percent(_: object, tokens: Sequence[Token]) -> float:
    """Return the number in a value such as ``5`` or ``5%``."""
    return float(tokens[0].value.removesuffix("%"))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ComparisonFlags:
    """Flags that select the two sides and the threshold."""

    base: Annotated[
        str | None, Parameter(help="measure this commit and the working tree now, instead of two runs", metavar="REV")
    ] = None
    copy: Annotated[
        bool, Parameter(help="measure an implementation and a copy of it, to learn the noise of this machine")
    ] = False
    test: Annotated[
        Strings, Parameter(help="with --base or --copy: implementations to measure", completer=complete_names)
    ] = ()
    threshold: Annotated[
        float,
        Parameter(
            help="treat differences up to PERCENT as unchanged; default: 5",
            metavar="PERCENT",
            converter=parse_percent,
            n_tokens=1,
        ),
    ] = 5.0
    every: Annotated[bool, Parameter(name="--all", help="also list the cells that are unchanged")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServiceFlags:
    """Flags for the comparison of two versions of a service."""

    service: Annotated[
        str, Parameter(help="folder of the service, with a tfb.toml; default: the current folder", metavar="DIR")
    ] = "."
    head: Annotated[
        str | None,
        Parameter(help="service: version to compare with base; default: the working tree", metavar="REV"),
    ] = None
    strict: Annotated[bool, Parameter(help='service: exit with 1 instead of 4 for "cannot tell"')] = False
    markdown: Annotated[bool, Parameter(help="service: print the verdict as Markdown, for a pull request")] = False
    history: Annotated[
        str | None,
        Parameter(help="service: append the verdict to this file, and show the latest verdicts", metavar="FILE"),
    ] = None
    html: Annotated[
        str | None, Parameter(help="service: write the verdict as an HTML page that works offline", metavar="FILE")
    ] = None


def command(
    *run: Annotated[
        str,
        Parameter(
            help="two runs: A and B; A may be a results.json that TechEmpower published", completer=complete_runs
        ),
    ],
    comparison: ComparisonFlags = ComparisonFlags(),
    service: ServiceFlags = ServiceFlags(),
    flags: RunFlags = RunFlags(),  # noqa: B008 - frozen
) -> int:
    """Compare two runs, two versions of a service, or two versions of implementations.

    For example:
      ./tfb compare 20260101 20260102            two runs
      ./tfb compare --base main                  the service in this folder
      ./tfb compare --base main --test express   an implementation

    The exit code is 0 if everything is faster, or unchanged within --threshold;
    1 if something is slower; 4 if the measurements cannot tell. For a service,
    these flags of a run are accepted: --profile, --time, --duration,
    --processes, --seed, --cpuset-cpus, --allow, --test-container-memory,
    --test-container-pids, --yes, --no-install, --quiet, --json, --results,
    --results-name and --results-environment.
    """
    if _is_service(comparison, service):
        return _compare_service(run, comparison, service, flags)
    _require_consistent(run, comparison, service)
    results = results_folder(flags.results)
    if comparison.base or comparison.copy:
        a, b = _measure_sides(comparison, flags)
    elif run[0].endswith(".json") and Path(run[0]).is_file():  # a results.json is a file, and a run is a folder
        return compare_with_round(Path(run[0]), find_run(results, run[1]), as_json=flags.json)
    else:
        a, b = (store.read_run(find_run(results, name)) for name in run)
    incomplete = print_problems(dict.fromkeys((*a.problems, *b.problems)))
    result = compare(a, b, comparison.threshold / 100)
    code = _print_comparison(result, as_json=flags.json, every=comparison.every)
    return Exit.CANNOT_TELL if incomplete and code == Exit.OK else code  # unread records could have changed the verdict


def _is_service(comparison: ComparisonFlags, service: ServiceFlags) -> bool:
    """Return whether ``--base`` names a version of a service, not of implementations."""
    if not comparison.base or comparison.test:
        return False
    folder = Path(service.service)
    return service.service != "." or (folder / FILE).is_file() or comparison.base.startswith("dir:")


def _compare_service(run: Sequence[str], comparison: ComparisonFlags, service: ServiceFlags, flags: RunFlags) -> int:
    if run or comparison.copy or comparison.every:
        raise UsageError("a service is compared with --base and --head: remove the run names, --copy and --all")
    outputs = VerdictOutputs(
        json=flags.json,
        markdown=service.markdown,
        history=service.history,
        html=service.html,
        strict=service.strict,
    )
    folder = Path(service.service).resolve()
    compare_service = COMPARE_SERVICE.load()
    return compare_service(folder, str(comparison.base), service.head, flags, comparison.threshold / 100, outputs)


def _require_consistent(run: Sequence[str], comparison: ComparisonFlags, service: ServiceFlags) -> None:
    """Raise UsageError if the flags contradict each other, or if runs are not named."""
    if service != ServiceFlags(service=service.service) or (comparison.base and INSTALLED):
        raise UsageError(
            f"to compare a service, give --base REV in the folder of the {FILE} or with --service DIR "
            f"({PROGRAM} init writes a {FILE})"
        )
    measures = bool(comparison.base or comparison.copy)
    if len(run) != (0 if measures else 2) or (comparison.base and comparison.copy):
        raise UsageError("compare takes two runs, or --base REV, or --copy: these exclude each other")
    if comparison.copy and (len(comparison.test) != 1 or comparison.test[0] in ("run", "all")):
        raise UsageError("--copy takes a single implementation: add --test NAME")


def _measure_sides(comparison: ComparisonFlags, flags: RunFlags) -> tuple[RunRecords, RunRecords]:
    """Measure both sides in a run. Return the records of base (or the control copy), and those of the working tree."""
    source = ("--copy",) if comparison.copy else ("--base", str(comparison.base))
    command = ("compare", *source, *comparison.test)
    settings = resolve_settings(Invocation(mode="benchmark", test=comparison.test, flags=flags, command=command))
    settings = replace(settings, consent=resolve_consent(settings))
    return _measure_copies(settings) if comparison.copy else _measure_commits(settings, str(comparison.base))


def _measure_commits(settings: Settings, revision: str) -> tuple[RunRecords, RunRecords]:
    with ownership.make_scratch_folder("base") as scratch:
        git = Repository.containing(REPOSITORY)
        for note in git.export(git.commit(revision), scratch, "frameworks"):
            print(f"tfb: {printable(note)}", file=sys.stderr)
        if not (scratch / "frameworks").is_dir():
            raise UsageError(f"--base: commit {revision!r} has no folder frameworks/: name a commit that has it")
        accounts.share_folder(scratch)  # servers run under separate accounts, which must be able to enter the folder
        copy = ControlCopy(suffix=BASE, frameworks=(scratch / "frameworks",))
        return split(run_benchmark(replace(settings, control_copy=copy)).records, BASE)


def _measure_copies(settings: Settings) -> tuple[RunRecords, RunRecords]:
    """Measure an implementation and a control copy. Save the noise floor for later runs with the same profile."""
    (name,) = settings.selection.test
    copy = ControlCopy(suffix=COPY, frameworks=settings.frameworks)
    records = run_benchmark(replace(settings, control_copy=copy)).records
    try:
        floor = noise_floor(
            records.trials,
            (name, name + COPY),
            profile=settings.profile.name,
            measured_at=records.info.started_at,
        )
    except ValueError as error:
        raise UsageError(f"{error}: give --processes 5 or more") from error
    store.write_noise_floor(settings.results, records.info.machine, floor)
    return split(records, COPY)


def split(records: RunRecords, suffix: str) -> tuple[RunRecords, RunRecords]:
    """Split the records of a run into two sides.

    Returns:
        The records of implementations with the suffix, which is removed from their names; and all other records.
    """

    def side(*, suffixed: bool) -> RunRecords:
        def members(all_records: Sequence[RecordType], key: str = "implementation") -> list[RecordType]:
            named = [(record, str(getattr(record, key))) for record in all_records]
            return [
                record.model_copy(update={key: name.removesuffix(suffix)})
                for record, name in named
                if name.endswith(suffix) == suffixed
            ]

        run_id = records.info.run_id + (suffix if suffixed else "")
        implementations = tuple(members(records.info.implementations, "name"))
        return RunRecords(
            info=records.info.model_copy(update={"run_id": run_id, "implementations": implementations}),
            trials=members(records.trials),
            processes=members(records.processes),
            verdicts=members(records.verdicts),
        )

    return side(suffixed=True), side(suffixed=False)


def _print_comparison(comparison: Comparison, *, as_json: bool, every: bool) -> int:
    """Print a comparison and return the exit code for the verdicts."""
    verdicts = Counter(report.cell_verdict(cell) for cell in comparison.cells)
    code = Exit.FAILED if "slower" in verdicts else Exit.CANNOT_TELL
    code = Exit.OK if comparison.cells and not set(verdicts) - {"same", "faster"} else code
    if as_json:
        print(json_text(json.dumps({**comparison.model_dump(mode="json"), "verdicts": dict(verdicts)})))
        return code
    console = terminal.make_console()
    headline, *sentences = report.summarize_comparison(comparison)
    console.print(Text(headline, style="bold red" if "slower" in verdicts else "bold"))
    for sentence in sentences:
        console.print(Text(sentence))
    terminal.print_table(report.comparison_table(comparison, every=every), console)
    for note in comparison.notes:
        console.print(Text(f"· {note}", "dim"))
    return code


def compare_with_round(round_file: Path, run: Path, *, as_json: bool) -> int:
    """Print the ranks in a run and in a published round of TechEmpower; return OK if they have common rows."""
    published_round, records = read_round(round_file), store.read_run(run)
    print_problems(records.problems)
    info = records.info
    result = published.compare_with_round(
        published_round, rank(info, records.trials, records.processes, records.verdicts)
    )
    if not result.rows:
        raise UsageError(f"{round_file} and {run} have no implementation in common")
    if as_json:
        print(
            json_text(
                json.dumps(
                    {"round": published_round.name, "environment": published_round.environment, **asdict(result)}
                )
            )
        )
        return Exit.OK
    machine = f"{info.machine.cpu_model}, {len(info.machine.cpus_usable)} CPUs, {info.runtime} runtime"
    rows = TableRows(result.rows)
    table = rows.table(
        f"Round {published_round.name} ({published_round.environment}) and run {info.run_id} ({machine})",
        rows.column("test", lambda row: row.test_type),
        rows.column("implementation", lambda row: row.implementation),
        rows.column("rank in round", lambda row: str(row.round_rank)),
        rows.column("rank in run", lambda row: str(row.run_rank)),
        rows.column("× mean in round", lambda row: f"{row.round_share:.2f}"),
        rows.column("× mean in run", lambda row: f"{row.run_share:.2f}"),
        rows.column("run ÷ round", lambda row: f"{row.run_share / row.round_share:.2f}"),
    )
    console = terminal.make_console()
    terminal.print_table(table, console)
    for agreement in result.agreements:
        reversed_pairs = "; ".join(f"{fast} before {slow}" for fast, slow in agreement.reversed_decided)
        suffix = f", decided by the run in the opposite order: {reversed_pairs}" if reversed_pairs else ""
        console.print(f"{agreement.test_type}: {agreement.same} of {agreement.pairs} pairs in the same order{suffix}")
    if result.only_run:
        console.print(f"not in the round: {', '.join(result.only_run)}")
    console.print(Text(f"· {ROUND_NOTE}", "dim"))
    return Exit.OK
