"""Two runs cell by cell, and the ratio of any two cells."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from harness.plan.profile import Processes
from harness.records.models import Closed, NoiseFloor, ProcessRecord, RunRecords, Trial
from harness.stats.compare import compare, ratio, ratio_of_values
from harness.studies.worlds import World, draw
from harness.tests.doubles.runs import LOAD, run_info, trials

NAMES = ["a", "b", "c"]
KINDS = ("json", "db")


def records(
    truth: Sequence[float], seed: int, processes: int = 5, drift: float = 0.02, began: float = 0.0
) -> RunRecords:
    world = World(truth=truth, processes=processes, rounds=3, tables=2, window=0.03, process=0.02, drift=drift)
    drawn = draw(world, np.random.default_rng(seed))
    made = trials({(kind, LOAD): logs for kind, logs in zip(KINDS, drawn, strict=True)}, NAMES)
    info = run_info(NAMES, Processes(minimum=2, maximum=5), loads=dict.fromkeys(KINDS, (LOAD,)))
    return RunRecords(info=info.model_copy(update={"started_at": began, "run_id": f"r{seed}"}), trials=made)


def test_a_server_that_lost_a_third_is_a_regression() -> None:
    found = compare(records((0, 0, 0), 1), records((math.log(2 / 3), 0, 0), 2, began=9.0), 0.05)
    assert not found.interleaved
    lost, *others = (cell for cell in found.cells if cell.test_type == "db")
    assert (lost.implementation, lost.throughput.verdict, lost.cpu_per_request.verdict) == ("a", "slower", "slower")
    assert (lost.throughput.ratio.low or 9) < 2 / 3 < (lost.throughput.ratio.high or 0)
    assert {cell.throughput.verdict for cell in others} == {"tie"}


def test_runs_of_the_same_servers_are_rarely_told_apart_even_where_the_machine_is_unsteady() -> None:
    """All servers of one process number are faster or slower together: within a run that cancels, between runs not."""
    different, generator = 0, np.random.default_rng(8)
    for seed in range(60):
        sides = []
        for i in range(2):
            own, speed = records((0, 0, 0), 100 + 2 * seed + i, drift=0.0, began=float(i)), generator.normal(size=5)
            made = [
                t.model_copy(update={"throughput": t.throughput * math.exp(speed[t.process] / 10)}) for t in own.trials
            ]
            sides.append(replace(own, trials=made))
        different += any(cell.throughput.verdict != "tie" for cell in compare(sides[0], sides[1], 0.05).cells)
    assert different <= 7  # the 98 % quantile at 5 %


def test_halves_of_one_run_are_compared_within_rounds() -> None:
    """What both share, a machine that is slower from process to process, does not hide a twentieth."""
    both = records((0.0, math.log(1.05), 0.0), 3, drift=0.5)
    halves = []
    for name in ("a", "b"):
        own = [t.model_copy(update={"implementation": "x"}) for t in both.trials if t.implementation == name]
        only = both.info.implementations[0].model_copy(update={"name": "x"})
        halves.append(RunRecords(info=both.info.model_copy(update={"implementations": (only,)}), trials=own))
    found = compare(halves[0], halves[1], 0.05)
    assert found.interleaved
    for ratio_of_cell in (cell.throughput.ratio for cell in found.cells):
        assert 0.9 < (ratio_of_cell.low or 0) < (ratio_of_cell.high or 9) < 1.2


def test_what_one_run_lacks_is_missing_with_its_letter_and_the_floor_ties_what_is_small() -> None:
    a, b = records((0, 0, 0), 4), records((0, 0.3, 0), 5, began=1.0)
    kept = [trial for trial in b.trials if trial.implementation != "c"]
    floor = NoiseFloor(implementation="x", profile="p", measured_at=0.0, pairs=9, throughput=0.5, cpu_per_request=0.01)
    info = b.info.model_copy(update={"noise_floor": floor, "revision": "c0ffee", "dirty": True})
    found = compare(a, RunRecords(info=info, trials=kept), 0.05)
    assert "the runs differ in revision: A unknown, B c0ffee with local changes" in found.notes
    reasons = {cell.implementation: cell.reason for cell in found.cells}
    assert reasons == {"a": "", "b": "", "c": "B: not measured"}
    changed = next(cell for cell in found.cells if cell.implementation == "b")
    assert (changed.throughput.verdict, changed.cpu_per_request.verdict) == ("tie", "faster")


def test_all_facts_in_which_two_runs_differ_are_named_with_both_sides() -> None:
    a, b = records((0, 0, 0), 4), records((0, 0, 0), 4, began=1.0)
    machine = a.info.machine.model_copy(
        update={
            "hostname": "h", "cpu_model": "m", "kernel": "k", "cpus_usable": (0,), "governor": "g", "turbo": True,
            "grade": "A",
        }
    )  # fmt: skip
    others = {"profile": "p", "runtime": "r", "design": "d", "revision": "c0ffee", "generator": "g"}
    info = b.info.model_copy(update={"machine": machine, **others, "tools": {"wrk": "9"}})
    notes = compare(a, replace(b, info=info), 0.05).notes
    said = [note.removeprefix("the runs differ in ").partition(": A ") for note in notes]
    assert [(name, sides.rpartition(" B ")[2]) for name, _, sides in said] == [
        *(("machine", "h"), ("CPU", "m"), ("kernel", "k"), ("usable CPUs", "1"), ("governor", "g"), ("turbo", "True")),
        *(("grade", "A"), ("profile", "p"), ("runtime", "r"), ("design", "d"), ("revision", "c0ffee")),
        *(("generator", "g"), ("tool wrk", "9")),
    ]
    assert {sides.partition(",")[0] for name, _, sides in said if name == "tool wrk"} == {"unknown"}
    assert not compare(a, b, 0.05).notes


def test_the_ratio_of_two_cells_holds_the_truth_and_knows_more_with_more_processes() -> None:
    widths = []
    for processes in (2, 15):
        made = list(records((0.0, math.log(2), 0.0), 6, processes).trials)
        cells = ("b", "json", LOAD), ("a", "json", LOAD)
        found, cpu = (ratio(made, *cells, metric, 0.95) for metric in ("throughput", "cpu-per-request"))
        low, high = found.low or 9, found.high or 0
        assert low < 2 < high
        assert cpu.value == pytest.approx(1 / found.value)
        widths.append(high / low)
    assert widths[1] < widths[0]


def test_cells_of_different_tables_and_processes_as_a_whole_have_ratios_too() -> None:
    other = Closed(connections=1)
    made: list[Trial] = list(records((0, 0, 0), 7).trials)
    slower = [t.model_copy(update={"load": other, "throughput": t.throughput / 3}) for t in made]
    found = ratio([*made, *slower], ("a", "json", other), ("a", "json", LOAD), "throughput", 0.95)
    assert found.value == pytest.approx(1 / 3)
    started = [
        ProcessRecord(implementation=n, process=p, started_at=0.0, startup_time=s * (1 + p / 50), status="ok")
        for n, s in (("a", 1.0), ("b", 4.0))
        for p in range(4)
    ]
    whole = ratio([], ("a", "", LOAD), ("b", "", LOAD), "startup-time", 0.95, started)
    assert whole.value == pytest.approx(0.25)
    assert ratio(made, ("a", "json", LOAD), ("nobody", "json", LOAD), "throughput", 0.95) is None


def test_values_of_no_run_are_compared_start_by_start() -> None:
    found = ratio_of_values({0: 10.0, 1: 20.0, 2: 40.0, 3: 80.0}, {0: 5.0, 2: 20.0, 3: 40.0}, 0.95)
    assert (found.value, found.low) == pytest.approx((2.0, 2.0))
