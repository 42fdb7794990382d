"""Tests for a run's files: written records can be read, and errors name the damaged file."""

import json
import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import StoreError, UsageError
from harness.records import claims, reader, store
from harness.records.run_folders import find_run
from harness.records.run_info import NoiseFloor
from harness.records.run_records import RunProgress, RunRecords
from harness.records.store import RunStore
from harness.records.verification_record import Outcome
from harness.tests.approve import approve
from harness.tests.doubles import records


@pytest.fixture
def written(tmp_path: Path) -> RunStore:
    return records.write(tmp_path)


def test_written_records_are_read_back(written: RunStore) -> None:
    known = store.read_run(written.folder)
    assert known.info.model_dump(mode="json") == records.info().model_dump(mode="json")
    assert list(known.trials) == records.trials()
    assert [(p.implementation, p.process, p.trials) for p in known.processes] == [
        (name, number, 3) for name in ("fast", "slow") for number in (0, 1)
    ]
    assert {(v.implementation, v.test_type) for v in known.verdicts} == {
        (i, t) for i in ("fast", "slow") for t in records.LOADS
    }
    assert known.problems == ()
    first = json.loads((written.folder / "trials.jsonl").read_text().splitlines()[0])
    assert {"duration_seconds", "requests_per_second", "cpu_seconds_per_request"} <= first.keys()


def test_number_of_reported_problems_is_limited(written: RunStore) -> None:
    (written.folder / "trials.jsonl").write_text("broken\n" * 500, encoding="utf-8")
    problems = store.read_run(written.folder).problems
    assert [text.partition("trials.jsonl: ")[2] for text in problems[-2:]] == [
        f"line {reader.MAX_PROBLEMS}: Invalid JSON: expected value at line 1 column 1",
        "more lines cannot be read",
    ]


def test_full_disk_leaves_no_partial_record(written: RunStore) -> None:
    path = written.folder / "verdicts.jsonl"
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, limits[1]))  # too small for the record
    try:
        with pytest.raises(StoreError, match=r"cannot write .*verdicts\.jsonl: File too large"):
            written.add_verdict(records.verdict("fast", "json", Outcome.FAIL))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before


def test_last_verification_of_a_process_counts(written: RunStore) -> None:
    written.add_verdict(records.verdict("fast", "json", Outcome.FAIL))
    written.add_verdict(records.verdict("fast", "json", Outcome.WARN, process=1))
    outcomes = {(v.process, v.outcome) for v in reader.RunReader(written.folder).verdicts("fast", "json")}
    assert outcomes == {(0, Outcome.FAIL), (1, Outcome.WARN)}


def test_too_long_lines_and_documents_are_reported(written: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 4096)
    with (written.folder / "trials.jsonl").open("a") as file:
        file.write("x" * 10_000 + "\n")
    known = store.read_run(written.folder)
    assert "trials.jsonl: line 13: longer than" in known.problems[0]
    assert len(known.trials) == 12
    monkeypatch.setattr(reader, "MAX_RUN_INFO_BYTES", 100)
    with pytest.raises(StoreError, match=r"run\.json: cannot read the file: larger than 0\.098 KiB"):
        store.read_run(written.folder)


@pytest.mark.parametrize("number", ["1e999", "[NaN]", '{"a": -1e999}'])
def test_infinite_numbers_in_settings_are_refused(number: str, written: RunStore) -> None:
    path = written.folder / "run.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["settings"] = {"profile": "@"}
    path.write_text(json.dumps(document).replace('"@"', number), encoding="utf-8")
    with pytest.raises(StoreError, match=r"run\.json.*(settings|not valid JSON)"):
        reader.RunReader(written.folder)


def test_finished_process_has_all_its_trials(written: RunStore) -> None:
    written.add_process(records.process("fast", 2, "interrupted"))
    written.add_process(records.process("fast", 4, "failed"))  # failed after it had started
    written.add_process(records.process("fast", 5, "failed").model_copy(update={"startup_time": None}))
    written.add_trial(records.trial("fast", 3, 1.0))
    finished = {(name, number) for name in ("fast", "slow") for number in (0, 1)} | {("fast", 4)}
    assert store.finished_processes(store.read_run(written.folder)) == finished
    path = written.folder / "trials.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    assert store.finished_processes(store.read_run(written.folder)) == finished - {("fast", 0)}


