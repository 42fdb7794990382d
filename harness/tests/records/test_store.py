"""The files of a run: what is written can be read, and what is broken is named."""

import json
import os
from pathlib import Path

import pytest

from harness.errors import StoreError, UsageError
from harness.records import lines, reader, store
from harness.records.models import SCHEMA_VERSION, Sample
from harness.records.store import RunStore
from harness.tests import records


@pytest.fixture
def written(tmp_path: Path) -> RunStore:
    return records.write(tmp_path)


def test_what_is_written_is_read(written: RunStore) -> None:
    known = store.read(written.folder)
    assert known.info.model_dump(mode="json") == records.info().model_dump(mode="json")
    assert list(known.samples) == records.samples()
    assert [(r.implementation, r.block) for r in known.replicates] == [
        ("fast", 0),
        ("fast", 1),
        ("slow", 0),
        ("slow", 1),
    ]
    assert {(v.implementation, v.test_type) for v in known.verdicts} == {
        (i, t) for i in ("fast", "slow") for t in records.LEVELS
    }
    assert known.problems == ()


def test_a_half_line_is_a_problem_and_the_rest_is_read(written: RunStore) -> None:
    path = written.folder / "samples.jsonl"
    path.write_bytes(path.read_bytes()[:-100])
    known = store.read(written.folder)
    assert list(known.samples) == records.samples()[:-1]
    assert known.problems == (f"{path}: line 12: cut off",)


def test_a_broken_verdict_is_a_problem(written: RunStore) -> None:
    path = written.folder / "verify" / "fast" / "json-r0.json"
    path.write_text("{}")
    (problem,) = store.read(written.folder).problems
    assert problem == f"{path}: implementation: Field required"


def test_a_newer_schema_is_read_as_far_as_it_is_known(written: RunStore) -> None:
    path = written.folder / "run.json"
    document = {**json.loads(path.read_text()), "schema_version": SCHEMA_VERSION + 1, "news": 1}
    path.write_text(json.dumps(document))
    known = store.read(written.folder)
    assert known.info.run_id == "20260101-000000"
    assert f"run.json: schema version {SCHEMA_VERSION + 1}: this version knows {SCHEMA_VERSION}" in known.problems[0]


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_an_unreadable_run_json_is_an_error_that_names_it(written: RunStore, text: str) -> None:
    path = written.folder / "run.json"
    path.write_text(text)
    with pytest.raises(StoreError) as error:
        store.read(written.folder)
    assert str(error.value).startswith(f"{path}: ")


def test_a_damaged_key_of_run_json_is_named_and_a_run_with_one_does_not_go_on(written: RunStore) -> None:
    path = written.folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "seed": "seven"}))
    known = store.read(written.folder)
    assert [s.id for s in known.samples] == [s.id for s in records.samples()]
    assert [problem.partition(": ")[2].partition(":")[0] for problem in known.problems] == ["seed"]
    with pytest.raises(StoreError, match=r"run\.json: seed: .*a run whose settings are not known cannot go on"):
        store.read_whole(written.folder)


