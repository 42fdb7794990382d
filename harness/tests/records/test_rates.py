"""The files of loads at given rates: written a line at a time, and read as far as they can be."""

from pathlib import Path

from harness.records import rates, store
from harness.records.models import GoalCapacity, LatencyGoal
from harness.records.store import RunStore


def capacity(name: str, process: int) -> GoalCapacity:
    return GoalCapacity(
        implementation=name,
        test_type="json",
        block=process,
        process=process,
        goal=LatencyGoal(),
        rate=900.0,
        above=950.0,
        decided=True,
        confidence=0.95,
        loads=9,
        contradictions=0,
        closed_loop=1000.0,
    )


def test_a_run_without_loads_at_given_rates_has_none_and_no_problem(tmp_path: Path) -> None:
    assert rates.read(tmp_path) == rates.RateRecords()


def test_a_half_line_is_a_problem_and_the_others_are_read(tmp_path: Path) -> None:
    folder = RunStore(tmp_path, started_at=0.0)
    folder.add_line(rates.CAPACITIES, capacity("a", 0))
    with (tmp_path / rates.CAPACITIES).open("a") as file:
        file.write('{"implementation": "b"')
    found = rates.read(tmp_path)
    assert found.capacities == (capacity("a", 0),)
    assert len(found.problems) == 1
    assert "capacities.jsonl:2: cannot be read" in found.problems[0]


def test_what_a_resumed_run_measures_again_is_set_aside(tmp_path: Path) -> None:
    folder = RunStore(tmp_path, started_at=0.0)
    for process in (0, 1):
        folder.add_line(rates.CAPACITIES, capacity("a", process))
    store.set_aside_unfinished(tmp_path, frozenset({("a", 0)}))
    assert rates.read(tmp_path).capacities == (capacity("a", 0),)
    assert (tmp_path / "capacities.unfinished.jsonl").read_text().count("\n") == 1
