"""Measures the undecided statements of claims, by runs of the design ``interleaved`` or by starts of a program.

Cells that share servers are measured in the same run. Evidence accumulates: all runs on the same machine with the same
builds contribute to the verdict.
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

JAVA_CONDITION = ">=21"  # version requirement of claims' programs, which use virtual threads
PROGRAM_STARTS = 5  # number of fresh starts of a claim's program
PROGRAM_SECONDS = 120.0  # time limit for a start
MACHINE = {"hostname", "cpu_model", "cpus_usable", "kernel", "memory_bytes"}
# Sections of a profile that do not affect whether runs are comparable.
EXCLUDED_SECTIONS = {"description", "interleaved", "processes"}
EXCLUDED_SETTINGS = ("profile", "claims", "reverse_order")  # settings that are compared separately or that may differ

CellLoads = Mapping[str, Mapping[str, tuple[Load, ...]]]  # implementation -> test type -> loads


def merge_cells(cells: Iterable[ClaimSide]) -> CellLoads:
    """Return the distinct cells. The heaviest load is first, because it also warms up the servers."""
    found: defaultdict[str, defaultdict[str, list[Load]]] = defaultdict(lambda: defaultdict(list))
    order = sorted(set(cells), key=lambda cell: (-cell.connections, -(cell.queries or 0), -(cell.factor or 0)))
    for cell in order:
        found[cell.implementation][cell.test_type].append(cell.load)
    return {
        name: {kind: tuple(found[name][kind]) for kind in TEST_TYPES if kind in found[name]} for name in sorted(found)
    }


# ---- what to measure next -------------------------------------------------------------------------------------------


def group_open_claims(claims: Sequence[Claim], known: Mapping[str, ClaimVerdict]) -> list[list[Claim]]:
    """Return the undecided parts of claims about implementations, grouped by the run that will measure them."""
    left = (open_part(claim, known.get(claim.name)) for claim in claims if not claim.program)
    return groups([claim for claim in left if claim])


def open_part(claim: Claim, known: ClaimVerdict | None) -> Claim | None:
    """Return the claim without the servers that need no further processes, or None if no server needs any.

    A statement is open if it was never measured, or if at most ``MAX_FURTHER_PROCESSES`` further processes could decide
    it. Context statements are never open. A server with an open statement keeps all of its cells, because the earlier
    work of a process may affect later measurements.
    """
    if known is None:
        return claim
    seen = {each.name: each for each in known.statements}
    servers = set[str]()
    for each in claim.compare:
        found = seen.get(each.name)
        if not each.context and (found is None or found.value is None or 0 < found.more <= MAX_FURTHER_PROCESSES):
            servers |= {cell.implementation for cell in each.cells}
    left = tuple(each for each in claim.compare if servers.issuperset(cell.implementation for cell in each.cells))
    return claim.model_copy(update={"compare": left}) if servers else None


def groups(claims: Sequence[Claim]) -> list[list[Claim]]:
    """Group the claims that share servers, directly or through further claims."""
    made: list[tuple[set[str], list[Claim]]] = []
    for claim in claims:
        names = {cell.implementation for cell in claim.cells}
        near = [group for group in made if group[0] & names]
        made = [group for group in made if group not in near]
        made.append((names.union(*(group[0] for group in near)), [each for _, own in near for each in own] + [claim]))
    return [own for _, own in made]


def measurement_settings(
    claims: Sequence[Claim], settings: Settings, seconds: float | None = None, processes: int = 0
) -> Settings:
    """Return the settings of a run for these claims.

    Args:
        claims: The claims to measure.
        settings: The settings of the command.
        seconds: Time of the run, which determines the number of processes. None: the profile's minimum.
        processes: Number of processes of each implementation; 0: determined by the other arguments.
    """
    rules = settings.profile.processes
    if seconds and not processes and rules.minimum < rules.maximum:  # the limits are equal if --processes is given
        one = measurement_settings(claims, settings, processes=1)
        plan = limit_memory(make_plan(one), settings.results, machine.free_memory())
        processes = max(1, min(rules.maximum, round(seconds / predict(plan, one.seed).seconds)))
    number = processes or rules.minimum
    sections = {
        "interleaved": settings.profile.interleaved.model_copy(update={"time_seconds": seconds}),
        "processes": rules.model_copy(update={"minimum": number, "maximum": number, "looks": ()}),
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


# ---- what was measured ----------------------------------------------------------------------------------------------


def evidence(results: Path) -> tuple[RunRecords, dict[str, list[RunInfo]]] | None:
    """Combine the records of all comparable runs for claims; return them with the runs of each implementation.

    Comparable runs have the machine, the runtime, the tools and the settings of the newest run. Processes must have the
    newest build of their implementation. They are numbered consecutively across runs. Return None if there are no runs
    for claims.
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
    runs = [reader.records() for reader in readers if _place(reader.info) == _place(newest)]
    known: dict[str, tuple[ImplementationInfo, str | None]] = {}
    for records in runs:
        for each in records.info.implementations:
            if each.name not in known or (each.build and each.build.status == "ok"):
                known[each.name] = each, records.info.revision
    kept: list[RunRecords] = []
    behind = defaultdict[str, list[RunInfo]](list)
    for records in runs:
        info = records.info
        same = {each.name for each in info.implementations if _same(each, info.revision, *known[each.name])}
        done = {key for key in store.finished_processes(records, ("ok",)) if key[0] in same}
        kept.append(
            RunRecords(
                info=info,
                trials=[each for each in records.trials if (each.implementation, each.process) in done],
                processes=[each for each in records.processes if each.implementation in same],
                verdicts=[each for each in records.verdicts if each.implementation in same],
            )
        )
        for name in sorted({name for name, _ in done}):
            behind[name].append(info)
    together = newest.model_copy(update={"implementations": tuple(each for each, _ in known.values())})
    return store.join_runs(store.renumber_processes(kept), together), behind


