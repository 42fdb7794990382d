"""Measures what a claim needs: a run over its cells alone in the design ``interleaved``, or starts of its program."""

import contextlib
import json
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.cli.output import put
from harness.errors import EnvironmentLacksError, StartError
from harness.extras.claims.claim import Claim, Program
from harness.host import process, toolchain
from harness.paths import REPOSITORY
from harness.plan.config import Settings
from harness.plan.discovery import Selection
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import claims as recorded
from harness.records import store
from harness.records.claims import ClaimsRecord, ClaimVerdict
from harness.records.models import Load, RunRecords

PROGRAM_STARTS = 5  # fresh starts of a claim's program
PROCESS_SECONDS = 45.0  # that a process of a JVM takes from its start to its end, four rounds of two seconds with it

Cells = Mapping[str, Mapping[str, tuple[Load, ...]]]  # implementation -> test type -> loads


def cells_of(claim: Claim) -> Cells:
    """All that a claim compares, each once; the heaviest load first, at which a server is warmed."""
    found: defaultdict[str, defaultdict[str, list[Load]]] = defaultdict(lambda: defaultdict(list))
    for cell in sorted(claim.cells, key=lambda cell: (-cell.connections, -(cell.queries or 0), -(cell.factor or 0))):
        found[cell.implementation][cell.test_type].append(cell.load)
    return {
        name: {kind: tuple(found[name][kind]) for kind in TEST_TYPES if kind in found[name]} for name in sorted(found)
    }


def settings_of(claim: Claim, settings: Settings, seconds: float) -> Settings:
    """The settings of a claim's run: as many processes of its servers as so many seconds hold."""
    cells = cells_of(claim)
    profile = settings.profile
    room = int(seconds / (PROCESS_SECONDS * len(cells)))
    number = max(profile.processes.minimum, min(profile.processes.maximum, room))
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
        claims=(claim.name,),
        results_name=f"claim: {claim.name}",
    )


def begun(claim: Claim, settings: Settings) -> RunRecords | None:
    """The newest run that was made for this claim on just its cells; None without one."""
    for folder in reversed(store.runs(settings.results)):
        records = store.read(folder)
        info = records.info
        cells = {name: {kind: tuple(loads) for kind, loads in kinds.items()} for name, kinds in info.cells.items()}
        if info.settings.get("claims") == [claim.name] and cells == cells_of(claim):
            return records
    return None


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


def keep(results: Path, verdict: ClaimVerdict) -> None:
    """Put a new verdict in the place of an older one on the same claim. Raises StoreError."""
    known = recorded.read(results)
    record = ClaimsRecord(verdicts=dict(sorted({**known.verdicts, verdict.claim: verdict}.items())))
    results.mkdir(parents=True, exist_ok=True)
    put(results / recorded.FILE, record.model_dump_json(indent=1) + "\n")
