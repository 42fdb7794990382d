"""When a server counts as warm: the steady rule over one-second windows. Pure: it is fed windows and asked."""

from dataclasses import dataclass
from statistics import median

from harness.plan.profile import WarmUpRule
from harness.records.models import Window


@dataclass(frozen=True)
class _Cost:
    """CPU seconds a response in one window, with where the warm-up stood at the window's start."""

    cpu_per_request: float
    seconds_before: float
    requests_before: float


class SteadyDetector:
    """Watches the warm-up of one route and says when CPU per request has settled, or the rule's time is up.

    CPU per request is watched, not throughput: on a JVM throughput levels off seconds before the second compiler is
    done, with a cost per request still 31 to 428 % above its final value.
    """

    def __init__(self, rule: WarmUpRule, *, jit: bool) -> None:
        self.rule = rule
        self.cap_seconds = rule.jit_cap_seconds if jit else rule.cap_seconds
        self.seconds = 0.0  # load seen so far
        self.requests = 0.0
        self._costs: list[_Cost] = []
        self._agreed = 0
        self._since: _Cost | None = None
        self._steady = False

    def observe(self, window: Window) -> bool:
        """Take in the next window; True once the warm-up is over by the rule (never because of the cap)."""
        before = _Cost(0.0, self.seconds, self.requests)
        self.seconds += window.duration
        self.requests += window.responses or 0.0
        if self.rule.kind == "fixed":
            return self.seconds >= self.rule.fixed_seconds
        if window.responses == 0:
            self._disagree()  # a stall is the opposite of steady
        elif window.responses is not None and window.server_cpu is not None:
            cost = window.server_cpu / window.responses
            self._costs.append(_Cost(cost, before.seconds_before, before.requests_before))
            self._look()
        # A window that could not be read says nothing: it neither counts towards the span nor breaks it.
        if self._agreed >= self.rule.times and self._enough():
            self._steady = True
        return self._steady

    def _look(self) -> None:
        span = self.rule.span
        if len(self._costs) < 2 * span:
            return
        earlier = median(cost.cpu_per_request for cost in self._costs[-2 * span : -span])
        latest = median(cost.cpu_per_request for cost in self._costs[-span:])
        if earlier > 0 and abs(latest / earlier - 1) <= self.rule.tolerance:
            if self._agreed == 0:
                self._since = self._costs[-span]
            self._agreed += 1
        else:
            self._disagree()

    def _disagree(self) -> None:
        if not self._steady:
            self._agreed = 0
            self._since = None

    def _enough(self) -> bool:
        warmed = self.requests >= self.rule.minimum_requests or self.seconds >= self.rule.patience_seconds
        return warmed and self.seconds >= self.rule.minimum_seconds

    @property
    def capped(self) -> bool:
        """True when the time allowed is used up: the caller goes on to measure and says "not steady"."""
        limit = self.rule.fixed_seconds if self.rule.kind == "fixed" else self.cap_seconds
        return self.seconds >= limit

    @property
    def steady(self) -> bool | None:
        """Whether the server became steady; None for a fixed time, which does not decide."""
        return None if self.rule.kind == "fixed" else self._steady

    @property
    def seconds_to_steady(self) -> float | None:
        """Load until the newest half of the first look that agreed began: from there on nothing has changed."""
        return self._since.seconds_before if self._steady and self._since else None

    @property
    def requests_to_steady(self) -> int | None:
        """Responses until then."""
        return round(self._since.requests_before) if self._steady and self._since else None
