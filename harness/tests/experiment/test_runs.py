"""Complete runs on simulated servers with known costs.

Trials must measure these costs, and failures must be reported.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from harness.errors import DatabaseDiedError, Exit, MachineLostError
from harness.experiment.generators import LoadResult, LoadRun
from harness.experiment.observe import cpus_used
from harness.experiment.process_lifecycle import RunningProcess
from harness.experiment.steps import Process
from harness.host import interruption
from harness.host.clock import MAX_CLOCK_JUMPS
from harness.host.metering import Reading
from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.records import store
from harness.records.loads import ClosedLoop, OpenLoop
from harness.records.run_folders import list_runs
from harness.records.trial_record import Trial
from harness.records.verification_record import CheckResult, Outcome, VerificationRecord
from harness.report.verification_results import format_result
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_runtime import GOAL_SECONDS, RUNS, FakeDatabase, FakeMachines
from harness.tests.doubles.fakes_verifier import FakeTrial, FakeVerifier
from harness.tests.doubles.fakes_world import Behaviour, FakeWorld
from harness.tests.doubles.implementations import implementation

SIX = ("json", "plaintext", "db", "query", "fortune", "update")
WRONG = CheckResult(check="row", rule="db.1", outcome=Outcome.FAIL, message="not in the database")


def quick(processes: int = 2, seconds: float | None = 200.0, rounds: int | None = None) -> Profile:
    """Return the profile "quick" with other limits."""
    profile = profiles.load_profile("quick")
    rules = profile.interleaved.model_copy(update={"time_seconds": seconds, "rounds": rounds})
    count = profile.processes.model_copy(update={"minimum": processes, "maximum": processes})
    return profile.model_copy(update={"interleaved": rules, "processes": count})


def of(trials: Sequence[Trial], name: str, purpose: str = "measure") -> list[Trial]:
    return [trial for trial in trials if trial.implementation == name and trial.purpose == purpose]


def status(fake: FakeRun) -> dict[tuple[str, int], str]:
    return {(p.implementation, p.process): p.status for p in fake.records().processes}


def test_trials_show_the_true_cost_and_rate(tmp_path: Path) -> None:
    truth = {"a": 50e-6, "b": 200e-6}
    servers = {name: Behaviour(cpu_per_request=cost) for name, cost in truth.items()}
    outcome = FakeRun(tmp_path, servers, quick(), test_types=SIX).run()
    assert (outcome.failures, outcome.exit_code) == ((), Exit.OK)
    assert outcome.records.info.generator == "loadgen"
    # Both servers are up at the same time, but only one is under load.
    assert {trial.idle_cpu_share for trial in outcome.records.trials} == {0.0}
    for name, cost in truth.items():
        for trial in of(outcome.records.trials, name):
            queries = trial.load.queries or 1
            assert trial.cpu_per_request == pytest.approx(cost * queries, rel=0.01)
            assert trial.throughput == pytest.approx(2 / (cost * queries), rel=0.01)
            assert trial.server.wait_share == pytest.approx(0.04 / 1.04, rel=0.01)
    table = outcome.ranking.test_types["json"].headline
    ranks = [(row.implementation, row.throughput and row.throughput.rank.label) for row in table.rows]
    assert ranks == [("a", "1"), ("b", "1–2")]  # the warm-up is short, so b's rank stays uncertain


def test_a_run_leaves_its_files_and_nothing_else(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()}, quick())
    fake.run()
    (folder,) = list_runs(tmp_path / "results")
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    files = {"run.json", "processes.jsonl", "trials.jsonl", "verdicts.jsonl", "ranking.json", "results.json"}
    assert names == files | {"progress.json", "logs"}
    assert (folder / "run.json").stat().st_mtime_ns >= (folder / "ranking.json").stat().st_mtime_ns
    assert fake.display.closed
    records = fake.records()
    assert not records.problems
    assert Counter(t.process for t in records.trials) == {p.process: p.trials for p in records.processes}


def test_warm_up_removes_the_cold_starts_cost(tmp_path: Path) -> None:
    servers = {"jit": Behaviour(cold=20.0, warm_cpu_seconds=5.0), "other": Behaviour()}
    trials = FakeRun(tmp_path, servers, quick(seconds=400.0), jit=frozenset({"jit"})).run().records.trials
    costs = [trial.cpu_per_request or 0.0 for trial in of(trials, "jit") if trial.load == ClosedLoop(connections=64)]
    assert median(costs) == pytest.approx(50e-6, rel=0.10)
    assert all(trial.steady for trial in of(trials, "jit"))


def test_noise_flags_only_servers_that_stay_cold(tmp_path: Path) -> None:
    """With windows that vary by 20 %, the warm-up rule cannot detect a cold server. The ranking must flag it."""
    noisy = Behaviour(window_spread=0.13)
    servers = {**dict.fromkeys("abc", noisy), "cold": replace(noisy, cold=8.0, warm_cpu_seconds=12.0)}
    ranking = FakeRun(tmp_path, servers, profiles.load_profile("quick"), test_types=SIX).run().ranking
    rows = [row for kind in ranking.test_types.values() for row in kind.headline.rows]
    flagged = Counter(row.implementation for row in rows if "not warmed up" in row.flags)
    assert flagged["cold"] >= 4  # at least 4 of 6 test types
    assert flagged.total() - flagged["cold"] <= 1  # at most 1 of the other 18 rows


def test_compilation_reveals_a_slow_warm_up(tmp_path: Path) -> None:
    """A cost that falls by 0.2 % per second looks steady. CPU time of compiler threads shows that it still falls."""
    slow = Behaviour(cold=0.6, warm_cpu_seconds=400.0)
    servers = {"hidden": slow, "visible": replace(slow, compiles=True), "warm": Behaviour()}
    outcome = FakeRun(tmp_path, servers, quick(seconds=300.0), jit=frozenset(servers)).run()
    warm_ups = {name: of(outcome.records.trials, name)[0].warm_up for name in servers}
    assert {name: warm_up and warm_up.steady for name, warm_up in warm_ups.items()} == {
        "hidden": True,
        "visible": False,
        "warm": True,
    }
    rows = outcome.ranking.test_types["json"].headline.rows
    flagged = {row.implementation for row in rows if "not warmed up" in row.flags}
    assert flagged - {"hidden"} == {"visible"}  # "hidden" may be flagged too, because its trials also get cheaper


def test_default_warm_up_goes_to_cells_that_compile(tmp_path: Path) -> None:
    noisy = Behaviour(window_spread=0.13, process_spread=0.03)
    servers = {
        "native": noisy,
        "hotspot": replace(noisy, cold=6.0, warm_cpu_seconds=4.0, compiles=True),
        "graal": replace(noisy, cold=8.0, warm_cpu_seconds=8.0, compiles=True),
    }
    run = FakeRun(
        tmp_path, {**servers, "v8": noisy}, profiles.load_profile("quick"), test_types=SIX, jit=frozenset(servers)
    )
    trials = run.run().records.trials
    seconds = {name: sum(t.warm_up.duration for t in of(trials, name) if t.warm_up) for name in servers}
    assert seconds["graal"] > seconds["hotspot"] > 2 * seconds["native"]
    assert max(trial.started_at for trial in trials) - min(trial.started_at for trial in trials) < 720.0


def test_late_responses_count_for_cpu_only(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(cpu_per_request=1e-3)})
    real = fake.generator.result

    def result(run: LoadRun, output: str) -> LoadResult:
        counted = real(run, output)
        assert counted.account
        account = replace(counted.account, received=2 * counted.requests)
        return counted.model_copy(update={"account": account, "in_time": counted.requests // 4})

    fake.generator.result = result  # type: ignore[method-assign]
    (trial,) = fake.run().records.trials
    assert trial.cpu_per_request == pytest.approx(0.5e-3)
    assert trial.throughput == pytest.approx(500, rel=0.01)


def test_wrong_responses_under_load_fail_the_test_type(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, {"a": Behaviour()}, world=FakeWorld(objections=(WRONG,))).run()
    (trial,) = outcome.records.trials
    assert {check.name for check in trial.validity if check.outcome is Outcome.FAIL} == {"wrong-answers"}
    assert [v.outcome for v in outcome.records.verdicts if v.test_type == "json"] == [Outcome.FAIL]
    assert "a json: verification failed" in outcome.failures
    assert outcome.ranking.test_types["json"].headline.rows[0].reason == "verification failed: row"


@pytest.mark.parametrize(
    ("when", "what", "out", "warned"),
    [
        ("fails_before", frozenset({("a", "db")}), {("a", "db")}, set()),
        ("fails_after", frozenset({("b", "json")}), {("b", "json")}, set()),
        ("lost", (WRONG,), {("a", "db"), ("b", "db"), ("a", "update"), ("b", "update")}, set()),
        ("lost", (WRONG.model_copy(update={"outcome": Outcome.WARN}),), set(), {"update"}),
    ],
    ids=["before the loads", "after the loads", "rows that the database never had", "deadlocks of those that write"],
)
def test_unverified_test_types_are_not_ranked(
    tmp_path: Path, when: str, what: object, out: set[tuple[str, str]], warned: set[str]
) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, quick(1, 60.0), test_types=("json", "db", "update"))
    setattr(fake.verifier, when, what)
    outcome = fake.run()
    tables = outcome.ranking.test_types.items()
    ranked = {(row.implementation, kind) for kind, table in tables for row in table.headline.rows if row.ranked}
    assert ranked == {(name, kind) for name in "ab" for kind in ("json", "db", "update")} - out
    assert {f"{name} {kind}: verification failed" for name, kind in out} <= set(outcome.failures)
    assert not any("no valid trial" in failure for failure in outcome.failures)
    assert bool(outcome.failures) is bool(out)
    if when == "fails_before":
        assert {trial.test_type for trial in of(outcome.records.trials, "a")} == {"json", "update"}
    assert {v.test_type for v in outcome.records.verdicts if v.outcome is Outcome.WARN} == warned


def test_tables_are_restored_after_verification_wrote_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def recording(method: Callable[..., Any], what: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(what)
            return method(*args, **kwargs)

        return call

    for kind, name in ((FakeVerifier, "verify_test_type"), (FakeDatabase, "restore"), (FakeTrial, "__enter__")):
        monkeypatch.setattr(kind, name, recording(getattr(kind, name), name))
    FakeRun(tmp_path, {"a": Behaviour()}, profiles.load_profile("techempower"), test_types=("db", "update")).run()
    assert calls[calls.index("verify_test_type") :][:4] == ["verify_test_type"] * 2 + ["restore", "__enter__"]


@pytest.mark.parametrize(
    ("looks", "disturbs"),
    [
        ([(1.0, 5.0)] * 4, "nnyy"),
        ([(1.0, 2.5)] * 6, "nnnnny"),
        ([(0.005, 5.0)] * 4, "nnnn"),
        ([(0.03, 1.0), (0.0, 4.0)] * 3, "nnnnny"),
        ([(0.02, 1.0), (0.0, 4.0)] * 3, "nnnnnn"),
        ([*[(1.0, 5.0)] * 2, (0.0, 5.0), *[(1.0, 5.0)] * 3], "nnnnny"),
    ],
)
def test_three_consecutive_busy_checks_make_a_server_disturb(
    looks: Sequence[tuple[float, float]], disturbs: str
) -> None:
    running = RunningProcess(process=Process("a", 0), implementation=implementation(), log=Path(), started_at=0.0)
    assert ["ny"[running.disturbs(*look)] for look in looks] == list(disturbs)


def test_cpus_need_two_readings_at_different_times() -> None:
    def at(moment: float, cpu: float) -> Reading:
        return Reading(read_at=moment, cpu_seconds=cpu, rss=None, run_seconds=None, wait_seconds=None)

    before, after = [at(1, 1), None, at(0, 0), at(5, 1)], [at(3, 2), at(1, 1), None, at(5, 2)]
    assert cpus_used(before, after) == [0.5, None, None, None]


def test_a_failed_check_is_a_sentence() -> None:
    assert format_result(WRONG) == "row (db.1): not in the database"
    result = WRONG.model_copy(update={"expected": "1", "actual": "2"})
    assert format_result(result) == "row (db.1): not in the database. Expected 1, got 2"


def test_a_busy_idle_server_is_stopped(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour(idle_cpu=0.5), "c": Behaviour()}, quick(seconds=300.0))
    trials = fake.run().records.trials
    late = [trial for trial in trials if trial.process == 1 and trial.implementation != "b"]
    assert late
    assert not any(check.name == "idle-servers" and check.flag for t in late for check in t.validity)
    assert of(trials, "b")[-1].process == 1


def test_servers_beyond_memory_never_run_together(tmp_path: Path) -> None:
    servers = {name: Behaviour(rss=2e9) for name in "abc"}
    fake = FakeRun(tmp_path, servers, quick(seconds=300.0), world=FakeWorld(memory=3.5e9), jit=frozenset("abc"))
    trials = fake.run().records.trials
    assert fake.world.most_alive == 2  # the plan assumes 1 GiB for a JIT runtime before it knows the size
    assert {trial.implementation for trial in trials} == set("abc")


def test_a_clock_change_repeats_the_load(tmp_path: Path) -> None:
    """Verification needs the wall clock, for example to check Date headers.

    If the clock is set, the load is repeated.
    """
    undisturbed = FakeRun(tmp_path / "undisturbed", {"a": Behaviour()}, quick(1, 60.0)).run()
    fake = FakeRun(tmp_path / "set", {"a": Behaviour()}, quick(1, 60.0))
    clock = fake.world.clock
    clock.set_at = clock.now + of(undisturbed.records.trials, "a")[1].started_at - clock.time() + 1.0
    trials = fake.run().records.trials
    assert sum("clock was set during a load: the load is repeated" in line for line in fake.display.lines) == 1
    assert all(trial.rankable and trial.duration < 10 for trial in trials)
    drifting, earlier = FakeRun(tmp_path / "drifts", {"a": Behaviour()}), len(RUNS)
    drifting.world.clock.drift = 0.5
    (_,) = drifting.run().records.trials  # after MAX_CLOCK_JUMPS repetitions, the last load counts
    assert [run.sampling is not None for run in RUNS[earlier:]].count(True) == 1 + MAX_CLOCK_JUMPS
    ends = [line.rpartition(": ")[2] for line in drifting.display.lines if "clock was set" in line]
    assert ends == ["the load is repeated"] * MAX_CLOCK_JUMPS + ["the result is used anyway"]


def test_a_dead_database_does_not_blame_the_server(tmp_path: Path) -> None:
    world = FakeWorld()
    fake = FakeRun(tmp_path, {"a": Behaviour()}, quick(), world=world)
    fake.verifier.seconds = 20.0
    world.database_dies_at = world.clock.monotonic() + 30.0
    outcome = fake.run()
    assert any("the running processes are measured again" in line for line in fake.display.lines)
    assert set(status(fake).values()) == {"ok"}
    assert {verdict.outcome for verdict in outcome.records.verdicts} == {Outcome.PASS}
    assert not any("fake.1" in line for line in (*fake.display.lines, *outcome.failures))


def test_a_lost_machine_ends_the_run_with_records(tmp_path: Path) -> None:
    world = FakeWorld()
    world.vanishes_at = world.clock.monotonic() + 150.0
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, quick(), world=world)
    fake.runtime = FakeMachines(world)
    with pytest.raises(MachineLostError) as lost:
        fake.run()
    records = fake.records()
    # A run with the status "interrupted" can be resumed without naming it.
    assert (records.info.status, bool(records.trials)) == ("interrupted", True)
    assert str(lost.value) in records.info.problems


def test_insufficient_time_for_the_plan_is_reported(tmp_path: Path) -> None:
    for seconds, told in ((10.0, 1), (200.0, 0)):
        fake = FakeRun(tmp_path, {"a": Behaviour()}, quick(seconds=seconds))
        fake.run()
        assert sum("! the time limit is enough for" in line for line in fake.display.lines) == told


@pytest.mark.parametrize("after", [1, 12, 30, 45])
def test_an_interrupted_run_continues_on_resume(tmp_path: Path, after: int) -> None:
    servers = {"a": Behaviour(cpu_per_request=50e-6), "b": Behaviour(cpu_per_request=100e-6)}
    fake = FakeRun(tmp_path, servers, quick(), seed=4)
    real, loads = fake.generator.result, itertools.count(1)

    def result(run: LoadRun, output: str) -> LoadResult:
        if next(loads) == after:
            raise KeyboardInterrupt
        return real(run, output)

    fake.generator.result = result  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        fake.run()
    before = fake.records()
    assert (before.info.status, before.info.problems) == ("interrupted", ("interrupted",))
    assert {one.status for one in before.processes} >= {"interrupted"}
    finished = store.finished_processes(before)
    resumed = FakeRun(tmp_path, servers, quick(), seed=4, resume="latest", world=replace(fake.world))
    outcome = resumed.run()
    assert outcome.exit_code == Exit.OK
    assert status(resumed) == {(name, number): "ok" for name in "ab" for number in (0, 1)}
    finished_ids = [t.id for t in before.trials if (t.implementation, t.process) in finished]
    assert set(finished_ids) <= {t.id for t in outcome.records.trials}
    ids = Counter(trial.id for trial in outcome.records.trials)
    assert max(ids.values()) == 1
    expected, remaining = (
        next(line for line in one.display.lines if "expected end" in line) for one in (fake, resumed)
    )
    assert (expected.rpartition("(")[2] != remaining.rpartition("(")[2]) is bool(finished)
    # The resumed run uses the whole time limit, as an uninterrupted run does.
    uninterrupted = FakeRun(tmp_path / "whole", servers, quick(), seed=4).run()
    assert 0.9 * len(uninterrupted.records.trials) < len(outcome.records.trials) <= len(uninterrupted.records.trials)


def test_verdicts_after_an_interruption_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()}, quick())
    fake.verifier.fails_before = frozenset({("a", "json")})
    real = fake.verifier.verify_test_type

    def raised() -> None:
        raise KeyboardInterrupt

    def check(*arguments: Any, **named: Any) -> VerificationRecord:
        verdict = real(*arguments, **named)
        monkeypatch.setattr(interruption, "raise_if_pending", raised)  # as if the interruption came during a request
        return verdict

    fake.verifier.verify_test_type = check  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        fake.run()
    assert fake.records().info.problems == ("interrupted",)
    assert all(verdict.outcome is not Outcome.FAIL for verdict in fake.records().verdicts)


def test_the_latency_profile_finds_the_true_capacity(tmp_path: Path) -> None:
    profile = profiles.load_profile("latency")
    trials = FakeRun(tmp_path, {"a": Behaviour(cpu_per_request=1e-3)}, profile).run().records.trials
    assert {t.purpose for t in trials} >= {"measure", "share", "common", "search"}
    assert isinstance(trials[0].load, ClosedLoop)
    assert {t.share for t in trials if t.purpose == "share"} == set(profile.rates.shares)
    searched = [t.load.rate for t in trials if t.purpose == "search" and isinstance(t.load, OpenLoop)]
    # At this rate, p99 equals the latency goal.
    assert searched[-1] == pytest.approx(2_000 - math.log(100) / GOAL_SECONDS, rel=0.05)
    at_rate = [t for t in trials if isinstance(t.load, OpenLoop)]
    assert {t.latency.basis for t in at_rate if t.latency} == {"open-loop, intended send time"}
    half = [t for t in at_rate if t.share == 0.5]
    assert {t.process for t in half} == {0, 1, 2}
    for trial in half:
        assert isinstance(trial.load, OpenLoop)
        assert trial.load.rate == pytest.approx(1_000, rel=0.05)
        assert trial.cpu_per_request == pytest.approx(1e-3, rel=0.05)


def test_repeated_database_deaths_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeDatabase, "crash_reason", lambda _: "PostgreSQL ended (killed by SIGKILL)")
    fake = FakeRun(tmp_path, {"a": Behaviour(dies_after=1.0, deaths=99)}, quick())
    with pytest.raises(DatabaseDiedError):
        fake.run()
    assert fake.records().info.status == "failed"


def test_faulty_servers_do_not_affect_others(tmp_path: Path) -> None:
    servers = {
        "good": Behaviour(),
        "dies": Behaviour(dies_after=12.5),
        "absent": Behaviour(never_starts=True),
        "restarts": Behaviour(restarts=True),
    }
    fake = FakeRun(tmp_path, servers, quick(seconds=300.0))
    outcome = fake.run()
    ended = status(fake)
    assert {name: [ended.get((name, number)) for number in (0, 1)] for name in servers} == {
        "good": ["ok", "ok"],
        "dies": ["failed", "ok"],
        "absent": ["failed", None],
        "restarts": ["failed", "failed"],
    }
    assert "dies process 1: the server ended (killed by SIGKILL)" in outcome.failures
    exits = {process.implementation: process.exit_reason for process in fake.records().processes if process.exit_reason}
    assert exits == {"dies": "dies: the server ended (killed by SIGKILL)"}
    assert "absent process 1: no valid response within 60 s" in outcome.failures
    gates = {
        name: {check.name for t in of(outcome.records.trials, name) for check in t.validity if check.flag}
        for name in servers
    }
    assert gates == {"good": set(), "dies": set(), "absent": set(), "restarts": {"restarted"}}


def test_exceptions_behind_failed_verification_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Any] = FakeVerifier.verify_test_type

    def verify_test_type(self: FakeVerifier, server: Any, *args: Any, **named: Any) -> Any:
        server.program.log.parent.mkdir(parents=True, exist_ok=True)
        with server.program.log.open("a") as log:
            log.write('Traceback (most recent call last):\n  File "x", line 1\nRuntimeError: no new thread\n')
        verdict = real(self, server, *args, **named)
        return verdict.model_copy(update={"outcome": Outcome.FAIL, "results": (WRONG,)})

    monkeypatch.setattr(FakeVerifier, "verify_test_type", verify_test_type)
    fake = FakeRun(tmp_path, {"a": Behaviour()}, quick(processes=1), test_types=("json",))
    fake.run()
    (failed,) = [each for verdict in fake.records().verdicts for each in verdict.results if each.check == "row"]
    assert failed.actual == "server log: RuntimeError: no new thread"
