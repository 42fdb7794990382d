"""A run's records become tables and a score that say what is known, and what is not and why."""

import cProfile

import pytest

from harness.benchmarks import ranking as benchmark
from harness.plan.profile import Replication
from harness.records.models import (
    Build,
    CheckResult,
    Closed,
    Load,
    NoiseFloor,
    Outcome,
    ReplicateRecord,
    Verdict,
)
from harness.stats import rules
from harness.stats.model import Row, Standing, Table
from harness.stats.ranking import rank
from harness.tests.stats.records import ERRORS, LEVEL, five, run, sample


def row(table: Table, name: str) -> Row:
    return next(each for each in table.rows if each.implementation == name)


def throughput(table: Table, name: str) -> Standing:
    standing = row(table, name).throughput
    assert standing is not None
    return standing


def cost(table: Table, name: str) -> Standing:
    standing = row(table, name).cpu_per_request
    assert standing is not None
    return standing


def test_rows_are_ordered_by_median_throughput_with_ratios_to_the_reference() -> None:
    samples = [*five("slow", 100.0), *five("fast", 200.0, phase=1), *five("middle", 150.0, phase=2)]
    table = rank(run("slow", "fast", "middle", reference="slow"), samples, [], []).test_types["json"].headline
    assert [each.implementation for each in table.rows] == ["fast", "middle", "slow"]
    fast = throughput(table, "fast")
    assert fast.estimate.median == pytest.approx(200.0)
    assert fast.estimate.replicates == 5
    assert fast.rank.label == "1"
    assert fast.to_reference is not None
    assert fast.to_reference.value == pytest.approx(2.0)
    assert fast.to_reference.low is not None
    assert 1.9 < fast.to_reference.low < 2.0
    assert table.comparisons == 3


def test_cpu_per_request_is_ranked_with_less_first() -> None:
    table = rank(run("a", "b"), [*five("a", 100.0), *five("b", 200.0, phase=1)], [], []).test_types["json"].headline
    best = cost(table, "b")
    assert best.position == 1
    assert best.rank.label == "1"
    assert best.estimate.median == pytest.approx(1 / 200, rel=1e-3)


def test_servers_within_noise_share_a_tie_group_and_a_rank_interval() -> None:
    samples = [*five("a", 100.0), *five("b", 100.3, phase=2), *five("c", 150.0, phase=1)]
    table = rank(run("a", "b", "c"), samples, [], []).test_types["json"].headline
    tied = [throughput(table, name) for name in ("a", "b")]
    assert [standing.rank.label for standing in tied] == ["2–3", "2–3"]
    assert {standing.tie_group for standing in tied} == {2}


def test_a_difference_below_the_noise_floor_is_a_tie() -> None:
    samples = [*five("a", 100.0), *five("b", 110.0, phase=2)]
    info = run("a", "b")
    assert throughput(rank(info, samples, [], []).test_types["json"].headline, "b").rank.label == "1"
    floor = NoiseFloor(
        implementation="a", profile="quick", measured_at=0.0, pairs=6, throughput=0.12, cpu_per_request=0.02
    )
    noisy = rank(info.model_copy(update={"noise_floor": floor}), samples, [], [])
    table = noisy.test_types["json"].headline
    assert throughput(table, "b").rank.label == "1–2"
    assert cost(table, "b").rank.label == "1"
    assert noisy.noise_floor == floor


def test_the_headline_of_a_concurrency_sweep_takes_each_implementation_at_its_best_level() -> None:
    low, high = Closed(connections=16), Closed(connections=256)
    samples = [
        *five("a", 100.0, level=low),
        *five("a", 80.0, level=high),
        *five("b", 50.0, level=low, phase=1),
        *five("b", 90.0, level=high, phase=1),
    ]
    ranking = rank(run("a", "b", levels={"json": (low, high)}), samples, [], []).test_types["json"]
    assert ranking.headline.level is None
    assert {each.implementation: each.level for each in ranking.headline.rows} == {"a": low, "b": high}
    assert [table.level for table in ranking.levels] == [low, high]
    assert throughput(ranking.levels[1], "b").position == 1


def test_the_headline_of_a_query_sweep_is_the_highest_count() -> None:
    one, twenty = Closed(connections=64, queries=1), Closed(connections=64, queries=20)
    samples = [
        *five("a", 500.0, test_type="query", level=one),
        *five("a", 50.0, test_type="query", level=twenty),
    ]
    ranking = rank(run("a", levels={"query": (one, twenty)}), samples, [], []).test_types["query"]
    assert ranking.headline.level == twenty
    assert throughput(ranking.headline, "a").estimate.median == pytest.approx(50.0)


