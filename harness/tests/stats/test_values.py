"""Which attempt of a replicate counts, and which level is the best."""

import math

import numpy as np
import pytest

from harness.records.models import Closed
from harness.stats.values import attempt, best_level, choose, collect, log_matrix
from harness.tests.doubles.order_data import latency
from harness.tests.stats.records import CONTENDED, ERRORS, LEVEL, five, sample


def test_a_quiet_repeat_replaces_the_contended_attempt() -> None:
    first = sample("a", 0, 50.0).model_copy(update={"gates": (CONTENDED,)})
    second = sample("a", 0, 100.0).model_copy(update={"attempt": 1})
    assert choose([attempt(first), attempt(second)]) == [attempt(second)]
    cell = collect([first, second])["a", "json"][LEVEL]
    assert cell.throughput == {0: 100.0}
    assert (cell.samples, cell.dropped) == (2, 1)
    assert "contended" not in cell.words


def test_the_median_counts_where_every_attempt_is_contended_and_the_word_stays() -> None:
    attempts = [sample("a", 0, value).model_copy(update={"gates": (CONTENDED,)}) for value in (50.0, 70.0)]
    cell = collect(attempts)["a", "json"][LEVEL]
    assert cell.throughput == {0: 60.0}
    assert cell.words == ("contended", "provisional")


def test_a_failed_gate_keeps_a_sample_out_and_is_named() -> None:
    bad = sample("a", 0, 500.0).model_copy(update={"gates": (ERRORS,)})
    cell = collect([bad, sample("a", 1, 100.0)])["a", "json"][LEVEL]
    assert cell.throughput == {1: 100.0}
    assert cell.failed_words == ("errors",)
    assert cell.dropped == 1


def test_a_sample_without_a_response_has_no_logarithm_and_is_left_out() -> None:
    assert list(choose([attempt(sample("a", 0, 100.0).model_copy(update={"throughput": 0.0}))])) == []


def test_duets_give_no_sizes() -> None:
    assert collect([sample("a", 0, 100.0).model_copy(update={"duet_partner": "b"})]) == {}


def test_a_server_that_never_became_steady_says_so() -> None:
    members = [one.model_copy(update={"steady": one.block != 2}) for one in five("a", 100.0)]
    assert collect(members)["a", "json"][LEVEL].words == ("not steady",)


def test_the_best_level_is_the_one_with_the_highest_median_not_the_highest_value() -> None:
    low, high = Closed(connections=16), Closed(connections=256)
    samples = five("a", 100.0, level=low)
    samples += [sample("a", block, value, level=high) for block, value in enumerate((300.0, 80.0, 81.0, 82.0, 83.0))]
    assert best_level(collect(samples)["a", "json"]) == low


def test_a_level_with_few_valid_replicates_is_not_the_best_one() -> None:
    low, high = Closed(connections=16), Closed(connections=256)
    samples = [*five("a", 100.0, level=low), sample("a", 0, 500.0, level=high), sample("a", 1, 500.0, level=high)]
    assert best_level(collect(samples)["a", "json"]) == low


def test_the_matrix_has_a_column_for_every_block_and_nan_where_a_value_is_missing() -> None:
    matrix = log_matrix([{0: 1.0, 2: math.e}, {2: 1.0, 5: 1.0}])
    assert matrix.shape == (2, 3)
    assert matrix[0, :2] == pytest.approx([0.0, 1.0])
    assert np.isnan(matrix[0, 2])
    assert np.isnan(matrix[1, 0])


def test_response_time_memory_and_threads_are_medians_of_the_samples_that_count() -> None:
    members = [
        one.model_copy(
            update={
                "server": one.server.model_copy(update={"threads_peak": 10 + one.block}),
                "latency": latency(0.001 * (1 + one.block)),
            }
        )
        for one in five("a", 100.0)
    ]
    bad = sample("a", 5, 900.0).model_copy(update={"gates": (ERRORS,), "latency": latency(9.0)})
    cell = collect([*members, bad])["a", "json"][LEVEL]
    assert cell.threads == 12
    assert cell.throughput_per_memory == pytest.approx(100.0 / 50)  # megabytes of 10^6 bytes
    assert cell.response_time == pytest.approx(0.003)
    pipelined = collect([one.model_copy(update={"latency": None}) for one in members])["a", "json"][LEVEL]
    assert pipelined.response_time is None
