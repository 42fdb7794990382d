"""Warm-up: when a server counts as steady, and the bursts of load that bring several servers there in rounds. Pure.

A just-in-time compiler works beside the load that it compiles for, and under a full load on few CPUs it is one of many
threads that want them. In bursts, the compilers of one server work off what its burst left while another has its own.
"""

import math
import random
from collections.abc import Generator, Mapping
from statistics import median

from harness.experiment.steps import Cell, Failed, OutOfTime, Process, Rest, Step, StepResult, Warm, WarmUpResult
from harness.plan import profile
from harness.records.measurements import Window
from harness.records.trial_record import WarmUp

FALL = 1.05  # of CPU per request over a span: more, and the server is still warming up


class WarmUpTracker:
    """One test type of one process on its way to a steady cost: CPU per request no longer falls, or the cap is reached.

    CPU per request is watched, not throughput: on a JVM throughput levels off seconds before the second compiler is
    done, with a cost per request still 31 to 428 % above its final value. Steady is when the median of the latest
    ``span`` windows is no more than 5 % below that of as many before them. A rise does not count against it: it is
    noise, or a slower machine. ``tests/experiment/test_warm_up.py`` simulates its error rates on noisy windows.
    """

    def __init__(self, cell: Cell, rule: profile.WarmUpLimits, *, jit: bool) -> None:
        self.cell = cell
        self.span = rule.span
        self.jit = jit
        self.cap_seconds = rule.jit_cap_seconds if jit else rule.cap_seconds
        self.over = False  # its load failed, its server ended, or there is no time
        self.seconds = 0.0  # load seen so far
        self.seconds_to_steady: float | None = None  # until the later of the two spans that agreed began
        self._costs: list[tuple[float, float]] = []  # CPU seconds a response; seconds before it
        self._shown = WarmUp(duration=0.0, requests=0, steady=False, seconds_to_steady=None, worst_latency=None)

    @property
    def steady(self) -> bool:
        """Whether the server has been seen to be steady."""
        return self.seconds_to_steady is not None

    @property
    def done(self) -> bool:
        """Steady, at its cap, or over."""
        return self.over or self.steady or self.seconds >= self.cap_seconds

    def observe(self, window: Window) -> bool:
        """Take in the next window; True once the server is steady."""
        before = self.seconds
        self.seconds += window.duration
        if window.responses == 0:
            self._costs.clear()  # a stall is the opposite of steady
        elif window.responses is not None and window.server_cpu is not None:
            # A window that could not be read says nothing: it neither counts towards the span nor breaks it.
            self._costs.append((window.server_cpu / window.responses, before))
            if not self.steady and len(self._costs) >= 2 * self.span:
                earlier, later = self._costs[-2 * self.span : -self.span], self._costs[-self.span :]
                if 0 < median(cost for cost, _ in earlier) <= FALL * median(cost for cost, _ in later):
                    self.seconds_to_steady = later[0][1]
        return self.steady

    def take(self, shown: WarmUpResult) -> None:
        """What a burst showed; one that is longer than what its windows cover counts with its whole length."""
        before = self.seconds
        moved = [each.model_copy(update={"start": round(before + each.start, 4)}) for each in shown.windows]
        for window in moved:
            self.observe(window)
        self.seconds = max(self.seconds, before + shown.seconds)
        worst = [each for each in (shown.worst_latency, self._shown.worst_latency) if each is not None]
        self._shown = WarmUp(
            duration=self.seconds,
            requests=self._shown.requests + shown.requests,
            steady=self.steady,
            seconds_to_steady=self.seconds_to_steady,
            worst_latency=max(worst, default=None),
            windows=(*self._shown.windows, *moved),
        )

    @property
    def fall(self) -> float:
        """How many times the latest window's cost the one before had; as high as can be where one is unknown."""
        costs = [cost for cost, _ in self._costs[-2:]]
        return costs[0] / costs[1] if len(costs) > 1 and costs[1] else math.inf

    @property
    def result(self) -> WarmUp | None:
        """All bursts as one warm-up; None where there was none."""
        return self._shown if self.seconds else None


def warm_up_all(
    cells: Mapping[Cell, bool], rules: profile.Profile, *, until: float, seed: str
) -> Generator[Step, StepResult, tuple[list[WarmUpTracker], set[Process]]]:
    """Bursts over all cells that are not done, round after round; then all come to rest.

    The first round is in seeded random order; later JIT platforms come first, and of them those whose cost fell most:
    time may end a round.

    ``cells``: with whether a JIT runtime serves them. Each has one burst whatever the time. Returns the routes, and the
    processes that ended.
    """
    routes = [WarmUpTracker(cell, rules.warm_up, jit=jit) for cell, jit in cells.items()]
    routes = [route for route in routes if route.cap_seconds > 0]
    burst = min(2.0, rules.duration_seconds)  # seconds of load on one server, before another's
    gone: set[Process] = set()
    number = 0
    while waiting := [route for route in routes if not route.done]:
        random.Random(f"{seed} {number}").shuffle(waiting)
        if number:
            waiting.sort(key=lambda route: (route.jit, route.fall), reverse=True)
        alone = len({route.cell.process for route in waiting}) == 1
        for route in waiting:
            process = route.cell.process
            if route.done or process in gone:
                route.over = True
                continue
            shown = yield Warm(cell=route.cell, seconds=burst, until=until if number else 2.0)
            if isinstance(shown, WarmUpResult):
                route.take(shown)
                if alone:  # a rest between two bursts of the only server that is left
                    yield Rest(seconds=1.5, quiet=(process,))
                continue
            route.over = True
            if isinstance(shown, Failed) and shown.gone:
                gone.add(process)
            elif isinstance(shown, OutOfTime) and number:
                for other in routes:
                    other.over = other.over or other.cell.process == process
        number += 1
    if number:  # at most so long, until all are quiet after the last burst
        yield Rest(seconds=8.0, quiet=tuple(sorted({route.cell.process for route in routes} - gone)))
    return routes, gone