def test_what_is_not_ranked_says_why() -> None:
    names = ("good", "wrong", "faulty", "absent", "broken", "dead", "liar")
    info = run(*names)
    infos = [
        each.model_copy(update={"build": Build(status="failed", reason="javac: 3 errors")})
        if each.name == "broken"
        else each
        for each in info.implementations
    ]
    info = info.model_copy(update={"implementations": tuple(infos)})
    bad = CheckResult(check="json-body", rule="json.2", outcome=Outcome.FAIL)
    verdict = Verdict(
        implementation="wrong",
        test_type="json",
        replicate=0,
        thorough=True,
        outcome=Outcome.FAIL,
        results=(bad,),
        duration=0.1,
    )
    dead = ReplicateRecord(
        implementation="dead",
        block=0,
        replicate=0,
        started_at=0.0,
        first_answer=None,
        status="failed",
        reason="never answered",
    )
    samples = [
        *five("good", 100.0),
        *five("wrong", 900.0, phase=1),
        *(each.model_copy(update={"gates": (ERRORS,)}) for each in five("faulty", 900.0)),
        *(each.model_copy(update={"probe_failures": (bad,)}) for each in five("liar", 900.0)),
    ]
    table = rank(info, samples, [dead], [verdict]).test_types["json"].headline
    assert {each.implementation: each.reason for each in table.rows} == {
        "good": "",
        "wrong": "verification failed: json-body",
        "faulty": "kept out by its gates in every attempt: errors",
        "absent": "missing",
        "broken": "build failed: javac: 3 errors",
        "dead": "never answered",
        "liar": "wrong answers under load: json-body",
    }
    assert [each.implementation for each in table.rows if each.ranked] == ["good"]
    assert row(table, "wrong").throughput is None
    assert throughput(table, "good").rank.label == "1"
    assert row(table, "faulty").dropped == 5


def test_the_score_is_the_geometric_mean_of_the_ratios_and_missing_is_missing() -> None:
    levels: dict[str, tuple[Load, ...]] = {"json": (LEVEL,), "db": (LEVEL,)}
    samples = [
        *five("base", 100.0),
        *five("base", 10.0, test_type="db"),
        *five("other", 200.0, phase=1),
        *five("other", 80.0, test_type="db", phase=1),
        *five("half", 300.0, phase=2),
    ]
    overall = rank(run("base", "other", "half", reference="base", levels=levels), samples, [], []).overall
    scores = {each.implementation: each for each in overall}
    assert scores["other"].score == pytest.approx(4.0)
    assert scores["other"].low is not None
    assert scores["other"].high is not None
    assert scores["other"].low < 4.0 < scores["other"].high
    assert scores["other"].cpu_score == pytest.approx(4.0, rel=1e-3)
    assert scores["base"].score == 1.0
    assert scores["half"].score is None
    assert scores["half"].missing == ("db",)
    assert scores["half"].ratios["json"] == pytest.approx(3.0)
    assert [each.implementation for each in overall] == ["other", "base", "half"]


def test_a_score_does_not_change_when_other_implementations_leave() -> None:
    samples = [*five("base", 100.0), *five("other", 117.0, phase=1), *five("third", 300.0, phase=2)]
    full = rank(run("base", "other", "third", reference="base"), samples, [], []).overall
    part = rank(run("base", "other", reference="base"), samples[:10], [], []).overall
    assert next(s.score for s in full if s.implementation == "other") == pytest.approx(
        next(s.score for s in part if s.implementation == "other")
    )


def test_without_a_reference_there_is_no_score_and_the_ranking_says_so() -> None:
    ranking = rank(run("a", "b"), [*five("a", 100.0), *five("b", 200.0)], [], [])
    assert ranking.overall == ()
    assert ranking.notes == ("no reference implementation: there are no ratios to it and no overall score",)


def test_fewer_than_five_replicates_are_provisional_and_one_has_no_interval() -> None:
    table = rank(run("a"), [sample("a", 0, 100.0)], [], []).test_types["json"].headline
    assert table.rows[0].words == ("provisional",)
    assert throughput(table, "a").estimate.low is None
    assert throughput(table, "a").rank.label == "1"


def test_a_run_without_any_sample_ranks_nothing_and_does_not_fail() -> None:
    ranking = rank(run("a", "b", reference="a"), [], [], [])
    assert [each.reason for each in ranking.test_types["json"].headline.rows] == ["missing", "missing"]
    assert ranking.overall == ()


def test_the_shares_of_the_error_that_looks_spend_add_up_to_the_whole() -> None:
    rule = Replication(minimum=5, maximum=12, looks=(5, 7, 9, 12))
    shares = [rules.alpha_at(rule, look) for look in rules.looks(rule)]
    assert sum(shares) == pytest.approx(0.05)
    assert shares[0] == pytest.approx(0.05 * (5 / 12) ** 2)
    assert rules.alpha_at(rule, 6) == shares[1]
    assert rules.alpha_at(rule, 20) == shares[-1]
    assert rules.alpha_at(Replication(minimum=3, maximum=3), 3) == pytest.approx(0.05)


def test_the_cost_of_ranking_does_not_grow_with_the_pairs() -> None:
    """Each further 20 implementations take as many calls of Python as the 20 before, whatever pairs they bring."""

    def calls(implementations: int) -> int:
        profile = cProfile.Profile()
        profile.runcall(benchmark.measure, implementations, 3)
        return sum(entry.callcount for entry in profile.getstats())

    few, some, many = (calls(implementations) for implementations in (40, 60, 80))
    # 1.005 times; one call for each pair of each of the 20 cells would add 8,000 to 125,000.
    assert many - some < 1.02 * (some - few)
