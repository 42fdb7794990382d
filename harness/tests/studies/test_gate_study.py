"""Tests of the study of planted slowdowns."""

import numpy as np
import pytest

from harness.studies.gate import CALIBRATION, StudySession, calibrated_turns, format_table, resample
from harness.tests.extras.gate.test_judge import judged, session


def one(share: int, slower: float, seed: int, turns: int = 0) -> StudySession:
    result = judged(session(np.random.default_rng(seed), slower, noise=0.02))
    return StudySession(stack="go", share=share, number=seed, turns=turns, result=result)


def test_calibration_converts_a_share_into_turns() -> None:
    assert calibrated_turns(one(CALIBRATION, 2.0, 1, turns=1000), 10) == pytest.approx(100, rel=0.1)
    with pytest.raises(SystemExit, match="does not show"):
        calibrated_turns(one(CALIBRATION, 1.0, 1, turns=1000), 10)


def test_table_counts_detections_and_false_alarms() -> None:
    lost = StudySession(stack="go", share=10, number=9, turns=1, result=None, error="gone")
    rows = [one(CALIBRATION, 2.0, 1), one(0, 1.0, 1), one(0, 1.2, 2), one(10, 1.2, 3), lost]
    lines = list(format_table(rows))
    assert [line.split() for line in lines[1:3]] == [
        ["go", "0", "%", "2", "–", "1", "0", "5.0"],
        ["go", "10", "%", "2", "1", "0", "1", "5.0"],
    ]


@pytest.mark.simulation
def test_sessions_are_resampled_with_a_slowdown() -> None:
    lines = list(resample(session(np.random.default_rng(1), 1.0, size=(8, 4), noise=0.03), 4, sessions=40))
    assert [int(line.split()[0]) for line in lines] == [0, 3, 5, 10, 20]
    false, found = int(lines[0].split(" found, ")[1].split()[0]), int(lines[-1].split(": ")[1].split()[0])
    assert false <= 6
    assert found >= 38
