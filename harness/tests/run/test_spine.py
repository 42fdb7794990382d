"""A whole run on servers whose true cost is known: what is measured is what is true, and what goes wrong is said."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import Exit
from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.records.models import Outcome, Sample
from harness.tests.doubles.fakes_run import URLS, FakeRun
from harness.tests.doubles.fakes_world import Behaviour

SMOKE = profiles.load("smoke")
BLOCKS = profiles.load("standard")


def short(profile: Profile = BLOCKS, *, replicates: int = 3, repeats: int = 0) -> Profile:
    """The profile with so many replicates and repeats, and warm-ups that end soon."""
    warm_up = profile.warm_up.model_copy(update={"cap_seconds": 3.0, "jit_cap_seconds": 3.0})
    replication = profile.replication.model_copy(update={"minimum": replicates, "maximum": replicates, "looks": ()})
    gates = profile.gates.model_copy(update={"repeats": repeats})
    changed = {"warm_up": warm_up, "replication": replication, "gates": gates, "duration_seconds": 3.0}
    return profile.model_copy(update=changed)


def of(samples: Sequence[Sample], name: str) -> list[Sample]:
    return [sample for sample in samples if sample.implementation == name]


def test_every_sample_shows_the_true_cost_and_rate_of_its_server(tmp_path: Path) -> None:
    truth = {"a": 50e-6, "b": 200e-6}
    servers = {name: Behaviour(cpu_per_request=cost) for name, cost in truth.items()}
    outcome = FakeRun(tmp_path, servers, short(), test_types=tuple(URLS)).run()
    assert (outcome.failures, outcome.exit_code) == ((), Exit.OK)
    for name, cost in truth.items():
        for sample in of(outcome.records.samples, name):
            queries = sample.level.queries or 1
            assert sample.cpu_per_request == pytest.approx(cost * queries, rel=0.01)
            assert sample.throughput == pytest.approx(2 / (cost * queries), rel=0.01)
    table = outcome.ranking.test_types["json"].headline
    assert [(row.implementation, row.throughput and row.throughput.rank.label) for row in table.rows] == [
        ("a", "1"),
        ("b", "2"),
    ]


def test_every_second_of_a_sample_has_its_share_of_the_cpu_and_of_the_responses(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, {"a": Behaviour(cpu_per_request=1e-3)}, short()).run()
    for sample in outcome.records.samples:
        assert [window.duration for window in sample.windows] == [1.0, 1.0]  # the third ends with the generator
        assert [window.server_cpu for window in sample.windows] == [pytest.approx(2.0)] * 2
        assert [window.responses for window in sample.windows] == [pytest.approx(2000, rel=0.01)] * 2
        assert {window.connections for window in sample.windows} == {sample.level.connections}


def test_the_first_sample_carries_the_warm_up_and_every_one_whether_it_became_steady(tmp_path: Path) -> None:
    servers = {"warm": Behaviour(cpu_per_request=50e-6), "cold": Behaviour(cold=60.0, warm_cpu_seconds=20.0)}
    profile = short(replicates=1)
    profile = profile.model_copy(update={"warm_up": profile.warm_up.model_copy(update={"cap_seconds": 20.0})})
    outcome = FakeRun(tmp_path, servers, profile, jit=frozenset({"cold"})).run()
    for name, steady in (("warm", True), ("cold", False)):
        samples = of(outcome.records.samples, name)
        assert len(samples) > 1
        assert {sample.steady for sample in samples} == {steady}
        assert [sample.warm_up is not None for sample in samples] == [True] + [False] * (len(samples) - 1)


def test_responses_of_another_status_are_errors_and_no_throughput(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, {"a": Behaviour(status_errors=0.1, cpu_per_request=1e-3)}).run()
    (sample,) = outcome.records.samples
    assert sample.requests / sample.duration == pytest.approx(2000)
    assert sample.throughput == pytest.approx(1800)
    assert sample.cpu_per_request == pytest.approx(1e-3)
    assert not sample.rankable
    assert outcome.exit_code == Exit.FAILED


def test_a_contended_sample_is_repeated_as_far_as_the_budget_goes(tmp_path: Path) -> None:
    profile = short(replicates=1, repeats=2)
    share = profile.gates.model_copy(update={"repeat_budget_share": 0.25})
    profile = profile.model_copy(update={"gates": share})
    fake = FakeRun(tmp_path, {"a": Behaviour(wait_share=0.2)}, profile)
    samples = fake.run().records.samples
    words = {gate.name: gate.word for gate in samples[0].gates}
    assert words["contended"] == "contended"
    extra = sum(sample.attempt > 0 for sample in samples)
    plan = fake.world.clock.monotonic()  # no run lasts longer than that
    assert 1 <= extra <= 0.25 * plan / profile.duration_seconds
    assert extra < 2 * len(profile.levels.concurrency)  # the budget ended before the attempts did


def test_query_tests_are_warmed_at_their_highest_count_and_others_at_the_level_measured_first(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()}, short(replicates=1), test_types=("json", "query"))
    fake.run()
    caps = [load for _, load, _ in fake.world.loads if load.seconds == 3.0 and load.connections > 8]
    first_of = {kind: next(load for load in caps if f"/{kind}" in load.url) for kind in ("json", "query")}
    assert first_of["json"].connections == BLOCKS.levels.concurrency[0]
    assert first_of["query"].url.endswith(f"queries={BLOCKS.levels.query[-1]}")


def test_a_server_that_dies_in_its_third_window_is_a_failed_replicate_and_the_run_goes_on(tmp_path: Path) -> None:
    servers = {"a": Behaviour(), "b": Behaviour(dies_after=6.5)}
    outcome = FakeRun(tmp_path, servers, short()).run()
    status = {(r.implementation, r.process): r.status for r in outcome.records.replicates}
    assert status == {
        ("a", 0): "ok",
        ("a", 1): "ok",
        ("a", 2): "ok",
        ("b", 0): "failed",
        ("b", 1): "ok",
        ("b", 2): "ok",
    }
    assert "b replicate 1: the server ended (killed by SIGKILL)" in outcome.failures
    assert {s.process for s in of(outcome.records.samples, "b") if s.level.connections == 256} == {1, 2}


def test_a_server_that_never_answers_has_its_reason(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour(never_starts=True)}).run()
    assert {r.implementation: r.status for r in outcome.records.replicates} == {"a": "ok", "b": "failed"}
    assert outcome.failures == ("b json c32: no valid sample", "b replicate 1: no valid response within 60 s")


def test_a_failed_verification_is_never_loaded(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()}, test_types=("json", "db"))
    fake.verifier.fails_before = frozenset({("a", "db")})
    outcome = fake.run()
    assert {sample.test_type for sample in outcome.records.samples} == {"json"}
    assert outcome.failures[0] == "a db: verification failed"


def test_a_server_that_no_longer_verifies_after_the_load_fails(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()}, test_types=("json",))
    fake.verifier.fails_after = frozenset({("a", "json")})
    outcome = fake.run()
    (verdict,) = [v for v in outcome.records.verdicts if v.test_type == "json"]
    assert verdict.outcome is Outcome.FAIL
    assert outcome.records.replicates[0].status == "failed"


def test_rows_that_were_answered_and_never_read_fail_the_test_types_that_answered_them(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, {"a": Behaviour(reads_rows=False)}, test_types=("json", "db", "update")).run()
    failed = {v.test_type for v in outcome.records.verdicts if v.outcome is Outcome.FAIL}
    assert failed == {"load", "db", "update"}


def test_a_short_answer_under_load_keeps_the_sample_out(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, {"a": Behaviour(response_bytes=75.0)}).run()
    (sample,) = outcome.records.samples
    assert [gate.name for gate in sample.gates if gate.outcome is Outcome.FAIL] == ["response-size"]


def test_a_server_that_is_another_one_afterwards_is_no_sample(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, {"a": Behaviour(restarts=True)}).run()
    assert {g.name for s in outcome.records.samples for g in s.gates if g.outcome is Outcome.FAIL} == {"restarted"}


def test_a_resumed_run_keeps_what_is_finished_and_starts_nothing_twice(tmp_path: Path) -> None:
    servers = {"a": Behaviour(), "b": Behaviour()}
    fake = FakeRun(tmp_path, servers, short())
    real, begun = fake.runtime.start, []

    def interrupting(*arguments: object, **named: object) -> object:
        begun.append(1)
        if len(begun) == 4:
            raise KeyboardInterrupt
        return real(*arguments, **named)  # type: ignore[arg-type]

    fake.runtime.start = interrupting  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        fake.run()
    kept = fake.records()
    assert kept.info.status == "interrupted"
    assert [r.status for r in kept.replicates] == ["ok", "ok", "ok", "interrupted"]
    again = FakeRun(tmp_path, servers, short(), resume="latest")
    outcome = again.run()
    assert sum(again.world.started.values()) == 3  # of six
    assert outcome.records.info.status == "complete"
    whole = sorted((s.implementation, s.process, s.level.connections) for s in outcome.records.samples)
    assert whole == sorted((n, p, c) for n in "ab" for p in range(3) for c in BLOCKS.levels.concurrency)


def test_an_interruption_stops_every_server_and_keeps_the_samples(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()}, short())
    real = fake.generator.result

    def interrupted(load: object, output: str) -> object:
        if len(fake.world.loads) == 5:
            raise KeyboardInterrupt
        return real(load, output)  # type: ignore[arg-type]

    fake.generator.result = interrupted  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        fake.run()
    assert fake.world.alive == {}
    assert len(fake.records().samples) == 2
    assert fake.records().info.problems == ("interrupted",)


def test_duets_measure_both_at_the_same_time(tmp_path: Path) -> None:
    profile = short(SMOKE, replicates=2)
    profile = profile.model_copy(update={"duets": profile.duets.model_copy(update={"starts": 4, "pairs": 2})})
    servers = {name: Behaviour(window_spread=0.05) for name in ("a", "b")}
    outcome = FakeRun(tmp_path, servers, profile, order="duet").run()
    played = [s for s in outcome.records.samples if s.duet_partner == "b" and s.implementation == "a"]
    others = [s for s in outcome.records.samples if s.duet_partner == "a" and s.implementation == "b"]
    assert len(played) == len(others) == 8
    begins = {(s.block, s.attempt): s.started_at for s in others}
    for sample in played:
        assert abs(sample.started_at - begins[sample.block, sample.attempt]) == pytest.approx(0.1, abs=1e-3)


def test_a_failed_build_is_left_out_and_said(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()})
    good = fake.runtime.build

    def build(implementation: object, log: Path) -> object:
        made = good(implementation, log)  # type: ignore[arg-type]
        failed = made.model_copy(update={"status": "failed", "reason": "no compiler"})
        return failed if implementation.name == "b" else made  # type: ignore[attr-defined]

    fake.runtime.build = build  # type: ignore[method-assign, assignment]
    outcome = fake.run()
    assert outcome.failures == ("b failed: no compiler",)
    assert fake.world.started == {"a": 1}


def test_the_same_seed_gives_the_same_order_of_starts(tmp_path: Path) -> None:
    servers = {name: Behaviour() for name in "abcd"}

    def starts(folder: str, seed: int) -> list[str]:
        fake = replace(FakeRun(tmp_path / folder, servers, short()), seed=seed)
        fake.run()
        return [name for what, name in fake.world.events if what == "start"]

    assert starts("one", 3) == starts("two", 3) != starts("three", 4)
