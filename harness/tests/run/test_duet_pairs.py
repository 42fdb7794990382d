"""Who plays a duet with whom, how both are started and warmed, and what is kept of them."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import StoreError, TfbError
from harness.measure import sweep
from harness.plan import profile as profiles
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import store
from harness.records.models import Closed, Load
from harness.run import duets
from harness.run.duets import Duet, is_open, last_verdicts, neighbours
from harness.tests import records
from harness.tests.measure.test_sweep import SAMPLE
from harness.tests.run.measuring import set_up

C64, C8 = Closed(connections=64), Closed(connections=8)
SMOKE = profiles.load("smoke")


def row(name: str, group: int | None = 1, level: Load | None = C64, *, ranked: bool = True) -> Any:
    throughput = None if group is None else SimpleNamespace(tie_group=group)
    return SimpleNamespace(implementation=name, throughput=throughput, level=level, ranked=ranked)


def ranking(*rows: Any, reference: str | None = "b", level: Load | None = C64, kind: str = "json") -> Any:
    table = SimpleNamespace(rows=rows, level=level)
    return SimpleNamespace(test_types={kind: SimpleNamespace(headline=table)}, reference=reference)


def duet(first: str, second: str, level: Load = C64) -> Duet:
    return Duet(first=first, second=second, test_type="json", level=level)


def test_neighbours_that_tie_play_and_the_reference_plays_itself() -> None:
    found = neighbours(ranking(row("a", 1), row("b", 1), row("c", 2), row("d", 2)))
    assert found == (duet("a", "b"), duet("c", "d"), duet("b", "b"))


def test_where_every_order_is_decided_nobody_plays() -> None:
    assert neighbours(ranking(row("a", 1), row("b", 2))) == ()


def test_only_ranked_rows_at_the_same_level_play() -> None:
    assert neighbours(ranking(row("a"), row("b", level=C8))) == ()
    assert neighbours(ranking(row("a"), row("x", ranked=False), row("b"))) == (duet("a", "b"), duet("b", "b"))
    assert neighbours(ranking(row("a"), row("x", None), row("b"))) == (duet("a", "b"), duet("b", "b"))
    assert neighbours(ranking(row("a"), row("x", level=None), row("b"))) == (duet("a", "b"), duet("b", "b"))


def test_without_its_reference_a_table_s_first_plays_itself_at_its_level() -> None:
    found = neighbours(ranking(row("a", level=C8), row("b", level=C8), reference="z"))
    assert found == (duet("a", "b", C8), duet("a", "a", C8))
    table: Any = SimpleNamespace(level=C64)
    assert duets._itself(table, [row("a", level=None)], "json", None) == duet("a", "a")


@pytest.mark.parametrize(
    ("one", "other", "undecided"), [(1, 1, True), (1, 2, False), (None, 1, False), (1, None, False)]
)
def test_an_order_is_open_in_one_group_of_ties(one: int | None, other: int | None, undecided: bool) -> None:
    assert is_open(row("a", one), row("b", other)) is undecided


def test_the_latest_verdict_of_each_counts() -> None:
    early, late = (records.verdict("a", "json").model_copy(update={"replicate": number}) for number in (0, 2))
    other = records.verdict("b", "json")
    assert last_verdicts([late, other, early]) == {("a", "json"): late, ("b", "json"): other}


@pytest.mark.parametrize(("start", "names"), [(0, ("a", "b")), (1, ("b", "a")), (2, ("a", "b"))])
def test_a_duet_starts_both_warms_both_and_swaps_their_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int, names: tuple[str, str]
) -> None:
    rules = SMOKE.duets.model_copy(update={"pairs": 3, "seconds": 1.5})
    it = set_up(tmp_path, SMOKE.model_copy(update={"duets": rules}), test_types=("json",))
    together: list[Any] = []
    targets: list[Any] = []
    overs: list[threading.Event] = []

    def at_once(clock: object, over: threading.Event, *work: Any) -> list[Any]:
        assert clock is it.fake.world.clock
        overs.append(over)
        together.append([(each.func, each.args[1], each.args[2:], each.keywords) for each in work])
        targets.extend(each.args[1] for each in work)
        return [SAMPLE, SAMPLE]

    monkeypatch.setattr(duets, "together", at_once)
    verdicts = {(name, "json"): records.verdict(name, "json") for name in "ab"}
    found = list(duets.play(it.run, duet("a", "b"), start, verdicts))
    assert found == [SAMPLE] * 6
    first, second = targets[:2]
    assert together[0] == [(sweep.warm, first, (), {}), (sweep.warm, second, (), {})]
    for pair, taken in enumerate(together[1:]):
        slots = (first, second) if pair % 2 == 0 else (second, first)
        how = {"seconds": 1.5, "attempt": pair}
        assert taken == [(sweep.take_sample, slot, (C64,), how) for slot in slots]
    for place, target in enumerate((first, second)):
        name = names[place]
        assert (target.server.implementation.name, target.partner) == (name, names[1 - place])
        assert (target.verdict, target.test_type) == (verdicts[name, "json"], TEST_TYPES["json"])
        assert (target.levels, target.database) == ((C64,), it.run.testbed.database)
        assert (target.jit, target.block, target.process) == (True, start, start)
        assert target.server.log == it.run.store.folder / "logs" / name / f"duet{start}-{place}-json.log"
        assert not target.stop()
    overs[0].set()
    assert first.stop()
    assert second.stop()
    assert it.fake.world.events == [
        ("restore", "hello_world"), *(("start", name) for name in names), *(("stop", name) for name in names[::-1]),
    ]  # fmt: skip
    assert [(state.test_type, state.stage, state.level) for state in it.display.states] == [
        ("json", "warm-up", "c64"), ("json", "duet", "c64"),
    ]  # fmt: skip


def test_every_duet_is_played_in_each_start_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = SMOKE.duets.model_copy(update={"starts": 4})
    it = set_up(tmp_path, SMOKE.model_copy(update={"duets": rules}))
    played: list[Any] = []
    verdicts: Any = {}

    def play(*words: Any) -> Any:
        played.append(words)
        if words[1].first == "b":
            raise TfbError("no answer")
        yield SAMPLE.model_copy(update={"duet_partner": "b"})

    monkeypatch.setattr(duets, "play", play)
    both = (duet("a", "b"), duet("b", "b"))
    duets.run(it.run, both, verdicts)
    assert played == [(it.run, each, start, verdicts) for start in range(4) for each in both]
    assert len(store.read(it.run.store.folder).samples) == 4
    kept = [line for line in it.display.lines if "duet with" in line]
    assert len(kept) == 4
    assert [line for line in it.display.lines if line not in kept][:4] == [
        "block 1 of 4: a with b", "block 1 of 4: b with b", "! duet of b and b: no answer", "block 2 of 4: a with b",
    ]  # fmt: skip

    def fails(*_: object) -> Any:
        raise StoreError("disk full")

    monkeypatch.setattr(duets, "play", fails)
    with pytest.raises(StoreError):
        duets.run(it.run, both, verdicts)
