"""Loads of the order service with invented figures, and a run of them to look at. Nothing here is a measurement."""

import random
from pathlib import Path

from harness.plan.orders import CREATE, USE_CASES
from harness.records.models import Errors, Gate, Latency, LatencyGoal, Scenario, ReplicateRecord, Sample, ServerUse
from harness.records.orders import CAPACITIES, ORDERS, ArrivalTimes, OperationTimes, OrderCapacity, OrderSample
from harness.stats.whole import rank_whole
from harness.tests.doubles.invented import REAL, Maker, implementation

GOAL = LatencyGoal(percentile=99.0, seconds=0.1)
FACTORS = (1.0, 32.0)


def latency(median: float) -> Latency:
    """A tail three times as long as the median."""
    return Latency(
        basis="open-loop, intended send time",
        mean=median,
        stdev=0.0,
        min=median,
        max=3 * median,
        percentiles={"50": median, "90": 2 * median, "99": 3 * median},
    )


def load(name: str, block: int, factor: float, median: float, *, gates: tuple[Gate, ...] = ()) -> OrderSample:
    """A thousand arrivals of each use case, two of which failed; whole arrivals take twice as long as an operation."""
    operations = tuple(
        OperationTimes(
            use_case=case.name,
            operation=operation,
            due=1000,
            answered=998,
            errors=Errors(),
            latency=latency(median),
        )
        for case in USE_CASES
        for operation in dict.fromkeys(step.operation for step in case.steps)
    )
    return OrderSample(
        id=f"{name}/order/x{factor:g}-r{block}",
        implementation=name,
        block=block,
        process=block,
        factor=factor,
        started_at=0.0,
        duration=8.0,
        due=5000,
        done=4990,
        failed=10,
        unfinished=0,
        operations=operations,
        use_cases=tuple(
            ArrivalTimes(use_case=case.name, due=1000, done=998, latency=latency(2 * median)) for case in USE_CASES
        ),
        cpu_per_arrival=median / 2,
        database_cpu_seconds=5000 * median / 4,
        gates=gates,
    )


def sample(of: OrderSample) -> Sample:
    """The same as a sample of its level."""
    return Sample(
        id=of.id,
        implementation=of.implementation,
        test_type="order",
        level=Scenario(connections=64, factor=of.factor),
        block=of.block,
        started_at=of.started_at,
        duration=of.duration,
        asked_duration=of.duration,
        requests=of.done,
        bytes=0,
        errors=Errors(),
        throughput=of.done / of.duration,
        cpu_per_request=of.cpu_per_arrival,
        latency=next(one.latency for one in of.operations if one.operation == CREATE),
        server=ServerUse(cpu_seconds=1.0, rss_peak=1e8, rss_mean=1e8, wait_share=0.0, throttled_seconds=None),
        generator_cpu_seconds=0.1,
        generator_threads=1,
        gates=of.gates,
    )


def write(results: Path, run_id: str, *, started_at: float, blocks: int = 4) -> None:
    """A run of four implementations at two factors, one of which held the goal at no factor in its first process."""
    drawn = random.Random(3)
    items = [implementation(row).model_copy(update={"test_types": ("order",)}) for row in REAL]
    maker = Maker(run_id, [implementation(REAL[0])], blocks=blocks, seed=3)
    info = maker.info(started_at=started_at).model_copy(
        update={
            "implementations": tuple(items),
            "levels": {"order": tuple(Scenario(connections=64, factor=factor) for factor in FACTORS)},
        }
    )
    loads = [
        load(item.name, block, factor, (1 + place) * factor**0.2 * drawn.gauss(0.002, 0.00004))
        for block in range(blocks)
        for place, item in enumerate(items)
        for factor in FACTORS
    ]
    capacities = [
        OrderCapacity(
            implementation=item.name,
            block=block,
            goal=GOAL,
            factor=None if place == 3 and block == 0 else 120.0 / (1 + place) + block,
            above=132.0 / (1 + place) + block,
            decided=True,
            loads=5,
        )
        for block in range(blocks)
        for place, item in enumerate(items)
    ]
    replicates = [
        ReplicateRecord(
            implementation=item.name, block=block, started_at=started_at, first_answer=0.5, status="ok", log=None
        )
        for block in range(blocks)
        for item in items
    ]
    folder = results / run_id
    (folder / "logs").mkdir(parents=True)
    samples = [sample(one) for one in loads]
    for name, records in (
        ("samples.jsonl", samples),
        ("replicates.jsonl", replicates),
        (ORDERS, loads),
        (CAPACITIES, capacities),
    ):
        lines = "".join(record.model_dump_json() + "\n" for record in records)
        (folder / name).write_text(lines, encoding="utf-8")
    (folder / "run.json").write_text(info.model_dump_json(indent=1), encoding="utf-8")
    ranking, _ = rank_whole(folder, info, samples, replicates, ())
    (folder / "ranking.json").write_text(ranking.model_dump_json(), encoding="utf-8")
