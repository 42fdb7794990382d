"""Measures what claims need: runs over their cells alone, and starts of the programs of those that have one."""

import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.claims import judgement
from harness.claims.claim import Claim, Program
from harness.claims.judgement import Place
from harness.claims.planning import Piece, UntilSettled, pieces
from harness.errors import EnvironmentLacksError, StartError
from harness.host import process, toolchain
from harness.host.clock import Clock
from harness.paths import REPOSITORY
from harness.plan.config import Settings
from harness.plan.discovery import Selection, scan
from harness.plan.profile import Profile
from harness.records import store
from harness.records.claims import ClaimVerdict
from harness.records.models import RunRecords
from harness.run import workflow
from harness.run.preparation import is_jit
from harness.run.progress import Progress
from harness.run.running import Dependencies
from harness.run.workflow import RunOutcome

logger = logging.getLogger("tfb.claims")

PROGRAM_STARTS = 5  # fresh starts of a claim's program
SITE_FILE = "claims.json"  # of a run's folder: what a published site shows of it


def plan(claims: Sequence[Claim], settings: Settings, limit_seconds: float) -> tuple[Piece, ...]:
    """The runs that these claims need, each within the limit where its claims allow."""
    known = {i.name: i for i in scan(*settings.frameworks).implementations}

    def jit(name: str) -> bool:
        return name in known and is_jit(known[name], settings)

    return pieces(claims, settings.profile, jit, limit_seconds)


def settings_of(piece: Piece, settings: Settings) -> Settings:
    """The settings of one piece's run."""
    names = tuple(claim.name for claim in piece.claims)
    return replace(
        settings,
        profile=profile_of(piece, settings.profile),
        selection=Selection(test=tuple(piece.cells)),
        test_types=tuple(dict.fromkeys(kind for kinds in piece.cells.values() for kind in kinds)),
        cells=piece.cells,
        claims=names,
        results_name=f"claims: {', '.join(names)}",
    )


def profile_of(piece: Piece, profile: Profile) -> Profile:
    """In turns: as long and with as many processes as the piece needs, looked at once; otherwise fresh processes."""
    if not piece.in_turns or profile.rounds is None:
        return profile.model_copy(update={"rounds": None})
    changed = {"time_seconds": piece.seconds, "processes": piece.processes, "every_level": True}
    once = profile.replication.model_copy(update={"minimum": 1, "maximum": 1, "looks": ()})
    return profile.model_copy(update={"rounds": profile.rounds.model_copy(update=changed), "replication": once})


def measure(
    piece: Piece,
    settings: Settings,
    progress: Progress,
    limit_seconds: float,
    needs: Dependencies = Dependencies(),  # noqa: B008 - frozen
) -> RunOutcome:
    """One run over the cells of a piece, until its claims are settled or its time is over."""
    rule = UntilSettled(claims=piece.claims, out_of_time=OutOfTime(clock=needs.clock, seconds=limit_seconds))
    return workflow.benchmark(settings_of(piece, settings), progress, needs=replace(needs, stopping=rule))


@dataclass(frozen=True, kw_only=True)
class OutOfTime:
    """Whether a further block, as long as those of this session, would end beyond the limit; builds apart."""

    clock: Clock
    seconds: float
    began: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", self.clock.time())

    def __call__(self, records: RunRecords) -> bool:
        """Asked between blocks."""
        mine = [record for record in records.replicates if record.started_at >= self.began]
        if not mine:
            return False
        elapsed = self.clock.time() - min(record.started_at for record in mine)
        blocks = len({record.block for record in mine})
        return elapsed + elapsed / blocks > self.seconds


def verdicts(piece: Piece, records: RunRecords) -> tuple[ClaimVerdict, ...]:
    """On each claim of a piece."""
    return tuple(judgement.of_run(claim, records) for claim in piece.claims)


def for_the_site(found: Sequence[ClaimVerdict], measured: Callable[[ClaimVerdict, int], str]) -> str:
    """What a published site shows of a run's claims: a list of statements with source, verdict and ratio."""
    return json.dumps(
        [
            {
                "statement": f"{claim.title}: {statement.name}",
                "source": f"{claim.talk}, {claim.page}",
                "verdict": statement.verdict,
                "measured": measured(claim, index),
            }
            for claim in found
            for index, statement in enumerate(claim.statements)
        ],
        indent=1,
    )


def earlier(settings: Settings, piece: Piece) -> RunRecords | None:
    """The newest run that was made for just the claims of this piece, on just its cells; None without one."""
    names = [claim.name for claim in piece.claims]
    for folder in reversed(store.runs(settings.results)):
        records = store.read(folder)
        info = records.info
        if info.settings.get("claims") == names and _cells(info.cells) == _cells(piece.cells):
            return records
    return None


def ended(records: RunRecords, settings: Settings) -> bool:
    """Whether a run came to its end, by its rule or its time: there is nothing to resume.

    One in which something failed has ended, too, as far as it has the fewest blocks: the same would fail again.
    """
    blocks = len({sample.block for sample in records.samples})
    status = records.info.status
    in_turns = any(sample.round is not None for sample in records.samples)
    least = 1 if in_turns else settings.profile.replication.minimum
    return status == "complete" or (status == "failed" and blocks >= least)


def _cells(cells: Mapping[str, Mapping[str, Sequence[object]]]) -> dict[str, dict[str, tuple[object, ...]]]:
    return {name: {kind: tuple(levels) for kind, levels in kinds.items()} for name, kinds in cells.items()}


def run_program(claim: Claim, settings: Settings, progress: Progress, needs: Dependencies) -> ClaimVerdict:
    """Start a claim's program some times, each a block of its own, and judge its figures.

    Raises EnvironmentLacksError without its tools and StartError for output that is no JSON object of numbers.
    """
    assert claim.program is not None  # noqa: S101 - the caller chose
    program = claim.program
    env = environment(program)
    figures = []
    for number in range(PROGRAM_STARTS):
        progress.stage("measuring", f"{claim.name}: start {number + 1} of {PROGRAM_STARTS}")
        figures.append(_figures(claim.name, program, env))
    revision, dirty = needs.revision()
    place = Place(
        machine=needs.machine(),
        measured_at=needs.clock.time(),
        profile=settings.profile.name,
        runtime="local",
        revision=revision,
        dirty=dirty,
    )
    return judgement.of_program(claim, figures, place)


def environment(program: Program) -> dict[str, str]:
    """The environment with the program's tools first on PATH. Raises EnvironmentLacksError."""
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
    return env


def _figures(name: str, program: Program, env: Mapping[str, str]) -> dict[str, float]:
    ended = process.run(list(program.command), seconds=program.seconds, cwd=REPOSITORY, env=env)
    found: object = None
    with contextlib.suppress(ValueError):
        found = json.loads(ended.stdout)
    if (
        ended.status == 0
        and isinstance(found, dict)
        and all(isinstance(value, int | float) for value in found.values())
    ):
        return {str(key): float(value) for key, value in found.items()}
    printed = ended.stdout.strip()[-300:] or "nothing"
    raise StartError(
        f"claim {name}: {' '.join(program.command)} has to print one JSON object of numbers; it ended with "
        f"{process.describe_status(ended.status)} and printed: {printed}"
    )
