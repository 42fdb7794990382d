"""A latency run's time, its order of loads and what each cell of it asks for and records."""

import random
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import LoadError, MachineLostError, StartError
from harness.measure import sweep
from harness.measure.rates import Asked
from harness.plan import profile as profiles
from harness.plan.plan import PlannedReplicate
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import rates, store
from harness.records.models import Closed, Load, RateSample
from harness.run import latency
from harness.tests.measure.test_rates import taken
from harness.tests.measure.test_sweep import SAMPLE
from harness.tests.run.measuring import SetUp, set_up

PROFILE = profiles.load("latency")
C64 = Closed(connections=64)


def made(
    folder: Path, names: tuple[str, ...] = ("a", "b"), kinds: tuple[str, ...] = ("json", "db"), **rules: Any
) -> SetUp:
    assert PROFILE.latency is not None
    changed = PROFILE.latency.model_copy(update={"time_seconds": 600.0, **rules})
    return set_up(folder, PROFILE.model_copy(update={"latency": changed}), names, kinds)


def block(number: int, *names: str) -> list[PlannedReplicate]:
    return [
        PlannedReplicate(implementation=name, test_types={"json": (C64,)}, jit=False, block=number) for name in names
    ]


def test_each_cell_has_its_part_of_the_time_that_is_left(tmp_path: Path) -> None:
    """Three blocks of two with two test types: twelve cells of fifty seconds."""
    it = made(tmp_path)
    time = latency._Time(it.run, it.plan, frozenset())
    clock = it.fake.world.clock
    assert time.cell() == pytest.approx(1050.0)
    clock.sleep(50.0)
    assert time.cell() == pytest.approx(1050.0 + 50.0)
    clock.sleep(450.0)
    assert [time.cell() for _ in range(10)] == pytest.approx([1500.0 + 100.0 / left for left in range(10, 0, -1)])
    clock.sleep(900.0)
    assert time.cell() == 2400.0  # it is over: at once


def test_a_run_that_goes_on_has_the_time_of_the_cells_that_are_left(tmp_path: Path) -> None:
    it = made(tmp_path)
    time = latency._Time(it.run, it.plan, frozenset({("a", 0), ("b", 0)}))
    assert time._end == pytest.approx(1000.0 + 400.0)
    assert time.cell() == pytest.approx(1050.0)


@pytest.mark.parametrize(
    ("of", "seconds", "over"),
    [
        (block(1, "a", "b"), 590.0, False),  # the second is measured whatever the time
        (block(2, "a", "b"), 579.9, False),
        (block(2, "a", "b"), 580.1, True),
        (block(2, "a", "c"), 579.9, False),  # what is not known is like the others
        (block(2, "a", "c"), 580.1, True),
        ([], 599.0, False),
    ],
)
def test_a_third_block_is_begun_where_it_ends_in_time(
    tmp_path: Path, of: list[PlannedReplicate], seconds: float, over: bool
) -> None:
    it = made(tmp_path)
    time = latency._Time(it.run, it.plan, frozenset())
    assert not time.is_over(block(2, "a"))  # nothing is known of what a process takes
    time._least = {"a": 8.0, "b": 12.0} if any(p.implementation == "b" for p in of) else {"a": 10.0}
    it.fake.world.clock.sleep(seconds)
    assert time.is_over(of) is over


def test_what_a_process_takes_is_without_its_searches(tmp_path: Path) -> None:
    it = made(tmp_path)
    time, clock = latency._Time(it.run, it.plan, frozenset()), it.fake.world.clock
    for searched, least in ((3.0, 5.0), (1.0, 5.0)):
        with time.process("a"):
            clock.sleep(4.0)
            with time.search():
                clock.sleep(searched)
            with time.search():
                clock.sleep(0.5)
            clock.sleep(1.0)
        assert time._least == {"a": pytest.approx(least)}


