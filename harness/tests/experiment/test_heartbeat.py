"""What is said while something slow is at work."""

import threading
from pathlib import Path

from harness.experiment.heartbeat import beats, last_line, still


def test_beats_come_until_the_work_is_done() -> None:
    found: list[float] = []
    second = threading.Event()

    def tell(seconds: float) -> None:
        found.append(seconds)
        if len(found) == 2:
            second.set()

    with beats(tell, every=0.001):
        assert second.wait(10)
    count = len(found)
    assert found[:2] == [0.001, 0.002]
    assert len(found) == count  # the thread is over


def test_the_last_line_of_a_log_is_the_last_that_says_something(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    assert still(61, log) == "1 min 01 s"
    log.write_text("Downloading\n\x1b[32mCompiling core\x1b[0m 10%\r20%\n   \n")
    assert last_line(log) == "20%"
    log.write_text(f"{'x' * 9000}\nCompiling core\n")
    assert still(25, log) == "25 s, Compiling core"
