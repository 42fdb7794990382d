"""``./tfb unit``: one block of a queue as a run of its own, on the set of machines that this machine drives."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.cli.arguments import Parser, parser
from harness.cli.settings import settings
from harness.cli.shard import read
from harness.errors import Exit, UsageError
from harness.plan.config import Settings
from harness.plan.discovery import Selection
from harness.plan.lab import MachineSet
from harness.plan.queue import Queue, Unit
from harness.run import progress, spread, workflow


def main(argv: Sequence[str]) -> int:
    """Measure the unit once; exit code 0 when it was measured to its end, whatever was found of implementations."""
    p = Parser(prog="./tfb unit", description="Run one block of a queue that ./tfb shard has written.")
    p.add_argument("queue", help="path of queue.json")
    p.add_argument("unit", help="its number, such as 0001")
    who = p.add_mutually_exclusive_group(required=True)
    who.add_argument("--login", metavar="NAME", help="the set whose login this is")
    who.add_argument("--slot", type=int, metavar="N", help="the N-th set that this machine drives without a login")
    options = p.parse_args(list(argv))
    path = Path(options.queue)
    queue = read(path)
    unit = queue.unit(options.unit)
    if unit is None:
        raise UsageError(f"{path} has no unit {options.unit!r}: there are 0001 to {len(queue.units):04d}")
    machines = which(queue, options.login, options.slot)
    if spread.is_done(path.parent, unit.id):
        return Exit.OK  # it was only the answer that got lost
    folder = path.parent / spread.UNITS / unit.id
    folder.mkdir(parents=True, exist_ok=True)
    outcome = workflow.benchmark(
        settings_of(queue, unit, machines, folder), progress.Progress(progress.display(quiet=True))
    )
    (folder / spread.DONE).write_text(f"{outcome.records.info.run_id}\n", encoding="utf-8")
    for failure in outcome.failures:
        print(f"{machines.name}: {failure}", file=sys.stderr)
    return Exit.OK


def which(queue: Queue, login: str | None, slot: int | None) -> MachineSet:
    """The set; raises UsageError when the lab has none of this login or slot."""
    if login is not None:
        if found := queue.lab.by_login(login):
            return found
        raise UsageError(f"--login {login}: no set of the lab has this login")
    sets = spread.here(queue.lab)
    if slot is None or not 0 < slot <= len(sets):
        raise UsageError(f"--slot {slot}: the lab has {len(sets)} sets without a login")
    return sets[slot - 1]


def settings_of(queue: Queue, unit: Unit, machines: MachineSet, folder: Path) -> Settings:
    """The run's settings for this unit: its implementations once each, on these machines."""
    words = [*queue.command, *machines.flags]
    options = parser().parse_args(words)
    options.replicates, options.time = 1, None  # one fresh process of each, whatever the profile
    chosen = settings(options, ("unit", queue.id, unit.id))
    return replace(
        chosen,
        selection=Selection(test=unit.implementations),
        seed=unit.seed,
        reference=queue.reference,
        results=folder,
        results_name=f"{queue.id} {unit.id}",
        set_name=machines.name,
        unit=f"{queue.id}/{unit.id}",
        quiet=True,
        dry_run=False,
    )
