"""Several runs as one: blocks, processes and sets are kept apart, units count once."""

from pathlib import Path

import pytest

from harness.benchmarks.simulation import run_info, sample
from harness.errors import UsageError
from harness.request.profile import Replication
from harness.results import merging
from harness.results.records import CheckResult, Outcome, ReplicateRecord, Verdict
from harness.results.store import RunStore

ONE = Replication(minimum=1, maximum=1)


def write(folder: Path, names: tuple[str, ...], machines: str, *, unit: str = "", seconds: float = 15.0, fails: str = "") -> Path:
    store = RunStore(folder, started_at=0.0)
    settings = {"profile": {"duration_seconds": seconds, "replication": ONE.model_dump()}}
    info = run_info(names, ONE, reference=names[0])
    more = {"set_name": machines, "unit": unit, "settings": settings, "completed_at": 1.0}
    store.write_info(info.model_copy(update=more))
    for name in names:
        store.add_sample(sample(name, 0, 1000.0))
        store.add_replicate(ReplicateRecord(implementation=name, block=0, started_at=0.0, first_answer=0.1, status="ok"))
        outcome = Outcome.FAIL if name == fails else Outcome.PASS
        store.add_verdict(
            Verdict(
                implementation=name, test_type="json", replicate=0, thorough=True, outcome=outcome, duration=1.0,
                results=(CheckResult(check="status-200", rule="common.1", outcome=outcome),),
            )
        )  # fmt: skip
    return folder


def test_blocks_and_processes_are_numbered_anew_and_belong_to_their_sets(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / "1", ("ref", "a"), "lab-a"),
        write(tmp_path / "2", ("ref", "b"), "lab-b"),
        write(tmp_path / "3", ("ref", "a"), "lab-a"),
    ]
    found = merging.merge(folders, "all", started_at=0.0)
    assert {(s.implementation, s.block, s.process) for s in found.samples} == {
        ("ref", 0, 0), ("a", 0, 0), ("ref", 1, 1), ("b", 1, 0), ("ref", 2, 2), ("a", 2, 1),
    }  # fmt: skip
    assert [(each.name, each.blocks, each.runs) for each in found.info.sets] == [
        ("lab-a", (0, 2), ("1", "3")), ("lab-b", (1,), ("2",)),
    ]  # fmt: skip
    assert [each.name for each in found.info.implementations] == ["ref", "a", "b"]
    assert not found.problems


def test_a_unit_that_two_runs_measured_counts_once(tmp_path: Path) -> None:
    folders = [write(tmp_path / "1", ("ref", "a"), "lab-a", unit="q/0001"), write(tmp_path / "2", ("ref", "a"), "lab-b", unit="q/0001")]
    found = merging.merge(folders, "all", started_at=0.0)
    assert len(found.samples) == 2
    assert "unit q/0001 is already there" in found.problems[0]


def test_an_implementation_that_failed_verification_anywhere_has_failed(tmp_path: Path) -> None:
    folders = [write(tmp_path / "1", ("ref", "a"), "lab-a", fails="a"), write(tmp_path / "2", ("ref", "a"), "lab-b")]
    found = merging.merge(folders, "all", started_at=0.0)
    assert {(v.implementation, v.outcome) for v in found.verdicts} == {("ref", Outcome.PASS), ("a", Outcome.FAIL)}


def test_runs_of_other_durations_or_without_a_shared_reference_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "1", ("ref", "a"), "lab-a")
    with pytest.raises(UsageError, match="duration_seconds"):
        merging.merge([first, write(tmp_path / "2", ("ref", "a"), "lab-b", seconds=5.0)], "all", started_at=0.0)
    with pytest.raises(UsageError, match="do not share a reference"):
        merging.merge([first, write(tmp_path / "3", ("b", "c"), "lab-b")], "all", started_at=0.0)


def test_a_queue_gives_the_runs_of_the_units_that_are_done(tmp_path: Path) -> None:
    for unit, done in (("0001", True), ("0002", False)):
        folder = tmp_path / "units" / unit
        write(folder / "r", ("ref", "a"), "lab-a")
        if done:
            (folder / "done").write_text("r\n")
    assert list(merging.runs_below(tmp_path)) == [tmp_path / "units" / "0001" / "r"]
