"""The figures of an audited load stand in the record of the sample beside it, at a level that all are audited at."""

from pathlib import Path

from harness.plan import profile as profiles
from harness.records.models import Sample
from harness.stats.closed_loop import SERVICE
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour

SERVERS = {name: Behaviour(cpu_per_request=1e-3) for name in ("a", "b")}


def audited(fake: FakeRun) -> list[Sample]:
    fake.run()
    return [sample for sample in fake.records().samples if sample.audited]


def test_each_process_is_audited_once_and_all_at_the_same_level(tmp_path: Path) -> None:
    profile = profiles.load("smoke")
    levels = profile.levels.model_copy(update={"concurrency": (16, 32, 64)})
    replication = profile.replication.model_copy(update={"minimum": 3, "maximum": 3})
    profile = profile.model_copy(update={"levels": levels, "replication": replication, "rounds": None})
    found = audited(FakeRun(tmp_path, SERVERS, profile, audited_cost={"a": 1.0, "b": 1.0}))
    by_process = {
        process: [(s.implementation, s.level.connections) for s in found if s.process == process]
        for process in range(3)
    }
    assert all(sorted(name for name, _ in one) == ["a", "b"] for one in by_process.values())
    assert all(len({level for _, level in one}) == 1 for one in by_process.values())
    assert {level for one in by_process.values() for _, level in one} == {16, 32, 64}  # each had its turn


def test_a_latency_run_is_audited_in_every_process(tmp_path: Path) -> None:
    found = audited(FakeRun(tmp_path, SERVERS, profiles.load("latency"), audited_cost={"a": 1.0, "b": 1.0}))
    assert sorted((s.implementation, s.process) for s in found) == [(n, p) for n in "ab" for p in range(3)]
    assert {s.audited.latency.basis for s in found if s.audited and s.audited.latency} == {SERVICE}


def test_servers_side_by_side_are_audited_at_the_headline_level(tmp_path: Path) -> None:
    quick = profiles.load("quick")
    assert quick.rounds is not None
    short = quick.model_copy(update={"rounds": quick.rounds.model_copy(update={"time_seconds": 90.0})})
    found = audited(FakeRun(tmp_path, SERVERS, short, audited_cost={"a": 1.0, "b": 1.0}))
    assert {(s.implementation, s.level.connections) for s in found} == {("a", 64), ("b", 64)}
