"""A group of test types has its own score, and does not change the overall score."""

from harness.stats.ranking import rank
from harness.stats.ranking_model import Ranking
from harness.tests.doubles.invented import simulated

SPEEDS = {"vertx-web": 1.3, "resteasy": 1.0}


def group_ranking(*test_types: str) -> Ranking:
    run = simulated(SPEEDS, test_types)
    return rank(run.info, run.trials, run.processes, run.verdicts)


def test_a_group_has_its_own_score() -> None:
    ranking = group_ranking("json", "json-items", "json-compressed")
    assert {kind for score in ranking.overall for kind in score.ratios} == {"json"}
    (name, scores), *others = ranking.groups.items()
    assert (name, others) == ("protocols", [])
    assert {kind for score in scores for kind in score.ratios} == {"json-items", "json-compressed"}


def test_a_run_of_one_group_has_one_score() -> None:
    ranking = group_ranking("json-items")
    assert {kind for score in ranking.overall for kind in score.ratios} == {"json-items"}
    assert ranking.groups == {}
