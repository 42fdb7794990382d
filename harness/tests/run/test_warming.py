"""Servers are warmed in turns: the steady are left alone, the busy are waited for, and all of it has an end."""

from collections.abc import Callable
from typing import cast

from harness.measure.steady import SteadyDetector
from harness.plan.profile import WarmUpRule
from harness.records.models import Window
from harness.run import warming
from harness.run.member import Member
from harness.run.warming import Warmth
from harness.runtime import Reading
from harness.tests.doubles.fakes_world import FakeClock

RULE = WarmUpRule(
    span=2, times=1, tolerance=0.05, minimum_requests=0, minimum_seconds=0, cap_seconds=6, jit_cap_seconds=16
)


class Busy:
    """A server that is at work on what a load left until ``busy_until``."""

    def __init__(self, clock: FakeClock, targets: tuple[str, ...] = ("json",)) -> None:
        self.targets = dict.fromkeys(targets)
        self.busy_until = 0.0
        self._clock, self._cpu, self._at = clock, 0.0, clock.monotonic()

    def reading(self) -> Reading:
        now = self._clock.monotonic()
        self._cpu += max(0.0, min(now, self.busy_until) - self._at)
        self._at = now
        return Reading(at=now, cpu_seconds=self._cpu, rss=None, run_seconds=self._cpu, wait_seconds=0.0)


def cell(server: Busy, kind: str = "json", *, jit: bool = False) -> Warmth:
    return Warmth(member=cast("Member", server), test_type=kind, detector=SteadyDetector(RULE, jit=jit))


def window(start: float, cpu: float) -> Window:
    """Ten thousand responses in a second."""
    return Window(start=start, duration=1.0, responses=1e4, server_cpu=cpu, wait_share=None, rss=None, connections=None)


def burst(clock: FakeClock, costs: Callable[[Warmth], float], seen: list[Warmth]) -> Callable[[Warmth], bool]:
    """Two windows of a second at what a request costs then."""

    def load(cell: Warmth) -> bool:
        seen.append(cell)
        for second in range(2):
            clock.sleep(1.0)
            cell.detector.observe(window(float(second), 1e4 * costs(cell)))
        return True

    return load


def test_what_is_steady_has_no_further_burst_and_what_is_not_goes_on_to_its_cap() -> None:
    clock, seen = FakeClock(), list[Warmth]()
    steady, falling = cell(Busy(clock)), cell(Busy(clock), jit=True)
    costs = iter(1e-3 * 0.8**step for step in range(100))
    warming.in_turns(
        [steady, falling],
        burst(clock, lambda each: 1e-4 if each is steady else next(costs), seen),
        clock,
        seconds=600,
        seed=1,
    )
    assert seen.count(steady) == 2
    assert seen.count(falling) == 8
    assert (steady.detector.steady, falling.detector.steady) == (True, False)


def test_it_ends_with_its_time_but_everything_has_one_burst() -> None:
    clock, seen = FakeClock(), list[Warmth]()
    cells = [cell(Busy(clock), jit=True) for _ in range(4)]
    costs = iter(1e-3 * 0.8**step for step in range(1000))
    warming.in_turns(cells, burst(clock, lambda _: next(costs), seen), clock, seconds=4, seed=1)
    assert len(seen) == len({id(each) for each in seen}) == 4
    assert clock.monotonic() - 1000.0 < 10


def test_the_order_of_a_lap_is_drawn_by_the_seed() -> None:
    def order(seed: int) -> list[str]:
        clock, seen = FakeClock(), list[Warmth]()
        server = Busy(clock, tuple("abcdef"))
        cells = [cell(server, kind) for kind in "abcdef"]
        warming.in_turns(cells, burst(clock, lambda _: 1e-4, seen), clock, seconds=600, seed=seed)
        return [each.test_type for each in seen]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(1)[:6]) == list("abcdef")


def test_bursts_of_the_only_server_left_wait_for_its_compiler_within_bounds() -> None:
    def took(busy: float) -> float:
        clock, seen = FakeClock(), list[Warmth]()
        server = Busy(clock)

        def costs(_: Warmth) -> float:
            server.busy_until = clock.monotonic() + busy
            return 1e-4

        warming.in_turns([cell(server)], burst(clock, costs, seen), clock, seconds=600, seed=1)
        return clock.monotonic() - 1000.0

    assert 4.0 < took(0.0) <= 5.0  # two bursts and a glance behind each
    assert took(1.0) >= took(0.0) + 2 * 0.75
    assert took(1e9) <= 4.0 + 2 * warming.PAUSE_SECONDS + warming.SETTLE_SECONDS + 1.0


def test_a_test_type_that_failed_is_left_out() -> None:
    clock, seen = FakeClock(), list[Warmth]()
    server = Busy(clock, ("json", "db"))

    def fails(cell: Warmth) -> bool:
        seen.append(cell)
        server.targets.clear()
        return False

    warming.in_turns([cell(server), cell(server, "db")], fails, clock, seconds=600, seed=1)
    assert len(seen) == 1
