"""What a run is doing, as one value; shown on the terminal and kept in progress.json for the dashboard's live view."""

import sys
import threading
from collections.abc import Iterator
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
from harness.records.measurements import Window
from harness.records.run_records import RunProgress
from harness.records.store import RunStore
from harness.records.trial_record import Trial
from harness.units import format_elapsed, format_micros, format_rate, format_seconds

MOST_WINDOWS = 120  # of the running load in progress.json: two minutes
REDRAW_SECONDS = 1.0  # drawing costs CPU that is being measured
STAGES = {"measure": "measuring", "warm-up": "warming up"}  # as people read them


@dataclass
class ProgressTracker:
    """Follows a run: keeps its state, estimates what remains, tells the display and the dashboard."""

    display: "Display"
    expected_seconds: float = 0.0
    store: RunStore | None = None
    state: RunProgress = field(default_factory=RunProgress)
    clock: Clock = SYSTEM_CLOCK
    problems: list[str] = field(default_factory=list)  # that were told
    _began: float | None = None  # when the first thing happened
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def stage(self, stage: str, changed: str = "") -> None:
        """What the run as a whole is at: building, measuring, …"""
        self._update(changed or stage, stage=stage, implementation="", test_type="", load="")

    def announce(self, text: str) -> None:
        """Tell something that stays on a terminal: what the run does and until when, and what its time went into."""
        self._update(text, stays=True)

    @contextmanager
    def preparing(self, what: str) -> Iterator[None]:
        """A stage that may build something of the harness's own: says every few seconds that it goes on."""
        self.stage(what)
        stage = what.partition(":")[0]  # without the list of things that are installed or built in it
        with heartbeat(lambda seconds: self.note(f"{stage}: {format_elapsed(seconds)}")):
            yield

    @contextmanager
    def building(self, implementation: str, log: Path) -> Iterator[None]:
        """A build: what its log says meanwhile is shown, and its time is none of the measurement's."""
        began = self.elapsed
        self.stage("building", f"building {implementation}; its log: {log}")

        def go_on(seconds: float) -> None:
            said = process.tail(log, 1).strip()[:100]
            self.note(f"building {implementation}: {format_elapsed(seconds)}{f', {said}' if said else ''}")

        with heartbeat(go_on):
            yield
        took = self.elapsed - began
        self.extend(took)
        self.note(f"building {implementation} took {format_seconds(took)}")

    def process(self, implementation: str, number: int) -> None:
        """A fresh start of an implementation."""
        said, stage = f"starting {implementation}", "starting"
        self._update(said, stage=stage, implementation=implementation, process=number + 1, windows=())

    def verifying(self, test_type: str, stage: str = "verifying") -> None:
        """A test type of the process just started, or about to end."""
        changed = "" if stage == self.state.stage else f"{self.state.implementation}: {stage}"
        self._update(changed, test_type=test_type, stage=stage, load="", windows=())

    def load(self, cell: Cell, stage: str) -> None:
        """A load begins: a warm-up or a measurement."""
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
        """A second of the load that is on, as far as it is known before its end."""
        self._update("", windows=(*self.state.windows, window)[-MOST_WINDOWS:])

    def trial(self, trial: Trial) -> None:
        """A finished trial."""
        flags = [f"witness: {trial.generator}"] if trial.purpose == "witness" else []
        flags += [check.flag for check in trial.validity if check.flag]
        self._update(
            f"{trial.implementation} {trial.test_type} {trial.load.label}: {format_rate(trial.throughput)} req/s, "
            f"{format_micros(trial.cpu_per_request)} µs CPU" + (f" [{', '.join(flags)}]" if flags else ""),
            round=trial.round + 1,
            windows=(),
        )

    def note(self, text: str) -> None:
        """Something that is worth a line."""
        self._update(text)

    def extend(self, seconds: float) -> None:
        """Expect the end so much later."""
        if self.expected_seconds:
            self.expected_seconds += seconds

    def problem(self, text: str) -> None:
        """Something failed; the run goes on."""
        self.problems.append(text)
        self._update(f"! {text}")

    def finish(self, status: str) -> None:
        """The run has ended."""
        self.expected_seconds = self.elapsed
        self._update("", status=status, stage=status)

    def close(self) -> None:
        """Give the terminal back, however the run ended."""
        self.display.close()

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        now = self.clock.monotonic()
        if self._began is None:
            self._began = now
        return now - self._began

    def _update(self, changed: str, *, stays: bool = False, **values: object) -> None:
        with self._lock:  # a build's heartbeat has a thread of its own
            elapsed = self.elapsed
            remaining = max(0.0, self.expected_seconds - elapsed) if self.expected_seconds else None
            self.state = self.state.model_copy(update={**values, "elapsed": elapsed, "remaining": remaining})
            self.display.show(self.state, changed=changed, stays=stays or changed.startswith("!"))
            if self.store:
                self.store.write_text("progress.json", self.state.to_json(), durable=False)  # each second


class Display:
    """Shows a run: one line for each change, for logs and pipes; ``quiet``: of problems alone."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = SafeConsole(file=sys.stderr, highlight=False, soft_wrap=True)

    def show(self, state: RunProgress, *, changed: str, stays: bool = False) -> None:
        """A new state; ``changed`` is the one line that tells what is new, or empty; ``stays``: for the whole run."""
        if self._quiet and changed.startswith("!"):
            print(printable(changed), file=sys.stderr)
        elif changed and not self._quiet:
            self._console.print(Text(f"{state.elapsed:7.1f} s  {changed}"))

    def close(self) -> None:
        """Give the terminal back."""


class LiveDisplay(Display):
    """Where the run is and how far, redrawn once a second and gone when it ends; its first line and problems stay."""

    def __init__(self, console: SafeConsole | None = None) -> None:
        self._bar = Bar(
            TextColumn("{task.percentage:3.0f}%"),
            BarColumn(20),
            TimeElapsedColumn(Column(no_wrap=True)),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=console or SafeConsole(stderr=True, highlight=False),
            refresh_per_second=1 / REDRAW_SECONDS,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)

    def show(self, state: RunProgress, *, changed: str, stays: bool = False) -> None:
        """Take the state over for the next drawing."""
        if stays:
            self._bar.console.print(Text(changed), soft_wrap=True)
        self._bar.update(
            self._task,
            completed=state.elapsed,
            total=None if state.remaining is None else state.elapsed + state.remaining,
            description=changed if state.stage == "building" and changed else describe_state(state),
        )
        self._bar.start()  # only now: an error before the first state leaves the terminal as it was

    def close(self) -> None:
        """Stop redrawing."""
        self._bar.stop()


def describe_state(state: RunProgress) -> str:
    """How long it takes yet, what is measured and how quick it is: ``2 min left · vertx · process 1 · json · c64``."""
    left, rate = "", ""
    if state.remaining is not None:
        left = f"{format_elapsed(state.remaining)} left" if state.remaining > 0 else "longer than expected"
    newest = state.windows[-1] if state.windows else None
    if newest and newest.responses is not None and newest.duration > 0:
        rate = f"now {format_rate(newest.responses / newest.duration)} req/s"
    process = f"process {state.process}" if state.process else ""
    stage = STAGES.get(state.stage, state.stage)
    return " · ".join(filter(None, (left, state.implementation, process, state.test_type, state.load, stage, rate)))


def make_display(*, quiet: bool) -> Display:
    """The display that fits: live on a terminal, plain lines otherwise."""
    return LiveDisplay() if sys.stderr.isatty() and not quiet else Display(quiet=quiet)
