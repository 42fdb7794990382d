"""The progress of a run, shown on the terminal and written to progress.json for the dashboard."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from harness.console import SafeConsole
from harness.experiment.steps import Cell
from harness.host import process
from harness.host.clock import SYSTEM_CLOCK, Clock, heartbeat
from harness.plain_text import printable
from harness.provisioning import STEPS
from harness.records.measurements import Window
from harness.records.run_records import RunProgress
from harness.records.store import RunStore
from harness.records.trial_record import Trial
from harness.runtime.readiness import WAITS
from harness.units import format_elapsed, format_micros, format_rate, format_seconds

REPORTED_OVERRUN_SECONDS = 10.0  # report builds that exceed the expected time by at least this much
MAX_WINDOWS = 120  # maximum number of one-second windows in progress.json; older windows are dropped
STAGES = {"measure": "measuring", "warm-up": "warming up"}  # stage -> displayed name


@dataclass
class ProgressTracker:
    """A run's progress and estimated remaining time. Each change updates the display and progress.json."""

    display: "Display"
    expected_seconds: float = 0.0
    store: RunStore | None = None
    state: RunProgress = field(default_factory=RunProgress)
    clock: Clock = SYSTEM_CLOCK
    problems: list[str] = field(default_factory=list)  # all problems that have been reported
    _started_at: float | None = None  # monotonic seconds at the first update
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def stage(self, stage: str, changed: str = "") -> None:
        """Begin a stage of the run, such as "building"."""
        self._update(changed or stage, stage=stage, implementation="", test_type="", load="")

    def announce(self, text: str) -> None:
        """Show a line that stays on the terminal for the whole run."""
        self._update(text, stays=True)

    @contextmanager
    def preparing(self, task: str, expected_seconds: float | None = None) -> Iterator[None]:
        """Begin a preparation stage. Report completed steps and, every few seconds, the elapsed time.

        ``expected_seconds`` is the part of the run's expected time planned for this stage; None if not predicted yet.
        """
        self.stage(task)
        handler = _StepHandler(self)
        level = STEPS.level
        STEPS.setLevel(logging.DEBUG)
        STEPS.addHandler(handler)
        try:
            with (
                self._revising_end(expected_seconds) as revise,
                heartbeat(lambda seconds: self.note(f"{task}: {format_elapsed(seconds)}{revise()}")),
            ):
                yield
        finally:
            STEPS.removeHandler(handler)
            STEPS.setLevel(level)

    @contextmanager
    def reporting_waits(self) -> Iterator[None]:
        """Show why services are not ready yet, until the block ends."""
        handler = _WaitHandler(self)
        WAITS.addHandler(handler)
        try:
            yield
        finally:
            WAITS.removeHandler(handler)

    @contextmanager
    def building(self, implementation: str, log: Path, expected_seconds: float | None = None) -> Iterator[None]:
        """Show a build's elapsed time and latest log line. At the end, show how long the build took.

        ``expected_seconds`` is the part of the run's expected time planned for this build; None without a prediction.
        """
        started_at = self.elapsed
        line = f"building {implementation}; log: {log}"
        self._update(line, stage="building", implementation=implementation, test_type="", load="")

        def report(seconds: float) -> None:
            last_line = process.tail(log, 1).strip()[:100]
            suffix = f", {last_line}" if last_line else ""
            self.note(f"building {implementation}: {format_elapsed(seconds)}{revise()}{suffix}")

        with self._revising_end(expected_seconds) as revise:
            with heartbeat(report):
                yield
            seconds, late = self.elapsed - started_at, revise()
        self._update(f"building {implementation} took {format_seconds(seconds)}{late}", stays=seconds >= 1.0)

    @contextmanager
    def _revising_end(self, expected_seconds: float | None) -> Iterator[Callable[[], str]]:
        """Move the run's expected end if the block takes more or less time than ``expected_seconds``.

        Yield a function that postpones the end if the block is late, and returns text for the display.
        """
        started_at, expected_end = self.elapsed, self.expected_seconds

        def postpone() -> str:
            if expected_seconds is None or not expected_end:
                return ""
            late = self.elapsed - started_at - expected_seconds
            self.expected_seconds = expected_end + max(0.0, late)
            if late < REPORTED_OVERRUN_SECONDS:
                return ""
            end = time.localtime(self.clock.time() + self.expected_seconds - self.elapsed)
            return f", {format_elapsed(late)} longer than expected; expected end {time.strftime('%H:%M', end)}"

        yield postpone
        if expected_seconds is not None and expected_end:
            self.expected_seconds = expected_end + self.elapsed - started_at - expected_seconds

    def process(self, implementation: str, number: int) -> None:
        """Show the start of a process."""
        self._update(
            f"starting {implementation}",
            stage="starting",
            implementation=implementation,
            process=number + 1,
            preparation=self.state.preparation if self.state.process else self.elapsed,
            test_type="",
            load="",
            windows=(),
        )

    def verifying(self, test_type: str, stage: str = "verifying") -> None:
        """Show the verification of a test type."""
        changed = "" if stage == self.state.stage else f"{self.state.implementation}: {stage}"
        self._update(changed, test_type=test_type, stage=stage, load="", windows=())

    def load(self, cell: Cell, stage: str) -> None:
        """Show the start of a load; ``stage`` is "warm-up" or "measure"."""
        self._update(
            "warming up" if stage == "warm-up" != self.state.stage else "",
            stage=stage,
            implementation=cell.process.implementation,
            process=cell.process.number + 1,
            test_type=cell.test_type,
            load=cell.load.label,
            windows=(),
        )

    def second(self, window: Window) -> None:
        """Show the next one-second window of the current load."""
        self._update("", windows=(*self.state.windows, window)[-MAX_WINDOWS:])

    def trial(self, trial: Trial) -> None:
        """Show a trial's results and flags."""
        flags = [f"witness: {trial.generator}"] if trial.purpose == "witness" else []
        flags += [check.flag for check in trial.validity if check.flag]
        self._update(
            f"{trial.implementation} {trial.test_type} {trial.load.label}: {format_rate(trial.throughput)} req/s, "
            f"{format_micros(trial.cpu_per_request)} µs CPU" + (f" [{', '.join(flags)}]" if flags else ""),
            round=trial.round + 1,
            windows=(),
        )

    def note(self, text: str) -> None:
        """Print a line. A live display shows these lines only during builds."""
        self._update(text)

    def extend(self, seconds: float) -> None:
        """Postpone the expected end of the run."""
        if self.expected_seconds:
            self.expected_seconds += seconds

    def problem(self, text: str) -> None:
        """Report a problem; the run continues."""
        self.problems.append(text)
        self._update(f"! {text}")

    def finish(self, status: str) -> None:
        """Show the final status of the run."""
        self.expected_seconds = self.elapsed
        self._update("", status=status, stage=status)

    def close(self) -> None:
        """Release the terminal."""
        self.display.close()

    @property
    def elapsed(self) -> float:
        """The seconds since the first update."""
        now = self.clock.monotonic()
        if self._started_at is None:
            self._started_at = now
        return now - self._started_at

    def _update(self, changed: str, *, stays: bool = False, **values: object) -> None:
        with self._lock:  # during builds, a heartbeat thread also calls this method
            elapsed = self.elapsed
            remaining = max(0.0, self.expected_seconds - elapsed) if self.expected_seconds else None
            self.state = self.state.model_copy(update={**values, "elapsed": elapsed, "remaining": remaining})
            self.display.show(self.state, changed=changed, stays=stays or changed.startswith("!"))
            if self.store:
                # The file need not survive a machine crash, because it is replaced each second.
                self.store.write_text("progress.json", self.state.to_json(), durable=False)


