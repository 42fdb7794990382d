"""What a load was asked to be, and that all that was seen of it stands in the sample or the warm-up made of it."""

from dataclasses import replace

import pytest

from harness.measure import gates, sweep
from harness.measure.steady import SteadyDetector
from harness.measure.sweep import Budget, binned, link_share, warm_up_level
from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.records.models import Errors, Gate, Latency, Closed, Load, Outcome, Sample, WarmUp, Window
from harness.tests.doubles.fakes_world import FakeClock
from harness.tests.measure.observed import (
    ASKED,
    BINNED,
    CLIENT,
    LATENCY,
    LEVEL,
    USE,
    WINDOW,
    WRONG,
    Book,
    Watching,
    bed,
    load,
    observation,
    observing,
    result,
    target,
)


def profile(**changes: object) -> Profile:
    """Smoke with another warm-up."""
    smoke = profiles.load("smoke")
    rule = {"primer_seconds": 1.5, "pause_seconds": 0.25, "cap_seconds": 6.0, "jit_cap_seconds": 16.0, **changes}
    return smoke.model_copy(update={"warm_up": smoke.warm_up.model_copy(update=rule)})


SAMPLE = Sample(
    id="a/query/c64-q20/r3.2",
    implementation="a",
    test_type="query",
    level=LEVEL,
    block=3,
    process=1,
    attempt=2,
    started_at=1_700_000_123.0,
    command=("wrk", "-c", "64"),
    duration=4.0,
    asked_duration=5.0,
    requests=1000,
    bytes=150_000,
    errors=Errors(read=3, status=20),
    throughput=245.0,  # of those with a good status
    cpu_per_request=0.002,  # of all
    latency=BINNED,
    server=USE,
    generator_cpu_seconds=0.75,
    generator_threads=2,
    database_cpu_seconds=0.6,
    windows=(WINDOW,),
    connections=63,
    steal_share=0.011,
    restarted=True,
    responses_per_request=0.98,
    idle_cpu_share=0.004,
    probe_failures=(WRONG,),
    clients=(CLIENT,),
    link_share=0.5,  # 37,500 bytes a second over links of 75,000
)


