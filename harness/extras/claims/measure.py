"""Measures what claims leave open: cells that share servers in one run of the design ``interleaved``, or a program.

What earlier runs measured on the same machine and builds counts: a claim is judged by the records of all of them.
"""

import contextlib
import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from harness.cli.output import put
from harness.errors import EnvironmentLacksError, StartError
from harness.experiment.predicted import predict
from harness.experiment.preparation import choose_work, known_sizes, make_plan
from harness.extras.claims.claim import Cell, Claim, Program, Statement
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
SLICE_SECONDS = 15 * 60.0  # of one run, after which all is judged again
MACHINE = {"hostname", "cpu_model", "cpus_usable", "kernel", "memory_bytes"}
NUMBERS = {"description", "interleaved", "processes"}  # of a profile: how often, not how

Cells = Mapping[str, Mapping[str, tuple[Load, ...]]]  # implementation -> test type -> loads
OfProcess = TypeVar("OfProcess", Trial, ProcessRecord, Verdict)


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


class Open(NamedTuple):
    """A statement that more processes would tell more of."""

    claim: str
    statement: Statement
    width: float  # of its interval, on logarithms; infinite without one, negative for context alone

    @property
    def key(self) -> tuple[str, str]:
        """Claim and statement."""
        return self.claim, self.statement.name


def left_open(claims: Sequence[Claim], verdicts: Mapping[str, ClaimVerdict]) -> list[Open]:
    """Statements that were never measured, or that more would tell of; of context what was never measured."""
    found = []
    for claim in claims:
        if claim.program:
            continue
        known = verdicts.get(claim.name)
        seen = {each.name: each for each in known.statements} if known else {}
        for said in claim.compare:
            has = seen.get(said.name)
            if has and has.value is not None and (said.context or not 0 < has.more <= MANY):
                continue
            width = math.log(has.high / has.low) if has and has.low and has.high else math.inf
            found.append(Open(claim=claim.name, statement=said, width=-1.0 if said.context else width))
    return found


def groups(left: Sequence[Open]) -> list[list[Open]]:
    """Statements that share servers, directly or by others, together; the one with the widest interval first."""
    made: list[tuple[set[str], list[Open]]] = []
    for one in left:
        names = {cell.implementation for cell in one.statement.cells}
        near = [group for group in made if group[0] & names]
        made = [group for group in made if group not in near]
        made.append((names.union(*(group[0] for group in near)), [each for _, own in near for each in own] + [one]))
    found = [own for _, own in made if any(each.width >= 0 for each in own)]
    return sorted(found, key=lambda own: -max(each.width for each in own))


def settings_of(
    left: Sequence[Open], settings: Settings, seconds: float | None = None, *, number: int | None = None
) -> Settings:
    """The settings of a run for these statements: as many processes as the seconds hold, or so many.

    Of what was never measured the profile's least, so that the time tells something of every claim.
    """
    profile, rules = settings.profile, settings.profile.processes
    if number is None:
        most = rules.minimum if any(math.isinf(each.width) for each in left) else rules.maximum
        number = max(1, min(most, round(seconds / pace(left, settings)))) if seconds else rules.minimum
    cells = cells_of(cell for each in left for cell in each.statement.cells)
    names = tuple(dict.fromkeys(each.claim for each in left))
    sections = {
        "interleaved": profile.interleaved.model_copy(update={"time_seconds": seconds}),
        "processes": rules.model_copy(update={"minimum": number, "maximum": number, "looks": ()}),
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


def pace(left: Sequence[Open], settings: Settings) -> float:
    """Seconds that one process of each server of these statements takes, builds apart: the design's own prediction."""
    asked = settings_of(left, settings, number=1)
    plan = make_plan(choose_work(asked), asked, sizes=known_sizes(settings.results), free_memory=machine.free_memory())
    return predict(plan, asked.seed).seconds


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
        trials += [_after(before, each) for each in records.trials if (each.implementation, each.process) in done]
        processes += [_after(before, each) for each in records.processes if each.implementation in same]
        verdicts += [_after(before, each) for each in records.verdicts if each.implementation in same]
        for name in sorted({name for name, _ in done}):
            behind[name].append(info.run_id)
        before += 1 + max((each.process for each in records.processes), default=-1)
    together = newest.model_copy(update={"implementations": tuple(each for each, _ in known.values())})
    return RunRecords(info=together, trials=trials, processes=processes, verdicts=verdicts), behind


def _after(before: int, record: OfProcess) -> OfProcess:
    return record.model_copy(update={"process": before + record.process})


def _place(info: RunInfo) -> object:
    """What has to be the same for figures of two runs to be of one thing."""
    profile = info.settings.get("profile")
    rules = {key: value for key, value in profile.items() if key not in NUMBERS} if isinstance(profile, dict) else {}
    return info.machine.model_dump(include=MACHINE), info.runtime, info.generator, info.tools, rules


def _same(one: ImplementationInfo, revision: str | None, other: ImplementationInfo, newer: str | None) -> bool:
    """Whether both were built of the same configuration, tools, images and sources."""
    facts = [
        (each.digest, each.build and (each.build.tools, each.build.bases, each.build.image_digest))
        for each in (one, other)
    ]
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
