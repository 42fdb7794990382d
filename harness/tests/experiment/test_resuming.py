"""A run goes on only where it would ask the same question; what changed is named."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import StoreError, UsageError
from harness.experiment.preparation import choose_work, require_same, require_same_builds
from harness.records import store
from harness.records.models import Build, CheckResult, Outcome, RunInfo
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour, World

WRONG = CheckResult(check="row", rule="db.1", outcome=Outcome.FAIL, message="not in the database")
AT, LATER = "a" * 40, "b" * 40


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> FakeRun:
    """A complete run of two servers."""
    fake = FakeRun(tmp_path_factory.mktemp("run"), {"one": Behaviour(), "two": Behaviour()})
    fake.run()
    return fake


@pytest.fixture
def info(fake: FakeRun) -> RunInfo:
    return fake.records().info.model_copy(update={"revision": AT})


def now(fake: FakeRun, info: RunInfo, revision: str | None = AT) -> None:
    """Whether the run may go on with what is there today."""
    require_same(info, fake.settings(), choose_work(fake.settings()), (revision, False))


def with_profile(info: RunInfo, **changed: object) -> RunInfo:
    then = info.settings["profile"]
    assert isinstance(then, dict)
    return info.model_copy(update={"settings": {**info.settings, "profile": {**then, **changed}}})


def test_a_run_of_which_nothing_is_known_to_have_changed_goes_on(fake: FakeRun, info: RunInfo) -> None:
    now(fake, info)
    now(fake, info, None)
    now(fake, info.model_copy(update={"revision": None}))
    now(fake, with_profile(info, of_an_older_version=1))
    now(fake, info.model_copy(update={"settings": {}}))


def test_another_commit_is_named_with_both(fake: FakeRun, info: RunInfo) -> None:
    with pytest.raises(UsageError, match=r"begun at commit a{12}, and this is b{12}\. Bring that back as it was"):
        now(fake, info, LATER)


def test_what_changed_of_the_profile_is_named_by_its_key(fake: FakeRun, info: RunInfo) -> None:
    profile = fake.settings().profile
    levels = {**profile.levels.model_dump(mode="json"), "concurrency": [7]}
    with pytest.raises(UsageError) as refused:
        now(fake, with_profile(info, duration_seconds=99.0, levels=levels, name="x" * 500))
    words = str(refused.value)
    assert f"profile smoke: duration_seconds was 99.0, and is {profile.duration_seconds!r}; " in words
    assert f"profile smoke: levels.concurrency was [7], and is {list(profile.levels.concurrency)!r}; " in words
    assert f"name was '{'x' * 59}, and is 'smoke'" in words


def test_an_implementation_that_changed_came_or_went_is_named(fake: FakeRun, info: RunInfo) -> None:
    first, second = info.implementations
    for known, said in (
        ((first.model_copy(update={"digest": "x"}), second), "benchmark_config.json says something else of one"),
        ((first, second, first.model_copy(update={"name": "gone"})), "gone is no longer there"),
        ((second,), "one came later"),
    ):
        with pytest.raises(UsageError, match=rf": {said}\. Bring"):
            now(fake, info.model_copy(update={"implementations": known}))
    unknown = (first.model_copy(update={"digest": None}), second)
    now(fake, info.model_copy(update={"implementations": unknown}))


def test_a_complete_run_that_lost_trials_is_damaged_and_the_first_of_them_is_named(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"one": Behaviour()})
    fake.run()
    fake.resume = "latest"
    with pytest.raises(UsageError, match="is complete: there is nothing to resume"):
        fake.run()
    lines = next((tmp_path / "results").glob("2*/trials.jsonl"))
    lines.write_bytes(b"")
    with pytest.raises(StoreError, match=r"trials.jsonl: lacks trials of 1 .* the first of them one process 1"):
        fake.run()


def test_what_failed_is_not_measured_until_it_passes_and_what_did_not_come_up_is_started_again(tmp_path: Path) -> None:
    servers = {"wrong": Behaviour(), "absent": Behaviour(never_starts=True)}
    fake = FakeRun(tmp_path, servers, world=World(objections=(WRONG,)))
    fake.run()
    fake.world.objections, fake.resume = (), "latest"
    fake.world.behaviours["absent"] = Behaviour()
    outcome = fake.run()
    assert {t.implementation for t in outcome.records.trials if not t.rankable} == {"wrong"}
    assert [v.outcome for v in outcome.records.verdicts if v.implementation == "wrong"][-1] is Outcome.FAIL
    assert "wrong json: verification failed" in outcome.failures
    (said,) = (each for each in outcome.failures if each.startswith("absent"))
    assert said.endswith("; started again")


def built(info: RunInfo, tools: Mapping[str, str] | None = None, **changed: object) -> RunInfo:
    """The run as its first implementation was built so."""
    known = {"status": "ok", "image_digest": "sha256:" + "1" * 64}
    first = info.implementations[0]
    builds = (first.model_copy(update={"build": Build.model_validate({**known, **changed})}), *info.implementations[1:])
    return info.model_copy(update={"implementations": builds, "tools": {"wrk": "4.1.0", **(tools or {})}})


def test_programs_and_images_that_changed_are_named(info: RunInfo) -> None:
    require_same_builds(built(info), built(info, {"new": "1"}))
    require_same_builds(info, built(info))
    require_same_builds(built(info, status="failed"), built(info, image_digest="sha256:3"))
    for now, said in (
        (built(info, {"wrk": "4.2.0"}), "wrk was 4.1.0, and is 4.2.0"),
        (built(info, image_digest="sha256:3"), "one: its image was sha256:11111111111111111111111, and is sha256:3"),
    ):
        with pytest.raises(UsageError, match="would mix two different things") as refused:
            require_same_builds(built(info), now)
        assert said in str(refused.value)


def test_a_run_that_may_not_go_on_keeps_its_record(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"one": Behaviour(), "two": Behaviour()})
    fake.run()
    path = store.runs(tmp_path / "results")[-1] / "run.json"
    before = json.loads(path.read_text())
    before |= {"status": "interrupted", "tools": {**before["tools"], "python": "2.7"}}
    path.write_text(json.dumps(before))
    fake.resume = "latest"
    with pytest.raises(UsageError, match=r"python was 2\.7"):
        fake.run()
    after = json.loads(path.read_text())
    assert {key: after[key] for key in before} == before
