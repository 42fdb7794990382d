"""``./tfb shard``: a long run as a queue of whole blocks over many sets of machines."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from harness.cli.arguments import Parser, parser
from harness.cli.parsing import replicates
from harness.cli.settings import settings
from harness.errors import Exit, StoreError, UsageError
from harness.plan import lab as labs
from harness.plan import plan as planning
from harness.plan import queue as queues
from harness.plan.config import Settings
from harness.plan.queue import Queue
from harness.records import bounded
from harness.run import slurm, spread
from harness.run.preparation import choose_work, reference
from harness.units import format_seconds

QUEUE_BYTES = 16 << 20


def main(argv: Sequence[str]) -> int:
    """Plan and run a queue, or go on with one; exit code 1 when a unit was not measured."""
    p = Parser(
        prog="./tfb shard",
        description="Spread a run over many sets of machines: each unit is one block (the reference and a few "
        "implementations) on one set. All other flags are those of a run (./tfb --help).",
        allow_abbrev=False,
    )
    p.add_argument("--lab", metavar="FILE", help="the sets of machines, in TOML (docs/machines.md)")
    p.add_argument(
        "--engine", choices=("parallel", "local", "slurm"), default="parallel",
        help="parallel: GNU parallel over ssh; local: without ssh, for this machine's own sets; slurm: a job array",
    )  # fmt: skip
    p.add_argument(
        "--blocks",
        type=replicates,
        metavar="N",
        help="blocks that each implementation is in; default: the profile's fewest replicates",
    )
    p.add_argument(
        "--together",
        type=replicates,
        metavar="K",
        default=queues.TOGETHER,
        help="implementations in a block, beside the reference",
    )
    p.add_argument(
        "--retries", type=int, metavar="N", default=2, help="tries of a unit beyond the first, elsewhere where possible"
    )
    p.add_argument("--resume", metavar="QUEUE", help="go on with a queue's folder: what is measured stays")
    p.add_argument("--dry-run", action="store_true", help="print the units and how long they take")
    options, words = p.parse_known_args(list(argv))
    if options.resume:
        folder = Path(options.resume)
        queue = read(folder / spread.QUEUE)
    else:
        if not options.lab:
            raise UsageError("./tfb shard needs --lab FILE, or --resume QUEUE; docs/machines.md shows a lab.toml")
        chosen = settings(parser().parse_args(words), words)
        queue = plan(chosen, options.lab, options.engine, options.blocks, options.together, options.retries)
        folder = chosen.results / queue.id
    show(queue, folder)
    if options.dry_run:
        return Exit.OK
    spread.require(queue.engine)
    write(queue, folder)
    spread.carry_out(queue, folder, again=bool(options.resume), say=lambda text: print(f"tfb: {text}", file=sys.stderr))
    missing = [unit.id for unit in queue.units if not spread.is_done(folder, unit.id)]
    if missing:
        print(
            f"tfb: {len(missing)} of {len(queue.units)} units are not measured: {', '.join(missing[:10])}; "
            f"go on with ./tfb shard --resume {folder}",
            file=sys.stderr,
        )
        return Exit.FAILED
    print(f"all {len(queue.units)} units are measured; rank them: ./tfb merge {folder} --output {folder}-merged")
    return Exit.OK


def plan(chosen: Settings, lab_file: str, engine: str, blocks: int | None, together: int, retries: int) -> Queue:
    """The queue of a run; raises UsageError for what cannot be split."""
    if chosen.mode != "benchmark" or chosen.order == "duet" or chosen.resume:
        raise UsageError("./tfb shard spreads benchmarks in blocks: no --mode, no --order duet; its own --resume")
    lab = labs.load(Path(lab_file))
    selected = choose_work(chosen)
    seconds = {
        c.implementation: planning.replicate_seconds(c, chosen.profile, thorough=True, worst=False)
        for c in selected.candidates
    }
    anchor = reference(chosen, selected)
    count = blocks or chosen.profile.replication.minimum
    units = queues.plan(list(seconds), anchor, seconds, blocks=count, together=together, seed=chosen.seed)
    queue_id = f"queue-{time.strftime('%Y%m%d-%H%M%S')}"
    queue = Queue(
        id=queue_id, engine=engine, command=chosen.command, reference=anchor, lab=lab, units=units, retries=retries
    )
    if engine == "parallel":
        spread.over_ssh(lab)
    elif engine == "local":
        spread.here(lab)
    else:
        slurm.nodes(lab)
    return queue


def show(queue: Queue, folder: Path) -> None:
    """The units in a few lines."""
    print(
        f"{len(queue.units)} units over {len(queue.lab.sets)} sets of machines, each with {queue.reference} beside "
        f"{len(queue.units[0].implementations) - 1 if queue.units else 0}; about {format_seconds(queue.seconds)} "
        f"with all sets at work, builds apart; files: {folder}"
    )
    for unit in queue.units[:5]:
        print(f"  {unit.id}  {'  '.join(unit.implementations)}")
    if len(queue.units) > 5:
        print(f"  … {len(queue.units) - 5} more")


def write(queue: Queue, folder: Path) -> None:
    """Make the queue's folder. Raises StoreError."""
    try:
        (folder / spread.UNITS).mkdir(parents=True, exist_ok=True)
        (folder / spread.QUEUE).write_text(queue.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror}") from error


def read(path: Path) -> Queue:
    """A queue's file. Raises UsageError when it is none."""
    try:
        return Queue.model_validate_json(bounded.require_few(bounded.read(path, QUEUE_BYTES)))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: is no queue that ./tfb shard has written: {str(error).splitlines()[0]}") from error
