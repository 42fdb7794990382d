"""Decides when a server is warm, and warms up several servers with alternating bursts of load.

A just-in-time compiler competes for CPUs with the load that triggers it. Alternating bursts let an idle server's
compiler catch up while other servers are under load.
"""

import math
import random
from collections.abc import Generator, Mapping, Sequence
from statistics import fmean, median

from harness.experiment.steps import Cell, Failed, OutOfTime, Process, Rest, Step, StepResult, Warm, WarmUpResult
from harness.plan import profile
from harness.records.measurements import Window
from harness.records.trial_record import COMPILING_SHARE, WarmUp

# A server is steady if CPU time per request declines by at most this factor from one span of windows to the next.
MAX_STEADY_DECLINE = 1.05
BURST_SECONDS = 2.0  # maximum length of a burst
PAUSE_SECONDS = 1.5  # maximum pause between two bursts if no other server is warming up


class WarmUpTracker:
    """The warm-up of a process for a test type. It ends when CPU time per request is steady or time runs out.

    CPU time per request is steady when the median of the latest ``span`` windows is at most 5 % below the median of the
    ``span`` windows before them. Increases are ignored as noise. Throughput would be misleading: on a JVM, throughput
    stops increasing seconds before the second-tier compiler finishes. At that point, CPU time per request is still 31
    to 428 % above the final value. While the compiler is busy, a server is not steady, even if CPU time per request is.
    ``tests/experiment/test_warm_up.py`` simulates this rule's error rates on noisy windows.
    """

    def __init__(self, cell: Cell, limits: profile.WarmUpLimits, *, jit: bool) -> None:
        self.cell = cell
        self.span = limits.span
        self.jit = jit
        self.cap_seconds = limits.jit_cap_seconds if jit else limits.cap_seconds
        self.ended = False  # set if the load failed, the server died, or time ran out
        self.seconds = 0.0  # total length of all bursts
        self.seconds_to_steady: float | None = None  # warm-up seconds before the steady span; None until steady
        self._costs: list[tuple[float, float]] = []  # (CPU seconds per response, start of the window in seconds)
        self._compiler_shares: list[float] = []  # CPU time of compiler threads / CPU time of the server, per window
        self._warm_up = WarmUp(duration=0.0, requests=0, steady=False, seconds_to_steady=None, worst_latency=None)

    @property
    def steady(self) -> bool:
        """True if the server has reached a steady state."""
        return self.seconds_to_steady is not None

    @property
    def done(self) -> bool:
        """True if no more bursts are needed."""
        return self.ended or self.steady or self.seconds >= self.cap_seconds

    def add_window(self, window: Window) -> bool:
        """Add the next window and return whether the server is steady."""
        before = self.seconds
        self.seconds += window.duration
        if window.compiler_cpu is not None and window.server_cpu:
            self._compiler_shares.append(window.compiler_cpu / window.server_cpu)
        if window.responses == 0:
            self._costs.clear()  # a stalled server is not steady
        elif window.responses is not None and window.server_cpu is not None:
            # Skip windows that could not be read. They do not interrupt a span.
            self._costs.append((window.server_cpu / window.responses, before))
            if not self.steady and not self.is_compiling and len(self._costs) >= 2 * self.span:
                earlier, later = self._costs[-2 * self.span : -self.span], self._costs[-self.span :]
                if 0 < median(cost for cost, _ in earlier) <= MAX_STEADY_DECLINE * median(cost for cost, _ in later):
                    self.seconds_to_steady = later[0][1]
        return self.steady

    def add_burst(self, burst: WarmUpResult) -> None:
        """Add a burst of load. The full duration counts, even if the windows cover less time."""
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
    def compiler_share(self) -> float:
        """The mean fraction of the server's CPU time that compiler threads used in the latest span, or 0 if unknown."""
        return fmean(self._compiler_shares[-self.span :] or [0.0])

    @property
    def is_compiling(self) -> bool:
        """True if the just-in-time compiler was busy in the latest span; False if unknown."""
        return self.compiler_share > COMPILING_SHARE

    @property
    def decline(self) -> float:
        """The factor by which CPU time per request declined between the latest two windows, or infinity if unknown."""
        costs = [cost for cost, _ in self._costs[-2:]]
        return costs[0] / costs[1] if len(costs) > 1 and costs[1] else math.inf

    @property
    def result(self) -> WarmUp | None:
        """The record of the warm-up, or None before the first burst."""
        return self._warm_up if self.seconds else None


WarmUpSteps = Generator[Step, StepResult, tuple[list[WarmUpTracker], set[Process]]]


def warm_up_all(cells: Mapping[Cell, bool], rules: profile.Profile, *, until: float, seed: str) -> WarmUpSteps:
    """Warm up cells in rounds of bursts. Return all trackers, and the processes that have exited.

    ``cells`` maps each cell to True if the platform has a JIT compiler. The first round visits every cell in random
    order. Later rounds visit the cells that are compiling or becoming cheaper or, if there are none, all cold cells.
    JIT platforms come first, then cells that are compiling, then cells with the largest decline in CPU time per
    request. Each burst of a later round must end within the fraction ``until`` of the run's time.
    """
    trackers = [WarmUpTracker(cell, rules.warm_up, jit=jit) for cell, jit in cells.items()]
    trackers = [tracker for tracker in trackers if tracker.cap_seconds > 0]
    burst_seconds = min(BURST_SECONDS, rules.duration_seconds)
    ended: set[Process] = set()
    number = 0
    while cold_trackers := [tracker for tracker in trackers if not tracker.done]:
        random.Random(f"{seed} {number}").shuffle(cold_trackers)
        if number:
            declining = [each for each in cold_trackers if each.is_compiling or each.decline > MAX_STEADY_DECLINE]
            cold_trackers = declining or cold_trackers
            cold_trackers.sort(key=lambda each: (each.jit, each.is_compiling, each.decline), reverse=True)
        is_only_process = len({tracker.cell.process for tracker in cold_trackers}) == 1
        for tracker in cold_trackers:
            process = tracker.cell.process
            if tracker.done or process in ended:
                tracker.ended = True
                continue
            result = yield Warm(cell=tracker.cell, seconds=burst_seconds, until=until if number else None)
            if isinstance(result, WarmUpResult):
                tracker.add_burst(result)
                if is_only_process:
                    yield Rest(seconds=PAUSE_SECONDS, quiet=(process,))
            elif isinstance(result, OutOfTime) and number:
                _end_process(trackers, process)
            else:
                tracker.ended = True
                if isinstance(result, Failed) and result.server_exited:
                    ended.add(process)
        number += 1
    if number:
        running = {tracker.cell.process for tracker in trackers} - ended
        yield Rest(seconds=8.0, quiet=tuple(sorted(running)))
    return trackers, ended


def _end_process(trackers: Sequence[WarmUpTracker], process: Process) -> None:
    """End all warm-ups of a process, because the run has no time left for them."""
    for tracker in trackers:
        tracker.ended = tracker.ended or tracker.cell.process == process
