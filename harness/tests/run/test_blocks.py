"""Blocks of fresh processes: who is measured in which, how far the run is, and who needs another one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import MachineLostError
from harness.plan import profile as profiles
from harness.plan.plan import replicate_seconds
from harness.records import store
from harness.records.models import Undecided
from harness.run import blocks, replicating, vanishing
from harness.run.blocks import Pace
from harness.tests.run.measuring import SetUp, set_up

SMOKE = profiles.load("smoke")


def made(tmp_path: Path, maximum: int = 3) -> SetUp:
    replication = SMOKE.replication.model_copy(update={"minimum": 2, "maximum": maximum, "looks": ()})
    return set_up(tmp_path, SMOKE.model_copy(update={"replication": replication}), ("a", "b"), ("json", "db"))


def test_a_run_s_pace_is_by_the_planned_seconds_of_who_has_ended() -> None:
    pace = Pace(weights={"a": 10.0, "b": 30.0}, total=80.0)
    shares = []
    for name in ("a", "b", "a", "b", "a"):
        pace.add(name)
        shares.append(pace.share)
    assert shares == [0.125, 0.5, 0.625, 1.0, 1.0]
    assert (pace.ended, pace.behind) == (5, 90.0)
    assert Pace(weights={}, total=0.0).share == 1.0
    assert Pace(weights={}, total=0.5).share == 0.0


def test_a_pace_expects_the_least_blocks_at_their_expected_length(tmp_path: Path) -> None:
    it = made(tmp_path)
    first = it.plan.blocks[0]
    pace = blocks._pace(first, SMOKE, 2)
    weights = {p.implementation: replicate_seconds(p, SMOKE, thorough=False, worst=False) for p in first}
    assert pace == Pace(weights=weights, total=2 * sum(weights.values()))


def measured(
    it: SetUp, monkeypatch: pytest.MonkeyPatch, *waiting: list[tuple[str, str]], done: Any = frozenset()
) -> tuple[list[Any], Any]:
    """The processes that were measured; behind each block these cells wait for another one."""
    ran: list[Any] = []

    def run(_run: object, planned: Any) -> None:
        it.fake.world.clock.sleep(10.0)
        ran.append((planned.implementation, planned.process, tuple(planned.test_types)))

    looks = iter(waiting)
    asked: list[Any] = []

    def look(*words: Any) -> Any:
        asked.append(words)
        return [Undecided(implementation=n, test_type=k, reason="open") for n, k in next(looks)]

    stopping: Any = look
    monkeypatch.setattr(replicating, "run", run)
    info = blocks.measure(replace(it.run, stopping=stopping), it.plan, it.info, done)
    records = store.read(it.run.store.folder)
    expected = [(p.implementation, kind) for p in it.plan.blocks[0] for kind in p.test_types]
    assert all(words[1:] == (expected, it.run.testbed.profile.replication) for words in asked)
    assert asked[-1][0] == records
    return ran, info


def test_blocks_go_on_with_what_is_open_until_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = made(tmp_path)
    everything = [(name, kind) for name in "ab" for kind in ("json", "db")]
    ran, info = measured(it, monkeypatch, everything[1:], [("b", "db")], [])
    both = ("json", "db")
    assert sorted(ran[:2]) == [("a", 0, both), ("b", 0, both)]
    assert sorted(ran[2:4]) == [("a", 1, ("db",)), ("b", 1, both)]
    assert ran[4:] == [("b", 2, ("db",))]
    order = tuple(tuple(name for name, process, _ in ran if process == block) for block in range(3))
    assert info.schedule == store.read(it.run.store.folder).info.schedule == order
    assert (it.run.store.folder / "ranking.json").read_text().startswith('{"')
    first, second = order[:2]
    assert it.display.lines == [
        f"block 1 of 3: {first[0]}", f"block 1 of 3: {first[1]}", "3 still undecided",
        f"block 2 of 3: {second[0]}", f"block 2 of 3: {second[1]}", "1 still undecided", "block 3 of 3: b",
    ]  # fmt: skip
    states = [state for state, changed in zip(it.display.states, it.display.changes, strict=True) if not changed]
    assert [(s.done, s.total) for s in states] == [(1, 4), (2, 4), (3, 4), (4, 4), (5, 4), (5, 4)]
    halves = [s.remaining for s in states[:4]]
    assert halves == pytest.approx([30.0, 20.0, 10.0, 0.0])
    assert it.display.states[-1].undecided == ()


def test_a_run_ends_early_where_nothing_is_open_and_keeps_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = made(tmp_path)
    ran, info = measured(it, monkeypatch, [], done=frozenset({("a", 0), ("b", 1)}))
    assert [name for name, *_ in ran] == ["b"]
    assert len(info.schedule) == 1
    assert [s.done for s, line in zip(it.display.states, it.display.changes, strict=True) if not line] == [1, 2, 2]


def test_a_process_whose_machine_was_lost_is_measured_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = made(tmp_path)
    lost = MachineLostError("away")
    ran: list[Any] = []
    waited: list[Any] = []

    def run(*words: Any) -> None:
        ran.append(words)
        raise lost

    monkeypatch.setattr(replicating, "run", run)
    monkeypatch.setattr(vanishing, "await_return", lambda *words: waited.append(words))
    planned = replace(it.plan.blocks[1][0], implementation="b")
    with pytest.raises(MachineLostError):
        blocks._measured(it.run, planned)
    assert ran == [(it.run, planned)] * 2
    assert waited == [(it.run, {("b", 1)}, lost)]
