"""The answer in sentences, from rankings with known orders."""

import pytest

from harness.benchmarks.simulation import run_info, sample
from harness.plan.profile import Replication
from harness.records.models import Closed, Load, RunInfo
from harness.report.sentence import Metric, sentence, sentences
from harness.stats.model import Ranking
from harness.stats.ranking import rank

LEVELS: dict[str, tuple[Load, ...]] = {"json": (Closed(connections=64),), "db": (Closed(connections=64),)}
WOBBLE = (1.0, 1.01, 0.99, 1.005, 0.995, 1.002, 0.998, 1.004)


def ranked(
    speeds: dict[str, float], *, blocks: int = 8, status: str = "complete", once: str = ""
) -> tuple[RunInfo, Ranking]:
    names = tuple(speeds)
    known = run_info(names, Replication(minimum=blocks, maximum=blocks), reference=names[0], levels=LEVELS)
    info = known.model_copy(update={"status": status})
    samples = [
        sample(name, block, speed * WOBBLE[(block + place) % len(WOBBLE)], test_type=kind, level=LEVELS[kind][0])
        for place, (name, speed) in enumerate(speeds.items())
        for kind in LEVELS
        for block in range(1 if name == once else blocks)
    ]
    return info, rank(info, samples, [], [])


def test_the_leader_is_named_with_its_figure_its_factor_and_the_last() -> None:
    info, ranking = ranked({"quick": 3000.0, "middling": 2000.0, "slow": 500.0})
    lead = sentence(info, ranking, "json").lead
    assert lead.startswith("quick leads in JSON with 3,")
    assert "1.50× [1." in lead
    assert "as much as middling, the next" in lead
    assert lead.endswith("6.00× as much as slow, the last of 3.")


def test_ties_for_the_lead_are_named_together_and_the_factor_is_over_the_first_that_is_behind() -> None:
    info, ranking = ranked({"one": 3000.0, "two": 3000.0, "slow": 1000.0})
    said = sentence(info, ranking, "json")
    assert "tie for the lead in JSON" in said.lead
    assert {"one", "two"} <= set(said.lead.replace(",", "").split())
    assert "3.00×" in said.lead
    assert said.certainty.startswith("First place is not decided at 95 %; 1 of 3 places is settled")


def test_when_all_tie_nobody_leads() -> None:
    info, ranking = ranked({"one": 3000.0, "two": 3000.0})
    assert sentence(info, ranking, "json").lead in {
        "JSON: one and two tie, and nobody is known to lead.",
        "JSON: two and one tie, and nobody is known to lead.",
    }


def test_overall_is_by_the_score() -> None:
    info, ranking = ranked({"quick": 3000.0, "slow": 1500.0})
    lead = sentence(info, ranking, "overall").lead
    assert lead == "quick leads overall with a score of 1.00, 2.00× as much as slow."


def test_by_cpu_less_is_better() -> None:
    info, ranking = ranked({"quick": 3000.0, "slow": 1000.0})
    lead = sentence(info, ranking, "json", "cpu").lead
    assert lead.startswith("quick needs the least CPU in JSON with ")
    assert "3.00×" in lead
    assert lead.endswith("better than slow.")


def test_one_replicate_is_said_to_decide_nothing() -> None:
    info, ranking = ranked({"quick": 3000.0, "slow": 1000.0}, blocks=1)
    said = sentence(info, ranking, "json")
    assert said.certainty == "One replicate each: an order of point estimates, none of which is sure."
    assert "--profile standard" in said.surer


@pytest.mark.parametrize("test_type", ["json", "overall"])
def test_who_has_one_replicate_where_others_have_more_is_named(test_type: str) -> None:
    info, ranking = ranked({"quick": 3000.0, "slow": 1000.0, "late": 500.0}, once="late")
    said = sentence(info, ranking, test_type)
    assert said.certainty.endswith("late has one replicate, which decides nothing.")
    assert "One replicate each" not in said.certainty
    assert "0 of 2 places are settled (8 replicates)" in said.certainty  # it could be anywhere


def test_the_machine_is_named_and_a_run_in_progress_speaks_of_so_far() -> None:
    info, ranking = ranked({"quick": 3000.0, "slow": 1000.0}, status="running")
    said = sentence(info, ranking, "json")
    assert said.lead.startswith("So far: quick leads")
    assert info.machine.cpu_model in said.place
    assert f"profile {info.profile}" in said.place


@pytest.mark.parametrize("metric", ["throughput", "cpu"])
def test_nothing_measured_is_an_answer_too(metric: Metric) -> None:
    known = run_info(("a", "b"), Replication(minimum=2, maximum=2), reference="a", levels=LEVELS)
    ranking = rank(known, [], [], [])
    assert sentence(known, ranking, "json", metric).lead == "JSON: nothing has been measured that can be ranked."


def test_every_test_type_and_overall_have_an_answer_by_each_metric() -> None:
    info, ranking = ranked({"quick": 3000.0, "slow": 1000.0})
    said = sentences(info, ranking)
    assert list(said) == ["overall", "json", "db"]
    assert all(set(by_metric) == {"throughput", "cpu"} for by_metric in said.values())
    assert said["db"]["throughput"] == sentence(info, ranking, "db").parts
