"""Duets: two implementations measured at the same moment on the same CPUs, to order neighbours whose blocks tie.

What disturbs one disturbs the other, so that order needs seconds where separate windows need minutes; they compete, so
that sizes mean nothing (``harness.stats.duet`` analyses them). One implementation plays against itself for the bias.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

from harness.errors import ENDS_THE_RUN, TfbError
from harness.host.clock import Clock
from harness.measure import sweep
from harness.measure.testbed import Target
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Level, Sample, Verdict
from harness.run.running import Run
from harness.stats.model import Ranking, Row, Table

T = TypeVar("T")
Pairing = Callable[[Ranking], Sequence["Duet"]]  # who plays with whom, by the ranking of the blocks
STAGGER_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Duet:
    """Two neighbours of a table; the same name twice is the A/A pair that shows the bias."""

    first: str
    second: str
    test_type: str
    level: Level


def neighbours(ranking: Ranking) -> tuple[Duet, ...]:
    """Adjacent rows of each headline table whose order is open, and the reference against itself."""
    found = []
    for kind, test_type in ranking.test_types.items():
        table = test_type.headline
        rows = [row for row in table.rows if row.ranked and row.throughput and row.level]
        for above, below in pairwise(rows):
            if is_open(above, below) and above.level == below.level and above.level:
                found.append(
                    Duet(first=above.implementation, second=below.implementation, test_type=kind, level=above.level)
                )
        if any(duet.test_type == kind for duet in found):
            found.append(_itself(table, rows, kind, ranking.reference))
    return tuple(found)


def is_open(above: Row, below: Row) -> bool:
    """Whether the blocks left the order of two neighbours undecided, by throughput."""
    one, other = above.throughput, below.throughput
    return one is not None and other is not None and one.tie_group == other.tie_group


def _itself(table: Table, rows: Sequence[Row], kind: str, reference: str | None) -> Duet:
    row = next((row for row in rows if row.implementation == reference), rows[0])
    level = row.level or table.level
    assert level is not None  # noqa: S101 - a ranked row has one
    return Duet(first=row.implementation, second=row.implementation, test_type=kind, level=level)


def run(run: Run, duets: Sequence[Duet], verdicts: Mapping[tuple[str, str], Verdict]) -> None:
    """Play every duet in each of its starts; one that fails is a problem of the run, not its end."""
    rules = run.testbed.profile.duets
    for start in range(rules.starts):
        for duet in duets:
            run.progress.replicate(f"{duet.first} with {duet.second}", start, rules.starts)
            try:
                for sample in play(run, duet, start, verdicts):
                    run.store.add_sample(sample)
                    run.progress.sample(sample)
            except ENDS_THE_RUN:
                raise
            except TfbError as error:
                run.progress.problem(f"duet of {duet.first} and {duet.second}: {error}")


def play(run: Run, duet: Duet, start: int, verdicts: Mapping[tuple[str, str], Verdict]) -> Iterator[Sample]:
    """Start both, warm both at the same time, then yield the samples of pair after pair, slots swapped each time.

    The first of them is started first in even starts and second in odd ones: of two copies, the later one was 1 to 2 %
    faster.
    """
    bed = run.testbed
    test_type, rules = TEST_TYPES[duet.test_type], bed.profile.duets
    names = (duet.first, duet.second) if start % 2 == 0 else (duet.second, duet.first)
    bed.database.restore()
    over = threading.Event()
    with ExitStack() as stack:
        targets = []
        for slot, name in enumerate(names):
            implementation = run.implementations[name]
            log = run.store.log(name, f"duet{start}-{slot}-{duet.test_type}")
            server = stack.enter_context(
                bed.runtime.start(implementation, bed.database.address, log, ready_path=implementation.ready_path)
            )
            targets.append(
                Target(
                    server=server,
                    test_type=test_type,
                    levels=(duet.level,),
                    verdict=verdicts[name, duet.test_type],
                    database=bed.database,
                    jit=True,  # whatever they are: both are warmed for the same time
                    block=start,
                    process=start,
                    partner=names[1 - slot],
                    stop=over.is_set,
                )
            )
        run.progress.cell(duet.test_type, "warm-up", duet.level)
        together(bed.clock, over, *(partial(sweep.warm, bed, target) for target in targets))
        run.progress.cell(duet.test_type, "duet", duet.level)
        for pair in range(rules.pairs):
            order = targets if pair % 2 == 0 else targets[::-1]
            work = (
                partial(sweep.take_sample, bed, target, duet.level, seconds=rules.seconds, attempt=pair)
                for target in order
            )
            yield from together(bed.clock, over, *work)


def together(clock: Clock, over: threading.Event, *work: Callable[[], T]) -> list[T]:
    """Run the works at the same time, started in their order; an interruption ends their loads before it goes on.

    The next one is started when the one before has begun, and a moment later: slots would be swapped by chance.
    """
    with ExitStack() as threads:
        try:
            futures = []
            for each in work:
                begun = threading.Event()
                pool = threads.enter_context(ThreadPoolExecutor(1))
                futures.append(pool.submit(_begin, clock, begun, each))
                begun.wait()
                clock.sleep(STAGGER_SECONDS)
            return [future.result() for future in futures]
        except BaseException:
            over.set()
            raise


def _begin(clock: Clock, begun: threading.Event, work: Callable[[], T]) -> T:
    clock.monotonic()  # its time is its own from here on, where a clock has one for each thread
    begun.set()
    return work()


def last_verdicts(verdicts: Sequence[Verdict]) -> dict[tuple[str, str], Verdict]:
    """The latest verdict of each implementation and test type: it knows the verified response sizes."""
    return {(v.implementation, v.test_type): v for v in sorted(verdicts, key=lambda v: v.replicate)}
