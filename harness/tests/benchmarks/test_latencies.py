"""The findings of a run: wrk beside what is true, the share at which the goal is passed, and the order at one rate."""

from harness.benchmarks.latencies import findings, orders, passing, side_by_side
from harness.records.models import AuditedLoad, LatencyGoal
from harness.stats.capacity import estimate_of
from harness.stats.model import GoalRow, LatencyTable, Ranking, RankInterval, RatePoint, Standing
from harness.tests import records


def point(p99: float | None, *, share: float | None = None, rate: float = 1000.0, word: str = "") -> RatePoint:
    """A load whose p99 was this, in three processes."""
    found = {"99": estimate_of({0: p99 * 0.98, 1: p99, 2: p99 * 1.02}, 0.95)} if p99 else {}
    return RatePoint(
        purpose="common" if share is None else "share",
        share=share,
        rate=rate,
        achieved_rate=rate,
        percentiles=found,
        maximum=None,
        lag_p99=None,
        replicates=3,
        dropped=0,
        words=(word,) if word else (),
    )


def row(name: str, closed_loop: float, *points: RatePoint) -> GoalRow:
    """An implementation that met the goal at eight tenths of its closed loop."""
    capacity = Standing(
        estimate=estimate_of({0: 0.8 * closed_loop}, 0.95),
        position=1,
        rank=RankInterval(low=1, high=1),
        tie_group=1,
        to_reference=None,
        to_best=None,
    )
    return GoalRow(implementation=name, capacity=capacity, closed_loop=closed_loop, above=None, points=points)


def table(*rows: GoalRow) -> LatencyTable:
    return LatencyTable(test_type="json", goal=LatencyGoal(), rows=rows)


def test_wrk_s_figures_stand_beside_the_true_ones_of_the_same_sample() -> None:
    service = records.LATENCY.model_copy(
        update={"basis": "closed-loop, service time", "mean": 0.00025, "percentiles": {"50": 0.0004, "99": 0.0005}}
    )
    load = AuditedLoad(duration=1.0, requests=2000, cpu_per_request=None, latency=service)
    samples = [s.model_copy(update={"audited": load}) for s in records.samples()[:2]]
    (_, _, line) = side_by_side([*samples, records.samples()[2]])
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:2] == ["fast json c64", "2"]
    assert cells[2:5] == ["0.50", "0.25", "2.00"]  # the mean
    assert cells[-3:] == ["2.00", "0.50", "4.00"]  # p99


def test_a_run_without_audits_says_what_they_need() -> None:
    assert list(side_by_side(records.samples())) == ["No sample has both: audited loads need cargo."]


def test_the_share_at_which_the_goal_is_passed_is_between_two_loads() -> None:
    late = [point(0.002, share=0.5), point(0.009, share=0.8), point(0.03, share=0.9), point(0.2, share=0.95)]
    lost = [point(0.002, share=0.5), point(None, share=0.9, word="rate not achieved")]
    told = [point(0.002, share=0.5), point(None, share=0.7, word="generator lag"), point(0.004, share=0.8)]
    lines = list(passing(table(row("late", 1000, *late), row("lost", 1000, *lost), row("told", 1000, *told))))
    assert lines[0].startswith("- late: within the goal at 80%, at 90% 30.0 ms; its capacity at the goal is 800 req")
    assert "lost: within the goal at 50%, at 90% not held in every process (rate not achieved)" in lines[1]
    assert "told: p99 is within the goal up to 80% of the closed loop, the highest share tried" in lines[2]


def test_the_order_at_a_common_rate_is_held_against_the_order_by_throughput() -> None:
    rows = (row("a", 9000, point(0.001)), row("b", 8000, point(0.005)), row("c", 7000, point(0.003)))
    (line,) = orders(table(*rows))
    assert "a 1.00, c 3.00, b 5.00" in line
    assert (
        "Not the order by throughput (a, b, c): 2 of 3 pairs are alike; of the 3 whose intervals are apart, 2" in line
    )


def test_the_document_has_a_section_for_each_question() -> None:
    ranking = Ranking(run_id="r", reference=None, latency={"json": table(row("a", 9000, point(0.001)))})
    titles = [line for line in findings(records.samples(), ranking) if "## " in line]
    assert len(titles) == 3
