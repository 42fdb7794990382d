"""Attack: links, pipes and devices in a received results folder redirect writes to other files."""

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import cli
from harness.cli.output import write_file, write_managed_file
from harness.errors import StoreError
from harness.experiment.progress import Display, ProgressTracker
from harness.experiment.workflow import open_run
from harness.extras.claims import measure
from harness.extras.site.site_pages import publish
from harness.host import process
from harness.host.clock import SYSTEM_CLOCK
from harness.records import safe_write, store
from harness.records.run_folders import find_run, list_runs
from harness.records.run_info import Machine, NoiseFloor
from harness.records.safe_write import UnsafePathError
from harness.records.store import RunStore
from harness.tests.doubles import records
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour

FLOOR = NoiseFloor(implementation="a", profile="p", measured_at=1.0, pairs=5, throughput=0.1, cpu_per_request=0.2)
PRECIOUS = "the user's own"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Create a file that belongs to the user and that tfb must not change."""
    path = tmp_path / "mine"
    path.write_text(PRECIOUS, encoding="utf-8")
    return path


@pytest.fixture
def written(tmp_path: Path) -> RunStore:
    return records.write(tmp_path / "results")


def machine() -> Machine:
    return records.info().machine


def lock(run: RunStore) -> None:
    with run.lock():
        pass


WRITES: dict[str, Callable[[RunStore], object]] = {
    "run.json": lambda run: run.write_info(records.info()),
    ".run.json.new": lambda run: run.write_info(records.info()),
    "progress.json": lambda run: run.write_text("progress.json", "{}", durable=False),
    ".ranking.json.new": lambda run: run.write_text("ranking.json", "{}"),
    "trials.jsonl": lambda run: run.add_trial(records.trials()[0]),
    "processes.jsonl": lambda run: run.add_process(records.process("fast", 9)),
    "verdicts.jsonl": lambda run: run.add_verdict(records.verdict("fast", "json")),
    "trials.unfinished.jsonl": lambda run: store.quarantine_records(run.folder, lambda _: True),
    ".trials.jsonl.new": lambda run: store.quarantine_records(run.folder, lambda _: True),
    ".lock": lock,
    "logs/fast/build.log": lambda run: process.run(["true"], seconds=9, log=run.log("fast", "build")),
    "logs/server.log": lambda run: safe_write.append(run.folder / "logs" / "server.log").close(),
    "report.html": lambda run: write_managed_file(run.folder, "report.html", "page"),
    "../claims.json": lambda run: measure.record_verdicts(run.folder.parent, ()),
    "../.calibration/host-2cpu-p.json": lambda run: store.write_noise_floor(
        run.folder.parent, machine().model_copy(update={"hostname": "host", "cpus_usable": (0, 1)}), FLOOR
    ),
}
TRAPS: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda trap, mine: trap.symlink_to(mine),
    "hard link": lambda trap, mine: trap.hardlink_to(mine),
    "dangling link": lambda trap, mine: trap.symlink_to(mine.with_name("new")),
    "pipe": lambda trap, _: os.mkfifo(trap),
    "folder": lambda trap, _: trap.mkdir(),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("name", WRITES)
def test_trap_in_place_of_a_file_is_refused(written: RunStore, mine: Path, name: str, trap: str) -> None:
    path = Path(os.path.normpath(written.folder / name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    TRAPS[trap](path, mine)
    if name.endswith("claims.json") and trap != "dangling link":
        with pytest.raises(StoreError):  # tfb reads the old file first, and rejects anything that is not a regular file
            WRITES[name](written)
    else:
        with pytest.raises(UnsafePathError, match=path.name.replace(".", r"\.")):
            WRITES[name](written)
    assert mine.read_text(encoding="utf-8") == PRECIOUS
    assert not mine.with_name("new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_file_of_another_user_is_refused(written: RunStore) -> None:
    os.chown(written.folder / "trials.jsonl", 65534, 65534)
    with pytest.raises(UnsafePathError, match="belongs to another user"):
        written.add_trial(records.trials()[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="making devices needs root")
def test_device_in_place_of_a_file_is_refused(written: RunStore) -> None:
    (written.folder / "trials.jsonl").unlink()
    try:
        os.mknod(written.folder / "trials.jsonl", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError:
        pytest.skip("this container may make no devices")
    with pytest.raises(UnsafePathError, match="is a device"):
        written.add_trial(records.trials()[0])


@pytest.mark.parametrize("name", ["logs", "logs/fast", ""])
def test_link_in_place_of_a_folder_is_refused(written: RunStore, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = written.folder / name
    if place.exists():
        place.rename(tmp_path / "moved")
    place.symlink_to(elsewhere)
    with pytest.raises(UnsafePathError, match="is a symbolic link"):
        RunStore(written.folder, started_at=0.0).log("fast", "build")
    assert list(elsewhere.iterdir()) == []


def test_harness_log_is_no_way_out_when_resuming(tmp_path: Path, mine: Path) -> None:
    fake = FakeRun(tmp_path, {"one": Behaviour()})
    fake.run()
    (folder,) = list_runs(tmp_path / "results")
    info = store.read_info(folder).model_copy(update={"status": "interrupted"})
    RunStore(folder, started_at=0.0).write_info(info)
    (folder / "logs" / "harness.log").unlink()
    (folder / "logs" / "harness.log").symlink_to(mine)
    fake.resume = "latest"
    with (
        pytest.raises(UnsafePathError, match=r"harness\.log is a symbolic link"),
        open_run(fake.settings(), ProgressTracker(Display(quiet=True)), SYSTEM_CLOCK),
    ):
        logging.getLogger("tfb").info("written")
    assert mine.read_text(encoding="utf-8") == PRECIOUS


def test_link_among_the_runs_is_not_written_through(tmp_path: Path) -> None:
    elsewhere = records.write(tmp_path / "elsewhere").folder
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "run").symlink_to(elsewhere)
    with pytest.raises(UnsafePathError):
        RunStore(find_run(tmp_path / "results", "run"), started_at=0.0)


def test_links_named_by_the_user_are_followed(tmp_path: Path, written: RunStore) -> None:
    (tmp_path / "link").symlink_to(written.folder.parent)
    RunStore.new(tmp_path / "link", started_at=0.0)
    RunStore(find_run(Path("none"), f"{tmp_path}/link/{written.run_id}"), started_at=0.0)
    write_file(tmp_path / "link" / "page", "text")
    assert (written.folder.parent / "page").read_text() == "text"
    (tmp_path / "page").symlink_to(tmp_path / "real.html")
    with pytest.raises(UnsafePathError):
        write_file(tmp_path / "page", "text")


def test_links_within_a_site_are_not_followed(tmp_path: Path, written: RunStore, mine: Path) -> None:
    site = tmp_path / "site"
    publish([written.folder], site, name="one", published_at=1e9)
    (site / "index.html").unlink()
    (site / "index.html").symlink_to(mine)
    with pytest.raises(UnsafePathError, match=r"index\.html is a symbolic link"):
        publish([written.folder], site, name="two", published_at=1e9)
    assert mine.read_text(encoding="utf-8") == PRECIOUS


def test_saved_page_does_not_wait_for_a_pipe(written: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(written.folder / "report.html")
    assert cli.main(["report", written.run_id, "--html", "--results", str(written.folder.parent)]) == 1
    assert "report.html is a named pipe" in capsys.readouterr().err


def test_replaced_files_are_synced_to_disk(written: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    written.write_text("ranking.json", "{}")
    assert synced == ["file", "folder"]
    synced.clear()
    store.quarantine_records(written.folder, lambda process: process == ("slow", 1))
    assert synced[:2] == ["file", "file"]
    assert "folder" in synced


def test_what_a_killed_write_left_is_replaced(written: RunStore) -> None:
    (written.folder / ".run.json.new").write_text("half", encoding="utf-8")
    written.write_info(records.info())
    assert store.read_info(written.folder).name == "invented"
    assert not (written.folder / ".run.json.new").exists()


def test_latest_run_is_the_one_that_started_last(tmp_path: Path) -> None:
    """The clock was set back by an hour between two runs, so sorting by name gives the wrong order."""
    for name, started in (("20261025-025900", 100.0), ("20261025-020100", 200.0), ("zzz", 50.0)):
        info = records.info(name).model_copy(update={"started_at": started})
        records.stored(tmp_path / name, info, ())
    assert [path.name for path in list_runs(tmp_path)] == ["zzz", "20261025-025900", "20261025-020100"]
    assert find_run(tmp_path, None).name == "20261025-020100"


def test_runs_of_one_second_follow_by_number(tmp_path: Path) -> None:
    stores = [RunStore.new(tmp_path, started_at=1e9) for _ in range(11)]
    for run in stores:
        run.write_info(records.info(run.run_id).model_copy(update={"started_at": 1e9}))
    assert [path.name for path in list_runs(tmp_path)] == [run.run_id for run in stores]
    assert stores[0].run_id == "20010909-014640"  # run names use UTC, not the local time zone


@pytest.mark.parametrize("text", ["", "{", '{"started_at": 1e999}', '{"started_at": "x"}', "[" * 100_000])
def test_an_unreadable_start_uses_the_file_time(tmp_path: Path, text: str) -> None:
    records.write(tmp_path, "whole")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text(text, encoding="utf-8")
    assert [path.name for path in list_runs(tmp_path)] == ["whole", "broken"]
