"""``./tfb shard``: a long run as a queue of whole units over several deployments, and one unit of it."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from harness.cli.settings import results_folder, settings
from harness.cli.verbs import Asked, parsed
from harness.errors import Exit, StoreError, UsageError
from harness.experiment import workflow
from harness.experiment.predicted import predict
from harness.experiment.preparation import choose_work, make_plan, reference
from harness.experiment.progress import Progress, display
from harness.extras.deployments import merging, slurm, spread, units
from harness.extras.deployments.units import Deployment, Queue, Unit
from harness.plan.config import Settings
from harness.plan.discovery import Selection
from harness.records import bounded
from harness.records.store import read
from harness.units import format_seconds

QUEUE_BYTES = 16 << 20
SHOWN = 5  # units, of those that are planned
Several = Annotated[int, Parameter(validator=Number(gte=1))]


def command(
    *run: Annotated[
        str, Parameter(help="names and flags of the run: ./tfb shard --lab FILE -- all --profile standard")
    ],
    lab: Annotated[Path | None, Parameter(help="the deployments, in TOML (docs/machines.md)")] = None,
    use_slurm: Annotated[bool, Parameter(name="--slurm", help="job arrays, where the lab's logins are nodes")] = False,
    processes: Annotated[Several | None, Parameter(help="of each implementation; default: the profile's")] = None,
    together: Annotated[Several, Parameter(help="implementations in a unit, beside the reference")] = units.TOGETHER,
    retries: Annotated[int, Parameter(help="tries of a unit beyond the first, elsewhere where possible")] = 2,
    resume: Annotated[Path | None, Parameter(help="go on with a queue's folder: what is measured stays")] = None,
    unit: Annotated[str | None, Parameter(help="of --resume: measure this one here and now")] = None,
    on: Annotated[str | None, Parameter(help="of --unit: the deployment, by its name or login")] = None,
    dry_run: Annotated[bool, Parameter(help="print the units and how long they take")] = False,
) -> int:
    """Spread a run over several deployments; the exit code is 1 when a unit was not measured.

    Each unit is a run of its own on one deployment: the reference and a few implementations, a process of each. In the
    end all of them are one run.
    """
    if resume:
        folder, queue = resume, load(resume / spread.QUEUE)
        if unit:
            return measure(queue, folder, unit, on or "")
    else:
        if not lab:
            raise UsageError("./tfb shard needs --lab FILE, or --resume QUEUE; docs/machines.md shows a lab.toml")
        chosen = _settings(run)
        queue = plan(chosen, units.load(lab), processes, together, retries, use_slurm=use_slurm)
        folder = chosen.results / queue.id
    show(queue, folder)
    if dry_run:
        return Exit.OK
    write(queue, folder)
    spread.carry_out(queue, folder, lambda text: print(f"tfb: {text}", file=sys.stderr, flush=True))
    if missing := [each.id for each in queue.units if not spread.is_done(folder, each.id)]:
        print(
            f"tfb: {len(missing)} of {len(queue.units)} units are not measured: {', '.join(missing[:10])}; "
            f"go on with ./tfb shard --resume {folder}",
            file=sys.stderr,
        )
        return Exit.FAILED
    merged = folder.with_name(f"{folder.name}-merged")
    runs = list(merging.runs_below(folder))
    merging.write(merging.merge(runs, merged.name, reference=queue.reference, started_at=time.time()), merged)
    print(f"all {len(queue.units)} units are measured and are one run: ./tfb report {merged}")
    return Exit.OK


def _settings(run: tuple[str, ...]) -> Settings:
    asked = parsed(["run", *run])
    if not isinstance(asked, Asked) or asked.listed:
        raise UsageError("./tfb shard spreads a run: behind -- stands what ./tfb run takes")
    return settings(asked, run)


def plan(
    chosen: Settings, lab: units.Lab, processes: int | None, together: int, retries: int, *, use_slurm: bool
) -> Queue:
    """The queue of a run; raises UsageError for what cannot be split."""
    if chosen.mode != "benchmark" or chosen.resume is not None:
        raise UsageError("./tfb shard spreads benchmarks, and has a --resume of its own")
    if use_slurm:
        slurm.nodes(lab)
    selected = choose_work(chosen)
    names = [candidate.implementation for candidate in selected.candidates]
    one = _once(chosen)
    seconds = predict(make_plan(selected, one), one.seed).seconds / len(names)
    anchor = reference(chosen, selected)
    count = processes or chosen.profile.processes.minimum
    return Queue(
        id=f"queue-{time.strftime('%Y%m%d-%H%M%S')}",
        command=chosen.command,
        reference=anchor,
        lab=lab,
        units=units.plan(names, anchor, seconds, processes=count, together=together, seed=chosen.seed),
        retries=retries,
        slurm=use_slurm,
    )


def _once(chosen: Settings) -> Settings:
    """One fresh process of each implementation, whatever the profile."""
    processes = chosen.profile.processes.model_copy(update={"minimum": 1, "maximum": 1, "looks": ()})
    return replace(chosen, profile=chosen.profile.model_copy(update={"processes": processes}))


def show(queue: Queue, folder: Path) -> None:
    """The units in a few lines."""
    print(
        f"{len(queue.units)} units over {len(queue.lab.sets)} deployments, each with {queue.reference}; about "
        f"{format_seconds(queue.seconds)} with all at work, builds apart; files: {folder}"
    )
    for unit in queue.units[:SHOWN]:
        print(f"  {unit.id}  {'  '.join(unit.implementations)}")
    if len(queue.units) > SHOWN:
        print(f"  … {len(queue.units) - SHOWN} more")


def write(queue: Queue, folder: Path) -> None:
    """Make the queue's folder. Raises StoreError."""
    try:
        (folder / spread.UNITS).mkdir(parents=True, exist_ok=True)
        (folder / spread.QUEUE).write_text(queue.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror}") from error


