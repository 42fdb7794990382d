"""Servers side by side on the fakes: warmed once, measured in turns, within the time, whatever dies or does not fit."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from harness.errors import Exit
from harness.measure import observe
from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.records.models import Outcome, RunInfo, Sample
from harness.run import rounds
from harness.run.workflow import RunOutcome
from harness.stats.model import Ranking
from harness.stats.ranking import rank
from harness.tests.doubles.fakes_run import URLS, FakeRun
from harness.tests.doubles.fakes_world import Behaviour

QUICK = profiles.load("quick")
SELDOM = 40.0  # seconds between two decisions on where windows go


@pytest.fixture(autouse=True)
def ranked_and_allocated_seldom(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Rankings, for the dashboard and for where windows go, are most of a fake run's cost: some tests look at them."""
    if "with_rankings_in_between" not in request.fixturenames:
        monkeypatch.setattr(rounds, "RANKING_SECONDS", float("inf"))
    if "allocated_often" not in request.fixturenames:
        monkeypatch.setattr(rounds, "ALLOCATION_SECONDS", SELDOM)


@pytest.fixture
def allocated_often() -> None:
    """Where windows go is decided as often as in a real run."""


@pytest.fixture
def with_rankings_in_between(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of samples that each ranking of the rounds was made of."""
    known: list[int] = []

    def counted(info: RunInfo, samples: Sequence[Sample], *others: object) -> Ranking:
        known.append(len(samples))
        return rank(info, samples, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(rounds, "rank", counted)
    return known


def quick(seconds: float = 600.0, **rules: float) -> Profile:
    """The default profile with another time, and windows by whose length the headline level is told."""
    assert QUICK.rounds is not None
    changed = {"time_seconds": seconds, "headline_seconds": 2.0, **rules}
    return QUICK.model_copy(update={"rounds": QUICK.rounds.model_copy(update=changed)})


def four(spread: float = 0.03) -> dict[str, Behaviour]:
    """Four servers, each half again as costly as the one before."""
    return {
        name: Behaviour(cpu_per_request=200e-6 * 1.5**place, process_spread=spread, window_spread=spread)
        for place, name in enumerate("abcd")
    }


def seconds(fake: FakeRun) -> float:
    return fake.world.clock.monotonic() - 1000.0


def counts(outcome: RunOutcome) -> Counter[tuple[str, str, str]]:
    return Counter((s.implementation, s.test_type, s.level.label) for s in outcome.records.samples)


def processes(outcome: RunOutcome) -> set[tuple[str, int]]:
    return {(sample.implementation, sample.process) for sample in outcome.records.samples}


@pytest.fixture(scope="module")
def two_types(tmp_path_factory: pytest.TempPathFactory) -> tuple[FakeRun, RunOutcome]:
    """Four servers and two test types in five minutes: a run that several tests look at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "RANKING_SECONDS", float("inf"))
        patch.setattr(observe, "woken_promptly", nullcontext)
        fake = FakeRun(tmp_path_factory.mktemp("two-types"), four(), quick(300), test_types=("json", "query"))
        return fake, fake.run()


