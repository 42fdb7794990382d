"""A made-up run of four implementations and made-up rankings. The expected reports are derived from them."""

from collections.abc import Mapping
from typing import Any

from harness.plan.profile import ProcessLimits
from harness.records.loads import Load, Scenario
from harness.records.measurements import ServerUsage
from harness.records.run_info import Machine, RunInfo
from harness.records.trial_record import Trial, ValidityCheck
from harness.records.verification_record import Outcome
from harness.stats import ranking_model
from harness.stats.ranking_model import Estimate, Quantity, Ranking, RankInterval, Ratio, Row, Score, Standing, Table
from harness.tests.doubles import runs

JSON = runs.LOAD
NAMES = ("vertx-web", "es4x", "resteasy", "express")
PLACES = ((1, 1), (2, 2), (3, 4), (3, 4))  # rank intervals of NAMES, the same for both metrics


def machine(grade: str = "D", concerns: tuple[str, ...] = ()) -> Machine:
    """Return a machine with two CPUs."""
    own = {"os": "Debian", "kernel": "6.1", "cpu_model": "Slow CPU", "grade": grade, "concerns": concerns}
    return runs.MACHINE.model_copy(update=own)


def info(names: tuple[str, ...] = NAMES, *, ranked: bool = True, **fields: Any) -> RunInfo:
    """Return the description of a completed run whose test type is json."""
    run = runs.run_info(names, ProcessLimits(minimum=2, maximum=2), reference=names[0])
    java = {"language": "Java", "test_types": ("json", "query")}
    defaults = {
        "run_id": "20260101-000000",
        "started_at": 1000.0,
        "completed_at": 1061.0,
        "profile": "quick" if ranked else "smoke",
        "settings": {"profile": {"ranked": ranked}},
        "machine": machine(),
        "implementations": tuple(each.model_copy(update=java) for each in run.implementations),
    }
    return run.model_copy(update={**defaults, **fields})


def trial(
    name: str, process: int, throughput: float, load: Load = JSON, test_type: str = "json", **fields: Any
) -> Trial:
    """Return a two-second trial in which the server uses one of two CPUs."""
    trial_ = runs.trial(name, throughput, process, fields.get("round", 0), test_type=test_type, load=load)
    defaults = {
        "started_at": 1000.0 + process,
        "duration": 2.0,
        "asked_duration": 2.0,
        "requests": round(throughput * 2),
        "server": use(),
        "evidence": None,
    }
    return Trial.model_validate({**dict(trial_), **defaults, **fields})


def use(rss_peak: float = 1e8, threads: int = 20) -> ServerUsage:
    """Return a server's resource usage."""
    return ServerUsage(
        cpu_seconds=2.0, rss_peak=rss_peak, wait_share=None, throttled_seconds=None, threads_peak=threads
    )


def validity_check(name: str, outcome: Outcome) -> ValidityCheck:
    """Return a validity check with a flag."""
    return ValidityCheck(name=name, outcome=outcome, value=1.0, threshold=0.0, flag=name)


def estimate(value: float) -> Estimate:
    """Return an estimate from two processes, with an interval of ±1 %."""
    return Estimate(median=value, low=value * 0.99, high=value * 1.01, processes=2, values=(value, value))


def standing(value: float, best: float, ranks: tuple[int, int], position: int) -> Standing:
    """Return the standing of ``value``, whose ratio to the best value has an interval of ±2 %."""
    ratio = value / best
    to_best = Ratio(value=ratio, low=ratio * 0.98, high=ratio * 1.02)
    return Standing(
        estimate=estimate(value), position=position, rank=RankInterval(low=ranks[0], high=ranks[1]),
        tie_group=ranks[0], to_reference=to_best, to_best=to_best,
    )  # fmt: skip


def row(name: str, position: int, ranks: tuple[int, int], **fields: Any) -> Row:
    """Return the row at a position. Each position halves the throughput and doubles the CPU time per request."""
    throughput, cpu = 80_000 / 2 ** (position - 1), 10e-6 * 2 ** (position - 1)
    return Row(
        implementation=name,
        load=JSON,
        throughput=standing(throughput, 80_000, ranks, position),
        cpu_per_request=standing(cpu, 10e-6, ranks, position),
        rss_peak=100 * 2**20,
        startup_time=0.5,
        errors=0,
        latency=ranking_model.ClosedLoopLatency(
            mean=estimate(0.001), percentiles={"50": estimate(0.0008), "99": estimate(0.004)}, maximum=0.1
        ),
        trials=8,
        **fields,
    )


def unranked(name: str, reason: str) -> Row:
    """Return an unranked row."""
    return Row(implementation=name, errors=6, ranked=False, reason=reason, trials=8, dropped=8)


def table(rows: tuple[Row, ...], load: Load | None = JSON, test_type: str = "json") -> Table:
    """Return a table of a test type at a load."""
    return Table(test_type=test_type, load=load, rows=rows)


def rows(places: Mapping[str, tuple[int, int]]) -> tuple[Row, ...]:
    """Return one row per name, in the given order."""
    return tuple(row(name, position, place) for position, (name, place) in enumerate(places.items(), 1))


def ranking(
    of: tuple[Row, ...] = rows(dict(zip(NAMES, PLACES, strict=True))), leading: Quantity = "cpu", **fields: Any
) -> Ranking:
    """Return a ranking of json whose overall scores have the same order."""
    headline = table(of)
    scores = tuple(
        Score(
            implementation=each.implementation, throughput=turned(each.throughput), cpu=turned(each.throughput),
            ratios={}, missing=() if each.ranked else ("json",),
        )
        for each in of
    )  # fmt: skip
    tables = [headline]
    if "orders" in fields:
        tables.append(table((), Scenario(factor=8.0, connections=64), "order"))
    return Ranking(
        run_id="20260101-000000",
        reference=of[0].implementation,
        leading=leading,
        test_types={
            each.test_type: ranking_model.TestTypeRanking(test_type=each.test_type, headline=each, tables=(each,))
            for each in tables
        },
        **{"overall": scores, **fields},
    )


def turned(found: Standing | None) -> Standing | None:
    """Convert a throughput's standing to a score's. A score of 1 is 80,000 requests/s."""
    return found and found.model_copy(update={"estimate": estimate(found.estimate.median / 80_000)})
