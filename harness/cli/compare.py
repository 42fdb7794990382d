"""The command ``./tfb compare``, which compares two runs or two versions.

It compares recorded runs with each other or with a round that TechEmpower published. To compare two versions, it
measures both.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Parameter, Token
from rich.text import Text

from harness.cli.consent import resolve_consent
from harness.cli.flags import RunFlags, Strings, complete_names, complete_runs, results_folder
from harness.cli.output import VerdictOutputs, print_problems
from harness.cli.run import print_prediction, run_benchmark
from harness.cli.settings import resolve_settings
from harness.cli.verbs import Invocation
from harness.errors import Exit, TfbError, UsageError
from harness.host import accounts, ownership
from harness.host.git import Repository
from harness.paths import INSTALLED, PROGRAM, REPOSITORY
from harness.plain_text import json_text, printable
from harness.plan.run_settings import ControlCopy, Settings
from harness.plan.service import FILE
from harness.plugins import Hook
from harness.records import store
from harness.records.record import Record
from harness.records.run_folders import find_run, round_title
from harness.records.run_records import RunRecords
from harness.records.verdicts import UNCHANGED_MARGIN
from harness.report import summary, terminal
from harness.report.tables import TableRows
from harness.stats import published
from harness.stats.cell_comparison import compare, differing_conditions, noise_floor
from harness.stats.published import read_round
from harness.stats.ranking import rank
from harness.stats.ranking_model import Comparison

COMPARE_SERVICE: Hook[Callable[[Path, str, str | None, RunFlags, float, VerdictOutputs], int]] = Hook(
    name="compare_service", purpose="compare --base for services"
)
RecordType = TypeVar("RecordType", bound=Record)
BASE, COPY = "@base", "~copy"  # name suffixes of base's implementations and of control copies
ROUND_NOTE = (
    "The published round used different machines, load generators, networks and often different versions, so requests "
    'per second are not compared. "× mean" is an implementation\'s result divided by the geometric mean over all '
    "implementations that the run and the round share. Ranks count only these implementations."
)


def parse_percent(_: object, tokens: Sequence[Token]) -> float:
    """Parse a percentage such as ``5`` or ``5%``. Raises ValueError unless it is above 0 and at most 100."""
    percent = math.nan
    with suppress(ValueError):
        percent = float(tokens[0].value.removesuffix("%"))
    if not 0 < percent <= 100:  # also rejects NaN
        raise ValueError(
            f"{tokens[0].value!r} is not a valid percentage: give a number above 0 and at most 100, such as 5%"
        )
    return percent


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ComparisonFlags:
    """Flags that set the threshold, and select the two runs or versions to compare."""

    base: Annotated[
        str | None,
        Parameter(help="measure this commit and the working tree now, instead of comparing two runs", metavar="REV"),
    ] = None
    copy: Annotated[
        bool, Parameter(help="measure an implementation and a control copy, to measure this machine's noise")
    ] = False
    test: Annotated[
        Strings, Parameter(help="with --base or --copy: implementations to measure", completer=complete_names)
    ] = ()
    threshold: Annotated[
        float,
        Parameter(
            help=f"treat differences up to PERCENT as unchanged; default: {UNCHANGED_MARGIN * 100:g}",
            metavar="PERCENT",
            converter=parse_percent,
            n_tokens=1,
        ),
    ] = UNCHANGED_MARGIN * 100
    every: Annotated[bool, Parameter(name="--all", help="also list unchanged cells")] = False
    across: Annotated[
        bool, Parameter(help="compare runs even if their network path, runtime or server CPUs differ")
    ] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServiceFlags:
    """Flags for comparing two versions of a service."""

    service: Annotated[
        str,
        Parameter(help="the service's folder, with a tfb.toml; default: the current folder", metavar="DIR"),
    ] = "."
    head: Annotated[
        str | None,
        Parameter(help="service: version to compare with base; default: the working tree", metavar="REV"),
    ] = None
    strict: Annotated[bool, Parameter(help='service: for "cannot tell", exit with 1 instead of 4')] = False
    bisect: Annotated[
        bool, Parameter(help='service: for "git bisect run": exit with 125 if the verdict is "cannot tell" or "failed"')
    ] = False
    confirm: Annotated[
        bool, Parameter(help='service: after "slower", measure again; report a slowdown only if both verdicts agree')
    ] = False
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
            help="the two runs to compare; the first may be a results.json that TechEmpower published",
            completer=complete_runs,
        ),
    ],
    comparison: ComparisonFlags = ComparisonFlags(),
    service: ServiceFlags = ServiceFlags(),
    flags: RunFlags = RunFlags(),  # noqa: B008 - frozen
) -> int:
    """Compare two runs, two versions of a service, or two versions of implementations.

    For example:
      ./tfb compare 20260101 20260102            two runs
      ./tfb compare --base main                  the service in this folder, or
                                                 (in a clone) implementations
      ./tfb compare --base main --test express   an implementation

    The exit code is 0 if everything is faster, or unchanged within --threshold;
    1 if something is slower; 4 if the measurements cannot decide. For a service,
    compare also accepts these flags for runs: --profile, --time, --duration,
    --processes, --seed, --cpuset-cpus, --allow, --test-container-memory,
    --test-container-pids, --yes, --no-install, --quiet, --json, --results,
    --results-name and --results-environment.
    """
    if _is_service(comparison, service):
        return _compare_service(run, comparison, service, flags)
    _require_consistent(run, comparison, service, flags)
    results, titles = results_folder(flags.results), {}
    if comparison.base or comparison.copy:
        with _sides(comparison, flags) as settings:
            if settings.dry_run:
                return print_prediction(settings)
            run_a, run_b = _measure_copies(settings) if comparison.copy else _measure_commits(settings)
    elif run[0].endswith(".json") and Path(run[0]).is_file():  # published rounds are files, and runs are folders
        return compare_with_round(Path(run[0]), find_run(results, run[1]), as_json=flags.json)
    else:
        folders = [find_run(results, name) for name in run]
        run_a, run_b = map(store.read_run, folders)
        titles = {
            key: title for key, each in zip(("run_a", "run_b"), folders, strict=True) if (title := round_title(each))
        }
        if not comparison.across and (different := list(differing_conditions(run_a.info, run_b.info))):
            raise UsageError(
                f"{run[0]} and {run[1]} were measured under different conditions ({'; '.join(different)}), so their "
                "results do not show how the implementations differ. Add --across to compare them anyway"
            )
    incomplete = print_problems(dict.fromkeys((*run_a.problems, *run_b.problems)))
    result = compare(run_a, run_b, comparison.threshold / 100)
    shown = result if flags.json else result.model_copy(update=titles)
    code = _print_comparison(shown, as_json=flags.json, every=comparison.every)
    return Exit.CANNOT_TELL if incomplete and code == Exit.OK else code  # unreadable records could change the verdict


def _is_service(comparison: ComparisonFlags, service: ServiceFlags) -> bool:
    """Return whether ``--base`` names a version of a service, not of implementations."""
    if not comparison.base or comparison.test:
        return False
    folder = Path(service.service)
    return service.service != "." or service.bisect or (folder / FILE).is_file() or comparison.base.startswith("dir:")


def _compare_service(run: Sequence[str], comparison: ComparisonFlags, service: ServiceFlags, flags: RunFlags) -> int:
    if run or comparison.copy or comparison.every:
        raise UsageError("to compare a service, use only --base and --head: remove the run names, --copy and --all")
    if service.strict and service.bisect:
        raise UsageError('--strict and --bisect assign different exit codes to "cannot tell": use only one of them')
    outputs = VerdictOutputs(
        json=flags.json,
        markdown=service.markdown,
        history=service.history,
        html=service.html,
        strict=service.strict,
        bisect=service.bisect,
        confirm=service.confirm,
    )
    folder = Path(service.service).resolve()
    compare_service = COMPARE_SERVICE.load()
    try:
        return compare_service(folder, str(comparison.base), service.head, flags, comparison.threshold / 100, outputs)
    except TfbError as error:  # otherwise, a missing tool would make git bisect call the commit bad
        if not service.bisect:
            raise
        print(f"tfb: {printable(str(error))}", file=sys.stderr)
        return Exit.UNTESTABLE


def _require_consistent(
    run: Sequence[str], comparison: ComparisonFlags, service: ServiceFlags, flags: RunFlags
) -> None:
    """Raise UsageError if the flags contradict each other, or if no runs are given."""
    if service != ServiceFlags(service=service.service) or (comparison.base and INSTALLED):
        raise UsageError(
            f"to compare a service, give --base REV in the folder of the {FILE} or with --service DIR "
            f"({PROGRAM} init writes a {FILE})"
        )
    measures = bool(comparison.base or comparison.copy)
    if len(run) != (0 if measures else 2) or (comparison.base and comparison.copy):
        raise UsageError("compare needs exactly one of these: two runs, --base REV, or --copy")
    if flags.dry_run and not measures:
        raise UsageError(
            "--dry-run predicts a measurement, but comparing two recorded runs measures nothing: remove the flag"
        )
    if comparison.copy and (len(comparison.test) != 1 or comparison.test[0] in ("run", "all")):
        raise UsageError("--copy takes a single implementation: add --test NAME")


@contextmanager
def _sides(comparison: ComparisonFlags, flags: RunFlags) -> Iterator[Settings]:
    """Yield the settings of a run that measures both versions. Delete base's files at the end of the block."""
    if flags.part:
        raise UsageError(
            "--part: --base and --copy measure both versions in the same run, but --part could put them into different "
            "runs. Remove --part, and name fewer implementations with --test"
        )
    source = ("--copy",) if comparison.copy else ("--base", str(comparison.base))
    command = ("compare", *source, *comparison.test)
    settings = resolve_settings(Invocation(mode="benchmark", test=comparison.test, flags=flags, command=command))
    if not settings.dry_run:
        settings = replace(settings, consent=resolve_consent(settings))
    if comparison.copy:
        yield replace(settings, control_copy=ControlCopy(suffix=COPY, frameworks=settings.frameworks))
        return
    with ownership.make_scratch_folder("base") as scratch:
        git, revision = Repository.containing(REPOSITORY), str(comparison.base)
        for note in git.export(git.commit(revision), scratch, "frameworks"):
            print(f"tfb: {printable(note)}", file=sys.stderr)
        if not (scratch / "frameworks").is_dir():
            raise UsageError(f"--base: commit {revision!r} has no frameworks/ folder: name a commit that has one")
        accounts.share_folder(scratch)  # servers run under separate accounts, which must be able to enter the folder
        yield replace(settings, control_copy=ControlCopy(suffix=BASE, frameworks=(scratch / "frameworks",)))


