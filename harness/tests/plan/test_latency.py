"""The goal as a command line writes it, and the rates that a run asks for."""

import pytest

from harness.cli.arguments import parser
from harness.cli.settings import settings
from harness.errors import UsageError
from harness.plan import profile as profiles
from harness.plan.latency import asked_rates, parse_goal
from harness.plan.profile import LatencyRules
from harness.records.models import LatencyGoal


@pytest.mark.parametrize(
    ("text", "percentile", "seconds", "label"),
    [
        ("p99=10ms", 99.0, 0.010, "p99 ≤ 10 ms"),
        ("P99.9=500us", 99.9, 0.0005, "p99.9 ≤ 0.5 ms"),
        (" p50=1.5s ", 50.0, 1.5, "p50 ≤ 1500 ms"),
    ],
)
def test_a_goal_is_a_percentile_and_a_time(text: str, percentile: float, seconds: float, label: str) -> None:
    goal = parse_goal(text)
    assert (goal.percentile, goal.label) == (percentile, label)
    assert goal.seconds == pytest.approx(seconds)
    assert goal.late_share == pytest.approx(1 - percentile / 100)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("10ms", "is not a goal such as p99=10ms"),
        ("p99=10", "units: us, ms, s"),
        ("p100=10ms", "is not a goal"),
        ("p99=-1ms", "is not a goal"),
        ("p99=0ms", "must be above 0"),
        ("p10=1ms", "at least 50"),
    ],
)
def test_what_is_no_goal_is_told_with_an_example(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_goal(text)


def test_the_flag_changes_the_profile_s_goal_and_is_refused_where_there_is_none() -> None:
    words = ["--test", "run", "--profile", "latency", "--latency-goal", "p99.9=5ms"]
    known = settings(parser().parse_args(words), words).profile.latency
    assert known is not None
    assert known.goal == LatencyGoal(percentile=99.9, seconds=0.005)
    words = ["--test", "run", "--profile", "smoke", "--latency-goal", "p99=5ms"]
    with pytest.raises(UsageError, match="profile smoke makes no loads at given rates; --profile latency and"):
        settings(parser().parse_args(words), words)


def test_common_rates_above_the_capacity_are_left_out() -> None:
    rates = asked_rates(LatencyRules(shares=(0.1, 0.9), common_rates=(500.0, 950.0, 960.0)), capacity=1000.0)
    assert [(r.purpose, r.rate, r.share) for r in rates] == [
        ("share", pytest.approx(100), 0.1),
        ("share", pytest.approx(900), 0.9),
        ("common", 500.0, None),
        ("common", 950.0, None),
    ]


def test_the_shipped_profile_loads_at_the_documented_shares() -> None:
    known = profiles.load("latency")
    assert known.test_types == ("json", "db")
    assert known.latency is not None
    assert known.latency.shares == (0.10, 0.25, 0.50, 0.70, 0.80, 0.90, 0.95)
    assert known.latency.goal == LatencyGoal(percentile=99, seconds=0.010)
    assert known.replication.minimum == 3


def test_the_time_of_a_latency_run_is_a_flag_s_and_stays_beside_another_goal() -> None:
    words = ["--test", "run", "--profile", "latency", "--time", "5m", "--latency-goal", "p99=5ms"]
    known = settings(parser().parse_args(words), words).profile.latency
    assert known is not None
    assert (known.time_seconds, known.goal.seconds) == (300.0, 0.005)
    words = ["--test", "run", "--profile", "standard", "--time", "5m"]
    with pytest.raises(UsageError, match="use quick or latency"):
        settings(parser().parse_args(words), words)
