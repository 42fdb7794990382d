"""Ctrl-C and SIGTERM at any moment: exit 130 within ten seconds, nothing left running, and --resume goes on."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.runtime.database.embedded import free_port
from harness.tests.e2e.fakes import Finished, Place

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

# Waits a minute the first time and not at all afterwards.
SLOW_ONCE = "import pathlib, time\nif not (p := pathlib.Path('built')).exists():\n  p.touch()\n  time.sleep(60)"


@pytest.fixture
def place() -> Iterator[Place]:
    root = Path(tempfile.mkdtemp(prefix="tfb-test-"))
    root.chmod(0o755)
    yield Place(root)
    shutil.rmtree(root)


def assert_all_is_gone(place: Place, done: Finished, left: list[str]) -> None:
    assert done.status == 130, done.stderr
    assert done.seconds < 10
    assert left == []
    assert list(place.scratch.iterdir()) == []
    assert "Traceback" not in done.stderr
    assert place.records().info.status == "interrupted"


def test_during_a_build(place: Place) -> None:
    place.add("good", build=[sys.executable, "-c", SLOW_ONCE])
    built = place.frameworks / "Python" / "good" / "built"
    done, left = place.interrupt(built.exists, signal.SIGINT, "--test", "good", "--type", "json")
    assert_all_is_gone(place, done, left)
    assert place.records().samples == ()
    assert place.run("--resume", "latest").status == 0
    assert len(place.records().samples) == 1


def test_during_a_measurement_what_was_measured_is_kept_and_resume_completes_it(place: Place) -> None:
    place.add("good")

    def second_measurement() -> bool:
        return place.at("measure")() and place.progress().get("test_type") == "plaintext"

    done, left = place.interrupt(second_measurement, signal.SIGTERM, "--test", "good", "--seed", "3")
    assert_all_is_gone(place, done, left)
    records = place.records()
    assert [s.test_type for s in records.samples] == ["json"]
    assert [r.status for r in records.replicates] == ["interrupted"]
    assert place.run("--resume", "latest").status == 0
    records = place.records()
    assert [s.test_type for s in records.samples] == ["json", "plaintext"]
    assert [r.status for r in records.replicates] == ["ok"]
    assert (records.info.status, records.info.seed) == ("complete", 3)
    (folder,) = place.results.iterdir()
    assert (folder / "samples.unfinished.jsonl").read_text().count("\n") == 1


def test_during_the_warm_up(place: Place) -> None:
    place.add("good")
    done, left = place.interrupt(place.at("warm-up"), signal.SIGTERM, "--test", "good", "--type", "json")
    assert_all_is_gone(place, done, left)


def test_during_verification_of_a_server_that_hangs_and_ignores_sigterm(place: Place) -> None:
    place.add("hangs", "hangs-and-ignores-sigterm")
    done, left = place.interrupt(place.at("verifying"), signal.SIGINT, "--test", "hangs", "--type", "json")
    assert_all_is_gone(place, done, left)


def test_a_second_and_third_signal_do_not_cut_the_stopping_short(place: Place) -> None:
    place.add("stubborn", "ignores-sigterm")
    again = [(0.2, signal.SIGINT), (0.5, signal.SIGTERM), (1.0, signal.SIGINT)]
    done, left = place.interrupt(
        place.at("measure"), signal.SIGINT, "--test", "stubborn", "--type", "json", later=again
    )
    assert_all_is_gone(place, done, left)


def test_while_the_database_is_being_made(place: Place) -> None:
    place.add("good")

    def initialising() -> bool:
        return any(place.scratch.glob("tfb-scratch-postgres-*/data"))

    done, left = place.interrupt(initialising, signal.SIGINT, "--test", "good", "--type", "json")
    assert_all_is_gone(place, done, left)


def test_debug_mode_leaves_nothing_behind(place: Place) -> None:
    place.add("good")

    def answered() -> bool:
        return place.stdout.exists() and "Ctrl-C stops it" in place.stdout.read_text()

    port = str(free_port())  # debug mode takes the declared one, which somebody else may hold
    done, left = place.interrupt(answered, signal.SIGINT, "--mode", "debug", "--test", "good", "--server-port", port)
    assert (done.status, left, list(place.scratch.iterdir())) == (130, [], [])
    assert "/json" in done.stdout
    assert "postgresql://benchmarkdbuser:benchmarkdbpass@127.0.0.1:" in done.stdout
