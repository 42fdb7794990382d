"""Two runs compare cell by cell: verdicts, regressions, and what speaks against the comparison."""

import pytest

from harness.records.models import NoiseFloor, RunRecords, Sample
from harness.stats.compare import compare
from harness.tests.stats.records import ERRORS, five, run

DRIFT = (1.0, 0.7, 1.4, 0.9, 1.2)


def records(samples: list[Sample], *names: str) -> RunRecords:
    return RunRecords(info=run(*(names or ("a",))), samples=samples)


def drifting(samples: list[Sample]) -> list[Sample]:
    return [
        each.model_copy(
            update={
                "throughput": each.throughput * DRIFT[each.block],
                "cpu_per_request": 1 / (each.throughput * DRIFT[each.block]),
            }
        )
        for each in samples
    ]


def test_a_slower_cell_is_a_regression_only_beyond_the_limit() -> None:
    before, after = records(five("a", 100.0)), records(five("a", 90.0, phase=2))
    cell = compare(before, after, 0.05).cells[0]
    assert cell.throughput.verdict == "slower"
    assert cell.throughput.ratio is not None
    assert cell.throughput.ratio.value == pytest.approx(0.9)
    assert cell.throughput.ratio.high is not None
    assert 0.9 < cell.throughput.ratio.high < 0.93
    assert cell.throughput.regression
    assert cell.cpu_per_request.verdict == "slower"
    assert compare(before, after, 0.05).regressions == (cell,)
    assert compare(before, after, 0.15).regressions == ()


def test_a_faster_cell_is_faster_by_both_metrics() -> None:
    cell = compare(records(five("a", 100.0)), records(five("a", 120.0, phase=2)), 0.05).cells[0]
    assert (cell.throughput.verdict, cell.cpu_per_request.verdict) == ("faster", "faster")
    assert not cell.throughput.regression


def test_the_same_speed_is_a_tie() -> None:
    cell = compare(records(five("a", 100.0)), records(five("a", 100.2, phase=2)), 0.0).cells[0]
    assert cell.throughput.verdict == "tie"
    assert not cell.throughput.regression


def test_interleaved_blocks_find_what_drift_hides_from_separate_runs() -> None:
    before, after = records(drifting(five("a", 100.0))), records(drifting(five("a", 92.0, phase=2)))
    assert compare(before, after, 0.05).cells[0].throughput.verdict == "tie"
    paired = compare(before, after, 0.05, interleaved=True)
    assert paired.paired
    assert paired.cells[0].throughput.verdict == "slower"
    assert paired.cells[0].throughput.regression


def test_a_difference_below_the_larger_noise_floor_is_a_tie() -> None:
    before, after = records(five("a", 100.0)), records(five("a", 90.0, phase=2))
    floor = NoiseFloor(
        implementation="a", profile="quick", measured_at=0.0, pairs=5, throughput=0.2, cpu_per_request=0.01
    )
    after = RunRecords(info=after.info.model_copy(update={"noise_floor": floor}), samples=after.samples)
    cell = compare(before, after, 0.05).cells[0]
    assert cell.throughput.verdict == "tie"
    assert cell.cpu_per_request.verdict == "slower"


def test_a_cell_that_one_run_lacks_is_missing_with_the_reason() -> None:
    faulty = [each.model_copy(update={"gates": (ERRORS,)}) for each in five("b", 50.0)]
    before = records([*five("a", 100.0), *five("b", 50.0)], "a", "b")
    after = records(faulty, "a", "b")
    cells = {cell.implementation: cell for cell in compare(before, after, 0.05).cells}
    assert cells["a"].throughput.verdict == cells["a"].cpu_per_request.verdict == "missing"
    assert cells["a"].reason == "B: not measured"
    assert cells["b"].reason == "B: errors"


def test_holm_covers_all_cells_so_that_one_lucky_cell_among_many_is_no_difference() -> None:
    names = tuple(f"s{i}" for i in range(40))
    speed = {name: 98.6 if name == "s0" else 100.0 for name in names}
    before = [each for name in names for each in five(name, 100.0)]
    after = [each for name in names for each in five(name, speed[name], phase=2)]
    alone = compare(records(before[:5], "s0"), records(after[:5], "s0"), 0.0)
    assert alone.cells[0].throughput.verdict == "slower"
    many = compare(records(before, *names), records(after, *names), 0.0)
    assert {cell.throughput.verdict for cell in many.cells} == {"tie"}


def test_runs_of_other_machines_or_profiles_are_noted() -> None:
    before, after = records(five("a", 100.0)), records(five("a", 100.0))
    machine = after.info.machine.model_copy(update={"kernel": "6.12"})
    after = RunRecords(
        info=after.info.model_copy(update={"machine": machine, "profile": "standard"}), samples=after.samples
    )
    assert compare(before, after, 0.05).notes == (
        "the runs differ in kernel: A , B 6.12",
        "the runs differ in profile: A simulated, B standard",
    )
