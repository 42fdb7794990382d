"""Measures what claims leave open: cells that share servers in one run of the design ``interleaved``, or a program.

What earlier runs measured on the same machine and builds counts: a claim is judged by the records of all of them.
"""

import contextlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from harness.cli.output import put
from harness.errors import EnvironmentLacksError, StartError
from harness.experiment.predicted import predict
from harness.experiment.preparation import choose_work, known_sizes, make_plan
from harness.extras.claims.claim import Cell, Claim, Program
from harness.extras.claims.judge import MANY
from harness.host import machine, process, toolchain
from harness.paths import REPOSITORY
from harness.plan.config import Settings
from harness.plan.discovery import Selection
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import claims as recorded
from harness.records import store
from harness.records.claims import ClaimsRecord, ClaimVerdict
from harness.records.models import ImplementationInfo, Load, ProcessRecord, RunInfo, RunRecords, Trial, Verdict
from harness.records.reader import RunReader

PROGRAM_STARTS = 5  # fresh starts of a claim's program
MACHINE = {"hostname", "cpu_model", "cpus_usable", "kernel", "memory_bytes"}
NUMBERS = {"description", "interleaved", "processes"}  # of a profile: how often, not how

Cells = Mapping[str, Mapping[str, tuple[Load, ...]]]  # implementation -> test type -> loads


def cells_of(cells: Iterable[Cell]) -> Cells:
    """These cells, each once; the heaviest load first, at which a server is warmed."""
    found: defaultdict[str, defaultdict[str, list[Load]]] = defaultdict(lambda: defaultdict(list))
    order = sorted(set(cells), key=lambda cell: (-cell.connections, -(cell.queries or 0), -(cell.factor or 0)))
    for cell in order:
        found[cell.implementation][cell.test_type].append(cell.load)
    return {
        name: {kind: tuple(found[name][kind]) for kind in TEST_TYPES if kind in found[name]} for name in sorted(found)
    }


# ---- what to measure next -------------------------------------------------------------------------------------------


def is_open(claim: Claim, known: ClaimVerdict | None) -> bool:
    """Whether one of the source's statements was never measured, or more processes would tell more of it."""
    seen = {each.name: each for each in known.statements} if known else {}
    found = [seen.get(each.name) for each in claim.compare if not each.context]
    return any(each is None or each.value is None or 0 < each.more <= MANY for each in found)


def groups(claims: Sequence[Claim]) -> list[list[Claim]]:
    """Claims that share servers, directly or by others, together."""
    made: list[tuple[set[str], list[Claim]]] = []
    for claim in claims:
        names = {cell.implementation for each in claim.compare for cell in each.cells}
        near = [group for group in made if group[0] & names]
        made = [group for group in made if group not in near]
        made.append((names.union(*(group[0] for group in near)), [each for _, own in near for each in own] + [claim]))
    return [own for _, own in made]


def settings_of(claims: Sequence[Claim], settings: Settings, seconds: float | None = None) -> Settings:
    """The settings of a run for these claims: the profile's least processes, or as many as the seconds hold."""
    rules = settings.profile.processes
    if seconds is None:
        return _settings(claims, settings, rules.minimum, None)
    one = _settings(claims, settings, 1, None)
    plan = make_plan(choose_work(one), one, sizes=known_sizes(settings.results), free_memory=machine.free_memory())
    number = round(seconds / predict(plan, one.seed).seconds)
    return _settings(claims, settings, max(1, min(rules.maximum, number)), seconds)


def _settings(claims: Sequence[Claim], settings: Settings, number: int, seconds: float | None) -> Settings:
    cells = cells_of(cell for claim in claims for each in claim.compare for cell in each.cells)
    profile, names = settings.profile, tuple(claim.name for claim in claims)
    sections = {
        "interleaved": profile.interleaved.model_copy(update={"time_seconds": seconds}),
        "processes": profile.processes.model_copy(update={"minimum": number, "maximum": number, "looks": ()}),
    }
    return replace(
        settings,
        profile=profile.model_copy(update=sections),
        selection=Selection(test=tuple(cells)),
        test_types=tuple(dict.fromkeys(kind for kinds in cells.values() for kind in kinds)),
        cells=cells,
        claims=names,
        results_name=f"claims: {', '.join(names)}",
    )


# ---- what was measured ----------------------------------------------------------------------------------------------


