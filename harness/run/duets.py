"""Duets: two implementations measured at the same moment on the same CPUs, to order neighbours whose blocks tie.

What disturbs one disturbs the other, so that order needs seconds where separate windows need minutes; they compete, so
that sizes mean nothing (``harness.rank.duet`` analyses them). One implementation plays against itself for the bias.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

from harness.errors import StoreError, TfbError
from harness.measure import sweep
from harness.measure.sweep import Bench
from harness.rank.model import Ranking, Row, Table
from harness.request.plan import PlannedReplicate
from harness.request.testtypes.registry import TEST_TYPES
from harness.results.records import Level, Sample, Verdict
from harness.run.replicate import Site

T = TypeVar("T")
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


def run(site: Site, duets: Sequence[Duet], verdicts: Mapping[tuple[str, str], Verdict]) -> None:
    """Play every duet in each of its starts; one that fails is a problem of the run, not its end."""
    for start in range(site.profile.duets.starts):
        for duet in duets:
            site.progress.replicate(f"{duet.first} with {duet.second}", start, site.profile.duets.starts)
            try:
                for sample in play(site, duet, start, verdicts):
                    site.store.add_sample(sample)
                    site.progress.sample(sample)
            except StoreError:
                raise
            except TfbError as error:
                site.progress.problem(f"duet of {duet.first} and {duet.second}: {error}")


def play(site: Site, duet: Duet, start: int, verdicts: Mapping[tuple[str, str], Verdict]) -> Iterator[Sample]:
    """Start both, warm both at the same time, then yield the samples of pair after pair, slots swapped each time.

    The first of them is started first in even starts and second in odd ones: of two copies, the later one was 1 to 2 %
    faster.
    """
    test_type = TEST_TYPES[duet.test_type]
    rules = site.profile.duets
    short = site.profile.model_copy(update={"duration_seconds": rules.seconds})
    names = (duet.first, duet.second) if start % 2 == 0 else (duet.second, duet.first)
    site.database.restore()
    over = threading.Event()
    with ExitStack() as stack:
        benches = []
        for slot, name in enumerate(names):
            implementation = site.implementations[name]
            server = stack.enter_context(
                site.runtime.start(
                    implementation,
                    site.database.address,
                    site.store.log(name, f"duet{start}-{slot}-{duet.test_type}"),
                    ready_path=implementation.ready_path,
                )
            )
            benches.append(
                Bench(
                    profile=short,
                    runtime=site.runtime,
                    generator=site.generator,
                    server=server,
                    database=site.database,
                    replicate=PlannedReplicate(
                        implementation=name, block=start, test_types={duet.test_type: (duet.level,)}, jit=True
                    ),
                    server_cpus=site.server_cpus,
                    generator_cpus=site.generator_cpus,
                    duet_partner=names[1 - slot],
                    stop=over.is_set,
                )
            )
        urls = [site.implementations[name].urls[duet.test_type] for name in names]
        sheets = [verdicts[name, duet.test_type] for name in names]
        site.progress.cell(duet.test_type, "warm-up", duet.level)
        together(
            over,
            *(partial(sweep.warm, benches[i], test_type, urls[i], sheets[i], (duet.level,)) for i in range(2)),
        )
        site.progress.cell(duet.test_type, "duet", duet.level)
        for pair in range(rules.pairs):
            order = (0, 1) if pair % 2 == 0 else (1, 0)
            yield from together(
                over,
                *(
                    partial(sweep.take_sample, benches[i], test_type, urls[i], sheets[i], duet.level, pair)
                    for i in order
                ),
            )


def together(over: threading.Event, *work: Callable[[], T]) -> list[T]:
    """Run the works at the same time, started in their order; an interruption ends their loads before it goes on."""
    with ThreadPoolExecutor(len(work)) as pool:
        try:
            futures = []
            for each in work:
                futures.append(pool.submit(each))
                time.sleep(STAGGER_SECONDS)  # threads begin in any order: the slots would be swapped by chance
            return [future.result() for future in futures]
        except BaseException:
            over.set()
            raise


def last_verdicts(verdicts: Sequence[Verdict]) -> dict[tuple[str, str], Verdict]:
    """The latest verdict of each implementation and test type: it knows the verified response sizes."""
    return {(v.implementation, v.test_type): v for v in sorted(verdicts, key=lambda v: v.replicate)}
