"""Attack: a server rewrites the records that decide its verdict."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import ChangedRecordsError
from harness.experiment.stage_conclude import record_end
from harness.host.clock import SYSTEM_CLOCK
from harness.plan.profile import ProcessLimits
from harness.records.store import RunStore
from harness.tests.doubles.runs import run_info, trial


def begun(folder: Path) -> RunStore:
    """Create an unfinished run with records of two servers and return its store."""
    store = RunStore(folder / "20260101-000000", started_at=1.0)
    store.write_info(run_info(("base", "head"), ProcessLimits()))
    for side in ("base", "head"):
        store.add_trial(trial(side, 100.0, 0, 0))
    return store


def replaced(path: Path) -> None:
    path.with_suffix(".new").write_bytes(path.read_bytes().replace(b"head", b"base"))
    path.with_suffix(".new").rename(path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def linked(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    path.symlink_to(path.with_suffix(".old"))


CHANGES: dict[str, Callable[[Path], object]] = {
    "edited": lambda path: path.write_bytes(path.read_bytes().replace(b"head", b"HEAD")),
    "appended": lambda path: path.write_bytes(path.read_bytes() * 2),
    "removed": Path.unlink,
    "replaced": replaced,
    "cut": cut,
    "linked": linked,
}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("name", ["trials.jsonl", "run.json"])
def test_a_run_with_changed_records_has_no_result(name: str, how: str, tmp_path: Path) -> None:
    store = begun(tmp_path)
    CHANGES[how](store.folder / name)
    with pytest.raises(ChangedRecordsError, match=name):
        record_end(store, "complete", clock=SYSTEM_CLOCK)
    assert not (store.folder / "ranking.json").exists()


def test_records_of_an_earlier_process_stay_valid(tmp_path: Path) -> None:
    first = begun(tmp_path)
    later = RunStore(first.folder, started_at=1.0)
    later.add_trial(trial("head", 100.0, 1, 0))
    later.require_unchanged()
    (first.folder / "trials.jsonl").write_bytes((first.folder / "trials.jsonl").read_bytes() + b"{}\n")
    with pytest.raises(ChangedRecordsError):
        later.require_unchanged()


def test_records_that_tfb_sets_aside_are_no_change(tmp_path: Path) -> None:
    store = begun(tmp_path)
    store.quarantine(lambda process: process == ("base", 0))
    store.add_trial(trial("base", 200.0, 0, 0))
    store.require_unchanged()
    replaced(store.folder / "trials.jsonl")
    with pytest.raises(ChangedRecordsError):
        store.require_unchanged()
