"""Several runs as one: processes and deployments are kept apart, units count once."""

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.extras.deployments import merging
from harness.plan.orders import CREATE
from harness.records import store
from harness.records.models import Outcome, RunInfo, Scenario
from harness.records.store import RunStore
from harness.tests import records
from harness.tests.doubles import order_data

LATENCY = records.LATENCY.model_copy(update={"histogram": ((0.001, 3),)})


def info(names: tuple[str, ...], machines: str, unit: str, profile: dict[str, object]) -> RunInfo:
    known = records.info()
    of = [known.implementations[0].model_copy(update={"name": name, "test_types": ("json",)}) for name in names]
    return known.model_copy(
        update={
            "implementations": tuple(of),
            "reference": names[0],
            "set_name": machines,
            "unit": unit,
            "settings": {"profile": {"duration_seconds": 15.0, **profile}},
        }
    )


def write(
    folder: Path,
    names: tuple[str, ...],
    machines: str,
    *,
    unit: str = "",
    fails: str = "",
    processes: int = 1,
    **profile: object,
) -> Path:
    written = RunStore(folder, started_at=0.0)
    written.write_info(info(names, machines, unit, profile))
    for name in names:
        for number in range(processes):
            written.add_trial(records.trial(name, number, 1000.0).model_copy(update={"latency": LATENCY}))
            written.add_process(records.process(name, number))
        written.add_verdict(records.verdict(name, "json", Outcome.FAIL if name == fails else Outcome.PASS))
    return folder


def test_processes_are_numbered_anew_and_belong_to_their_deployments(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / "1", ("ref", "a"), "lab-a", processes=2),
        write(tmp_path / "2", ("ref", "b"), "lab-b"),
        write(tmp_path / "3", ("ref", "a"), "lab-a"),
    ]
    merging.write(merging.merge(folders, "all", started_at=0.0), tmp_path / "all")
    found = store.read(tmp_path / "all")
    assert {(each.implementation, each.process) for each in found.trials} == {
        *(("ref", 0), ("a", 0), ("ref", 1), ("a", 1)),
        *(("ref", 2), ("b", 2)),  # beside each other still, whatever numbers b has in other runs
        *(("ref", 3), ("a", 3)),
    }
    assert store.finished(found) == {(each.implementation, each.process) for each in found.trials}
    assert [(each.name, each.processes, each.runs) for each in found.info.sets] == [
        ("lab-a", (0, 1, 3), ("1", "3")),
        ("lab-b", (2,), ("2",)),
    ]
    assert [each.name for each in found.info.implementations] == ["ref", "a", "b"]
    assert found.info.processes_expected == 4
    assert not found.problems


def test_what_no_ranking_reads_is_left_behind(tmp_path: Path) -> None:
    found = merging.merge([write(tmp_path / "1", ("ref",), "lab")], "all", started_at=0.0)
    assert [each.latency.histogram for each in found.trials if each.latency] == [()]


def test_a_unit_that_two_runs_measured_counts_once(tmp_path: Path) -> None:
    folders = [write(tmp_path / name, ("ref", "a"), f"lab-{name}", unit="q/0001") for name in "ab"]
    found = merging.merge(folders, "all", started_at=0.0)
    assert len(found.trials) == 2
    assert "unit q/0001 is already there" in found.problems[0]


def test_a_verdict_of_any_run_is_kept(tmp_path: Path) -> None:
    folders = [write(tmp_path / "1", ("ref", "a"), "lab-a", fails="a"), write(tmp_path / "2", ("ref", "a"), "lab-b")]
    found = merging.merge(folders, "all", started_at=0.0)
    assert {(each.implementation, each.process, each.outcome) for each in found.verdicts} == {
        *(("ref", 0, Outcome.PASS), ("ref", 1, Outcome.PASS)),
        *(("a", 0, Outcome.FAIL), ("a", 1, Outcome.PASS)),
    }


def test_runs_that_are_not_the_same_quantity_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "1", ("ref", "a"), "lab-a")
    with pytest.raises(UsageError, match="duration_seconds"):
        merging.merge([first, write(tmp_path / "2", ("ref",), "lab-b", duration_seconds=5.0)], "all", started_at=0.0)
    with pytest.raises(UsageError, match="orders of its profile differs"):
        merging.merge([first, write(tmp_path / "3", ("ref",), "lab-b", orders={"seconds": 4})], "all", started_at=0.0)
    with pytest.raises(UsageError, match="do not share a reference"):
        merging.merge([first, write(tmp_path / "4", ("b", "c"), "lab-b")], "all", started_at=0.0)
    merging.write(merging.merge([first], "all", started_at=0.0), tmp_path / "all")
    with pytest.raises(UsageError, match="is itself a merge"):
        merging.merge([tmp_path / "all"], "again", started_at=0.0)


def test_a_queue_gives_the_runs_of_the_units_that_are_done(tmp_path: Path) -> None:
    for unit, done in (("0001", True), ("0002", False)):
        folder = tmp_path / "units" / unit
        write(folder / "r", ("ref", "a"), "lab-a")
        if done:
            (folder / "done").write_text("r\n")
    assert list(merging.runs_below(tmp_path)) == [tmp_path / "units" / "0001" / "r"]


def test_loads_of_the_order_service_go_with_their_processes_and_what_they_are_ranked_by(tmp_path: Path) -> None:
    folders = []
    for name in "12":
        folder = write(tmp_path / name, ("ref",), "lab")
        RunStore(folder, started_at=0.0).add_trial(order_data.trial("ref", 0, 8.0, 0.002))
        folders.append(folder)
    found = merging.merge(folders, "all", started_at=0.0)
    orders = [each for each in found.trials if isinstance(each.load, Scenario)]
    assert [each.process for each in orders] == [0, 1]
    kept = {
        each.operation: each.latency.histogram != ()
        for trial in orders
        if trial.arrivals
        for each in trial.arrivals.operations
        if each.latency
    }
    assert {operation for operation, there in kept.items() if there} == {CREATE} != set(kept)
