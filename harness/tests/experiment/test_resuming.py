"""A run goes on only where it would ask the same question; what changed is named."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import StoreError, UsageError
from harness.experiment import resuming
from harness.experiment.preparation import Selected, choose_work
from harness.plan.config import Settings
from harness.plan.profile import Profile
from harness.records.models import Build, RunInfo
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour

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


@pytest.fixture
def settings(fake: FakeRun) -> Settings:
    return fake.settings()


@pytest.fixture
def selected(settings: Settings) -> Selected:
    return choose_work(settings)


def test_a_run_of_which_nothing_changed_goes_on(info: RunInfo, settings: Settings, selected: Selected) -> None:
    resuming.require_same(info, settings, selected, (AT, False))


@pytest.mark.parametrize("revisions", [(None, AT), (AT, None)])
def test_a_tree_without_a_commit_says_nothing_of_changes(
    info: RunInfo, settings: Settings, selected: Selected, revisions: tuple[str | None, str | None]
) -> None:
    then, now = revisions
    resuming.require_same(info.model_copy(update={"revision": then}), settings, selected, (now, None))


def test_another_commit_is_named_with_both(info: RunInfo, settings: Settings, selected: Selected) -> None:
    with pytest.raises(UsageError) as refused:
        resuming.require_same(info, settings, selected, (LATER, False))
    assert str(refused.value) == (
        f"run {info.run_id} cannot go on, it would mix two different things: it was begun at commit aaaaaaaaaaaa, and "
        "this is bbbbbbbbbbbb. Bring that back as it was, or start a new run"
    )


def with_profile(info: RunInfo, **changed: object) -> RunInfo:
    then = info.settings["profile"]
    assert isinstance(then, dict)
    return info.model_copy(update={"settings": {**info.settings, "profile": {**then, **changed}}})


def test_what_changed_of_the_profile_is_named_by_its_key(info: RunInfo, settings: Settings, selected: Selected) -> None:
    profile: Profile = settings.profile
    levels = {**profile.levels.model_dump(mode="json"), "concurrency": [7]}
    then = with_profile(info, duration_seconds=99.0, levels=levels)
    with pytest.raises(UsageError) as refused:
        resuming.require_same(then, settings, selected, (AT, False))
    words = str(refused.value)
    now = list(profile.levels.concurrency)
    assert f"profile smoke: duration_seconds was 99.0, and is {profile.duration_seconds!r}; " in words
    assert f"profile smoke: levels.concurrency was [7], and is {now!r}. " in words


def test_a_long_value_is_cut_and_a_key_of_another_version_is_no_change(
    info: RunInfo, settings: Settings, selected: Selected
) -> None:
    resuming.require_same(with_profile(info, of_an_older_version=1), settings, selected, (AT, False))
    with pytest.raises(UsageError) as refused:
        resuming.require_same(with_profile(info, name="x" * 500), settings, selected, (AT, False))
    assert f"name was '{'x' * 59}, and is 'smoke'" in str(refused.value)


def test_a_run_of_a_time_before_profiles_were_kept_goes_on(
    info: RunInfo, settings: Settings, selected: Selected
) -> None:
    resuming.require_same(info.model_copy(update={"settings": {}}), settings, selected, (AT, False))


def edited(fake: FakeRun, name: str, change: Mapping[str, object]) -> str:
    """Changes a configuration on disk; what it said before."""
    path = fake.folder / "frameworks" / "Fake" / name / "benchmark_config.json"
    text = path.read_text()
    document = json.loads(text)
    document["tests"][0]["default"] |= change
    path.write_text(json.dumps(document))
    return text


def test_an_implementation_that_changed_came_or_went_is_named(
    fake: FakeRun, info: RunInfo, settings: Settings, selected: Selected
) -> None:
    before = edited(fake, "one", {"json_url": "/other"})
    try:
        changed = choose_work(settings)
    finally:
        (fake.folder / "frameworks" / "Fake" / "one" / "benchmark_config.json").write_text(before)
    with pytest.raises(UsageError, match=r": benchmark_config.json says something else of one\. Bring"):
        resuming.require_same(info, settings, changed, (AT, False))
    without = replace(selected, implementations=selected.implementations[1:])
    with pytest.raises(UsageError, match=r": one is no longer there\. Bring"):
        resuming.require_same(info, settings, without, (AT, False))
    fewer = info.model_copy(update={"implementations": ()})
    with pytest.raises(UsageError, match=r": one, two came later\. Bring"):
        resuming.require_same(fewer, settings, selected, (AT, False))
    unknown = tuple(each.model_copy(update={"digest": None}) for each in info.implementations)
    resuming.require_same(info.model_copy(update={"implementations": unknown}), settings, changed, (AT, False))


def test_a_complete_run_that_lost_trials_is_damaged_and_the_first_of_them_is_named(fake: FakeRun) -> None:
    records = fake.records()
    done = {(r.implementation, r.process) for r in records.processes}
    resuming.require_undamaged(fake.folder, records, done)
    with pytest.raises(StoreError) as refused:
        resuming.require_undamaged(fake.folder, records, done - {("one", 0), ("two", 0)})
    assert str(refused.value) == (
        f"{fake.folder / 'trials.jsonl'}: lacks trials of 2 finished process(es), the first of them one process "
        "1: the run was complete and is damaged; start a new one"
    )
    failed = tuple(r.model_copy(update={"status": "failed"}) for r in records.processes)
    resuming.require_undamaged(fake.folder, replace(records, processes=failed), ())


def built(info: RunInfo, tools: Mapping[str, str] | None = None, **changed: object) -> RunInfo:
    """The run as its first implementation was built so."""
    known = {"status": "ok", "image_digest": "sha256:" + "1" * 64}
    first = info.implementations[0]
    builds = (first.model_copy(update={"build": Build.model_validate({**known, **changed})}), *info.implementations[1:])
    return info.model_copy(update={"implementations": builds, "tools": {"wrk": "4.1.0", **(tools or {})}})


def test_programs_and_images_that_changed_are_named(info: RunInfo) -> None:
    resuming.require_same_builds(built(info), built(info, {"new": "1"}))
    resuming.require_same_builds(info, built(info))
    resuming.require_same_builds(built(info, status="failed"), built(info, image_digest="sha256:3"))
    for now, said in (
        (built(info, {"wrk": "4.2.0"}), "wrk was 4.1.0, and is 4.2.0"),
        (built(info, image_digest="sha256:3"), "one: its image was sha256:111111111111, and is sha256:3"),
    ):
        with pytest.raises(UsageError, match="would mix two different things") as refused:
            resuming.require_same_builds(built(info), now)
        assert said in str(refused.value)


def test_a_run_that_may_not_go_on_keeps_its_record(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"one": Behaviour(), "two": Behaviour()})
    fake.run()
    folder = fake.records().info.run_id
    path = fake.folder / "results" / folder / "run.json"
    document = json.loads(path.read_text())
    document |= {"status": "interrupted", "tools": {**document["tools"], "python": "2.7"}}
    path.write_text(json.dumps(document))
    before = json.loads(path.read_text())
    fake.resume = folder
    with pytest.raises(UsageError, match=r"python was 2\.7"):
        fake.run()
    after = json.loads(path.read_text())
    assert {key: after[key] for key in before} == before
