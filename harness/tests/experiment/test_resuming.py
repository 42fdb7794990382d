"""A run can be resumed only if the setup is unchanged. Otherwise, the error names what changed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.experiment.ending import find_failures
from harness.experiment.loop import RecordedProcesses
from harness.experiment.run_setup import require_same_setup
from harness.experiment.steps import (
    Cell,
    Done,
    Failed,
    Measure,
    OutOfTime,
    Process,
    Rest,
    Start,
    Stop,
    TrialResult,
    Warm,
)
from harness.records import store
from harness.records.run_folders import list_runs
from harness.records.run_info import BuildRecord, RunInfo
from harness.records.verification_record import CheckResult, Outcome
from harness.tests.doubles import records
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour, FakeWorld

WRONG = CheckResult(check="row", rule="db.1", outcome=Outcome.FAIL, message="not in the database")


@pytest.fixture(scope="module")
def info(tmp_path_factory: pytest.TempPathFactory) -> RunInfo:
    """Return the run.json of a completed run of two servers."""
    fake = FakeRun(tmp_path_factory.mktemp("run"), {"one": Behaviour(), "two": Behaviour()})
    fake.run()
    info = fake.records().info
    first = BuildRecord.model_validate({"status": "ok", "tools": {"java": "25.0.3"}, "image_digest": "sha256:1"})
    return changed(info, build=first).model_copy(update={"revision": "a" * 40, "tools": {"wrk": "4.1.0"}})


def changed(info: RunInfo, **of_the_first: object) -> RunInfo:
    first, second = info.implementations
    return info.model_copy(update={"implementations": (first.model_copy(update=of_the_first), second)})


def profile(info: RunInfo, **values: object) -> RunInfo:
    then = info.settings["profile"]
    assert isinstance(then, dict)
    return info.model_copy(update={"settings": {"profile": {**then, **values}}})


def with_build(info: RunInfo, **values: object) -> RunInfo:
    build = info.implementations[0].build
    assert build is not None
    return changed(info, build=build.model_copy(update=values))


@pytest.mark.parametrize(
    "before",
    [
        lambda info: info,
        lambda info: changed(info, build=None),
        lambda info: with_build(info, status="failed", image_digest="sha256:3"),
    ],
    ids=["the same", "not built", "failed"],
)
def test_builds_without_trials_may_change(info: RunInfo, before: Callable[[RunInfo], RunInfo]) -> None:
    require_same_setup(before(info), info, {"two"})


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        (lambda info: info.model_copy(update={"revision": "b" * 40}), "commit was 'bbbb"),
        (lambda info: info.model_copy(update={"tools": {"wrk": "4.0.0"}}), "wrk was '4.0.0', and is now '4.1.0'"),
        (lambda info: profile(info, ranked="x" * 500), f"profile.ranked was '{'x' * 59}, and is now False"),
        (lambda info: profile(info, levels={"concurrency": [7]}), "profile.levels.concurrency was [7], and is now ["),
        (lambda info: changed(info, digest="x"), "one: benchmark_config.json was 'x', and is now '"),
        (lambda info: changed(info, name="gone"), "gone is no longer selected; one was not selected"),
        (lambda info: with_build(info, tools={"java": "21"}), "one: java was '21', and is now '25.0.3'"),
        (lambda info: with_build(info, image_digest="sha256:3"), "one: image was 'sha256:3', and is now 'sha256:1'"),
        (lambda info: with_build(info, image_digest=None), "one: image was not recorded, and is now 'sha256:1'"),
        (lambda info: with_build(info, tools={}), "one: java was not recorded, and is now '25.0.3'"),
        (
            lambda info: changed(info, build=None),
            "one: build was 'skipped', and is now 'ok'; one: image was not recorded",
        ),
        (lambda info: changed(info, digest=""), "one: benchmark_config.json was not recorded, and is now '"),
        (lambda info: info.model_copy(update={"revision": None}), "commit was not recorded, and is now 'aaaa"),
        (lambda info: info.model_copy(update={"tools": {}}), "wrk was not recorded, and is now '4.1.0'"),
        (
            lambda info: info.model_copy(update={"machine": info.machine.model_copy(update={"cpu_model": "other"})}),
            "the CPU model was 'other', and is now '",
        ),
        (lambda info: info.model_copy(update={"settings": {}}), "profile.description was not recorded, and is"),
        (
            lambda info: profile(info, of_an_older_version=1),
            "profile.of_an_older_version was 1, and is now not recorded",
        ),
    ],
    ids=[
        "commit",
        "tool",
        "profile",
        "levels",
        "entry",
        "names",
        "build",
        "image",
        "no image",
        "no tool",
        "no build",
        "no entry",
        "no commit",
        "no tools",
        "other CPU",
        "no profile",
        "older",
    ],
)
def test_changes_of_the_setup_are_named(info: RunInfo, before: Callable[[RunInfo], RunInfo], changes: str) -> None:
    with pytest.raises(UsageError) as refused:
        require_same_setup(before(info), info, {"one"})
    assert f"the setup has changed: {changes}" in str(refused.value)


def test_finished_processes_return_recorded_results(tmp_path: Path) -> None:
    records.write(tmp_path).add_process(records.process("slow", 2, "failed"))
    (folder,) = list_runs(tmp_path)
    recorded, process = RecordedProcesses(store.read_run(folder)), Process("fast", 1)
    cell = Cell(process=process, test_type="json", load=records.JSON)
    assert recorded.result(Start(process=process)) == Done(test_types=frozenset({"json", "query"}))
    assert recorded.result(Start(process=Process("slow", 2))) == Failed(server_exited=True)
    trial = next(t for t in store.read_run(folder).trials if (t.implementation, t.process) == process)
    assert recorded.result(Measure(cell=cell, seconds=1.0, round=trial.round)) == TrialResult(trial=trial)
    assert recorded.result(Measure(cell=cell, seconds=1.0, round=99)) == recorded.result(Warm(cell=cell, seconds=1.0))
    assert recorded.result(Warm(cell=cell, seconds=1.0)) == OutOfTime()
    assert recorded.result(Stop(process=process)) == Done()
    assert recorded.result(Rest(seconds=1.0)) is None
    assert recorded.result(Start(process=Process("fast", 2))) is None


def test_a_complete_run_cannot_be_resumed(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"one": Behaviour()})
    fake.run()
    fake.resume = "latest"
    with pytest.raises(UsageError, match="is complete, so it cannot be resumed"):
        fake.run()


def test_failed_starts_are_retried_on_resume(tmp_path: Path) -> None:
    servers = {"wrong": Behaviour(), "absent": Behaviour(never_starts=True)}
    fake = FakeRun(tmp_path, servers, world=FakeWorld(objections=(WRONG,)))
    fake.run()
    fake.world.objections, fake.resume = (), "latest"
    fake.world.behaviours["absent"] = Behaviour()
    outcome = fake.run()
    assert {t.implementation: t.rankable for t in outcome.records.trials} == {"wrong": False, "absent": True}
    assert [v.outcome for v in outcome.records.verdicts if v.implementation == "wrong"][-1] is Outcome.FAIL
    assert "wrong json: verification failed" in outcome.failures
    (message,) = (each for each in outcome.failures if each.startswith("absent"))
    assert message.endswith("; started again")


def test_a_refused_resume_keeps_the_records(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"one": Behaviour(), "two": Behaviour()})
    fake.run()
    path = list_runs(tmp_path / "results")[-1] / "run.json"
    before = json.loads(path.read_text())
    before |= {"status": "interrupted", "tools": {**before["tools"], "python": "2.7"}}
    path.write_text(json.dumps(before))
    fake.resume = "latest"
    with pytest.raises(UsageError, match=r"python was '2\.7'"):
        fake.run()
    assert json.loads(path.read_text()) == before


def test_every_failure_is_one_sentence(tmp_path: Path) -> None:
    records.write(tmp_path)
    (folder,) = list_runs(tmp_path)
    known = store.read_run(folder)
    fast, slow = known.info.implementations
    built = BuildRecord(status="ok")
    others = (
        fast.model_copy(update={"name": "new"}),
        fast.model_copy(update={"name": "torn", "build": BuildRecord(status="failed", reason="no compiler\nat all")}),
        fast.model_copy(update={"name": "idle", "build": built}),
    )
    info = known.info.model_copy(
        update={
            "implementations": (
                fast.model_copy(update={"build": built}),
                slow.model_copy(update={"build": built}),
                *others,
            )
        }
    )
    wrong = records.verdict("fast", "json", Outcome.FAIL)
    died = records.process("slow", 1, "failed").model_copy(update={"reason": "slow: it ended\nsoon"})
    run_records = replace(known, info=info, verdicts=[wrong], processes=[records.process("fast", 0), died])
    assert find_failures(run_records) == (
        "fast json: verification failed",
        "slow query c64 q20: no valid trial",
        "new was not built",
        "torn failed: no compiler",
        "idle json c64: not tried: no process started",
        "idle query c64 q1: not tried: no process started",
        "idle query c64 q20: not tried: no process started",
        "slow process 2: it ended",
    )
