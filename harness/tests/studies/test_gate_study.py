"""Tests for the study that injects slowdowns."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import psutil
import pytest

from harness.studies import gate
from harness.studies.gate import (
    BUSY_PROGRAM,
    CALIBRATION,
    StudySession,
    busy_machine,
    calibrated_turns,
    format_table,
    resample,
)
from harness.tests.extras.gate.test_judge import judged, session


def one(share: int, slower: float, seed: int, turns: int = 0) -> StudySession:
    result = judged(session(np.random.default_rng(seed), slower, noise=0.02))
    return StudySession(stack="go", share=share, number=seed, turns=turns, result=result)


def test_calibration_converts_a_share_into_turns() -> None:
    assert calibrated_turns(one(CALIBRATION, 2.0, 1, turns=1000), 10) == pytest.approx(100, rel=0.1)
    with pytest.raises(SystemExit, match="did not measure the loop's cost"):
        calibrated_turns(one(CALIBRATION, 1.0, 1, turns=1000), 10)


def test_table_counts_detections_and_false_alarms() -> None:
    lost = StudySession(stack="go", share=10, number=9, turns=1, result=None, error="gone")
    busy = one(10, 1.2, 4).model_copy(update={"busy": 2})
    rows = [one(CALIBRATION, 2.0, 1), one(0, 1.0, 1), one(0, 1.2, 2), one(10, 1.2, 3), lost, busy]
    lines = list(format_table(rows))
    assert [line.split() for line in lines[1:4]] == [
        ["go", "0", "0", "%", "2", "–", "1", "0", "5.0"],
        ["go", "0", "10", "%", "2", "1", "0", "1", "5.0"],
        ["go", "2", "10", "%", "1", "1", "0", "0", "5.0"],
    ]


def test_a_study_continues_with_missing_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, ran = tmp_path / "study.jsonl", []

    def run(stack: str, share: int, number: int, turns: int, options: Namespace) -> StudySession:
        ran.append((share, number, options.busy))
        if len(ran) == 3:
            raise KeyboardInterrupt
        made = one(share, {CALIBRATION: 2.0, 10: 1.2}.get(share, 1.0), number, turns=turns)
        return made.model_copy(update={"stack": stack, "busy": options.busy})

    monkeypatch.setattr(gate, "run_session", run)
    arguments = [str(file), "--stacks", "go", "--shares", "0", "10", "--sessions", "2"]
    monkeypatch.setattr("sys.argv", ["gate", *arguments])
    with pytest.raises(KeyboardInterrupt):
        gate.main()
    assert len(gate.read_sessions(file)) == 2
    gate.main()
    recorded = {(each.share, each.number) for each in gate.read_sessions(file)}
    assert recorded == {(CALIBRATION, 0), (0, 0), (0, 1), (10, 0), (10, 1)}
    assert len(gate.read_sessions(file)) == 5
    monkeypatch.setattr("sys.argv", ["gate", *arguments, "--busy", "2"])
    gate.main()
    assert [each.busy for each in gate.read_sessions(file)].count(2) == 4  # without a second calibration
    before = len(ran)
    capsys.readouterr()
    monkeypatch.setattr("sys.argv", ["gate", str(file), "--summary"])
    gate.main()
    assert len(ran) == before
    assert capsys.readouterr().out.startswith("stack     busy injected sessions")


def test_busy_programs_end_with_the_block() -> None:
    def programs() -> int:
        children = psutil.Process().children()
        return sum(BUSY_PROGRAM in " ".join(child.cmdline()) for child in children if child.status() != "zombie")

    with busy_machine(2):
        assert programs() == 2
    assert programs() == 0


@pytest.mark.simulation
def test_sessions_are_resampled_with_a_slowdown() -> None:
    lines = list(resample(session(np.random.default_rng(1), 1.0, size=(8, 4), noise=0.03), 4, sessions=40))
    assert [int(line.split()[0]) for line in lines] == [0, 3, 5, 10, 20]
    false_alarms = int(lines[0].split(" sessions, ")[1].split()[0])
    detected = int(lines[-1].split(" in ")[1].split()[0])
    assert false_alarms <= 6
    assert detected >= 38