def _measure_commits(settings: Settings) -> tuple[RunRecords, RunRecords]:
    """Measure both versions. Return base's records and the working tree's records."""
    return split(run_benchmark(settings).records, BASE)


def _measure_copies(settings: Settings) -> tuple[RunRecords, RunRecords]:
    """Measure an implementation and a control copy. Return the copy's records and the implementation's records.

    Save the noise floor for later runs with the same profile.
    """
    (name,) = settings.selection.test
    records = run_benchmark(settings).records
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
    """Split the records into those of implementations whose names end with ``suffix``, and all other records.

    Return both parts in this order. Remove the suffix from the names.
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
    verdicts = Counter(summary.cell_verdict(cell) for cell in summary.common_cells(comparison))
    code = Exit.FAILED if "slower" in verdicts else Exit.CANNOT_TELL
    code = Exit.OK if verdicts and not set(verdicts) - {"same", "faster"} else code
    if as_json:
        print(json_text(json.dumps({**comparison.model_dump(mode="json"), "verdicts": dict(verdicts)})))
        return code
    console = terminal.make_console()
    headline, *sentences = summary.summarize_comparison(comparison)
    console.print(Text(headline, style="bold red" if "slower" in verdicts else "bold"))
    for sentence in sentences:
        console.print(Text(sentence))
    terminal.print_table(summary.comparison_table(comparison, every=every), console)
    for note in comparison.notes:
        console.print(Text(f"· {note}", "dim"))
    return code


def compare_with_round(round_file: Path, run: Path, *, as_json: bool) -> int:
    """Print the ranks in a run next to the ranks in a published round.

    Raises UsageError if the run and the round have no implementation in common.
    """
    published_round, records = read_round(round_file), store.read_run(run)
    print_problems(records.problems)
    info = records.info
    result = published.compare_with_round(
        published_round, rank(info, records.trials, records.processes, records.verdicts)
    )
    if not result.rows:
        raise UsageError(
            f"{round_file} and {run} have no implementation in common: choose a run that measured an implementation of "
            "the round"
        )
    if as_json:
        document = {"round": published_round.name, "environment": published_round.environment, **asdict(result)}
        print(json_text(json.dumps(document)))
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
        suffix = f"; clearly reversed in the run: {reversed_pairs}" if reversed_pairs else ""
        console.print(f"{agreement.test_type}: {agreement.same} of {agreement.pairs} pairs in the same order{suffix}")
    if result.only_run:
        console.print(f"not in the round: {', '.join(result.only_run)}")
    console.print(Text(f"· {ROUND_NOTE}", "dim"))
    return Exit.OK