def test_the_machine_alone_is_loaded_first_and_a_run_goes_on_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = made(tmp_path)
    asked: list[Any] = []
    sample = taken(7.0)

    def alone(*words: Any) -> RateSample:
        asked.append(words)
        if words[1] == "http://late/":
            raise LoadError("it did not answer")
        return sample

    monkeypatch.setattr(latency, "machine_alone", alone)
    generator: Any = object()
    for url in ("http://null/", None, "http://late/"):
        tools = replace(it.run.rate_tools, null_server=partial(nullcontext, url))
        latency._machine(replace(it.run, rate_tools=tools), generator)
    testbed = it.run.testbed
    assert asked == [(testbed, url, 16, generator) for url in ("http://null/", "http://late/")]
    measuring = "measuring the machine alone, on the null server"
    assert it.display.lines == [measuring, measuring, "the machine's own latency is not known: it did not answer"]
    assert it.display.states[0].stage == "measuring"
    assert rates.read(it.run.store.folder).rates == (sample,)


class Search:
    """Asks for these rates."""

    def __init__(self, *wanted: float | None) -> None:
        self.wanted = list(wanted)

    def next_rate(self) -> float | None:
        return self.wanted.pop(0)


def test_planned_rates_come_shuffled_and_then_those_that_the_search_asks_for(tmp_path: Path) -> None:
    it = made(tmp_path, shares=(0.5, 0.25), common_rates=(100.0, 990.0), search_loads=3, seconds=1.5)
    loads = list(latency._loads(it.run, Search(7.0, 8.0, None), 1000.0, random.Random(3), 1002.0))  # type: ignore[arg-type]
    assert sorted((a.rate, a.purpose, a.share or 0.0) for a in loads[:3]) == [
        (100.0, "common", 0.0), (250.0, "share", 0.25), (500.0, "share", 0.5),
    ]  # fmt: skip
    assert [(a.rate, a.purpose, a.share) for a in loads[3:]] == [(7.0, "search", None), (8.0, "search", None)]
    seeds = [a.seed for a in loads]
    assert len(set(seeds)) == 5
    assert all(0 <= seed < 1 << 31 for seed in seeds)
    assert max(seeds) > 1 << 28
    orders = {
        tuple(a.rate for a in latency._loads(it.run, Search(None), 1000.0, random.Random(n), 2000.0))  # type: ignore[arg-type]
        for n in range(20)
    }
    assert len(orders) > 2


@pytest.mark.parametrize(("until", "searched"), [(1001.5, 2), (1001.49, 0)])
def test_a_search_ends_with_its_loads_and_its_time(tmp_path: Path, until: float, searched: int) -> None:
    it = made(tmp_path, shares=(), common_rates=(), search_loads=2, seconds=1.5)
    found = list(latency._loads(it.run, Search(7.0, 8.0, 9.0), 1000.0, random.Random(3), until))  # type: ignore[arg-type]
    assert len(found) == searched


class Process:
    """A process in the place of a replicate."""

    def __init__(self, happened: list[Any], *, behind: bool = False, counts: bool = True) -> None:
        self.happened = happened
        self.behind = behind
        self.answered = SimpleNamespace(load_answered=lambda *words: happened.append(("answered", *words)))
        self.server = SimpleNamespace(require_alive=lambda: happened.append("alive?"))
        self.counts = counts

    def audit_place(self, target: Any) -> Any:
        self.happened.append(("place", target.levels))
        return SimpleNamespace(behind=self.behind)

    def audit(self, target: Any, level: Load) -> None:
        self.happened.append(("audit", level))

    def keep(self, sample: Any, *, audit_behind: Any) -> None:
        self.happened.append(("keep", sample.warm_up, sample.steady, audit_behind))

    def verify_after_load(self, target: Any) -> None:
        self.happened.append("after")

    def fail(self, reason: str) -> None:
        self.happened.append(("fail", reason))


def cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, behind: bool = False, sample: Any = SAMPLE, **changes: Any
) -> tuple[list[Any], SetUp, Any]:
    """One test type on one process whose loads all take two seconds."""
    it = made(tmp_path, shares=(0.5,), common_rates=(100.0,), search_loads=1)
    happened: list[Any] = []
    clock = it.fake.world.clock
    sample = sample.model_copy(update={"gates": (), "throughput": 1000.0, **changes})
    levels = (Closed(connections=8), C64, Closed(connections=256))
    target: Any = SimpleNamespace(
        test_type=TEST_TYPES["db"], levels=levels, server=SimpleNamespace(implementation=SimpleNamespace(name="a")),
        block=1, process=1,
    )  # fmt: skip

    def take_sample(*words: Any, seconds: float) -> Any:
        happened.append(("sample", *words[2:], seconds))
        return sample

    def take_rate(bed: Any, on: Any, level: Load, asked: Asked, generator: Any) -> RateSample:
        assert (bed, on, generator) == (it.run.testbed, target, "generator")
        happened.append(("rate", level, asked.rate, asked.purpose))
        clock.sleep(2.0 if asked.purpose == "search" else 1.0)
        return taken(asked.rate, level=level, answered=900, errors={"status": 5})

    monkeypatch.setattr(latency, "replace", lambda of, **named: SimpleNamespace(**{**vars(of), **named}))
    monkeypatch.setattr(sweep, "warm", lambda *_: SimpleNamespace(steady=True))
    monkeypatch.setattr(sweep, "take_sample", take_sample)
    monkeypatch.setattr(latency, "take_rate", take_rate)
    searched: list[float] = []

    @contextmanager
    def search() -> Any:
        began = clock.monotonic()
        yield
        searched.append(clock.monotonic() - began)

    own: Any = SimpleNamespace(time=SimpleNamespace(search=search), until=5000.0)
    process = Process(happened, behind=behind)
    latency._cell(it.run, process, target, random.Random(1), own, "generator")  # type: ignore[arg-type]
    happened.append(("searched", searched))
    return happened, it, target


def test_a_cell_is_warmed_audited_loaded_as_fast_as_it_can_and_then_at_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened, it, target = cell(tmp_path, monkeypatch)
    warm_up = happened[3][1]
    loaded = [each for each in happened if each[0] == "rate"]
    assert sorted(loaded[:2]) == [("rate", C64, 100.0, "common"), ("rate", C64, 500.0, "share")]
    assert loaded[2] == ("rate", C64, pytest.approx(550.0), "search")
    answered = ("answered", target.test_type, C64, 900, 5)
    assert happened == [
        ("place", (C64,)),
        ("audit", C64),
        ("sample", C64, PROFILE.duration_seconds),
        ("keep", warm_up, True, None),
        *(step for each in loaded for step in (each, answered)),
        "after",
        ("searched", [2.0]),
    ]
    told = [(state.test_type, state.stage, state.level) for state in it.display.states]
    stages = [f"{rate:,.0f} req/s" for _, _, rate, _ in loaded]
    assert told == [("db", stage, "c64") for stage in ("warm-up", "measure", *stages)]
    found = rates.read(it.run.store.folder)
    assert [sample.asked_rate for sample in found.rates] == [rate for _, _, rate, _ in loaded]
    (capacity,) = found.capacities
    assert (capacity.implementation, capacity.test_type, capacity.loads, capacity.closed_loop) == ("a", "db", 3, 1000.0)
    behind, _, target = cell(tmp_path / "behind", monkeypatch, behind=True)
    assert behind[0][0] == "place"
    assert behind[1][0] == "sample"
    assert behind[2][3] is target


@pytest.mark.parametrize("throughput", [0.0, 1000.0])
def test_a_process_without_a_valid_rate_of_its_own_is_not_asked_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, throughput: float
) -> None:
    gates = ({"name": "errors", "outcome": "fail", "value": 1.0, "threshold": 0.0, "word": "errors"},)
    sample = SAMPLE.model_validate({**SAMPLE.model_dump(), "gates": gates})
    changes: dict[str, Any] = {"throughput": throughput, **({"gates": sample.gates} if throughput else {})}
    happened, it, _ = cell(tmp_path, monkeypatch, **changes)
    assert [each for each in happened if each[0] == "rate"] == []
    assert happened[-2] == "after"
    assert rates.read(it.run.store.folder).capacities == ()


