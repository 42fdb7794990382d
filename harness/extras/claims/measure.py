"""Measures the undecided statements of claims, by benchmark runs or by running a claim's program.

The runs use the ``interleaved`` design. One run measures all claims that share servers. All runs on the same machine
with the same builds contribute to a verdict.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.cli.output import write_managed_file
from harness.errors import StartError, StoreError, TfbError
from harness.experiment.predicted import predict
from harness.experiment.selection import limit_memory, make_plan
from harness.extras.claims.assessment import MAX_FURTHER_PROCESSES
from harness.extras.claims.claim import Claim, ClaimSide
from harness.host import machine, process
from harness.host.git import Repository
from harness.paths import REPOSITORY
from harness.plan.discovery import Selection
from harness.plan.run_settings import Settings
from harness.plan.testtypes.registry import TEST_TYPES
from harness.provisioning import toolchain
from harness.records import claims as recorded
from harness.records import store
from harness.records.claims import ClaimsRecord, ClaimVerdict
from harness.records.loads import Load
from harness.records.reader import RunReader
from harness.records.run_folders import list_runs
from harness.records.run_info import ImplementationInfo, RunInfo
from harness.records.run_records import RunRecords

JAVA_CONDITION = ">=21"  # Java version that the claims' programs require, because they use virtual threads
PROGRAM_STARTS = 5  # how often to start a claim's program
# Facts about the machine that must be equal in all combined runs.
MACHINE = {"hostname", "cpu_model", "cpus_usable", "kernel", "memory_bytes"}
# Keys of a profile that may differ between comparable runs.
EXCLUDED_SECTIONS = {"description", "interleaved", "processes"}
# Settings that may differ between combined runs. "profile" is compared separately.
EXCLUDED_SETTINGS = ("profile", "claims", "reverse_order")

CellLoads = Mapping[str, Mapping[str, tuple[Load, ...]]]  # implementation -> test type -> loads


def merge_cells(cells: Iterable[ClaimSide]) -> CellLoads:
    """Group the distinct cells by implementation and test type.

    The heaviest load is first, because it also warms up the server.
    """
    loads: defaultdict[str, defaultdict[str, list[Load]]] = defaultdict(lambda: defaultdict(list))
    order = sorted(set(cells), key=lambda cell: (-cell.connections, -(cell.queries or 0), -(cell.factor or 0)))
    for cell in order:
        loads[cell.implementation][cell.test_type].append(cell.load)
    return {
        name: {kind: tuple(loads[name][kind]) for kind in TEST_TYPES if kind in loads[name]} for name in sorted(loads)
    }


# ---- runs for undecided statements ----------------------------------------------------------------------------------


def group_open_claims(claims: Sequence[Claim], verdicts: Mapping[str, ClaimVerdict]) -> list[list[Claim]]:
    """Return the claims whose implementations must be measured in more processes, grouped by run.

    Each returned claim contains only the statements that ``open_part`` selects.
    """
    open_claims = (open_part(claim, verdicts.get(claim.name)) for claim in claims if not claim.program)
    return groups([claim for claim in open_claims if claim])


def open_part(claim: Claim, recorded_verdict: ClaimVerdict | None) -> Claim | None:
    """Return the claim with only those statements whose servers need more processes, or None if no server needs more.

    All cells of such a server are measured again, because a process's earlier work may affect later measurements.
    """
    if recorded_verdict is None:
        return claim
    verdicts = {each.name: each for each in recorded_verdict.statements}
    servers = set[str]()
    for each in claim.compare:
        verdict = verdicts.get(each.name)
        if not each.context and (verdict is None or verdict.value is None or 0 < verdict.more <= MAX_FURTHER_PROCESSES):
            servers |= {cell.implementation for cell in each.cells}
    open_statements = tuple(
        each for each in claim.compare if servers.issuperset(cell.implementation for cell in each.cells)
    )
    return claim.model_copy(update={"compare": open_statements}) if servers else None


def groups(claims: Sequence[Claim]) -> list[list[Claim]]:
    """Group the claims that share servers, directly or through other claims."""
    all_groups: list[tuple[set[str], list[Claim]]] = []
    for claim in claims:
        names = {cell.implementation for cell in claim.cells}
        related = [group for group in all_groups if group[0] & names]
        all_groups = [group for group in all_groups if group not in related]
        all_groups.append(
            (
                names.union(*(group[0] for group in related)),
                [each for _, group_claims in related for each in group_claims] + [claim],
            )
        )
    return [group_claims for _, group_claims in all_groups]


def measurement_settings(
    claims: Sequence[Claim], settings: Settings, seconds: float | None = None, processes: int = 0
) -> Settings:
    """Return the settings of a run that measures the claims, limited to ``seconds`` or a number of ``processes``."""
    rules = settings.profile.processes
    if seconds and not processes and rules.minimum < rules.maximum:  # the flag --processes makes the limits equal
        single_process = measurement_settings(claims, settings, processes=1)
        plan = limit_memory(make_plan(single_process), settings.results, machine.free_memory())
        processes = max(1, min(rules.maximum, round(seconds / predict(plan, single_process.seed).seconds)))
    count = processes or rules.minimum
    sections = {
        "interleaved": settings.profile.interleaved.model_copy(update={"time_seconds": seconds}),
        "processes": rules.model_copy(update={"minimum": count, "maximum": count, "looks": ()}),
    }
    cells = merge_cells(cell for claim in claims for cell in claim.cells)
    names = tuple(claim.name for claim in claims)
    return replace(
        settings,
        profile=settings.profile.model_copy(update=sections),
        selection=Selection(test=tuple(cells)),
        test_types=tuple(dict.fromkeys(kind for kinds in cells.values() for kind in kinds)),
        cells=cells,
        claims=names,
        results_name=f"claims: {', '.join(names)}",
    )


# ---- results of earlier runs ----------------------------------------------------------------------------------------


def evidence(results: Path) -> tuple[RunRecords, dict[str, list[RunInfo]]] | None:
    """Return the combined records of all comparable runs for claims, and the list of runs by implementation.

    A run is comparable if it has the newest run's machine, runtime, tools and settings. Processes that ran an older
    build of an implementation are omitted. The remaining processes are numbered consecutively across runs. Return None
    if no run for claims exists.
    """
    readers = []
    for folder in list_runs(results):
        with suppress(StoreError):  # other commands report unreadable runs
            reader = RunReader(folder)
            if reader.info.settings.get("claims") and not reader.info.sets:
                readers.append(reader)
    if not readers:
        return None
    newest = readers[-1].info
    runs = [
        reader.records() for reader in readers if _comparable_conditions(reader.info) == _comparable_conditions(newest)
    ]
    newest_builds: dict[str, tuple[ImplementationInfo, str | None]] = {}
    for records in runs:
        for each in records.info.implementations:
            if each.name not in newest_builds or (each.build and each.build.status == "ok"):
                newest_builds[each.name] = each, records.info.revision
    comparable: list[RunRecords] = []
    runs_by_implementation = defaultdict[str, list[RunInfo]](list)
    for records in runs:
        info = records.info
        current_builds = {
            each.name for each in info.implementations if _is_same_build(each, info.revision, *newest_builds[each.name])
        }
        processes = {key for key in store.finished_processes(records, ("ok",)) if key[0] in current_builds}
        comparable.append(
            RunRecords(
                info=info,
                trials=[each for each in records.trials if (each.implementation, each.process) in processes],
                processes=[each for each in records.processes if each.implementation in current_builds],
                verdicts=[each for each in records.verdicts if each.implementation in current_builds],
            )
        )
        for name in sorted({name for name, _ in processes}):
            runs_by_implementation[name].append(info)
    info_of_all = newest.model_copy(update={"implementations": tuple(each for each, _ in newest_builds.values())})
    return store.join_runs(store.renumber_processes(comparable), info_of_all), runs_by_implementation


def _comparable_conditions(info: RunInfo) -> object:
    """Return the conditions that must be equal in all runs that ``evidence`` combines."""
    profile = info.settings.get("profile")
    rules = (
        {key: value for key, value in profile.items() if key not in EXCLUDED_SECTIONS}
        if isinstance(profile, dict)
        else {}
    )
    others = {key: value for key, value in info.settings.items() if key not in EXCLUDED_SETTINGS and value is not None}
    sources = info.run_id if info.dirty else ""  # runs with uncommitted changes may have different sources
    return info.machine.model_dump(include=MACHINE), info.runtime, info.generator, info.tools, rules, others, sources


def _is_same_build(
    first: ImplementationInfo, revision: str | None, second: ImplementationInfo, newer: str | None
) -> bool:
    """Return whether two builds used the same configuration, tools, images and sources.

    ``revision`` and ``newer`` are the commits of the runs with the ``first`` and the ``second`` build.
    """
    builds = [(each.digest, each.build and (each.build.tools, each.build.image_digest)) for each in (first, second)]
    return builds[0] == builds[1] and (revision == newer or not _changed(str(revision), str(newer), first.folder))


@cache
def _changed(before: str, now: str, folder: str) -> bool:
    """Return True if a folder's sources differ between two commits, or if a commit is unknown."""
    try:
        git = Repository.containing(REPOSITORY)
        trees = [git.entries(git.commit(revision), folder) for revision in (before, now)]
    except TfbError:
        return True
    old, new = ([entry for entry in tree if not entry.name.endswith(".md")] for tree in trees)
    return old != new


