"""Loads at given rates: how they are asked for, all that stands in their records, and what a search makes of them."""

from contextlib import nullcontext
from typing import Any

import pytest

from harness.errors import LoadError
from harness.measure import rate_gates, rates
from harness.measure.goal_search import Tried
from harness.measure.loadgen import AtRate, Load, LoadResult
from harness.measure.rates import Asked, GoalSearch, machine_alone, rules_of, take_rate
from harness.plan import profile as profiles
from harness.plan.profile import LatencyRules, Profile
from harness.records.models import Errors, Gate, GoalCapacity, LatencyGoal, Closed, Outcome, RateSample
from harness.tests.measure.observed import (
    BINNED,
    LATENCY,
    LEVEL,
    USE,
    bed,
    load,
    observation,
    observing,
    result,
    target,
)

LATENCY_PROFILE = profiles.load("latency")
RULES = LatencyRules(goal=LatencyGoal(percentile=99.0, seconds=0.01), seconds=1.5, machine_rate=700.0, bracket=0.05)
SERVICE = LATENCY.model_copy(update={"mean": 0.0005})
BINNED_SERVICE = BINNED.model_copy(update={"mean": 0.0005})


def profile(rules: LatencyRules | None = RULES) -> Profile:
    return LATENCY_PROFILE.model_copy(update={"latency": rules})


def counted(**changes: Any) -> AtRate:
    """Of 1,020 requests that were due 985 were answered well, 40 of these late."""
    known: dict[str, Any] = {
        "due": 1020,
        "answered": 985,
        "unfinished": 5,
        "service": SERVICE,
        "lag_p99": 0.0002,
        "lag_max": 0.003,
        "late": lambda seconds: {0.01: 40}[seconds],
    }
    return AtRate(**{**known, **changes})