@pytest.fixture(scope="module")
def one_type(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Sample]:
    """The samples of four servers and one test type in 200 seconds: a run that several tests look at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "RANKING_SECONDS", float("inf"))
        patch.setattr(rounds, "ALLOCATION_SECONDS", SELDOM)
        patch.setattr(observe, "woken_promptly", nullcontext)
        return FakeRun(tmp_path_factory.mktemp("one-type"), four(), quick(200)).run().records.samples


def test_all_servers_are_up_together_and_their_order_is_found(two_types: tuple[FakeRun, RunOutcome]) -> None:
    fake, outcome = two_types
    assert (outcome.failures, outcome.exit_code) == ((), Exit.OK)
    assert fake.world.most_alive == 4
    for kind in ("json", "query"):
        rows = outcome.ranking.test_types[kind].headline.rows
        assert [row.implementation for row in rows] == list("abcd")


def test_a_run_ends_within_its_time_and_uses_most_of_it(tmp_path: Path, two_types: tuple[FakeRun, RunOutcome]) -> None:
    fake = FakeRun(tmp_path, four(), quick(120), test_types=("json", "db"))
    fake.run()
    for ended, limit in ((fake, 120.0), (two_types[0], 300.0)):
        assert 0.75 * limit < seconds(ended) <= limit + 3


def test_a_run_under_way_is_ranked_anew_at_most_every_30_seconds(
    tmp_path: Path, with_rankings_in_between: list[int]
) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, quick(100))
    samples = len(fake.run().records.samples)
    assert 2 <= len(with_rankings_in_between) <= 100 / 30 + 1
    assert sorted(set(with_rankings_in_between)) == with_rankings_in_between  # each of more samples
    assert with_rankings_in_between[-1] <= samples


def test_every_cell_is_measured_and_the_headline_level_the_most(two_types: tuple[FakeRun, RunOutcome]) -> None:
    found = counts(two_types[1])
    headline = [found[name, kind, label] for name in "abcd" for kind, label in (("json", "c64"), ("query", "c64 q20"))]
    others = {key: number for key, number in found.items() if key[2] not in ("c64", "c64 q20")}
    assert set(others.values()) <= {1, 2}  # once a process
    assert len(others) == 4 * 2 * 2
    assert min(headline) >= 4


@pytest.mark.usefixtures("allocated_often")
def test_windows_go_to_the_pair_that_is_open(tmp_path: Path) -> None:
    servers = {
        name: Behaviour(cpu_per_request=cost, window_spread=0.05)
        for name, cost in (("close", 500e-6), ("closer", 515e-6), ("slow", 2000e-6), ("slowest", 5000e-6))
    }
    outcome = FakeRun(tmp_path, servers, quick(300)).run()
    found = {name: counts(outcome)[name, "json", "c64"] for name in servers}
    assert min(found["close"], found["closer"]) > 1.5 * max(found["slow"], found["slowest"])
    assert [row.implementation for row in outcome.ranking.test_types["json"].headline.rows][2:] == ["slow", "slowest"]
    assert "open" in outcome.records.info.outlook or "decided" in outcome.records.info.outlook


def test_windows_are_shuffled_over_implementations_test_types_and_levels(
    two_types: tuple[FakeRun, RunOutcome],
) -> None:
    info = two_types[1].records.info
    first, second = info.schedule[0], info.schedule[1]
    assert len(first) == 4 * 2 * 3
    assert len(second) == 4 * 2
    assert len({word.split()[0] for word in first[:8]}) > 2
    assert [w for w in first if w in second] != list(second)


def test_the_other_levels_of_a_young_process_come_first_and_warm_for_the_one_that_decides(
    two_types: tuple[FakeRun, RunOutcome],
) -> None:
    words = [word.split(maxsplit=2) for word in two_types[1].records.info.schedule[0]]
    for name in "abcd":
        for kind, headline in (("json", "c64"), ("query", "c64 q20")):
            levels = [level for who, what, level in words if (who, what) == (name, kind)]
            assert len(levels) == 3
            assert levels[-1] == headline


def test_a_sample_knows_its_process_and_its_round(one_type: Sequence[Sample]) -> None:
    samples = one_type
    assert {sample.process for sample in samples} == {0, 1}
    assert all(sample.block == sample.process for sample in samples)
    assert len({sample.id for sample in samples}) == len(samples)
    rounds_of: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for sample in samples:
        assert sample.round is not None
        rounds_of[sample.implementation, sample.process].add(sample.round)
    for name in "abcd":
        assert max(rounds_of[name, 0]) < min(rounds_of[name, 1])
        assert len(rounds_of[name, 1]) >= 2


def test_not_all_processes_are_replaced_before_the_same_round(one_type: Sequence[Sample]) -> None:
    first = {name: min(s.round or 0 for s in one_type if (s.implementation, s.process) == (name, 1)) for name in "abcd"}
    assert len(set(first.values())) > 1


def test_a_process_is_warmed_once_a_test_type_and_carries_it_in_its_first_sample(tmp_path: Path) -> None:
    servers = {
        "a": Behaviour(cold=1.0, warm_cpu_seconds=2.0, cpu_per_request=1e-3),
        "b": Behaviour(cpu_per_request=1e-3),
    }
    outcome = FakeRun(tmp_path, servers, quick(200), test_types=("json", "db"), jit=frozenset("a")).run()
    warmed = Counter((s.implementation, s.process, s.test_type) for s in outcome.records.samples if s.warm_up)
    assert set(warmed.values()) == {1}
    assert len(warmed) == 2 * 2 * 2
    assert all(s.steady for s in outcome.records.samples)
    last = [s.cpu_per_request for s in outcome.records.samples if s.implementation == "a" and s.test_type == "json"]
    assert last[-1] == pytest.approx(1e-3, rel=0.05)


def test_a_warm_up_of_fixed_length_comes_in_one_piece_and_decides_nothing(tmp_path: Path) -> None:
    profile = quick(120)
    rule = profile.warm_up.model_copy(update={"kind": "fixed", "fixed_seconds": 3.0})
    fixed = profile.model_copy(update={"warm_up": rule})
    outcome = FakeRun(tmp_path, four(), fixed, test_types=("json", "db")).run()
    warm_ups = [s.warm_up for s in outcome.records.samples if s.warm_up and s.process == 0]
    assert [warm_up.duration for warm_up in warm_ups] == pytest.approx([3.0] * 8)
    assert {warm_up.steady for warm_up in warm_ups} == {None}


def test_a_server_that_dies_in_a_warm_up_of_fixed_length_is_measured_as_a_second_process(tmp_path: Path) -> None:
    profile = quick(200)
    rule = profile.warm_up.model_copy(update={"kind": "fixed", "fixed_seconds": 3.0})
    servers = {**four(), "b": Behaviour(dies_after=4.0)}
    fixed = profile.model_copy(update={"warm_up": rule})
    outcome = FakeRun(tmp_path, servers, fixed, test_types=("json", "db")).run()
    assert {s.process for s in outcome.records.samples if s.implementation == "b"} >= {1}
    assert {r.process: r.status for r in outcome.records.replicates if r.implementation == "b"}[0] == "failed"


def test_rows_are_counted_for_each_server_in_a_database_of_its_own(tmp_path: Path) -> None:
    servers = {"a": Behaviour(reads_rows=False), "b": Behaviour()}
    outcome = FakeRun(tmp_path, servers, quick(120), test_types=("db", "update")).run()
    failed = {(v.implementation, v.test_type) for v in outcome.records.verdicts if v.outcome is Outcome.FAIL}
    assert failed == {("a", "load"), ("a", "db"), ("a", "update")}


def test_tables_are_restored_after_each_update_window_and_no_other(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()}, quick(60), test_types=("json", "update"))
    outcome = fake.run()
    updates = sum(s.test_type == "update" for s in outcome.records.samples)
    warm_ups = sum(s.warm_up is not None for s in outcome.records.samples if s.test_type == "update")
    restored = [where for what, where in fake.world.events if what == "restore"]
    assert len(restored) == updates + warm_ups
    assert set(restored) == {"own-a-0"}


def test_a_server_that_dies_in_a_round_loses_its_cells_and_comes_back_as_a_new_process(tmp_path: Path) -> None:
    servers = {**four(), "b": Behaviour(dies_after=12.0, cpu_per_request=300e-6)}
    outcome = FakeRun(tmp_path, servers, quick(200), test_types=("json", "db")).run()
    status = {(r.implementation, r.process): r.status for r in outcome.records.replicates}
    assert status["b", 0] == "failed"
    assert status["b", 1] == "ok"
    assert {status[name, 0] for name in "acd"} == {"ok"}
    later = [s for s in outcome.records.samples if s.implementation == "b" and s.process >= 1]
    assert len(later) >= 6
    assert outcome.exit_code == Exit.FAILED
    assert any("b replicate 1: the server ended" in failure for failure in outcome.failures)


def test_a_server_that_dies_before_its_first_window_is_swept_and_audited_as_a_second_process(tmp_path: Path) -> None:
    servers = {**four(), "b": Behaviour(dies_after=4.0, deaths=1, cpu_per_request=300e-6)}
    outcome = FakeRun(
        tmp_path, servers, quick(300), test_types=("json", "db"), audited_cost=dict.fromkeys(servers, 1.0)
    ).run()
    samples = [s for s in outcome.records.samples if s.implementation == "b"]
    assert 0 not in {s.process for s in samples}
    assert len({(s.test_type, s.level) for s in samples}) == len(
        {(s.test_type, s.level) for s in outcome.records.samples if s.implementation == "a"}
    )
    assert {s.test_type for s in samples if s.audited} == {"json", "db"}


def test_a_server_that_keeps_dying_is_left_out_after_its_second_death(tmp_path: Path) -> None:
    servers = {"a": Behaviour(), "b": Behaviour(dies_after=9.0, deaths=99)}
    fake = FakeRun(tmp_path, servers, quick(200), test_types=("json",))
    outcome = fake.run()
    assert fake.world.started["b"] == 2
    assert [r.status for r in outcome.records.replicates if r.implementation == "b"] == ["failed", "failed"]
    assert min(Counter(s.implementation for s in outcome.records.samples).values()) >= 1


def test_a_server_that_never_starts_does_not_hold_up_the_others(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {**four(), "b": Behaviour(never_starts=True)}, quick(120))
    outcome = fake.run()
    assert fake.world.started["b"] == 1
    assert {s.implementation for s in outcome.records.samples} == set("acd")


def test_too_little_memory_makes_groups_that_take_turns(tmp_path: Path) -> None:
    servers = {name: Behaviour(rss=250e6) for name in "abcdef"}
    fake = FakeRun(tmp_path, servers, quick(200))
    fake.world.memory = 1e9  # 0.7 of it: two of 256 MB, as is thought of servers never measured
    outcome = fake.run()
    assert fake.world.most_alive == 2
    assert outcome.exit_code == Exit.OK
    assert {(s.implementation, s.process) for s in outcome.records.samples} == {
        (n, p) for n in "abcdef" for p in (0, 1)
    }
    assert seconds(fake) <= 203


def test_where_the_time_is_over_no_group_has_another_turn(tmp_path: Path) -> None:
    names = [f"server-{number}" for number in range(8)]
    fake = FakeRun(tmp_path, {name: Behaviour() for name in names}, quick(130))
    fake.runtime.side_by_side = False
    outcome = fake.run()
    again = {name for name, process in processes(outcome) if process}
    assert {name for name, _ in processes(outcome)} == set(names)  # each has its first, whatever the time
    assert 0 < len(again) < len(names)
    assert seconds(fake) <= 130


def test_a_server_larger_than_thought_sends_the_rest_to_a_time_of_their_own(tmp_path: Path) -> None:
    servers = {name: Behaviour(rss=900e6) for name in "abc"}
    fake = FakeRun(tmp_path, servers, quick(150))
    fake.world.memory = 2.8e9
    outcome = fake.run()
    assert fake.world.most_alive == 2
    assert {s.implementation for s in outcome.records.samples} == set("abc")
    assert outcome.exit_code == Exit.OK


def test_connections_to_the_database_are_room_too(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {name: Behaviour(connections=100) for name in "abc"}, quick(150))
    fake.world.max_connections = 250
    outcome = fake.run()
    assert fake.world.most_alive == 2
    assert {s.implementation for s in outcome.records.samples} == set("abc")


def test_what_is_known_of_an_earlier_run_s_memory_decides_who_fits(tmp_path: Path) -> None:
    servers = {name: Behaviour(rss=50e6) for name in "abcdef"}
    FakeRun(tmp_path, servers, quick(60)).run()
    fake = FakeRun(tmp_path, servers, quick(100))
    fake.world.clock.sleep(3600)  # another folder
    fake.world.memory = 1e9
    fake.run()
    assert fake.world.most_alive == 6


def test_a_server_that_works_while_it_should_be_idle_is_measured_by_itself(tmp_path: Path) -> None:
    servers = {"a": Behaviour(), "b": Behaviour(), "busy": Behaviour(idle_cpu=0.05)}
    fake = FakeRun(tmp_path, servers, quick(150))
    outcome = fake.run()
    disturbed = [s for s in outcome.records.samples if s.implementation == "a" and s.round == 0]
    assert {g.name for s in disturbed for g in s.gates if g.outcome is Outcome.WARN} == {"idle-servers"}
    together = max(s.round or 0 for s in outcome.records.samples if s.implementation == "busy" and s.process == 0)
    assert together <= 3  # rounds: five seconds of being idle are enough to see it
    later = [s for s in outcome.records.samples if s.implementation == "a" and (s.round or 0) > together]
    assert len(later) >= 3
    assert {g.name for s in later for g in s.gates if g.outcome is Outcome.WARN} == set()
    by_itself = [s for s in outcome.records.samples if s.implementation == "busy" and s.process == 1]
    assert len(by_itself) >= 3
    assert any("busy uses 5.00% of a CPU while idle: run alone" in line for line in fake.display.lines)


def test_a_jit_runtime_that_goes_on_working_is_separated_after_three_looks(tmp_path: Path) -> None:
    servers = {**{name: Behaviour() for name in "abc"}, "busy": Behaviour(idle_cpu=0.05)}
    fake = FakeRun(tmp_path, servers, quick(400), test_types=("json", "db", "query"), jit=frozenset({"busy"}))
    outcome = fake.run()
    assert any("busy uses 5.00% of a CPU while idle: run alone" in line for line in fake.display.lines)
    rounds = {s.round for s in outcome.records.samples if s.implementation == "busy" and s.process == 0}
    assert rounds == {0, 1, 2, 3}


def test_what_the_first_round_left_to_compile_separates_nobody(tmp_path: Path) -> None:
    servers = {"a": Behaviour(), "b": Behaviour(), "jit": Behaviour(idle_cpu=0.05, idle_cpu_until=75)}
    fake = FakeRun(tmp_path, servers, quick(150), jit=frozenset({"jit"}))
    outcome = fake.run()
    first = [s for s in outcome.records.samples if s.implementation == "a" and s.round == 0]
    assert {g.name for s in first for g in s.gates if g.outcome is Outcome.WARN} == {"idle-servers"}
    assert not any("run alone" in line for line in fake.display.lines)
    rounds = {name: {s.round for s in outcome.records.samples if s.implementation == name} for name in servers}
    assert rounds["jit"] >= rounds["a"] - {max(number or 0 for number in rounds["a"])}


@pytest.mark.parametrize("what", ["side_by_side", "divisible"])
def test_where_servers_cannot_be_side_by_side_they_take_turns(tmp_path: Path, what: str) -> None:
    fake = FakeRun(tmp_path, four(), quick(150))
    setattr(fake.runtime, what, False)
    outcome = fake.run()
    assert fake.world.most_alive == 1
    assert processes(outcome) == {(name, number) for name in "abcd" for number in (0, 1)}
    assert outcome.exit_code == Exit.OK


def test_an_interruption_stops_all_servers_and_a_resumed_run_measures_the_rest(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, four(), quick(200), test_types=("json",))
    real = fake.generator.result

    def interrupted(load: object, output: str) -> object:
        if seconds(fake) > 150:
            raise KeyboardInterrupt
        return real(load, output)  # type: ignore[arg-type]

    fake.generator.result = interrupted  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        fake.run()
    assert fake.world.alive == {}
    kept = fake.records()
    assert kept.info.status == "interrupted"
    finished = {(r.implementation, r.process) for r in kept.replicates if r.status == "ok"}
    assert finished == {(name, 0) for name in "abcd"}
    again = FakeRun(tmp_path, four(), quick(200), test_types=("json",), resume="latest")
    outcome = again.run()
    assert dict(again.world.started) == dict.fromkeys("abcd", 1)
    assert processes(outcome) == {(name, number) for name in "abcd" for number in (0, 1)}
    assert outcome.records.info.status == "complete"
    assert seconds(again) < 110


def test_a_failed_verification_leaves_its_test_type_out_of_the_rounds(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, four(), quick(200), test_types=("json", "db"))
    fake.verifier.fails_before = frozenset({("a", "db")})
    outcome = fake.run()
    assert ("a", "db") not in {(s.implementation, s.test_type) for s in outcome.records.samples}
    assert ("b", "db") in {(s.implementation, s.test_type) for s in outcome.records.samples}


def test_a_copy_of_a_server_is_not_called_different(tmp_path: Path) -> None:
    servers = {"a": Behaviour(window_spread=0.02), "copy": Behaviour(window_spread=0.02)}
    table = FakeRun(tmp_path, servers, quick(150)).run().ranking.test_types["json"].headline
    assert {row.throughput.rank.label for row in table.rows if row.throughput} == {"1–2"}


def test_all_test_types_of_four_servers_fit_into_ten_minutes(tmp_path: Path) -> None:
    servers = {name: Behaviour(cold=2.0, cpu_per_request=500e-6, start_seconds=2.0) for name in "abcd"}
    fake = FakeRun(tmp_path, servers, quick(600), test_types=tuple(URLS), jit=frozenset("abc"))
    outcome = fake.run()
    measured = sum(sample.duration for sample in outcome.records.samples)
    assert outcome.exit_code == Exit.OK
    assert seconds(fake) <= 603
    assert measured / seconds(fake) > 0.45
