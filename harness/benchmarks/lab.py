"""How long a big lab's merge and ranking take: ``python -m harness.benchmarks.lab [implementations] [blocks] [sets]``.

Plans a queue, writes an invented run folder for each of its units, with windows, gates and verdicts as in real ones,
and measures in a process of its own what planning, merging (reading, writing) and ranking take of time and memory.
"""

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.benchmarks import simulation
from harness.benchmarks.command import command
from harness.benchmarks.ranking import GATES
from harness.cli.arguments import Parser
from harness.cli.merge import write
from harness.errors import Exit, StoreError
from harness.host import process
from harness.plan import queue as queues
from harness.plan.profile import Replication
from harness.plan.queue import Unit
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import merging
from harness.records.models import CheckResult, Closed, Load, Outcome, ReplicateRecord, Sample, Verdict, Window
from harness.records.store import RunStore
from harness.stats.ranking import rank

TYPES = tuple(name for name, kind in TEST_TYPES.items() if kind.techempower)
LEVELS: dict[str, tuple[Load, ...]] = {kind: (Closed(connections=64),) for kind in TYPES}
WINDOWS = 15
CHECKS = 12  # of one verdict
TOGETHER = 20
REFERENCE = "s0"


def plan(implementations: int, blocks: int) -> tuple[Unit, ...]:
    """The queue's units."""
    names = [f"s{i}" for i in range(implementations)]
    return queues.plan(names, REFERENCE, dict.fromkeys(names, 200.0), blocks=blocks, together=TOGETHER, seed=1)


def invent(units: Sequence[Unit], sets: int, folder: Path) -> None:
    """One run folder a unit; sets differ in speed by up to a factor of four."""
    generator = np.random.default_rng(2)
    speed = np.exp(generator.uniform(-0.7, 0.7, size=sets))
    for number, unit in enumerate(units):
        where = number % sets
        store = RunStore(folder / unit.id, started_at=float(number))
        info = simulation.run_info(
            unit.implementations, Replication(minimum=1, maximum=1), reference=REFERENCE, levels=LEVELS
        )
        profile = {"name": "invented", "replication": Replication(minimum=1, maximum=1).model_dump()}
        settings = {"profile": profile}
        store.write_info(
            info.model_copy(
                update={"run_id": unit.id, "unit": f"q/{unit.id}", "set_name": f"set{where}", "settings": settings,
                        "completed_at": 1.0}
            )
        )  # fmt: skip
        samples, replicates = [], []
        for name in unit.implementations:
            truth = 1000 * float(np.exp(int(name[1:]) / 250))
            replicates.append(
                ReplicateRecord(implementation=name, block=0, started_at=0.0, first_answer=0.5, status="ok")
            )
            for kind in TYPES:
                samples.append(_sample(name, kind, truth * speed[where] * float(np.exp(generator.normal() * 0.03))))
                store.add_verdict(_verdict(name, kind))
        store.write_text("samples.jsonl", "\n".join(sample.recorded() for sample in samples))
        store.write_text("replicates.jsonl", "\n".join(each.recorded() for each in replicates))


def _sample(name: str, kind: str, throughput: float) -> Sample:
    window = Window(
        start=0.0, duration=1.0, responses=throughput, server_cpu=1.0, wait_share=0.01, rss=5e7, connections=64
    )
    return simulation.sample(name, 0, throughput, test_type=kind, level=LEVELS[kind][0]).model_copy(
        update={"gates": GATES, "windows": (window,) * WINDOWS}
    )


def _verdict(name: str, kind: str) -> Verdict:
    results = tuple(CheckResult(check=f"check-{i}", rule="common.1", outcome=Outcome.PASS) for i in range(CHECKS))
    return Verdict(
        implementation=name, test_type=kind, replicate=0, thorough=True, outcome=Outcome.PASS, results=results,
        duration=1.0,
    )  # fmt: skip


def measure(implementations: int, blocks: int, folder: Path) -> None:
    """Print what each step takes of time, and the most memory of this process."""
    began, cpu = time.perf_counter(), time.process_time()

    def step(what: str) -> None:
        nonlocal began, cpu
        now, used = time.perf_counter(), time.process_time()
        print(f"{what:<28}{now - began:6.1f} s ({used - cpu:.1f} s of CPU)", flush=True)
        began, cpu = now, used

    units = plan(implementations, blocks)
    step(f"planning {len(units)} units")
    records = merging.merge([folder / unit.id for unit in units], "merged", started_at=0.0)
    step(f"reading {len(records.samples)} samples")
    ranking = rank(records.info, records.samples, records.replicates, records.verdicts)
    step(f"ranking {len(records.info.sets)} sets")
    write(records, folder / "merged").write_text("ranking.json", ranking.recorded())
    step("writing")
    print(f"{'most memory':<28}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:6.0f} MiB")


def main(argv: Sequence[str]) -> int:
    """Invent the runs, then measure in a fresh process, whose memory is that of merging alone."""
    p = Parser(prog="python -m harness.benchmarks.lab", description="How long a big lab's merge takes.")
    p.add_argument("implementations", nargs="?", type=int, default=1000)
    p.add_argument("blocks", nargs="?", type=int, default=10)
    p.add_argument("sets", nargs="?", type=int, default=50)
    p.add_argument("--folder", metavar="DIR", help="of runs that are there already: measure only")
    options = p.parse_args(list(argv))
    if options.folder:
        measure(options.implementations, options.blocks, Path(options.folder))
        return Exit.OK
    folder = Path(tempfile.mkdtemp(prefix="tfb-lab-"))
    try:
        invent(plan(options.implementations, options.blocks), options.sets, folder)
        sizes = [str(options.implementations), str(options.blocks), str(options.sets)]
        words = [sys.executable, "-m", "harness.benchmarks.lab", *sizes, "--folder", str(folder)]
        done = process.run(words, seconds=600)
        print(done.stdout, end="")
        if done.status != 0:
            raise StoreError(f"the merge failed: {process.describe_status(done.status)}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Exit.OK


if __name__ == "__main__":
    command(main)