def test_a_single_request_a_second_is_a_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    happened, *_ = cell(tmp_path, monkeypatch, throughput=0.5)
    assert ("rate", C64, 0.25, "share") in happened


def test_a_load_that_failed_is_a_reason_of_its_test_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise LoadError("the generator was killed")

    monkeypatch.setattr(sweep, "warm", fails)
    it = made(tmp_path)
    happened: list[Any] = []
    target: Any = SimpleNamespace(test_type=TEST_TYPES["db"], levels=(C64,))
    latency._cell(it.run, Process(happened), target, random.Random(1), None, None)  # type: ignore[arg-type]
    assert happened == [("fail", "db: the generator was killed")]


@pytest.mark.parametrize("error", [None, StartError("exited"), MachineLostError("away")])
def test_each_test_type_of_a_process_has_its_slice_and_its_own_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    it = made(tmp_path)
    happened: list[Any] = []

    class Replicate(Process):
        def __init__(self, run: Any, planned: Any) -> None:
            super().__init__(happened)
            assert run is it.run

        def __enter__(self) -> "Replicate":
            if error:
                raise error
            return self

        def __exit__(self, *_: object) -> None:
            happened.append("end")

        def target(self, name: str) -> str | None:
            return None if name == "db" else name

    monkeypatch.setattr(latency, "Replicate", Replicate)
    monkeypatch.setattr(latency, "_cell", lambda *words: happened.append((*words[2:3], words[3].random(), *words[4:])))
    untils = iter((10.0, 20.0))
    time: Any = SimpleNamespace(cell=lambda: next(untils))
    planned = replace(it.plan.blocks[1][0], implementation="a")
    if isinstance(error, MachineLostError):
        with pytest.raises(MachineLostError):
            latency._replicate(it.run, planned, 7, time, "generator")  # type: ignore[arg-type]
        return
    latency._replicate(it.run, planned, 7, time, "generator")  # type: ignore[arg-type]
    if error:
        assert happened == []
        return
    (kind, drawn, own, generator), *rest = happened
    assert (kind, own.time, own.until, generator) == ("json", time, 10.0, "generator")
    assert drawn == random.Random("7/1/a/json").random()
    assert rest == ["alive?", "alive?", "end"]
    assert next(untils, None) is None


def test_blocks_are_told_recorded_and_those_that_were_done_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = made(tmp_path)
    asked: list[Any] = []
    monkeypatch.setattr(latency, "_machine", lambda *words: asked.append(words))
    monkeypatch.setattr(latency, "_replicate", lambda *words: asked.append((words[1], words[2], words[4])))
    tools = replace(it.run.rate_tools, generator=lambda *how: ("generator", *how))  # type: ignore[arg-type]
    run = replace(it.run, rate_tools=tools)
    first = it.plan.blocks[0][0]
    done = frozenset({(first.implementation, 0)})
    generator = ("generator", "fake", run.testbed.profile.latency)
    overs = iter((False, False, True))
    monkeypatch.setattr(latency._Time, "is_over", lambda *_: next(overs))
    info = latency.measure(run, it.plan, it.info, done)
    planned = [each for of in it.plan.blocks[:2] for each in of if each != first]
    assert asked == [(run, generator), *((each, it.plan.seed, generator) for each in planned)]
    names = tuple(tuple(p.implementation for p in of) for of in it.plan.blocks[:2])
    assert info.schedule == names
    assert store.read(run.store.folder).info.schedule == names
    assert (run.store.folder / "ranking.json").read_text().startswith('{"')
    assert it.display.lines == [
        *(f"block {place + 1} of 3: {name}" for place, of in enumerate(names) for name in of),
        "the time is over: 2 of 3 replicates",
    ]
    assert [(s.done, s.total) for s in it.display.states if s.done][-1] == (4, 6)