class Generators:
    """Knows at which rates generators were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, int]] = []

    def __call__(self, rate: float, seed: int) -> Any:
        self.asked.append((rate, seed))
        return f"{rate:g}/{seed}"


def test_a_load_at_a_rate_has_all_that_was_seen_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, generators = observing(monkeypatch, rates, observation(result=result(at_rate=counted()))), Generators()
    testbed = bed(profile())
    over = [False]
    wanted = Asked(rate=255.4, purpose="share", seed=11, share=0.25)
    found = take_rate(testbed, target(stop=lambda: over[0]), LEVEL, wanted, generators)
    assert found.model_copy(update={"gates": ()}) == RateSample(
        id="a/query/c64-q20/255-r3.11",
        implementation="a",
        test_type="query",
        level=LEVEL,
        block=3,
        process=1,
        purpose="share",
        asked_rate=255.4,
        share=0.25,
        started_at=1_700_000_123.0,
        command=("wrk", "-c", "64"),
        duration=4.0,
        due=1020,
        answered=985,
        achieved_rate=250.0,
        unfinished=5,
        errors=Errors(read=3, status=20),
        late=75,  # 35 without a good answer among them
        latency=BINNED,
        service=BINNED_SERVICE,
        lag_p99=0.0002,
        lag_max=0.003,
        cpu_per_request=0.002,
        bytes=150_000,
        server=USE,
        generator_cpu_seconds=0.75,
        generator_threads=2,
        steal_share=0.011,
        restarted=True,
    )
    assert generators.asked == [(255.4, 11)]
    assert str(asked[0].testbed.generator) == "255.4/11"
    assert (asked[0].load, asked[0].response_bytes) == (load(seconds=1.5), 150.0)
    stop = asked[0].stop
    assert stop is not None
    assert not stop(None)  # type: ignore[arg-type]
    over[0] = True
    assert stop(None)  # type: ignore[arg-type]


def test_a_load_at_a_rate_is_judged_by_the_rules_and_the_verified_size(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    gate = Gate(name="errors", outcome=Outcome.FAIL, value=1.0, threshold=0.0, word="errors")

    def judge(sample: RateSample, *how: object) -> tuple[Gate, ...]:
        seen.append((sample.id, *how))
        return (gate,)

    observing(monkeypatch, rates, observation(result=result(at_rate=counted())))
    monkeypatch.setattr(rate_gates, "judge", judge)
    testbed = bed(profile())
    found = take_rate(testbed, target(), LEVEL, Asked(rate=100.0, purpose="common", seed=2), Generators())
    assert found.gates == (gate,)
    assert (found.purpose, found.share) == ("common", None)
    assert seen == [("a/query/c64-q20/100-r3.2", RULES, testbed.profile.gates, (140.0, 160.0))]


def test_a_load_without_a_response_has_no_cost_and_one_of_unknown_size_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing = result(requests=0, bytes=0, latency=None, at_rate=counted(answered=0, service=None, late=lambda _: 0))
    asked = observing(monkeypatch, rates, observation(result=nothing))
    one = Closed(connections=64, queries=5)
    found = take_rate(bed(profile()), target(), one, Asked(rate=100.0, purpose="search", seed=2), Generators())
    assert (found.cpu_per_request, found.latency, found.service, found.late) == (None, None, None, 1020)
    assert asked[0].response_bytes is None


def test_a_generator_that_makes_no_open_loop_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    observing(monkeypatch, rates, observation())
    with pytest.raises(LoadError, match=r"^the generator made no open loop on http://app:81/q\?queries=20$"):
        take_rate(bed(profile()), target(), LEVEL, Asked(rate=1.0, purpose="share", seed=1), Generators())


def test_a_profile_without_rates_says_so() -> None:
    assert rules_of(bed(profile())) == RULES
    with pytest.raises(LoadError, match=r"^profile latency has no section \[latency\]$"):
        rules_of(bed(profile(None)))


class Alone:
    """A generator and the runtime that starts it."""

    def __init__(self, status: int | None = 0, text: str = "words") -> None:
        self.program, self.waits_for_go, self.timeout_seconds = "gen", True, 8.0
        self.status, self.text = status, text
        self.happened: list[object] = []

    def __call__(self, rate: float, seed: int) -> Any:
        self.happened.append((rate, seed))
        return self

    def arguments(self, load: Load) -> list[str]:
        self.load = load
        return ["-x"]

    def generator(self, program: str, arguments: list[str], *, waits_for_go: bool) -> Any:
        self.happened.append((program, arguments, waits_for_go))
        return nullcontext(self)

    def begin(self) -> None:
        self.happened.append("begin")

    def wait(self, seconds: float) -> int | None:
        self.happened.append(seconds)
        return self.status

    def output(self) -> str:
        return self.text

    def result(self, load: Load, text: str) -> LoadResult:
        assert (load, text) == (self.load, "words")
        return result(at_rate=counted())


def test_the_machine_alone_is_a_load_at_its_rate_on_a_server_that_does_nothing() -> None:
    alone = Alone()
    testbed = bed(profile(), runtime=alone)
    found = machine_alone(testbed, "http://127.0.0.1:9/", 16, alone)
    assert found.model_copy(update={"gates": ()}) == RateSample(
        id="(null server)/700",
        implementation="(null server)",
        test_type="machine",
        level=Closed(connections=16),
        block=0,
        process=0,
        purpose="machine",
        asked_rate=700.0,
        started_at=1_700_001_000.0,
        duration=4.0,
        due=1020,
        answered=985,
        achieved_rate=250.0,
        unfinished=5,
        errors=Errors(read=3, status=20),
        late=75,
        latency=BINNED,
        service=BINNED_SERVICE,
        lag_p99=0.0002,
        lag_max=0.003,
        bytes=150_000,
        generator_cpu_seconds=0.75,
        generator_threads=2,
    )
    assert {gate.name for gate in found.gates if gate.outcome is Outcome.FAIL} >= {"errors"}
    assert alone.load == Load(
        url="http://127.0.0.1:9/", host="tfb-server", accept="*/*", seconds=1.5, connections=16, threads=2
    )
    assert alone.happened == [(700.0, 1), ("gen", ["-x"], True), "begin", 9.5]


@pytest.mark.parametrize(("connections", "cpus", "threads"), [(1, 2, 1), (16, 4, 4), (16, 0, 1)])
def test_the_machine_alone_is_loaded_by_a_thread_a_cpu(connections: int, cpus: int, threads: int) -> None:
    alone = Alone()
    machine_alone(bed(profile(), runtime=alone, generator_cpus=cpus), "http://h/", connections, alone)
    assert alone.load.threads == threads


@pytest.mark.parametrize("status", [3, None])
def test_a_load_on_the_machine_alone_that_did_not_end_well_is_told_with_its_last_words(status: int | None) -> None:
    alone = Alone(status, f" {'x' * 400}y\n")
    with pytest.raises(LoadError) as failed:
        machine_alone(bed(profile(), runtime=alone), "http://h/", 16, alone)
    assert str(failed.value) == f"the load on the null server did not end well: {'x' * 299}y"


def taken(rate: float, *, due: int = 1000, late: int = 0, failed: tuple[str, ...] = (), **more: Any) -> RateSample:
    gates = tuple(Gate(name=name, outcome=Outcome.FAIL, value=None, threshold=None, word=name) for name in failed)
    known: dict[str, Any] = {
        "id": "x", "implementation": "a", "test_type": "json", "level": LEVEL, "block": 0, "process": 0,
        "purpose": "share", "asked_rate": rate, "started_at": 0.0, "duration": 1.5, "due": due, "answered": due,
        "achieved_rate": rate, "unfinished": 0, "errors": Errors(), "late": late, "latency": None, "gates": gates,
    }  # fmt: skip
    return RateSample(**{**known, **more})


@pytest.mark.parametrize(
    ("sample", "counts"),
    [
        (taken(100.0), Tried(rate=100.0, due=1000, late=0)),
        (taken(100.0, late=10), Tried(rate=100.0, due=1000, late=10)),  # one in a hundred may be late
        (taken(100.0, late=11), Tried(rate=100.0, due=1000, late=11)),
        (taken(100.0, late=11, failed=("generator-lag",)), None),  # the generator's own lateness
        (taken(100.0, late=10, failed=("generator-lag",)), Tried(rate=100.0, due=1000, late=10)),  # met all the same
        (
            taken(100.0, late=11, failed=("generator-lag", "achieved-rate")),
            Tried(rate=100.0, due=1000, late=11),
        ),  # and the server's
        (taken(100.0, failed=("achieved-rate",)), Tried(rate=100.0, due=1000, late=1000)),  # a backlog
        (taken(100.0, restarted=True), None),
    ],
)
def test_a_load_counts_unless_it_says_nothing_of_the_server(sample: RateSample, counts: Tried | None) -> None:
    search = GoalSearch(RULES, 1000.0)
    search.add(sample)
    assert dict(search.tried) == ({} if counts is None else {100.0: counts})
    assert search.capacity(target()).loads == 1


def test_loads_at_the_same_rate_are_one() -> None:
    search = GoalSearch(RULES, 1000.0)
    for late in (5, 9):
        search.add(taken(100.0, late=late))
    assert search.tried[100.0] == Tried(rate=100.0, due=2000, late=14)


def test_what_a_search_found_is_recorded_with_its_rules() -> None:
    search = GoalSearch(RULES, 1000.0)
    assert search.next_rate() == 500.0
    nothing = search.capacity(target())
    assert (nothing.rate, nothing.above, nothing.decided, nothing.loads) == (None, None, False, 0)
    search.add(taken(400.0))
    assert search.next_rate() == pytest.approx(440.0)
    for rate, late in ((390.0, 0), (410.0, 500), (300.0, 500)):
        search.add(taken(rate, late=late))
    assert search.capacity(target()) == GoalCapacity(
        implementation="a",
        test_type="query",
        block=3,
        process=1,
        goal=RULES.goal,
        rate=400.0,
        above=410.0,
        decided=True,
        confidence=0.95,
        loads=4,
        contradictions=1,
        closed_loop=1000.0,
    )
    assert search.next_rate() is None


def test_a_rate_whose_load_was_too_short_to_decide_is_asked_for_again() -> None:
    search = GoalSearch(RULES, 1000.0)
    search.add(taken(400.0, due=1000, late=9))
    search.add(taken(410.0, late=500))
    assert not search.capacity(target()).decided
    assert search.next_rate() == 400.0


def test_too_few_requests_show_that_a_goal_was_missed_and_never_that_it_was_met() -> None:
    search = GoalSearch(RULES, 1000.0)
    search.add(taken(100.0, due=367))
    assert search.capacity(target()).rate is None
    search.add(taken(200.0, due=367, late=100))
    assert search.capacity(target()).above == 200.0
    search.add(taken(110.0, due=368))
    assert search.capacity(target()).rate == 110.0


def test_no_rate_is_asked_for_that_nine_tenths_of_a_load_could_not_decide() -> None:
    """368 requests in 1.35 s."""
    search = GoalSearch(RULES, 1000.0)
    search.add(taken(400.0, late=500))
    assert search.next_rate() == pytest.approx(368 / 1.35)