def test_unfinished_processes_are_quarantined(written: RunStore) -> None:
    with (written.folder / "trials.jsonl").open("a") as file:
        file.write("half a line")
    store.quarantine_records(written.folder, lambda process: process in {("slow", 1), ("fast", 0)})
    known = store.read_run(written.folder)
    assert known.problems == ()
    assert {(t.implementation, t.process) for t in known.trials} == {("fast", 1), ("slow", 0)}
    assert {(p.implementation, p.process) for p in known.processes} == {("fast", 1), ("slow", 0)}
    assert {v.implementation for v in known.verdicts} == {"slow"}
    aside = (written.folder / "trials.unfinished.jsonl").read_text()
    assert aside.endswith("half a line")
    assert aside.count("\n") == 6
    (written.folder / "trials.jsonl").unlink()
    store.quarantine_records(written.folder, lambda _: True)
    assert not store.read_run(written.folder).processes


def test_simultaneous_runs_get_different_folders(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: RunStore.new(tmp_path / "results", started_at=1e9), range(8)))
    assert sorted(each.folder.name[15:] for each in stores) == ["", *(f"-{number}" for number in range(2, 9))]
    assert len(list((tmp_path / "results").iterdir())) == 8


def test_only_a_living_run_holds_its_lock(written: RunStore) -> None:
    assert not store.is_locked(written.folder)
    with written.lock():
        assert store.is_locked(written.folder)
        second_lock = RunStore(written.folder, started_at=0).lock()
        with pytest.raises(UsageError, match="in progress in another process"), second_lock:
            pass
    assert not store.is_locked(written.folder)


def test_run_is_found_by_prefix_or_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"^there is no run in {tmp_path}; start a run with \./tfb run$"):
        find_run(tmp_path, None)
    with pytest.raises(UsageError, match=rf"^run 'a' does not exist in {tmp_path}; available runs: none$"):
        find_run(tmp_path, "a")
    names = ["20260101-0", *(f"20260102-{number}" for number in range(6)), "20260102-50"]
    for name in names:
        records.write(tmp_path, name)
    ids = (None, "latest", "20260101", "20260102-5", str(tmp_path / "20260102-0"))
    names_found = [find_run(tmp_path, each).name for each in ids]
    assert names_found == ["20260102-50", "20260102-50", "20260101-0", "20260102-5", "20260102-0"]
    for prefix, what in (("2026", "is not unique"), ("2027", "does not exist")):
        with pytest.raises(
            UsageError, match=rf"^run '{prefix}' {what} in {tmp_path}; available runs: {', '.join(names[-5:])}$"
        ):
            find_run(tmp_path, prefix)


def test_write_error_names_the_file(written: RunStore, tmp_path: Path) -> None:
    (written.folder / "trials.jsonl").unlink()
    (written.folder / "trials.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"trials\.jsonl is a folder, but tfb needs a file here; move it elsewhere"):
        written.add_trial(records.trials()[0])
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"/file is a file, but tfb needs a folder here; move it elsewhere"):
        RunStore(tmp_path / "file" / "run", started_at=0)
    with pytest.raises(StoreError, match=rf"^{tmp_path}/file is a file, but tfb needs a folder here"):
        RunStore.new(tmp_path / "file", started_at=0)


def test_folder_of_a_run_without_start_is_removed(tmp_path: Path) -> None:
    RunStore(tmp_path / "a", started_at=0).discard_if_empty()
    installed = RunStore(tmp_path / "b", started_at=0)
    (installed.folder / "logs" / "install.log").touch()
    installed.discard_if_empty()
    records.write(tmp_path, "c").discard_if_empty()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]


def test_processes_of_joined_runs_are_renumbered(written: RunStore) -> None:
    known = store.read_run(written.folder)
    first, _, second = store.renumber_processes([known, RunRecords(info=known.info), known])
    for one, by in ((first, 0), (second, 2)):
        for name in ("trials", "processes", "verdicts"):
            moved, before = getattr(one, name), getattr(known, name)
            assert [each.process for each in moved] == [each.process + by for each in before] != []
    assert store.process_numbers(second) == store.process_numbers(replace(second, trials=[])) == {2, 3}


