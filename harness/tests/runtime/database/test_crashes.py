"""Whether PostgreSQL's log tells of a killed process."""

from pathlib import Path

from harness.runtime.database import crash, size_of


def test_a_killed_process_is_told_once_and_only_behind_the_offset(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("LOG:  starting\nLOG:  server process (PID 12) was terminated by signal 9: Killed\nLOG:  more\n")
    found = crash(log, 0)
    assert found is not None
    assert "was terminated by signal 9: Killed" in found
    assert crash(log, size_of(log)) is None


def test_an_orderly_end_of_a_worker_is_no_crash(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('LOG:  background worker "parallel worker" (PID 12) exited with exit code 1\n')
    assert crash(log, 0) is None
    assert crash(tmp_path / "none", 0) is None
