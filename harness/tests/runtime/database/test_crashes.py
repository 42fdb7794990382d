"""Whether PostgreSQL's log tells of a killed process."""

from pathlib import Path

from harness.runtime.database import crash, size_of

KILLED = "server process (PID 12) was terminated by signal 9: Killed"


def test_a_killed_process_is_told_once_and_an_orderly_end_of_a_worker_is_none(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"LOG:  starting\nLOG:  {KILLED}\nLOG:  more\n")
    assert KILLED.partition(") ")[2] in (crash(log, 0) or "")
    assert crash(log, size_of(log)) is None
    log.write_text('LOG:  background worker "parallel worker" (PID 12) exited with exit code 1\n')
    assert crash(log, 0) is None
    assert crash(tmp_path / "none", 0) is None
