"""A run whose servers are measured in turns is ranked as any other, and old records still read."""

import numpy as np
import pytest

from harness.records.models import Sample
from harness.report.sentence import sentence
from harness.stats.ranking import rank
from harness.stats.values import collect
from harness.tests.stats.records import LEVEL, run, sample


def turns(name: str, speed: float, *, processes: int = 3, rounds: int = 6, seed: int = 0) -> list[Sample]:
    generator = np.random.default_rng(seed)
    return [
        sample(name, process, float(speed * luck * np.exp(0.03 * generator.normal()))).model_copy(
            update={"round": process * rounds + number}
        )
        for process, luck in enumerate(np.exp(0.01 * generator.normal(size=processes)))
        for number in range(rounds)
    ]


def test_a_process_has_one_value_however_many_its_turns() -> None:
    cell = collect(turns("a", 100.0))["a", "json"][LEVEL]
    assert list(cell.throughput) == [0, 1, 2]
    assert len(cell.throughput_windows) == 18
    assert cell.samples == 18


def test_a_table_of_turns_shows_both_components_and_decides_by_processes() -> None:
    names = ("a", "b", "c", "d")
    samples = [each for index, name in enumerate(names) for each in turns(name, 100.0 * 1.5**index, seed=index)]
    table = rank(run(*names, reference="a"), samples, [], []).test_types["json"].headline
    standings = {row.implementation: row.throughput for row in table.rows}
    assert [row.implementation for row in table.rows] == ["d", "c", "b", "a"]
    top = standings["d"]
    assert top is not None
    assert top.rank.label == "1"
    assert top.components is not None
    assert (top.components.processes, top.components.windows) == (3, 18)
    assert top.components.within is not None
    assert 0.02 < top.components.within < 0.04
    assert top.to_reference is not None
    assert top.to_reference.low is not None
    assert top.to_reference.low < 1.5**3 < (top.to_reference.high or 0)


def test_a_sample_written_before_there_were_rounds_stands_for_its_process() -> None:
    old = sample("a", 0, 100.0).model_dump(mode="json")
    del old["round"]
    read = Sample.model_validate(old)
    assert read.round is None
    assert collect([read])["a", "json"][LEVEL].throughput == {0: 100.0}


def test_one_process_says_what_its_interval_takes_for_granted() -> None:
    samples = [each for i, name in enumerate("abcd") for each in turns(name, 100.0 * 2**i, processes=1, seed=i)]
    table = rank(run(*"abcd"), samples, [], []).test_types["json"].headline
    standing = table.rows[0].throughput
    assert standing is not None
    assert standing.components is not None
    assert standing.components.text == "one process: fresh ones are taken to differ by 5 %"


def test_the_score_of_one_process_each_has_an_interval_no_narrower_than_its_tests() -> None:
    samples = [each for i, name in enumerate("abcd") for each in turns(name, 100.0 * 2**i, processes=1, seed=i)]
    ranking = rank(run(*"abcd", reference="a"), samples, [], [])
    best = ranking.overall[0]
    assert (best.implementation, best.rank and best.rank.label) == ("d", "1")
    assert best.low is not None
    assert best.high is not None
    assert best.low < 8 < best.high
    ratio = next(row.throughput for row in ranking.test_types["json"].headline.rows if row.implementation == "d")
    assert ratio is not None
    assert ratio.to_reference is not None
    assert best.low == pytest.approx(ratio.to_reference.low, rel=1e-6)  # of its only test


def test_the_answer_says_what_one_process_of_each_decided() -> None:
    samples = [each for i, name in enumerate("abcd") for each in turns(name, 100.0 * 2**i, processes=1, seed=i)]
    info = run(*"abcd", reference="a")
    said = sentence(info, rank(info, samples, [], []), "json").certainty
    assert said == "Every place is sure at 95 % (one process of each, so provisional)."
