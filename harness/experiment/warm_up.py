"""Warm-up: decides when a server is steady, and warms several servers with alternating bursts of load.

A just-in-time compiler competes for CPUs with the load that triggers it. While another server has a burst, the
compilers of an idle server can catch up.
"""

import math
import random
from collections.abc import Generator, Mapping, Sequence
from statistics import median

from harness.experiment.steps import Cell, Failed, OutOfTime, Process, Rest, Step, StepResult, Warm, WarmUpResult
from harness.plan import profile
from harness.records.measurements import Window
from harness.records.trial_record import WarmUp

# CPU time per request may decline by this factor between two spans of windows of a steady server.
MAX_STEADY_DECLINE = 1.05
BURST_SECONDS = 2.0  # maximum length of a burst
PAUSE_SECONDS = 1.5  # maximum pause between two bursts if only a single server remains
FINAL_PAUSE_SECONDS = 8.0  # maximum pause after the last burst


class WarmUpTracker:
    """Tracks a test type of a process until the CPU time per request is steady or the cap is reached.

    The state is steady when the median of the latest ``span`` windows is at most 5 % below the median of the ``span``
    windows before them. Increases are noise or a slower machine. Throughput would be misleading: on a JVM, it stops
    increasing seconds before the second-tier compiler finishes. At that point, CPU time per request is still 31 to 428
    % above the final value. ``tests/experiment/test_warm_up.py`` simulates the error rates on noisy windows.
    """

    def __init__(self, cell: Cell, limits: profile.WarmUpLimits, *, jit: bool) -> None:
        self.cell = cell
        self.span = limits.span
        self.jit = jit
        self.cap_seconds = limits.jit_cap_seconds if jit else limits.cap_seconds
        self.ended = False  # set if the load failed, the server died, or the time is over
        self.seconds = 0.0  # total length of all loads
        self.seconds_to_steady: float | None = None  # start of the later of the two spans that agreed
        self._costs: list[tuple[float, float]] = []  # (CPU seconds per response, seconds before the window)
        self._warm_up = WarmUp(duration=0.0, requests=0, steady=False, seconds_to_steady=None, worst_latency=None)

    @property
    def steady(self) -> bool:
        """Return whether the server has reached a steady state."""
        return self.seconds_to_steady is not None

    @property
    def done(self) -> bool:
        """Return whether no further burst is needed."""
        return self.ended or self.steady or self.seconds >= self.cap_seconds

    def add_window(self, window: Window) -> bool:
        """Add the next window, and return whether the server is steady."""
        before = self.seconds
        self.seconds += window.duration
        if window.responses == 0:
            self._costs.clear()  # a stalled server is not steady
        elif window.responses is not None and window.server_cpu is not None:
            # A window that could not be read is skipped: it does not count, and it does not interrupt the span.
            self._costs.append((window.server_cpu / window.responses, before))
            if not self.steady and len(self._costs) >= 2 * self.span:
                earlier, later = self._costs[-2 * self.span : -self.span], self._costs[-self.span :]
                if 0 < median(cost for cost, _ in earlier) <= MAX_STEADY_DECLINE * median(cost for cost, _ in later):
                    self.seconds_to_steady = later[0][1]
        return self.steady

    def add_burst(self, burst: WarmUpResult) -> None:
        """Add a burst. The whole length counts, even if the windows cover less time."""
        before = self.seconds
        windows = [each.model_copy(update={"start": round(before + each.start, 4)}) for each in burst.windows]
        for window in windows:
            self.add_window(window)
        self.seconds = max(self.seconds, before + burst.seconds)
        latencies = [each for each in (burst.worst_latency, self._warm_up.worst_latency) if each is not None]
        self._warm_up = WarmUp(
            duration=self.seconds,
            requests=self._warm_up.requests + burst.requests,
            steady=self.steady,
            seconds_to_steady=self.seconds_to_steady,
            worst_latency=max(latencies, default=None),
            windows=(*self._warm_up.windows, *windows),
        )

    @property
    def decline(self) -> float:
        """Return the factor by which CPU time per request declined in the latest window, or infinity if unknown."""
        costs = [cost for cost, _ in self._costs[-2:]]
        return costs[0] / costs[1] if len(costs) > 1 and costs[1] else math.inf

    @property
    def result(self) -> WarmUp | None:
        """Return the warm-up that consists of all bursts, or None without a burst."""
        return self._warm_up if self.seconds else None


WarmUpSteps = Generator[Step, StepResult, tuple[list[WarmUpTracker], set[Process]]]


def warm_up_all(cells: Mapping[Cell, bool], rules: profile.Profile, *, until: float, seed: str) -> WarmUpSteps:
    """Warm up cells in rounds of bursts, and then wait until all processes are idle.

    The first round has a random order. Later rounds may run out of time, so they begin with the JIT platforms whose
    cost declines most. Every cell gets at least one burst.

    Args:
        cells: Cells, and whether a JIT runtime serves them.
        rules: The profile.
        until: Share of the run's time within which bursts must end.
        seed: Seed of the random order.

    Returns:
        The trackers of all cells, and the processes that have ended.
    """
    trackers = [WarmUpTracker(cell, rules.warm_up, jit=jit) for cell, jit in cells.items()]
    trackers = [tracker for tracker in trackers if tracker.cap_seconds > 0]
    burst_seconds = min(BURST_SECONDS, rules.duration_seconds)
    gone: set[Process] = set()
    number = 0
    while waiting := [tracker for tracker in trackers if not tracker.done]:
        random.Random(f"{seed} {number}").shuffle(waiting)
        if number:
            waiting.sort(key=lambda tracker: (tracker.jit, tracker.decline), reverse=True)
        alone = len({tracker.cell.process for tracker in waiting}) == 1
        for tracker in waiting:
            process = tracker.cell.process
            if tracker.done or process in gone:
                tracker.ended = True
                continue
            result = yield Warm(cell=tracker.cell, seconds=burst_seconds, until=until if number else 2.0)
            if isinstance(result, WarmUpResult):
                tracker.add_burst(result)
                if alone:
                    yield Rest(seconds=PAUSE_SECONDS, quiet=(process,))
            elif isinstance(result, OutOfTime) and number:
                _end_process(trackers, process)
            else:
                tracker.ended = True
                if isinstance(result, Failed) and result.gone:
                    gone.add(process)
        number += 1
    if number:
        running = {tracker.cell.process for tracker in trackers} - gone
        yield Rest(seconds=FINAL_PAUSE_SECONDS, quiet=tuple(sorted(running)))
    return trackers, gone


def _end_process(trackers: Sequence[WarmUpTracker], process: Process) -> None:
    """End all warm-ups of a process for which there is no time."""
    for tracker in trackers:
        tracker.ended = tracker.ended or tracker.cell.process == process