def evidence(results: Path) -> tuple[RunRecords, dict[str, list[str]]] | None:
    """The records of all runs for claims as of one, and the runs behind each implementation; None without any.

    Of the newest run's machine, runtime, tools and profile, and of each implementation's newest build: what is older
    and differs is left out. Processes are numbered on from run to run; those of one run stood side by side.
    """
    readers = [reader for folder in store.runs(results) if (reader := RunReader(folder)).info.settings.get("claims")]
    if not readers:
        return None
    newest = readers[-1].info
    runs = [reader.records() for reader in readers if _place(reader.info) == _place(newest)]
    known: dict[str, tuple[ImplementationInfo, str | None]] = {}
    for records in runs:
        for each in records.info.implementations:
            if each.name not in known or (each.build and each.build.status == "ok"):
                known[each.name] = each, records.info.revision
    trials: list[Trial] = []
    processes: list[ProcessRecord] = []
    verdicts: list[Verdict] = []
    behind, before = defaultdict[str, list[str]](list), 0  # processes of the runs before
    for records in runs:
        info = records.info
        same = {each.name for each in info.implementations if _same(each, info.revision, *known[each.name])}
        done = {key for key in store.finished(records) if key[0] in same}
        trials += [store.after(before, each) for each in records.trials if (each.implementation, each.process) in done]
        processes += [store.after(before, each) for each in records.processes if each.implementation in same]
        verdicts += [store.after(before, each) for each in records.verdicts if each.implementation in same]
        for name in sorted({name for name, _ in done}):
            behind[name].append(info.run_id)
        before += 1 + max((each.process for each in records.processes), default=-1)
    together = newest.model_copy(update={"implementations": tuple(each for each, _ in known.values())})
    return RunRecords(info=together, trials=trials, processes=processes, verdicts=verdicts), behind


def _place(info: RunInfo) -> object:
    """What has to be the same for figures of two runs to be of one thing."""
    profile = info.settings.get("profile")
    rules = {key: value for key, value in profile.items() if key not in NUMBERS} if isinstance(profile, dict) else {}
    return info.machine.model_dump(include=MACHINE), info.runtime, info.generator, info.tools, rules


def _same(one: ImplementationInfo, revision: str | None, other: ImplementationInfo, newer: str | None) -> bool:
    """Whether both were built of the same configuration, tools, images and sources."""
    facts = [(each.digest, each.build and (each.build.tools, each.build.image_digest)) for each in (one, other)]
    return facts[0] == facts[1] and (revision == newer or not _changed(str(revision), str(newer), one.folder))


@cache
def _changed(before: str, now: str, folder: str) -> bool:
    """Whether a folder's sources differ between two commits, or one of these is not known."""
    paths = ["--", folder, ":!*.md"]
    return process.run(["git", "-C", str(REPOSITORY), "diff", "--quiet", before, now, *paths], seconds=30).status != 0


def figures_of(name: str, program: Program) -> dict[str, float]:
    """What one start of a claim's program prints.

    Raises EnvironmentLacksError without its tools and StartError for output that is no JSON object of numbers.
    """
    env = dict(os.environ)
    for kind, condition in program.needs.items():
        tool = toolchain.find(kind, condition)
        if tool is None:
            packages = " ".join(toolchain.packages(kind, condition))
            raise EnvironmentLacksError(
                f"{' '.join(program.command)} needs {kind} {condition}: apt-get install {packages}"
            )
        env |= tool.env
        env["PATH"] = f"{tool.bin}{os.pathsep}{env['PATH']}"
    ended = process.run(list(program.command), seconds=program.seconds, cwd=REPOSITORY, env=env)
    with contextlib.suppress(ValueError):
        found = json.loads(ended.stdout)
        if ended.status == 0 and isinstance(found, dict) and all(isinstance(v, int | float) for v in found.values()):
            return {str(key): float(value) for key, value in found.items()}
    raise StartError(
        f"claim {name}: {' '.join(program.command)} has to print one JSON object of numbers; it ended with "
        f"{process.describe_status(ended.status)} and printed: {ended.stdout.strip()[-300:] or 'nothing'}"
    )


def keep(results: Path, verdicts: Iterable[ClaimVerdict]) -> None:
    """Put new verdicts in the place of older ones on the same claims. Raises StoreError."""
    known = {**recorded.read(results).verdicts, **{verdict.claim: verdict for verdict in verdicts}}
    results.mkdir(parents=True, exist_ok=True)
    put(results / recorded.FILE, ClaimsRecord(verdicts=dict(sorted(known.items()))).recorded(indent=1) + "\n")
