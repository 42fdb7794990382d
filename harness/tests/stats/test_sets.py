"""Blocks of several sets of machines: only ratios to the reference cross from one set to another."""

import numpy as np
import pytest

from harness.benchmarks import sets as simulated
from harness.benchmarks.simulation import MACHINE, run_info, sample
from harness.plan.profile import Replication
from harness.records.models import MachineSet, RunInfo, Sample
from harness.stats.model import Ranking
from harness.stats.ranking import rank

NAMES = ("ref", "a", "b", "c", "d")
TRUE = {"ref": 100.0, "a": 120.0, "b": 80.0, "c": 100.0, "d": 150.0}


def run(sets: int = 3, blocks: int = 2) -> RunInfo:
    rule = Replication(minimum=sets * blocks, maximum=sets * blocks)
    found = tuple(
        MachineSet(name=f"set{n}", machine=MACHINE, blocks=tuple(range(n * blocks, (n + 1) * blocks)))
        for n in range(sets)
    )
    return run_info(NAMES, rule, reference="ref").model_copy(update={"sets": found})


def records(speeds: tuple[float, ...] = (1.0, 3.0, 0.5), blocks: int = 2) -> list[Sample]:
    generator = np.random.default_rng(4)
    return [
        sample(name, number * blocks + block, TRUE[name] * speed * float(np.exp(generator.normal() * 0.01)))
        for number, speed in enumerate(speeds)
        for block in range(blocks)
        for name in NAMES
    ]


def ratios(found: Ranking) -> dict[str, float]:
    table = found.test_types["json"].headline
    return {
        row.implementation: row.throughput.to_reference.value
        for row in table.rows
        if row.throughput and row.throughput.to_reference
    }


def test_a_set_that_is_three_times_faster_changes_no_ratio_and_no_interval() -> None:
    alike = rank(run(), records((1.0, 1.0, 1.0)), [], [])
    unlike = rank(run(), records((1.0, 3.0, 0.5)), [], [])
    assert ratios(unlike) == pytest.approx(ratios(alike), rel=1e-9)
    widths = [
        [
            row.throughput.to_reference.high
            for row in found.test_types["json"].headline.rows
            if row.throughput and row.throughput.to_reference
        ]
        for found in (alike, unlike)
    ]
    assert widths[0] == pytest.approx(widths[1], rel=1e-6)


def test_the_ranking_is_by_ratios_and_finds_the_order() -> None:
    found = rank(run(), records(), [], [])
    assert ratios(found) == pytest.approx({name: value / 100 for name, value in TRUE.items()}, rel=0.02)
    assert [row.implementation for row in found.test_types["json"].headline.rows][:2] == ["d", "a"]
    assert any("3 sets of machines" in note for note in found.notes)
    assert {score.implementation: round(score.score or 0, 1) for score in found.overall}["d"] == 1.5


def test_what_happens_to_one_implementation_on_one_set_moves_no_other_row() -> None:
    plain = records()
    struck = [
        s.model_copy(update={"throughput": s.throughput / 7}) if s.implementation == "a" and s.block == 0 else s
        for s in plain
    ]
    before, after = ratios(rank(run(), plain, [], [])), ratios(rank(run(), struck, [], []))
    assert after["a"] < 0.8 * before["a"]
    del before["a"], after["a"]
    assert after == pytest.approx(before, rel=1e-12)


def test_a_row_that_was_on_one_set_only_says_so() -> None:
    kept = [s for s in records() if s.implementation != "b" or s.block < 2]
    rows = {row.implementation: row for row in rank(run(), kept, [], []).test_types["json"].headline.rows}
    assert "one set" in rows["b"].words
    assert "one set" not in rows["a"].words


def test_a_row_that_never_met_the_reference_is_not_ranked() -> None:
    kept = [
        s
        for s in records()
        if not (s.implementation == "ref" and s.block < 2) and not (s.implementation == "b" and s.block >= 2)
    ]
    rows = {row.implementation: row for row in rank(run(), kept, [], []).test_types["json"].headline.rows}
    assert rows["b"].reason == "no block that ref is in as well"
    assert rows["a"].ranked


def test_95_percent_intervals_hold_the_true_ratio_where_sets_differ_in_speed_and_taste() -> None:
    case = simulated.Case(sets=5, implementations=8, blocks=5, together=4, favour=0.03)
    found = simulated.simulate(case, runs=60, seed=11)
    assert 0.93 <= found.held <= 0.98
    assert found.by_block < found.held  # blocks of one set are no replicates of each other
