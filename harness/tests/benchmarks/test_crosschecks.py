"""What is true of a load follows from the server's record and the rate alone."""

import pytest

from harness.benchmarks.crosschecks import kept_rate, overtaking_truth, start, summary, truth

MS = 1_000_000
RATE = 500.0  # one is due every 2 ms
BEGAN = 7_000 * MS


def test_the_load_began_when_no_request_can_have_come_before_it_was_due() -> None:
    assert start([BEGAN + 7 * MS, BEGAN + 1 * MS, BEGAN + 2 * MS], RATE) == BEGAN  # the second alone was not late


def test_the_rate_is_the_one_that_was_kept() -> None:
    assert kept_rate([BEGAN, BEGAN + 7 * MS, BEGAN + 8 * MS]) == pytest.approx(250)


def test_answers_are_held_against_the_times_at_which_they_were_due() -> None:
    came = [BEGAN + i * 2 * MS for i in range(100)]
    answered = [one + 10 * MS for one in came]
    assert truth(answered, came, RATE, requests=100) == {"mean": 10, "p50": 10, "p90": 10, "p99": 10}
    stood_still = [max(one, BEGAN + 150 * MS) for one in answered]
    assert truth(stood_still, came, RATE, requests=100)["p99"] == 150
    assert truth(stood_still, came, RATE, requests=50)["mean"] == pytest.approx(150 - 49)


def test_answers_that_overtake_each_other_are_their_own_requests() -> None:
    came = [BEGAN + i * 2 * MS for i in range(50)]
    delays = [100.0 if i == 49 else 1.0 for i in range(50)]
    found = overtaking_truth(came, delays, RATE)
    assert found["p50"] == 1.0
    assert found["p99"] == 100.0


def test_percentiles_are_of_ascending_times() -> None:
    assert summary([1.0, 2.0, 3.0, 4.0]) == {"mean": 2.5, "p50": 3.0, "p90": 4.0, "p99": 4.0}
