"""Tests for comparisons between runs and between cells."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop, Load
from harness.records.run_info import NoiseFloor
from harness.records.run_records import ProcessRecord, RunRecords
from harness.records.trial_record import ValidityCheck
from harness.records.verification_record import Outcome
from harness.stats.cell_comparison import compare, noise_floor, ratio, ratio_of_values
from harness.stats.ranking_model import Comparison, Effect
from harness.studies.coverage import SimulatedRun, draw_run
from harness.tests.approve import approve
from harness.tests.doubles.invented import verdict
from harness.tests.doubles.runs import LOAD, run_info, trial, trials
from harness.tests.stats.dense import dense, luck

NAMES = ["a", "b", "c"]
KINDS = ("json", "db")
FEW = ClosedLoop(connections=8)
BROKEN = ValidityCheck(name="errors", outcome=Outcome.FAIL, value=1.0, threshold=0.0, flag="errors")


def records(
    truth: Sequence[float], seed: int, processes: int = 5, drift: float = 0.02, began: float = 0.0
) -> RunRecords:
    world = SimulatedRun(truth=truth, processes=processes, rounds=3, tables=2, window=0.03, process=0.02, drift=drift)
    drawn = draw_run(world, np.random.default_rng(seed))
    simulated = trials({(kind, LOAD): logs for kind, logs in zip(KINDS, drawn, strict=True)}, NAMES)
    info = run_info(NAMES, ProcessLimits(minimum=2, maximum=5), loads=dict.fromkeys(KINDS, (LOAD,)))
    return RunRecords(info=info.model_copy(update={"started_at": began, "run_id": f"r{seed}"}), trials=simulated)


@pytest.mark.simulation
def test_equal_servers_rarely_differ_on_an_unsteady_machine() -> None:
    """Deviations common to all processes with the same number cancel within a run, but not between runs."""
    different, generator = 0, np.random.default_rng(8)
    for seed in range(60):
        sides = []
        for i in range(2):
            own, speed = records((0, 0, 0), 100 + 2 * seed + i, drift=0.0, began=float(i)), generator.normal(size=5)
            changed = [
                t.model_copy(update={"throughput": t.throughput * math.exp(speed[t.process] / 10)}) for t in own.trials
            ]
            sides.append(replace(own, trials=changed))
        different += any(
            cell.throughput.verdict in ("faster", "slower") for cell in compare(sides[0], sides[1], 0.05).cells
        )
    assert different <= 7  # the 98 % quantile if 5 % of the comparisons differ by chance


def test_halves_of_one_run_are_compared_within_rounds() -> None:
    """A difference of 5 % is visible although the machine's speed varies between processes."""
    joint = records((0.0, math.log(1.05), 0.0), 3, drift=0.5)
    halves = []
    for name in ("a", "b"):
        own = [t.model_copy(update={"implementation": "x"}) for t in joint.trials if t.implementation == name]
        only = joint.info.implementations[0].model_copy(update={"name": "x"})
        halves.append(RunRecords(info=joint.info.model_copy(update={"implementations": (only,)}), trials=own))
    comparison = compare(halves[0], halves[1], 0.05)
    assert comparison.interleaved
    for ratio_of_cell in (cell.throughput.ratio for cell in comparison.cells):
        assert 0.9 < (ratio_of_cell.low or 0) < (ratio_of_cell.high or 9) < 1.2


def test_ratio_of_values_is_paired_by_process() -> None:
    measured = ratio_of_values({0: 10.0, 1: 20.0, 2: 40.0, 3: 80.0}, {0: 5.0, 2: 20.0, 3: 40.0}, 0.95)
    assert (measured.value, measured.low) == pytest.approx((2.0, 2.0))


def run(key: str, names: str, faster: float = 0.0) -> RunRecords:
    """Return a run with several tables and a server for each letter of ``names``.

    ``faster`` is the log-scale gain in speed from one server to the next.
    """
    loads: dict[str, tuple[Load, ...]] = {"json": (LOAD, FEW), "db": (LOAD,), "update": (LOAD,)}
    collected = []
    for kind, load in ((kind, load) for kind, own in loads.items() for load in own):
        for (position, name), p, r in itertools.product(
            enumerate(names), range({"update": 1, "db": 2}.get(kind, 3)), range(2)
        ):
            rate = (
                position / 9 + faster * position + 0.02 * luck(key, p) + 0.02 * luck(key, name, kind, load.label, p, r)
            )
            cpu = 1e-3 * math.exp(0.03 * luck(key, name, kind, load.label, p) - faster * position)
            validity = (BROKEN,) if (key, name, load) == ("B", "a", FEW) else ()
            if (name, kind, p) != ("c", "json", 1):
                collected.append(
                    trial(
                        name,
                        1e3 * math.exp(rate),
                        p,
                        r,
                        test_type=kind,
                        load=load,
                        cpu_per_request=cpu,
                        validity=validity,
                    )
                )
    info = run_info([*names], ProcessLimits(minimum=3, maximum=3), loads=loads).model_copy(update={"run_id": key})
    return RunRecords(info=info, trials=collected, verdicts=[verdict("d", "db", failed=key == "B")])


