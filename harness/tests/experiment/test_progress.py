"""Progress of a run on the terminal and in progress.json."""

import io
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.console import SafeConsole
from harness.errors import StoreError
from harness.experiment import progress
from harness.experiment.progress import Display, ProgressTracker
from harness.experiment.steps import Cell, Process
from harness.host.clock import heartbeat
from harness.provisioning import step
from harness.records.loads import ClosedLoop
from harness.records.measurements import Window
from harness.records.run_records import RunProgress as State
from harness.records.store import RunStore
from harness.runtime.readiness import WAITS
from harness.tests.doubles.fakes_run import FakeRun, SilentDisplay
from harness.tests.doubles.fakes_world import Behaviour, FakeClock

CELL = Cell(process=Process("vertx", 1), test_type="query", load=ClosedLoop(connections=64, queries=20))


def second(start: float, responses: float) -> Window:
    return Window(
        start=start, duration=1.0, responses=responses, server_cpu=0.5, wait_share=0.0, rss=1.0, connections=64
    )


def test_progress_json_has_the_keys_of_the_dashboard(
    tmp_path: Path,
) -> None:
    followed = ProgressTracker(SilentDisplay(), expected_seconds=100, store=RunStore(tmp_path / "run", started_at=0))

    def written() -> dict[str, Any]:
        document: dict[str, Any] = json.loads((tmp_path / "run" / "progress.json").read_text())
        return document

    followed.load(CELL, "warm-up")
    for number in range(progress.MAX_WINDOWS + 5):
        followed.second(second(float(number), 900.0 + number))
    windows = written()["windows"]
    assert (len(windows), windows[0]["responses"]) == (progress.MAX_WINDOWS, 905.0)
    followed.load(CELL, "measure")
    document = written()
    elapsed, remaining = document.pop("elapsed_seconds"), document.pop("remaining_seconds")
    assert 0 <= document.pop("preparation_seconds") <= elapsed
    assert document == {
        "status": "running",
        "stage": "measure",
        "process": 2,
        "round": 0,
        "implementation": "vertx",
        "test_type": "query",
        "load": "c64 q20",
        "windows": [],
    }
    assert elapsed + remaining == pytest.approx(100, abs=0.1)


def test_the_remaining_time_shrinks() -> None:
    clock = FakeClock()
    followed = ProgressTracker(SilentDisplay(), expected_seconds=500, clock=clock)
    followed.stage("starting")
    clock.sleep(10)
    followed.stage("preparing")
    assert (followed.state.elapsed, followed.state.remaining) == (10, 490)
    clock.sleep(10)
    followed.verifying("json")
    assert followed.state.remaining == 480
    clock.sleep(100)
    followed.finish("complete")
    assert followed.state.remaining == 0


def test_preparation_ends_with_the_first_process() -> None:
    clock = FakeClock()
    followed = ProgressTracker(SilentDisplay(), expected_seconds=500, clock=clock)
    followed.stage("starting")
    clock.sleep(40)
    followed.process("a", 0)
    clock.sleep(100)
    followed.process("b", 0)
    assert followed.state.preparation == 40


def test_plain_display_has_times_and_quiet_only_problems(capsys: pytest.CaptureFixture[str]) -> None:
    state = State(elapsed=2.5)
    Display().show(state, changed="building [x]")
    Display(quiet=True).show(state, changed="building")
    Display(quiet=True).show(state, changed="! broken")
    assert [line.strip() for line in capsys.readouterr().err.splitlines()] == ["2.5 s  building [x]", "! broken"]


def test_stages_steps_and_builds_report_their_durations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "heartbeat", lambda tell: nullcontext(tell(65.0)))
    clock, display, log = FakeClock(), SilentDisplay(), tmp_path / "build.log"
    followed = ProgressTracker(display, expected_seconds=100, clock=clock)
    with followed.preparing("making the generator ready"), step("build the load generator"):
        pass
    with step("nobody shows the progress"):
        pass
    log.write_text(f"{'x' * 9000}\nCompiling core\n")
    with followed.building("vertx", log):
        assert followed.state.implementation == "vertx"
        clock.sleep(40)
    assert followed.state.remaining == 60
    assert display.lines == [
        "making the generator ready",
        "making the generator ready: 1 min 05 s",
        "build the load generator",
        "build the load generator: 0 s",
        f"building vertx; log: {log}",
        "building vertx: 1 min 05 s, Compiling core",
        "building vertx took 40 s",
    ]


