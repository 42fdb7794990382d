"""Duets decide order, remove the effect of the slot, and give no sizes."""

import numpy as np
import pytest

from harness.records.models import Sample
from harness.stats import duet
from harness.stats.ranking import rank
from harness.tests.stats.records import LEVEL, five, run, sample

NOISE = (0.004, -0.006, 0.001, 0.005, -0.003, -0.001, 0.002, -0.002)


def duets(one: str, other: str, ratio: float, slot: float = 0.0, pairs: int = 8) -> list[Sample]:
    """Two pairs a start; slot 0 has an advantage of ``slot``; slots swap each pair; weather hits both."""
    made = []
    for pair in range(pairs):
        weather = 100.0 * (1 + 0.5 * np.sin(pair))
        first = pair % 2 == 0
        speed = {True: weather * ratio * (1 + NOISE[pair % 8]), False: weather}
        for is_one in (True, False):
            in_slot_0 = is_one == first
            value = float(speed[is_one] * (1 + slot * in_slot_0))
            made.append(
                sample(one if is_one else other, pair // 2, value).model_copy(
                    update={
                        "duet_partner": other if is_one else one,
                        "started_at": pair * 100.0 + (0.0 if in_slot_0 else 0.02),
                    }
                )
            )
    return made


def test_a_small_difference_is_decided_though_both_swing_by_half() -> None:
    decided = duet.decide_all(duets("a", "b", 1.02), alpha=0.05)
    assert decided.at("json", LEVEL) == ({("a", "b"): "a"}, {("a", "b"): "a"})
    assert decided.notes[0] == "json c64, throughput: a before b by 8 duets (order only, no size)"


def test_the_advantage_of_a_slot_is_no_advantage_of_the_implementation() -> None:
    decided = duet.decide_all(duets("a", "b", 1.0, slot=0.1), alpha=0.05)
    assert decided.at("json", LEVEL) == ({}, {})


def played(*ratios: tuple[float, float]) -> list[duet.Turn]:
    """Starts with one pair in each slot order."""
    return [
        duet.Turn(start=start, ratio=ratio, in_slot_0=ahead)
        for start, both in enumerate(ratios)
        for ratio, ahead in zip(both, (True, False), strict=True)
    ]


def test_slots_that_never_swap_decide_nothing() -> None:
    assert duet.order([turn for turn in played(*[(0.1, 0.1)] * 5) if turn.in_slot_0]) is None


def test_pairs_of_one_start_decide_nothing_because_they_share_its_luck() -> None:
    many = [duet.Turn(start=0, ratio=0.1, in_slot_0=bool(pair % 2)) for pair in range(20)]
    assert duet.order(many) is None


def test_effect_and_slot_are_told_apart() -> None:
    found = duet.order(played((0.15, -0.05), (0.16, -0.04), (0.14, -0.06)))
    assert found is not None
    assert found.effect == pytest.approx(0.05)
    assert found.slot == pytest.approx(0.1)
    assert found.error == pytest.approx(0.01 / np.sqrt(3))
    assert (found.starts, found.pairs, found.freedom) == (3, 6, 2)


def test_an_order_within_the_bias_of_an_a_a_pair_is_none() -> None:
    biased = duets("x", "x", 1.05)
    decided = duet.decide_all([*duets("a", "b", 1.02), *biased], alpha=0.05)
    assert decided.at("json", LEVEL)[0] == {}
    assert any("duets of x with itself differ by" in note for note in decided.notes)


def test_samples_that_did_not_run_at_the_same_time_are_no_pair() -> None:
    apart = [
        each.model_copy(update={"started_at": each.started_at + (50.0 if each.implementation == "b" else 0.0)})
        for each in duets("a", "b", 1.1)
    ]
    assert duet.match(apart) == {}


def test_a_ranking_orders_tied_neighbours_by_duets_and_keeps_the_sizes_of_the_blocks() -> None:
    blocks = [*five("a", 100.0), *five("b", 100.1, phase=2), *five("c", 300.0, phase=1)]
    before = rank(run("a", "b", "c"), blocks, [], []).test_types["json"].headline
    assert [each.throughput.rank.label for each in before.rows if each.throughput] == ["1", "2–3", "2–3"]
    after = rank(run("a", "b", "c"), [*blocks, *duets("b", "a", 1.02)], [], [])
    table = after.test_types["json"].headline
    ranks = {each.implementation: each.throughput.rank.label for each in table.rows if each.throughput}
    assert ranks == {"c": "1", "b": "2", "a": "3"}
    sizes = {each.implementation: each.throughput.estimate for each in table.rows if each.throughput}
    assert sizes == {each.implementation: each.throughput.estimate for each in before.rows if each.throughput}
    assert any("order only" in note for note in after.notes)