class _StepHandler(logging.Handler):
    """A log handler that shows installation steps, and keeps a line for each completed step on the terminal."""

    def __init__(self, progress: ProgressTracker) -> None:
        super().__init__()
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Show the beginning or the end of a step."""
        if record.levelno >= logging.INFO:
            self._progress.announce(record.getMessage())
        else:
            self._progress.stage(record.getMessage())


class _WaitHandler(logging.Handler):
    """A log handler that shows each reason for waiting once, and keeps it on the terminal."""

    def __init__(self, progress: ProgressTracker) -> None:
        super().__init__()
        self._progress = progress
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Show a reason that has not been shown before."""
        if (text := record.getMessage()) not in self._shown:
            self._shown.add(text)
            self._progress.announce(text)


class Display:
    """A display that prints a line for each event, for logs and pipes. If ``quiet`` is set, it prints only problems."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = SafeConsole(file=sys.stderr, highlight=False, soft_wrap=True)

    def show(self, state: RunProgress, *, changed: str, stays: bool = False) -> None:
        """Show a new state.

        ``changed`` is a line that describes the change, or an empty string. If ``stays`` is set, the line stays visible
        for the whole run.
        """
        if self._quiet and changed.startswith("!"):
            print(printable(changed), file=sys.stderr)
        elif changed and not self._quiet:
            self._console.print(Text(f"{state.elapsed:7.1f} s  {changed}"))

    def close(self) -> None:
        """Release the terminal."""


class LiveDisplay(Display):
    """A display that redraws a single line each second. Announcements and problems remain visible."""

    def __init__(self, console: SafeConsole | None = None) -> None:
        self._bar = Bar(
            TextColumn("{task.fields[share]:>4}"),
            BarColumn(14),
            TimeElapsedColumn(),
            TextColumn(
                "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
            ),
            console=console or SafeConsole(stderr=True, highlight=False),
            refresh_per_second=1,  # redrawing more often would disturb the measurement
            transient=True,
            expand=True,  # truncate only the description
        )
        self._task = self._bar.add_task("", total=None, share="")

    def show(self, state: RunProgress, *, changed: str, stays: bool = False) -> None:
        """Show the state at the next redraw."""
        if stays:
            self._bar.console.print(Text(changed))
        # Without a total, rich shows a moving bar without a percentage. Use this if the end is unknown or overdue.
        total = state.elapsed + state.remaining if state.remaining else None
        self._bar.tasks[0].total = total  # Bar.update ignores None, so an overdue bar would stay at 100 %
        self._bar.update(
            self._task,
            completed=state.elapsed,
            share=f"{state.elapsed / total:.0%}" if total else "",
            description=changed if state.stage == "building" and changed else describe_state(state),
        )
        self._bar.start()  # start only now, so that an early error leaves the terminal unchanged

    def close(self) -> None:
        """Stop redrawing."""
        self._bar.stop()


def describe_state(state: RunProgress) -> str:
    """Describe a state, for example ``2 min left · vertx · process 1 · json · c64``."""
    remaining, rate = "", ""
    if state.remaining is not None:
        remaining = f"{format_elapsed(state.remaining)} left" if state.remaining > 0 else "longer than expected"
    newest = state.windows[-1] if state.windows else None
    if newest and newest.responses is not None and newest.duration > 0:
        rate = f"now {format_rate(newest.responses / newest.duration)} req/s"
    process = f"process {state.process}" if state.process else ""
    stage = STAGES.get(state.stage, state.stage)
    return " · ".join(
        filter(None, (remaining, state.implementation, process, state.test_type, state.load, stage, rate))
    )


def make_display(*, quiet: bool) -> Display:
    """Return a live display if stderr is a terminal, otherwise a display that prints plain lines."""
    return LiveDisplay() if sys.stderr.isatty() and not quiet else Display(quiet=quiet)