def test_a_sample_has_all_that_was_seen_of_its_load(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, book, watching = observing(monkeypatch, sweep, observation()), Book(), Watching()
    on, testbed = target(ledger=book), bed(verifier=watching)
    found = sweep.take_sample(testbed, on, LEVEL, seconds=5.0, attempt=2)
    assert found.model_copy(update={"gates": ()}) == SAMPLE
    assert [(each.load, each.response_bytes) for each in asked] == [(load(seconds=5.0), 150.0)]
    assert (asked[0].testbed, asked[0].target) == (testbed, on)
    assert watching.asked == [(on.server, on.test_type, LEVEL, on.database.address), "on"]
    assert book.told == [("answered", "query", LEVEL, 980, 20), ("watched", "query", LEVEL, (ASKED,))]


def test_a_sample_is_judged_by_the_profile_s_gates_for_the_verified_size_and_the_server_s_cpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []
    gate = Gate(name="errors", outcome=Outcome.FAIL, value=1.0, threshold=0.0, word="errors")

    def judge(sample: Sample, expected: object, thresholds: object) -> tuple[Gate, ...]:
        seen.extend((sample.id, expected, thresholds))
        return (gate,)

    observing(monkeypatch, sweep, observation())
    monkeypatch.setattr(gates, "judge", judge)
    testbed = bed()
    found = sweep.take_sample(testbed, target(), LEVEL, seconds=5.0)
    assert found.gates == (gate,)
    expected = gates.Expected(response_bytes=(140.0, 160.0), server_cpus=3)
    assert seen == ["a/query/c64-q20/r3.0", expected, testbed.profile.gates]


def test_a_sample_of_a_round_and_of_a_duet_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    observing(monkeypatch, sweep, observation())
    of_round = sweep.take_sample(bed(), target(round=7), LEVEL, seconds=2.0)
    assert (of_round.id, of_round.round, of_round.attempt) == ("a/query/c64-q20/r3.7", 7, 0)
    duet = sweep.take_sample(bed(), target(partner="b"), LEVEL, seconds=2.0, attempt=1)
    assert (duet.id, duet.duet_partner, duet.round) == ("a/query/c64-q20/r3.1+b", "b", None)


def test_a_load_without_a_response_has_no_cost_and_one_of_less_than_a_second_no_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    observing(monkeypatch, sweep, observation(result=result(requests=0, bytes=0, errors=Errors(), latency=None)))
    watching = Watching()
    found = sweep.take_sample(bed(verifier=watching), target(), LEVEL, seconds=0.9)
    assert (found.throughput, found.cpu_per_request, found.latency) == (0.0, None, None)
    assert "on" not in watching.asked
    sweep.take_sample(bed(verifier=watching), target(), LEVEL, seconds=1.0)
    assert watching.asked[-1] == "on"


def test_a_response_of_unknown_size_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = observing(monkeypatch, sweep, observation())
    one = Closed(connections=64, queries=5)
    sweep.take_sample(bed(), target(), one, seconds=2.0)
    sweep.take_sample(bed(), target("json"), Closed(connections=8), seconds=2.0)
    assert [each.response_bytes for each in asked] == [None, 148.0]


def test_a_load_ends_when_its_target_or_the_rule_of_its_warm_up_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, over = observing(monkeypatch, sweep, observation()), [False]
    sweep.take_sample(bed(), target(stop=lambda: over[0]), LEVEL, seconds=2.0)
    detector = SteadyDetector(profile(kind="fixed", fixed_seconds=2.0).warm_up, jit=False)
    sweep.warm_burst(bed(), target(), detector, 3.0)
    sample, burst = (each.stop for each in asked)
    assert sample is not None
    assert burst is not None
    assert not sample(WINDOW)
    over[0] = True
    assert sample(WINDOW)
    assert [burst(WINDOW) for _ in range(3)] == [False, True, True]  # two windows of a second


@pytest.mark.parametrize(("jit", "cap"), [(False, 6.0), (True, 16.0)])
def test_a_warm_up_is_a_primer_of_few_connections_and_a_load_up_to_its_cap(
    monkeypatch: pytest.MonkeyPatch, jit: bool, cap: float
) -> None:
    asked, book = observing(monkeypatch, sweep, observation()), Book()
    testbed = bed(profile())
    found = sweep.warm(testbed, target(jit=jit, ledger=book))
    assert [each.load for each in asked] == [load(seconds=1.5, connections=8, threads=1), load(seconds=cap)]
    assert [each.response_bytes for each in asked] == [150.0, 150.0]
    assert testbed.clock.monotonic() == 1000.25
    assert book.told == [("answered", "query", LEVEL, 980, 20)] * 2
    assert found == WarmUp(
        duration=4.0, requests=1000, steady=False, seconds_to_steady=None, requests_to_steady=None, worst_latency=0.5,
        windows=(WINDOW,),
    )  # fmt: skip


def test_a_primer_has_no_more_connections_than_the_level_and_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Closed(connections=3)
    asked = observing(monkeypatch, sweep, observation())
    sweep.warm(bed(profile()), target("json", (few,)))
    assert [each.load.connections for each in asked] == [3, 3]
    asked.clear()
    testbed = bed(profile(primer_seconds=0.0))
    sweep.warm(testbed, target("json", (few,)))
    assert [each.load.seconds for each in asked] == [6.0]
    assert testbed.clock.monotonic() == 1000.0


def test_a_rule_without_any_time_makes_no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = observing(monkeypatch, sweep, observation())
    assert sweep.warm(bed(profile(primer_seconds=0.0, cap_seconds=0.0)), target()) is None
    assert asked == []


@pytest.mark.parametrize(("fixed", "connections", "threads"), [(None, 64, 2), (256, 256, 2), (1, 1, 1)])
def test_a_fixed_warm_up_has_its_time_and_connections_and_a_pause_behind_it(
    monkeypatch: pytest.MonkeyPatch, fixed: int | None, connections: int, threads: int
) -> None:
    asked = observing(monkeypatch, sweep, observation(result=result(latency=None)))
    testbed = bed(profile(kind="fixed", fixed_seconds=15.0, fixed_concurrency=fixed))
    found = sweep.warm(testbed, target())
    assert asked[1].load == load(seconds=15.0, connections=connections, threads=threads)
    assert testbed.clock.monotonic() == 1000.5
    assert found == WarmUp(
        duration=4.0, requests=1000, steady=None, seconds_to_steady=None, requests_to_steady=None, worst_latency=None,
        windows=(WINDOW,),
    )  # fmt: skip


def test_a_warm_up_of_several_bursts_leaves_out_the_time_between_them() -> None:
    rule = profile(span=1, times=1, minimum_requests=0, minimum_seconds=0.0).warm_up
    detector = SteadyDetector(rule, jit=False)
    for _ in range(2):
        detector.observe(WINDOW)
    slow = LATENCY.model_copy(update={"max": 0.75})
    windows = (WINDOW.model_copy(update={"start": 0.50004}),)
    bursts = [
        observation(result=result(duration=2.0), windows=windows),
        observation(result=result(duration=3.0, requests=50, latency=slow), windows=windows),
        observation(result=result(duration=1.0, latency=None), windows=windows),
    ]
    assert sweep.warmed(bursts, detector) == WarmUp(
        duration=6.0,
        requests=2050,
        steady=True,
        seconds_to_steady=1.0,
        requests_to_steady=250,
        worst_latency=0.75,
        windows=tuple(WINDOW.model_copy(update={"start": start}) for start in (0.5, 2.5, 5.5)),
    )
    assert sweep.warmed(bursts[2:], detector).worst_latency is None


def test_query_types_are_warmed_at_their_highest_count_others_at_the_first_level() -> None:
    counts = [Closed(connections=64, queries=n) for n in (1, 20)]
    connections = [Closed(connections=n) for n in (16, 64)]
    assert [warm_up_level(counts), warm_up_level(connections)] == [counts[1], connections[0]]


def contended(word: str = "contended", outcome: Outcome = Outcome.WARN) -> Gate:
    return Gate(name=word, outcome=outcome, value=1.0, threshold=0.0, word=word)


def swept(
    monkeypatch: pytest.MonkeyPatch, gates: Gate, budget: float, *, repeats: int = 2
) -> tuple[list[tuple[Load, int]], list[object], FakeClock, list[Sample]]:
    """Two levels whose samples all show this gate: the samples' levels and attempts, and what was noted."""
    smoke = profiles.load("smoke")
    changed = smoke.model_copy(
        update={"pause_seconds": 0.5, "gates": smoke.gates.model_copy(update={"repeats": repeats})}
    )
    taken: list[tuple[Load, int]] = []
    noted: list[object] = []
    warm_up = WarmUp(
        duration=1.0, requests=5, steady=True, seconds_to_steady=None, requests_to_steady=None, worst_latency=None
    )

    def take(_bed: object, _target: object, level: Load, *, seconds: float, attempt: int) -> Sample:
        assert seconds == smoke.duration_seconds
        taken.append((level, attempt))
        return SAMPLE.model_copy(update={"level": level, "attempt": attempt, "gates": (gates,)})

    monkeypatch.setattr(sweep, "warm", lambda *_: warm_up)
    monkeypatch.setattr(sweep, "take_sample", take)
    testbed = bed(changed)
    on = target("json", (Closed(connections=1), Closed(connections=2)))
    found = list(sweep.sweep(testbed, on, Budget(seconds=budget), lambda *told: noted.append(told)))
    assert isinstance(testbed.clock, FakeClock)
    return taken, noted, testbed.clock, found


def test_a_sweep_warms_once_pauses_between_levels_and_says_what_it_is_at(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Closed(connections=1), Closed(connections=2)
    taken, noted, clock, found = swept(monkeypatch, contended("steal"), 100.0)
    assert taken == [(first, 0), (second, 0)]
    assert noted == [("warm-up", None), ("measure", first), ("measure", second)]
    assert clock.monotonic() == 1000.5
    assert [(sample.warm_up is not None, sample.steady) for sample in found] == [(True, True), (False, True)]


@pytest.mark.parametrize(
    ("budget", "attempts"),
    [(100.0, [0, 1, 2, 0, 1, 2]), (8.0, [0, 1, 2, 0, 1, 2]), (6.0, [0, 1, 2, 0, 1]), (1.9, [0, 0])],
)
def test_a_contended_sample_is_repeated_while_the_budget_of_the_run_has_its_time(
    monkeypatch: pytest.MonkeyPatch, budget: float, attempts: list[int]
) -> None:
    """Two seconds each. The last attempt of a level takes its time as the others do."""
    taken, *_ = swept(monkeypatch, contended(), budget)
    assert [attempt for _, attempt in taken] == attempts


def test_a_contended_sample_that_a_gate_keeps_out_is_repeated_too_and_one_that_passed_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken, *_ = swept(monkeypatch, contended(outcome=Outcome.FAIL), 100.0)
    assert len(taken) == 6
    taken, *_ = swept(monkeypatch, contended(outcome=Outcome.PASS), 100.0)
    assert len(taken) == 2


def test_a_budget_is_taken_to_its_last_second_and_no_further() -> None:
    budget = Budget(seconds=5.0)
    assert [budget.take(2.0), budget.take(4.0), budget.take(3.0), budget.take(0.1)] == [True, False, True, False]
    assert budget.seconds == 0.0


@pytest.mark.parametrize(
    ("links", "duration", "share"),
    [({"a": 50_000.0, "b": 25_000.0}, 4.0, 0.5), ({"a": 1.0}, 4.0, 37_500.0), ({}, 4.0, None), ({"a": 9.0}, 0.0, None)],
)
def test_the_share_of_the_links_is_of_what_they_carry_together(
    links: dict[str, float], duration: float, share: float | None
) -> None:
    assert link_share(result(duration=duration), links) == share


def test_latencies_are_kept_to_three_digits_and_add_up() -> None:
    values = ((1.0, 5), (9.996, 1), (12.341, 2), (12.349, 3), (1e-9, 1), (0.0, 4))
    latency = LATENCY.model_copy(update={"histogram": values})
    expected = ((0.0, 4), (1e-9, 1), (1.0, 5), (10.0, 1), (12.3, 5))
    assert binned(latency) == latency.model_copy(update={"histogram": expected})
    assert binned(None) is None


def test_a_load_is_the_level_s_on_the_target_s_url_with_a_thread_a_cpu() -> None:
    assert sweep.load_of(bed(), target(), LEVEL, 4.0) == load()
    alone = Closed(connections=1, depth=16)
    found = sweep.load_of(bed(), target("plaintext"), alone, 2.0)
    assert (found.url, found.connections, found.threads, found.depth) == ("http://app:81/plaintext", 1, 1, 16)
    assert sweep.load_of(bed(generator_cpus=0), target(), LEVEL, 4.0).threads == 1
    assert replace(found, threads=1) == found


def test_windows_of_a_warm_up_are_seen_by_its_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = observing(monkeypatch, sweep, observation())
    detector = SteadyDetector(profile().warm_up, jit=False)
    seen = sweep.warm_burst(bed(), target(), detector, 3.0)
    assert seen == observation()
    assert asked[0].load == load(seconds=3.0)
    stop = asked[0].stop
    assert stop is not None
    assert stop(Window.model_validate(WINDOW.model_dump())) is False
    assert (detector.seconds, detector.requests) == (1.0, 250.0)


def test_latency_of_nothing_is_none() -> None:
    assert isinstance(LATENCY, Latency)
    assert binned(LATENCY) == BINNED