def run_program(claim: Claim) -> dict[str, float]:
    """Return the figures that a claim's program prints.

    Raises EnvironmentLacksError if the program cannot be started, or StartError if the output lacks a figure.
    """
    env = dict(os.environ)
    if tool := toolchain.find_tool("java", JAVA_CONDITION):
        env |= {**tool.env, "PATH": f"{tool.bin}{os.pathsep}{env['PATH']}"}
    completed = process.run(claim.program, seconds=120.0, cwd=REPOSITORY, env=env)
    required_figures = {name for each in claim.compare for name in each.figures}
    with suppress(ValidationError):
        figures = TypeAdapter(dict[str, float]).validate_json(completed.stdout, strict=True)
        if required_figures <= figures.keys():
            return figures
    output = completed.stdout.strip()[-300:] or "nothing"
    command, names = " ".join(claim.program), ", ".join(sorted(required_figures))
    raise StartError(
        f"claim {claim.name}: {command} must print a JSON object with the numbers {names} (Java {JAVA_CONDITION}), "
        f"but ended with {process.describe_status(completed.status)} and printed: {output}"
    )


def record_verdicts(results: Path, verdicts: Iterable[ClaimVerdict]) -> None:
    """Record verdicts, replacing earlier verdicts on the same claims. Raises StoreError."""
    all_verdicts = {**recorded.read_claims(results).verdicts, **{verdict.claim: verdict for verdict in verdicts}}
    write_managed_file(
        results.resolve(),
        recorded.CLAIMS_FILE,
        ClaimsRecord(verdicts=dict(sorted(all_verdicts.items()))).to_json(indent=1) + "\n",
    )
