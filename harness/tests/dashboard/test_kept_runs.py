"""Documents of runs are kept; nobody waits for those of a growing run that are made anew."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest

from harness.dashboard import kept_runs
from harness.dashboard.kept_runs import KeptRuns
from harness.dashboard.making import Made, Making, Wanted
from harness.dashboard.runs import no_answers, open_run
from harness.errors import StoreError
from harness.records.models import Sample


class Counted(Making):
    """Remembers what was wanted of it."""

    def __init__(self) -> None:
        super().__init__(None, no_answers)
        self.wanted: list[Wanted] = []

    def make(self, wanted: Wanted) -> Made:
        self.wanted.append(wanted)
        return super().make(wanted)


@pytest.fixture
def maker() -> Counted:
    return Counted()


@pytest.fixture
def kept(results: Path, maker: Counted) -> KeptRuns:
    return KeptRuns(lambda run_id: open_run(results, run_id), maker)


def folder_of(results: Path) -> Path:
    return results / "run"


def running(folder: Path) -> None:
    text = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps(text | {"status": "running"}), encoding="utf-8")


def touch(path: Path) -> None:
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 10**9))


def test_a_run_is_read_again_only_when_a_file_of_it_has_changed(results: Path, kept: KeptRuns, maker: Counted) -> None:
    folder = folder_of(results)
    assert kept.get(folder.name).body is kept.get(folder.name).body
    assert len(maker.wanted) == 1
    touch(folder / "ranking.json")
    kept.get(folder.name)
    assert len(maker.wanted) == 2


def test_a_growing_run_s_viewer_is_given_what_is_there_while_newer_is_made(
    results: Path, kept: KeptRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(results)
    running(folder)
    first = kept.get(folder.name)
    renewed: list[tuple[str, float]] = []
    monkeypatch.setattr(kept, "_renew", lambda run_id, wait: renewed.append((run_id, wait)))
    assert kept.get(folder.name) is first
    assert renewed == []  # nothing is newer
    touch(folder / "samples.jsonl")
    assert kept.get(folder.name) is first
    monkeypatch.setattr(kept_runs, "RENEW_SECONDS", -1.0)
    assert kept.get(folder.name) is first
    ((first_name, first_wait), (second_name, second_wait)) = renewed
    assert (first_name, second_name) == (folder.name, folder.name)
    assert 0 < first_wait <= 5.0
    assert second_wait == 0.0


def test_who_was_given_older_documents_of_a_growing_run_is_told_when_newer_are_there(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: Queue[Path] = Queue()
    kept = KeptRuns(lambda run_id: open_run(results, run_id), Making(None, no_answers), told.put)
    folder = folder_of(results)
    running(folder)
    monkeypatch.setattr(kept_runs, "RENEW_SECONDS", 0.0)
    first = kept.get(folder.name)
    touch(folder / "samples.jsonl")
    assert kept.get(folder.name) is first
    assert told.get(timeout=30) == folder
    assert kept.get(folder.name) is not first
    assert told.empty()


def test_the_end_of_a_run_is_told_at_once(results: Path, kept: KeptRuns) -> None:
    folder = folder_of(results)
    before = (folder / "run.json").read_text(encoding="utf-8")
    running(folder)
    assert kept.get(folder.name).growing
    (folder / "run.json").write_text(before, encoding="utf-8")
    assert not kept.get(folder.name).growing


def test_a_run_that_is_gone_is_an_error(results: Path, kept: KeptRuns) -> None:
    with pytest.raises(StoreError, match="no such run"):
        kept.get("20000101-000000")
    assert not kept._locks  # whoever asks for many names fills no memory


def test_samples_are_read_on_from_where_reading_ended(results: Path, kept: KeptRuns) -> None:
    folder = folder_of(results)
    run = open_run(results, folder.name)
    path = folder / "samples.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    assert sum(map(len, kept.lines(run).spans.values())) == 3
    path.write_bytes(whole)
    index = kept.lines(run)
    first = Sample.model_validate_json(lines[0])
    assert index.spans[first.implementation, first.test_type][0] == (0, len(lines[0]))
    assert sum(map(len, index.spans.values())) == len(lines)
    path.write_bytes(lines[0])  # written anew
    assert sum(map(len, kept.lines(run).spans.values())) == 1


def test_tables_of_a_growing_run_are_made_again_only_with_its_ranking(
    results: Path, kept: KeptRuns, maker: Counted
) -> None:
    folder = folder_of(results)
    running(folder)
    first = kept.get(folder.name, tests=True, latency=True)
    touch(folder / "samples.jsonl")
    with kept._locks[folder.name]:
        second = kept._made(folder.name)
    assert second.tests is first.tests
    assert second.latency is not first.latency
    touch(folder / "ranking.json")
    with kept._locks[folder.name]:
        third = kept._made(folder.name)
    assert third.tests == first.tests
    assert [(each.document, each.tests, each.latency) for each in maker.wanted] == [
        (True, True, True),
        (True, False, True),
        (True, True, True),
    ]


def test_a_ranking_that_is_renewed_while_documents_are_made_brings_its_tables(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(results)
    running(folder)

    class Late(Counted):
        def make(self, wanted: Wanted) -> Made:
            if len(self.wanted) == 1:
                touch(folder / "ranking.json")
            return super().make(wanted)

    maker = Late()
    kept = KeptRuns(lambda run_id: open_run(results, run_id), maker)
    first = kept.get(folder.name, tests=True)
    touch(folder / "samples.jsonl")
    with kept._locks[folder.name]:
        second = kept._made(folder.name)
    assert second.tests is not first.tests
    assert [each.tests for each in maker.wanted] == [True, False, True]


def test_who_waited_for_a_growing_run_s_first_documents_takes_what_others_waited_for(
    results: Path, kept: KeptRuns, maker: Counted
) -> None:
    folder = folder_of(results)
    running(folder)
    lock = kept._locks[folder.name]
    with ThreadPoolExecutor(1) as viewer:
        with lock:
            late = viewer.submit(kept.get, folder.name)
            made = kept._made(folder.name)
            touch(folder / "samples.jsonl")  # newer already
        assert late.result(timeout=60) is made
    assert len(maker.wanted) == 1
