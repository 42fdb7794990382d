"""Warm-up: when a server counts as steady, and the bursts of load that bring several servers there in rounds. Pure.

A just-in-time compiler works beside the load that it compiles for, and under a full load on few CPUs it is one of many
threads that want them. In bursts, the compilers of one server work off what its burst left while another has its own.
"""

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from harness.experiment.steps import Cell, Failed, Late, Process, Rest, Shown, Step, Warm, Warmed
from harness.plan import profile
from harness.records.models import WarmUp, Window

FALL = 1.05  # of CPU per request over a span: more, and the server is still warming up


class SteadyDetector:
    """Watches the warm-up of one route and says when CPU per request no longer falls, or the cap is reached.

    CPU per request is watched, not throughput: on a JVM throughput levels off seconds before the second compiler is
    done, with a cost per request still 31 to 428 % above its final value. Steady is when the median of the latest
    ``span`` windows is no more than 5 % below that of as many before them. A rise does not count against it: it is
    noise, or a slower machine. ``tests/experiment/test_warm_up.py`` simulates its error rates on noisy windows.
    """

    def __init__(self, rule: profile.WarmUp, *, jit: bool) -> None:
        self.span = rule.span
        self.cap_seconds = rule.jit_cap_seconds if jit else rule.cap_seconds
        self.seconds = 0.0  # load seen so far
        self.requests = 0.0
        self.seconds_to_steady: float | None = None  # until the later of the two spans that agreed began
        self.requests_to_steady: float | None = None
        self._costs: list[tuple[float, float, float]] = []  # CPU seconds a response; seconds and requests before it

    @property
    def steady(self) -> bool:
        """Whether it has been seen."""
        return self.seconds_to_steady is not None

    def observe(self, window: Window) -> bool:
        """Take in the next window; True once the server is steady."""
        before = (self.seconds, self.requests)
        self.seconds += window.duration
        self.requests += window.responses or 0.0
        if window.responses == 0:
            self._costs.clear()  # a stall is the opposite of steady
        elif window.responses is not None and window.server_cpu is not None:
            self._costs.append((window.server_cpu / window.responses, *before))
            # A window that could not be read says nothing: it neither counts towards the span nor breaks it.
            if not self.steady and len(self._costs) >= 2 * self.span:
                self._look()
        return self.steady

    def _look(self) -> None:
        earlier = median(cost for cost, _, _ in self._costs[-2 * self.span : -self.span])
        if 0 < earlier <= FALL * median(cost for cost, _, _ in self._costs[-self.span :]):
            self.seconds_to_steady, self.requests_to_steady = self._costs[-self.span][1:]


@dataclass
class Route:
    """One test type of one process on its way to a steady cost."""

    cell: Cell
    detector: SteadyDetector
    windows: list[Window] = field(default_factory=list)
    requests: int = 0
    worst_latency: float | None = None
    over: bool = False  # its load failed, its server ended, or there is no time

    @property
    def done(self) -> bool:
        """Steady, at its cap, or over."""
        return self.over or self.detector.steady or self.detector.seconds >= self.detector.cap_seconds

    def take(self, shown: Warmed) -> None:
        """What a burst showed; one that is longer than what its windows cover counts with its whole length."""
        before = self.detector.seconds
        for window in shown.windows:
            self.windows.append(window.model_copy(update={"start": round(before + window.start, 4)}))
            self.detector.observe(window)
        self.detector.seconds = max(self.detector.seconds, before + shown.seconds)
        self.requests += shown.requests
        if shown.worst_latency is not None:
            self.worst_latency = max(shown.worst_latency, self.worst_latency or 0.0)

    @property
    def result(self) -> WarmUp | None:
        """All bursts as one warm-up; None where there was none."""
        found = self.detector
        if not found.seconds:
            return None
        return WarmUp(
            duration=found.seconds,
            requests=self.requests,
            steady=found.steady,
            seconds_to_steady=found.seconds_to_steady,
            requests_to_steady=None if found.requests_to_steady is None else round(found.requests_to_steady),
            worst_latency=self.worst_latency,
            windows=tuple(self.windows),
        )


def warm_all(
    cells: Mapping[Cell, bool], rules: profile.Profile, *, until: float, seed: str
) -> Generator[Step, Shown, tuple[Sequence[Route], frozenset[Process]]]:
    """Bursts over all cells that are not done, in seeded random order, round after round; then all come to rest.

    ``cells``: with whether a JIT runtime serves them. Each has one burst whatever the time. Returns the routes, and the
    processes that ended.
    """
    routes = [Route(cell=cell, detector=SteadyDetector(rules.warm_up, jit=jit)) for cell, jit in cells.items()]
    routes = [route for route in routes if route.detector.cap_seconds > 0]
    # Seconds of load on one server, before another's.
    burst = min(2.0, rules.duration_seconds)
    gone: set[Process] = set()
    number = 0
    while waiting := [route for route in routes if not route.done]:
        random.Random(f"{seed} {number}").shuffle(waiting)
        alone = len({route.cell.process for route in waiting}) == 1
        for route in waiting:
            if route.done or route.cell.process in gone:
                route.over = True
                continue
            shown = yield Warm(cell=route.cell, seconds=burst, until=until if number else 2.0)
            if isinstance(shown, Warmed):
                route.take(shown)
                if alone:
                    # At most, between two bursts of the only server that is left.
                    yield Rest(seconds=1.5, quiet=(route.cell.process,))
            else:
                route.over = True
                if isinstance(shown, Failed) and shown.gone:
                    gone.add(route.cell.process)
                elif isinstance(shown, Late) and number:
                    for other in routes:
                        other.over = other.over or other.cell.process == route.cell.process
        number += 1
    if number:
        up = sorted({route.cell.process for route in routes} - gone)
        # At most, until all are quiet after the last burst.
        yield Rest(seconds=8.0, quiet=tuple(up))
    return routes, frozenset(gone)
