"""A design sent what its steps are expected to show: how long a run takes, before anything is started. Pure."""

from dataclasses import dataclass, field

from harness.experiment import loop
from harness.experiment.designs import DESIGNS
from harness.experiment.steps import (
    Done,
    Measure,
    Measured,
    Process,
    Rest,
    Shown,
    Start,
    Step,
    Stop,
    Verify,
    Warm,
    Warmed,
)
from harness.plan.plan import Plan
from harness.records.models import Errors, ServerUse, Trial, Window

START_SECONDS, STOP_SECONDS = 3.0, 3.0  # a start with its database, an end with its last checks
VERIFY_SECONDS = {True: 1.5, False: 0.4}  # of a test type, in an implementation's first process and in later ones
RATE = 5_000.0  # requests per second that a server is taken to answer


@dataclass
class Prediction:
    """What a run comes to."""

    seconds: float = 0.0
    measuring: float = 0.0  # of these under measurement
    trials: int = 0


@dataclass
class Clock:
    """Time that passes when a step is predicted."""

    now: float = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def time(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """They pass."""
        self.now += seconds


@dataclass
class Bench:
    """Answers each step with what it is expected to show."""

    plan: Plan
    clock: Clock
    found: Prediction = field(default_factory=Prediction)
    test_types: dict[Process, frozenset[str]] = field(default_factory=dict)
    warmed: dict[tuple[Process, str], float] = field(default_factory=dict)

    def carry_out(self, step: Step) -> Shown:
        """What the step is expected to show."""
        match step:
            case Start():
                self.clock.sleep(START_SECONDS)
                return Done()
            case Verify():
                kinds = next(
                    c for c in self.plan.candidates if c.implementation == step.process.implementation
                ).test_types
                self.clock.sleep(len(kinds) * VERIFY_SECONDS[step.process.number == 0])
                return Done(test_types=frozenset(kinds))
            case Warm():
                return self._warm(step)
            case Measure():
                return self._measure(step)
            case Rest():
                # A rest ends before the longest that it may take.
                self.clock.sleep(step.seconds * (0.3 if step.quiet else 1.0))
                return Done()
            case Stop():
                self.clock.sleep(STOP_SECONDS)
                return Done()

    def _warm(self, step: Warm) -> Shown:
        """Steady half of the way to the cap: until then each second costs less than the one before."""
        rule, process = self.plan.profile.warm_up, step.cell.process
        jit = next(c for c in self.plan.candidates if c.implementation == process.implementation).jit
        cap = rule.jit_cap_seconds if jit else rule.cap_seconds
        # A server is steady at half the cap of a warm-up.
        steady = max(2.0 * rule.span, 0.5 * cap)
        self.clock.sleep(step.seconds + loop.OVERHEAD_SECONDS)
        at = self.warmed.get((process, step.cell.test_type), 0.0)
        self.warmed[process, step.cell.test_type] = at + step.seconds
        windows = tuple(
            _window(second, 1.0 if at + second >= steady - 2 * rule.span else 2.0 ** -(at + second))
            for second in range(int(step.seconds))
        )
        return Warmed(windows=windows, seconds=step.seconds)

    def _measure(self, step: Measure) -> Shown:
        self.clock.sleep(step.seconds + loop.OVERHEAD_SECONDS)
        self.found.trials += 1
        self.found.measuring += step.seconds
        cell = step.cell
        requests = round(RATE * step.seconds)
        at_rate = cell.load.kind != "closed"
        return Measured(
            trial=Trial(
                id="predicted",
                implementation=cell.process.implementation,
                test_type=cell.test_type,
                load=cell.load,
                process=cell.process.number,
                round=step.round,
                purpose=step.purpose,
                share=step.share,
                started_at=self.clock.time(),
                duration=step.seconds,
                asked_duration=step.seconds,
                requests=requests,
                bytes=0,
                errors=Errors(),
                throughput=RATE,
                cpu_per_request=1 / RATE,
                latency=None,
                due=requests if at_rate else None,
                answered=requests if at_rate else None,
                unfinished=0 if at_rate else None,
                late=0 if at_rate else None,
                server=ServerUse(cpu_seconds=step.seconds, rss_peak=None, wait_share=None, throttled_seconds=None),
                generator_cpu_seconds=0.0,
                generator_threads=1,
            )
        )


def _window(start: int, cost: float) -> Window:
    return Window(
        start=start, duration=1.0, responses=RATE, server_cpu=cost, wait_share=None, rss=None, connections=None
    )


def predict(plan: Plan, seed: int) -> Prediction:
    """How long the plan's design takes, and how much of it is under measurement."""
    clock = Clock()
    bench = Bench(plan=plan, clock=clock)
    loop.carry_out(DESIGNS[plan.profile.design](plan, seed), bench, clock, plan.profile.interleaved.time_seconds)
    bench.found.seconds = clock.now
    return bench.found