def _place(info: RunInfo) -> object:
    """Return the conditions that must be equal in two runs to combine their records."""
    profile = info.settings.get("profile")
    rules = (
        {key: value for key, value in profile.items() if key not in EXCLUDED_SECTIONS}
        if isinstance(profile, dict)
        else {}
    )
    others = {key: value for key, value in info.settings.items() if key not in EXCLUDED_SETTINGS and value is not None}
    sources = info.run_id if info.dirty else ""  # sources with uncommitted changes may differ between two runs
    return info.machine.model_dump(include=MACHINE), info.runtime, info.generator, info.tools, rules, others, sources


def _same(one: ImplementationInfo, revision: str | None, other: ImplementationInfo, newer: str | None) -> bool:
    """Return whether two builds used the same configuration, tools, images and sources."""
    facts = [(each.digest, each.build and (each.build.tools, each.build.image_digest)) for each in (one, other)]
    return facts[0] == facts[1] and (revision == newer or not _changed(str(revision), str(newer), one.folder))


@cache
def _changed(before: str, now: str, folder: str) -> bool:
    """Return whether the sources in a folder differ between two commits. An unknown commit counts as different."""
    try:
        git = Repository.containing(REPOSITORY)
        trees = [git.entries(git.commit(revision), folder) for revision in (before, now)]
    except TfbError:
        return True
    old, new = ([entry for entry in tree if not entry.name.endswith(".md")] for tree in trees)
    return old != new


def run_program(claim: Claim) -> dict[str, float]:
    """Run a claim's program, and return the printed figures. Raises EnvironmentLacksError and StartError."""
    env = dict(os.environ)
    if tool := toolchain.find_tool("java", JAVA_CONDITION):
        env |= {**tool.env, "PATH": f"{tool.bin}{os.pathsep}{env['PATH']}"}
    ended = process.run(claim.program, seconds=PROGRAM_SECONDS, cwd=REPOSITORY, env=env)
    wanted = {name for each in claim.compare for name in each.figures}
    with suppress(ValidationError):
        found = TypeAdapter(dict[str, float]).validate_json(ended.stdout, strict=True)
        if wanted <= found.keys():
            return found
    said = ended.stdout.strip()[-300:] or "nothing"
    command, names = " ".join(claim.program), ", ".join(sorted(wanted))
    raise StartError(
        f"claim {claim.name}: {command} has to print a JSON object of numbers with {names} (Java {JAVA_CONDITION}); "
        f"it ended with {process.describe_status(ended.status)} and printed: {said}"
    )


def keep(results: Path, verdicts: Iterable[ClaimVerdict]) -> None:
    """Record verdicts, and replace earlier verdicts on the same claims. Raises StoreError."""
    known = {**recorded.read_claims(results).verdicts, **{verdict.claim: verdict for verdict in verdicts}}
    write_managed_file(
        results.resolve(),
        recorded.CLAIMS_FILE,
        ClaimsRecord(verdicts=dict(sorted(known.items()))).to_json(indent=1) + "\n",
    )
