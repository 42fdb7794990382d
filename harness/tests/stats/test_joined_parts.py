"""Ratios between implementations of different parts, which only the baseline connects. Simulated servers are equal."""

import itertools
import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pytest

from harness.plan.profile import ProcessLimits
from harness.records.loads import OpenLoop
from harness.records.run_info import MachineSet, Part, RunInfo
from harness.records.trial_record import Trial
from harness.stats.ranking import rank
from harness.stats.ranking_model import Ranking, Row
from harness.stats.unranked import UNCONNECTED
from harness.tests.doubles.runs import LOAD, MACHINE, run_info, trial

SD = 0.02  # standard deviation between processes (log scale)
Absent = Collection[tuple[str, str, int]]  # (implementation, test type, process) without valid trials


@dataclass(frozen=True, kw_only=True)
class JoinedRun:
    """A run that joins parts. Their machines differ in speed, which must not affect ratios."""

    parts: int = 3
    processes: int = 3  # per part
    rows: int = 1  # per part, besides the baseline
    rounds: int = 1
    baseline_sd: float = SD
    kinds: tuple[str, ...] = ("json",)
    absent: Absent = ()

    def draw(self, seed: int) -> tuple[RunInfo, list[Trial]]:
        """Return the run's description and its trials."""
        dice, trials = np.random.default_rng(seed), []
        members = [["ref", *(f"{part}{row}" for row in range(self.rows))] for part in range(self.parts)]
        names = tuple(dict.fromkeys(name for own in members for name in own))
        numbers = [tuple(range(part * self.processes, (part + 1) * self.processes)) for part in range(self.parts)]
        for own, of_part in zip(numbers, members, strict=True):
            machine = dice.normal() * 0.3
            for process, name, kind in itertools.product(own, of_part, self.kinds):
                level = machine + dice.normal() * (self.baseline_sd if name == "ref" else SD)
                trials += [
                    trial(name, 1e5 * math.exp(level + dice.normal() * 0.005), process, round_, test_type=kind)
                    for round_ in range(0 if (name, kind, process) in self.absent else self.rounds)
                ]
        rules = ProcessLimits(minimum=self.processes, maximum=self.processes)
        info = run_info(names, rules, reference="ref", loads=dict.fromkeys(self.kinds, (LOAD,)))
        sets = tuple(MachineSet(name="part", machine=MACHINE, processes=own) for own in numbers)
        part = Part(number=0, count=self.parts, selection=names)
        return info.model_copy(update={"sets": sets, "part": part}), trials


def ranked(info: RunInfo, trials: list[Trial]) -> Ranking:
    return rank(info, trials, [], [])


def headline(ranking: Ranking) -> dict[str, Row]:
    return {row.implementation: row for row in ranking.test_types["json"].headline.rows}


@pytest.mark.parametrize(
    "world",
    [
        JoinedRun(baseline_sd=8 * SD),
        JoinedRun(baseline_sd=8 * SD, rows=4),
        JoinedRun(baseline_sd=8 * SD, rows=4, rounds=2),
        JoinedRun(rows=4),
        JoinedRun(processes=1, parts=6, rounds=3),
    ],
)
def test_intervals_between_parts_contain_the_true_ratio(world: JoinedRun) -> None:
    contained, seeds = 0, 40
    for seed in range(seeds):
        info, trials = world.draw(seed)
        ratio = headline(ranked(info.model_copy(update={"reference": "10"}), trials))["00"].throughput.to_reference
        contained += ratio.low < 1 < ratio.high
    assert contained >= 0.85 * seeds


def test_single_processes_are_compared_through_the_baseline() -> None:
    info, trials = JoinedRun(processes=1, parts=4).draw(1)
    speeds = {(each.implementation, each.process): each.throughput for each in trials}
    ratio = headline(ranked(info.model_copy(update={"reference": "10"}), trials))["00"].throughput.to_reference
    expected = speeds["00", 0] / speeds["ref", 0] / (speeds["10", 1] / speeds["ref", 1])
    assert (ratio.value, ratio.low) == (pytest.approx(expected), None)
    assert any(note.startswith("each implementation was measured in a single") for note in ranked(info, trials).notes)


@pytest.mark.parametrize("lacking", [(1,), (0, 1, 2)])
def test_rows_without_baseline_in_their_part_are_unranked(lacking: tuple[int, ...]) -> None:
    absent = [("ref", "json", 3 * part + number) for part in lacking for number in range(3)]
    rows = headline(ranked(*JoinedRun(rows=2, absent=absent).draw(1)))
    for part in range(3):
        for row in (rows[f"{part}0"], rows[f"{part}1"]):
            assert (row.ranked, row.reason) == ((False, UNCONNECTED) if part in lacking else (True, ""))
            assert (row.throughput is None) == (row.cpu_per_request is None) == (part in lacking)


def test_score_without_common_baseline_processes_has_no_interval() -> None:
    """In part 1, no process of the baseline has values for both test types."""
    absent = [("ref", "json", 3), ("ref", "json", 4), ("ref", "db", 5)]
    info, trials = JoinedRun(rows=2, absent=absent, kinds=("json", "db")).draw(1)
    scores = {each.implementation: each.throughput for each in ranked(info, trials).overall}
    assert scores["00"].to_reference.low is None
    complete = {
        each.implementation: each.throughput
        for each in ranked(*JoinedRun(rows=2, kinds=("json", "db")).draw(1)).overall
    }
    assert complete["00"].to_reference.low is not None


def test_capacities_without_baseline_are_unranked() -> None:
    info, trials = JoinedRun().draw(1)
    at_rate = [
        each.model_copy(
            update={
                "load": OpenLoop(rate=each.throughput, connections=64), "purpose": "search", "due": 10_000, "late": 0
            }
        )
        for each in trials
        if (each.implementation, each.process // 3) != ("ref", 1)
    ]  # fmt: skip
    rows = {row.implementation: row for row in ranked(info, [*trials, *at_rate]).latency["json"].rows}
    assert {name: row.reason for name, row in rows.items()} == {"ref": "", "00": "", "10": UNCONNECTED, "20": ""}
    assert {name for name, row in rows.items() if row.capacity and row.ranked} == {"ref", "00", "20"}