def load(path: Path) -> Queue:
    """A queue's file. Raises UsageError when it is none."""
    try:
        return Queue.model_validate_json(bounded.require_few(bounded.read(path, QUEUE_BYTES)))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: is no queue that ./tfb shard has written: {str(error).splitlines()[0]}") from error


def measure(queue: Queue, folder: Path, name: str, on: str) -> int:
    """One unit as a run of its own; exit code 0 when it was measured to its end, whatever was found in it."""
    unit, deployment = queue.unit(name), queue.lab.find(on)
    if unit is None:
        raise UsageError(f"{folder} has no unit {name!r}: there are 0001 to {len(queue.units):04d}")
    if deployment is None:
        raise UsageError(f"--on {on!r}: the lab has {', '.join(each.name for each in queue.lab.sets)}")
    if spread.is_done(folder, unit.id):
        return Exit.OK  # it was only the answer that got lost
    place = results_folder(str(folder / spread.UNITS / unit.id))
    place.mkdir(parents=True, exist_ok=True)
    outcome = workflow.benchmark(settings_of(queue, unit, deployment, place), Progress(display(quiet=True)))
    run = place / outcome.records.info.run_id
    told = {"unit": f"{queue.id}/{unit.id}", "set_name": deployment.name}
    (run / "run.json").write_text(read(run).info.model_copy(update=told).recorded(indent=1) + "\n", encoding="utf-8")
    (place / spread.DONE).write_text(f"{run.name}\n", encoding="utf-8")
    for failure in outcome.failures:
        print(f"{deployment.name}: {failure}", file=sys.stderr)
    return Exit.OK


def settings_of(queue: Queue, unit: Unit, deployment: Deployment, folder: Path) -> Settings:
    """The run's settings for this unit: its implementations once each, on these machines."""
    return replace(
        _once(_settings((*queue.command, *deployment.flags))),
        command=("shard", queue.id, unit.id),
        selection=Selection(test=unit.implementations),
        seed=unit.seed,
        reference=queue.reference,
        results=folder,
        results_name=f"{queue.id} {unit.id}",
        quiet=True,
        dry_run=False,
    )