def test_run_id_is_the_name_of_the_folder(written: RunStore) -> None:
    assert store.read_run(written.folder.rename(written.folder.with_name("mailed"))).info.run_id == "mailed"


def test_noise_floor_depends_on_machine_and_profile(tmp_path: Path) -> None:
    floor = NoiseFloor(implementation="a", profile="p", measured_at=1.0, pairs=5, throughput=0.1, cpu_per_request=0.2)
    machine = records.info().machine
    assert store.read_noise_floor(tmp_path / "results", "p", machine) is None
    for written_floor in (floor.model_copy(update={"pairs": 2}), floor):
        store.write_noise_floor(tmp_path / "results", machine, written_floor)
    assert store.read_noise_floor(tmp_path / "results", "p", machine) == floor
    assert store.read_noise_floor(tmp_path / "results", "other", machine) is None
    assert (
        store.read_noise_floor(tmp_path / "results", "p", machine.model_copy(update={"hostname": "elsewhere"})) is None
    )


LINES = {  # name -> text of trials.jsonl
    "half": '{"id": "cut o\n',
    "no objects": 'words\n[]\n"a"\n\n{"id": 3}\n{"id": "x", "load": {"kind": "shut"}}\n',
    "too many objects": '{"a": [' + "[]," * reader.MAX_LINE_CONTAINERS + "[]]}\n",
}
DOCUMENTS = {
    "empty": "", "list": "[]", "cut": '{"run_id": ', "deep": "[" * 500_001, "wide": '{"a": [' + "1," * 10_000_001,
    "other": '{"run_id": 3, "loads": 4}',
}  # fmt: skip


def test_messages_about_broken_files_are_as_approved(tmp_path: Path) -> None:
    written = records.write(tmp_path / "results")
    folder = written.folder
    written.add_trial(records.trial("größe", 0, 1.0))

    def said(of: Callable[[], object]) -> str:
        try:
            return str(of())[:99]
        except (StoreError, OSError, ValueError) as error:
            return str(error).replace(str(tmp_path), "TMP")

    def problems(status: str = "complete") -> list[object]:
        written.write_info(records.info().model_copy(update={"status": status}))
        known = store.read_run(folder)
        counts = f"{len(known.trials)} {len(known.processes)} {len(known.verdicts)}"
        return [counts, *(each.removeprefix(str(folder)) for each in known.problems)]

    trials, messages = folder / "trials.jsonl", dict[str, object]()
    valid_lines = trials.read_bytes()
    for name, text in LINES.items():
        trials.write_bytes(text.encode() + valid_lines)
        messages[name] = problems()
    trials.write_bytes(valid_lines + b"half\n" + b'{"id": "cut o')
    messages["at its end"] = [problems(), problems("running"), problems("failed")]
    run = reader.RunReader(folder)
    some = [run.trials("slow", "json"), run.trials(test_type="json"), run.trials("größe"), run.trials()]
    counts = [*map(len, some), len(run.processes("slow")), len(run.verdicts("slow", "query"))]
    messages["of some"] = [counts, [each.id for each in some[0]], *(each.message for each in run.problems)]
    later: list[str] = []
    last = len(valid_lines) - len(valid_lines.splitlines(keepends=True)[-1])
    messages["from a byte on"] = [
        len([*reader.read_lines(trials, type(records.trials()[0]), later, start=last)]),
        *later,
    ]
    for name in store.PROCESS_FILES:
        (folder / f"{name}.jsonl").unlink()
        messages[f"no {name}"] = [problems(), problems("interrupted")]
        (folder / f"{name}.jsonl").mkdir()
    messages["folders"] = problems()
    for name, text in DOCUMENTS.items():
        for path in (folder / "run.json", tmp_path / "claims.json"):
            path.write_text(text, encoding="utf-8")
        messages[name] = [said(lambda: store.read_run(folder)), said(lambda: claims.read_claims(tmp_path))]
    (folder / "run.json").unlink()
    messages["no run"] = said(lambda: store.read_run(folder))
    written.write_text("progress.json", RunProgress(status="failed", stage="verifying").to_json())
    messages["no run, but progress"] = said(lambda: store.read_run(folder))
    assert claims.latest_verdicts(folder) == claims.read_claims(claims.PUBLISHED).verdicts
    approve("records-broken", messages)