def test_slow_builds_postpone_the_expected_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, display = FakeClock(), SilentDisplay()

    @contextmanager
    def heartbeat_after_90_seconds(tell: Callable[[float], None]) -> Iterator[None]:
        clock.sleep(90)
        tell(90.0)
        yield

    monkeypatch.setattr(progress, "heartbeat", heartbeat_after_90_seconds)
    followed = ProgressTracker(display, expected_seconds=300, clock=clock)
    followed.stage("starting")
    with followed.preparing("preparing the load generator", 60.0):
        assert followed.state.remaining == 240
    with followed.building("vertx", tmp_path / "log", 60.0):
        assert followed.state.remaining == 180
        clock.sleep(10)
    assert (followed.state.elapsed, followed.state.remaining) == (190, 180)
    end = time.strftime("%H:%M", time.localtime(clock.time() + 180))
    assert display.lines[-2].startswith("building vertx: 1 min 30 s, 30 s longer than expected; expected end ")
    assert display.lines[-1] == f"building vertx took 1 min 40 s, 40 s longer than expected; expected end {end}"


def test_fast_builds_move_the_expected_end_forward(tmp_path: Path) -> None:
    clock = FakeClock()
    followed = ProgressTracker(SilentDisplay(), expected_seconds=300, clock=clock)
    with followed.building("vertx", tmp_path / "log", 60.0):
        clock.sleep(10)
    followed.stage("building")
    assert followed.state.remaining == 240


def test_a_run_shows_why_a_service_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()})
    start = fake.runtime.start

    def start_late(*args: Any, **values: Any) -> Any:
        WAITS.warning("a is not ready")
        return start(*args, **values)

    monkeypatch.setattr(fake.runtime, "start", start_late)
    fake.run()
    assert "a is not ready" in fake.display.lines


def test_a_reason_for_waiting_is_shown_once() -> None:
    display = SilentDisplay()
    with ProgressTracker(display).reporting_waits():
        for name in ("base", "base", "head"):
            WAITS.warning("%s is not ready", name)
    WAITS.warning("nobody shows the progress")
    assert display.lines == ["base is not ready", "head is not ready"]


@pytest.mark.parametrize("width", [100, 60])
def test_live_display_keeps_announcements_and_problems(width: int) -> None:
    written = io.StringIO()
    view = progress.LiveDisplay(SafeConsole(width=width, file=written, force_terminal=True, color_system=None))
    followed = ProgressTracker(view, expected_seconds=100, clock=FakeClock())
    followed.announce("2 implementations, local runtime")
    followed.problem("es4x [1] was not built")
    followed.load(CELL, "measure")
    followed.close()
    lines = written.getvalue().replace("\r", "\n").replace("\x1b[2K", "\n").splitlines()
    assert max(map(len, lines)) <= width + len("\x1b[?25l")
    found = [re.search(r"\d:\d\d:\d\d 1 min 40 s left · v", line) for line in lines]
    # The progress bar is 14 characters wide on every terminal.
    assert {match.start() for match in found if match} == {len("100% ") + 14 + len(" ")}
    assert lines.count("2 implementations, local runtime") == lines.count("! es4x [1] was not built") == 1


@pytest.mark.parametrize(("remaining", "share"), [(50.0, "50%"), (0.0, ""), (None, "")])
def test_no_percentage_without_a_known_end(remaining: float | None, share: str) -> None:
    written = io.StringIO()
    view = progress.LiveDisplay(SafeConsole(width=100, file=written, force_terminal=True, color_system=None))
    view.show(State(stage="measure", elapsed=50.0, remaining=remaining), changed="")
    view.close()
    bar = next(line for line in written.getvalue().splitlines() if re.search(r"\d:\d\d:\d\d", line))
    assert bar.replace("\x1b[?25l", "").removeprefix("\r\x1b[2K")[:4].strip() == share


def test_an_overdue_bar_is_not_full() -> None:
    written = io.StringIO()
    view = progress.LiveDisplay(SafeConsole(width=100, file=written, force_terminal=True, color_system="256"))
    for elapsed, remaining in ((50.0, 1.0), (52.0, 0.0)):
        view.show(State(stage="building", elapsed=elapsed, remaining=remaining), changed="")
    view.close()
    green = "\x1b[38;5;70m"  # colour of a finished bar
    assert "longer than expected" in written.getvalue()
    assert green not in written.getvalue()


def test_heartbeat_continues_after_failed_writes() -> None:
    beats: queue.Queue[float] = queue.Queue()

    def tell(seconds: float) -> None:
        beats.put(seconds)
        raise StoreError("the disk is full")

    with heartbeat(tell, interval=0.001):
        assert [beats.get(timeout=10), beats.get(timeout=10)] == [0.001, 0.002]
    assert "heartbeat" not in [thread.name for thread in threading.enumerate()]