def test_a_line_that_is_too_long_is_named_and_passed_over(written: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES", 4096)
    with (written.folder / "samples.jsonl").open("a") as file:
        file.write("x" * 10_000 + "\n")
    written.add_sample(records.samples()[0])
    known = store.read(written.folder)
    assert [problem.rpartition("/")[2] for problem in known.problems] == ["samples.jsonl: line 13: longer than 0 MiB"]
    assert len(known.samples) == 13


def test_a_document_that_is_too_large_is_named(written: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FILE_BYTES", 100)
    with pytest.raises(StoreError, match=r"run\.json: cannot be read: larger than 0\.098 KiB"):
        store.read(written.folder)


def test_a_folder_without_run_json_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no run"):
        store.read(tmp_path)


def test_replicates_that_did_not_finish_are_set_aside(written: RunStore) -> None:
    written.add_replicate(records.replicate("slow", 1, "interrupted"))
    with (written.folder / "samples.jsonl").open("a") as file:
        file.write("half a line")
    store.set_aside_unfinished(written.folder, frozenset({("fast", 0), ("fast", 1), ("slow", 0)}))
    known = store.read(written.folder)
    assert known.problems == ()
    assert {(s.implementation, s.block) for s in known.samples} == {("fast", 0), ("fast", 1), ("slow", 0)}
    assert {(r.implementation, r.block) for r in known.replicates} == {("fast", 0), ("fast", 1), ("slow", 0)}
    aside = (written.folder / "samples.unfinished.jsonl").read_text()
    assert aside.endswith("half a line")
    assert aside.count("\n") == 3


def test_a_live_run_holds_its_lock_and_a_dead_one_does_not(written: RunStore) -> None:
    with written.locked():
        with pytest.raises(UsageError, match="still going on in another process"):
            store.require_unlocked(written.folder)
        with pytest.raises(UsageError, match="still going on"), RunStore(written.folder, started_at=0).locked():
            pass
    store.require_unlocked(written.folder)


def test_a_run_is_found_by_id_beginning_or_path(tmp_path: Path) -> None:
    for name in ("20260101-000000", "20260102-000000", "20260102-111111"):
        records.write(tmp_path, name)
    assert store.find(tmp_path, None).name == "20260102-111111"
    assert store.find(tmp_path, "latest").name == "20260102-111111"
    assert store.find(tmp_path, "20260101").name == "20260101-000000"
    assert store.find(tmp_path, str(tmp_path / "20260102-000000")).name == "20260102-000000"
    with pytest.raises(UsageError, match=r"'20260102' is not unique .* 20260102-000000, 20260102-111111"):
        store.find(tmp_path, "20260102")
    with pytest.raises(UsageError, match="'2027' does not exist"):
        store.find(tmp_path, "2027")


def test_without_any_run_the_message_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no run in .*; make one with \./tfb --test run"):
        store.find(tmp_path, None)


def test_what_cannot_be_written_names_the_file(written: RunStore) -> None:
    (written.folder / "samples.jsonl").unlink()
    (written.folder / "samples.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"samples\.jsonl: cannot be written: Is a directory; what was measured"):
        written.add_sample(records.samples()[0])


def test_results_that_cannot_be_made_name_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be made: Not a directory; free space or choose another folder"):
        RunStore(tmp_path / "file" / "run", started_at=0)


def test_a_run_that_never_began_leaves_no_folder_unless_packages_were_installed(tmp_path: Path) -> None:
    empty = RunStore(tmp_path / "a", started_at=0)
    empty.discard_if_empty()
    installed = RunStore(tmp_path / "b", started_at=0)
    (installed.folder / "logs" / "install.log").touch()
    installed.discard_if_empty()
    begun = records.write(tmp_path, "c")
    begun.discard_if_empty()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]


def test_a_lock_that_is_a_link_or_a_pipe_is_refused_and_nothing_behind_it_changes(tmp_path: Path) -> None:
    made = RunStore(tmp_path / "run", started_at=0.0)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lock = made.folder / store.LOCK
    lock.symlink_to(victim)
    with pytest.raises(StoreError, match="cannot be locked"), made.locked():
        pass
    lock.unlink()
    os.mkfifo(lock)
    with pytest.raises(StoreError, match="no regular file"), made.locked():
        pass
    assert not store.is_locked(made.folder)
    assert victim.read_text() == "precious"


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    made = RunStore(tmp_path / "run", started_at=0.0)
    assert not store.is_locked(made.folder)
    with made.locked():
        assert store.is_locked(made.folder)
    assert not store.is_locked(made.folder)


def test_of_very_many_lines_that_cannot_be_read_the_first_are_named(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_bytes(b"x\n" * (lines.MOST_PROBLEMS + 50))
    read = lines.Lines()
    assert list(lines.grown(path, read, Sample)) == []
    assert read.number == lines.MOST_PROBLEMS + 50
    assert [problem.message for problem in read.problems[-2:]][1] == "further lines cannot be read, either"
    assert len(read.problems) == lines.MOST_PROBLEMS + 1