def told(comparison: Comparison) -> dict[str, Any]:
    """Describe each cell in a line, with ratios and verdicts for both metrics."""

    def describe(effect: Effect) -> str:
        ratio = effect.ratio
        return f"{effect.verdict} {ratio.value:.7g} [{ratio.low or 0:.7g}, {ratio.high or 0:.7g}]" if ratio else ""

    cells = [
        f"{cell.test_type} {cell.load.label} {cell.implementation}: "
        + (cell.reason or f"throughput {describe(cell.throughput)}, CPU {describe(cell.cpu_per_request)}")
        for cell in comparison.cells
    ]
    return {**dense(comparison), "cells": cells}


def test_comparisons_of_runs_and_halves_are_as_approved() -> None:
    a, b, c = run("A", "abcdx"), run("B", "abcdy", 0.04), run("C", "abcd", -0.08)
    floor = NoiseFloor(implementation="a", profile="p", measured_at=9, pairs=4, throughput=0.09, cpu_per_request=0.02)
    less = floor.model_copy(update={"implementation": "b", "throughput": 0.04, "cpu_per_request": 0.1})
    fields = {"design": "search", "revision": "c0ffee", "dirty": False, "tools": {"wrk": "4", "java": "25"}}
    machine = {"hostname": "h", "cpu_model": "m", "kernel": "k", "cpus_usable": (0,), "governor": "g", "turbo": False}
    others = {
        "profile": "p", "runtime": "r", "revision": "c0ffee", "dirty": True, "generator": "wrk", "started_at": 9.0,
        "machine": a.info.machine.model_copy(update={**machine, "grade": "A"}), "tools": {"wrk": "5"},
    }  # fmt: skip
    first = replace(a, info=a.info.model_copy(update={**fields, "noise_floor": floor}))
    second = replace(b, info=b.info.model_copy(update={**others, "noise_floor": less}))
    results = {
        "apart": told(compare(first, second, 0.05)),
        "halves": told(compare(a, c, 0.02)),
        "floor of one": [dense(compare(*sides, 0.05).noise_floor) for sides in ((a, second), (first, b))],
        "another seed": compare(a, replace(c, info=c.info.model_copy(update={"seed": 1})), 0.05).interleaved,
    }
    approve("stats-compare", results)


def test_ratios_of_cells_and_noise_floor() -> None:
    measured_trials = run("A", "abcd").trials
    json, few, db = (("json", LOAD), ("json", FEW), ("db", LOAD))
    cell_pairs = [
        (("a", few), ("a", json)),
        (("b", json), ("c", json)),
        (("c", json), ("a", db)),
        (("d", db), ("z", db)),
    ]
    cell_pairs += [(("c", ("update", LOAD)), ("d", db)), (("z", json), ("d", db))]
    started = [
        ProcessRecord(
            implementation=name, process=p, started_at=0.0, startup_time=1 + 0.1 * luck(name, p) if p != 2 else None,
            status="interrupted" if (name, p) == ("a", 3) else "ok",
        )
        for name, p in itertools.product("abc", range(5))
    ]  # fmt: skip
    ratios = [
        ratio(measured_trials, (a, *of), (b, *to), metric, 0.9, started)
        for metric in ("throughput", "cpu-per-request", "startup-time")
        for (a, of), (b, to) in cell_pairs
    ]
    rounded = [
        found and tuple(round(each or 0, 5) for each in (found.value, found.low, found.high)) for found in ratios
    ]
    assert rounded == [
        (1.00145, 0.97881, 1.0246), (0.89282, 0.87605, 0.9099),
        (1.23518, 1.20346, 1.26774), None,
        (0.8891, 0.86013, 0.91906), None,
        (0.99056, 0.96679, 1.01491), (1.01864, 0.99087, 1.04719),
        (0.99127, 0.96221, 1.0212), None,
        (1.06444, 1.02636, 1.10394), None,
        (1.0, 0.90731, 1.10216), (0.98279, 0.9092, 1.06234),
        (0.94217, 0.86035, 1.03176), None, None, None,
    ]  # fmt: skip
    twins = [
        each.model_copy(
            update={"implementation": "twin", "throughput": each.throughput * math.exp(luck(each.id) / 50),
                    "cpu_per_request": (each.cpu_per_request or 0) * math.exp(luck(each.id, "cpu") / 99)}
        )
        for each in measured_trials
        if each.implementation == "a" and (each.test_type, each.process) != ("db", 1)
    ]  # fmt: skip
    measured = noise_floor([*measured_trials, *twins], ("a", "twin"), profile="quick", measured_at=7.0)
    assert measured.pairs == 3
    assert measured.throughput == pytest.approx(0.0245660, rel=1e-5)
    assert measured.cpu_per_request == pytest.approx(0.0136053, rel=1e-5)


def test_losing_a_third_is_a_regression() -> None:
    comparison = compare(records((0, 0, 0), 1), records((math.log(2 / 3), 0, 0), 2, began=9.0), 0.05)
    assert not comparison.interleaved
    lost, *others = (cell for cell in comparison.cells if cell.test_type == "db")
    assert (lost.implementation, lost.throughput.verdict, lost.cpu_per_request.verdict) == ("a", "slower", "slower")
    assert (lost.throughput.ratio.low or 9) < 2 / 3 < (lost.throughput.ratio.high or 0)
    assert not {cell.throughput.verdict for cell in others} & {"faster", "slower"}
