"""One fresh process, step by step: what is asked of verifier, auditor and store, in which order, with which words."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from harness.errors import LoadError, MachineLostError, ServerDiedError, StartError, StoreError
from harness.measure import sweep
from harness.measure.audit import Audited
from harness.measure.testbed import Target
from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.records import store
from harness.records.models import AuditedLoad, CheckResult, Closed, Load, Outcome, ReplicateRecord, Sample, Verdict
from harness.run import replicate as replicates
from harness.run import replicating
from harness.run.answered import Due
from harness.run.replicate import AuditPlace, Replicate, explain, recorded, restricted, with_results
from harness.tests.measure.test_sweep import SAMPLE
from harness.tests.run.measuring import SetUp, set_up
from harness.verify.checks.load import DatabaseCounters
from harness.verify.checks.statement_counts import Snapshot

SMOKE = profiles.load("smoke")
C16, C32 = Closed(connections=16), Closed(connections=32)
BAD = CheckResult(check="body", rule="json.1", outcome=Outcome.FAIL, message="wrong", expected="1", actual="2")
ODD = CheckResult(check="date", rule="http.4", outcome=Outcome.WARN, message="odd")
GOOD = CheckResult(check="status", rule="http.2", outcome=Outcome.PASS)


def levels(*concurrency: int) -> Profile:
    return SMOKE.model_copy(
        update={"levels": SMOKE.levels.model_copy(update={"concurrency": concurrency}), "pause_seconds": 0.0}
    )


class Auditing:
    """An auditor that finds what it is told to; knows how it was called."""

    def __init__(self, made: SetUp, *found: CheckResult, cpu: float | None = 50e-6) -> None:
        self.made, self.found, self.cpu = made, found, cpu
        self.asked: list[tuple[str, Load, int, float, float]] = []
        self.took = 2.5  # seconds

    def __call__(
        self, _bed: object, target: Target, level: Load, seed: int, expected: float, seconds: float
    ) -> Audited:
        self.asked.append((target.test_type.name, level, seed, expected, seconds))
        self.made.fake.world.clock.sleep(self.took)
        load = AuditedLoad(duration=seconds, requests=40, cpu_per_request=self.cpu, latency=None)
        return Audited(results=self.found, successes=38, failed=2, load=load)


def audited(made: SetUp, auditor: object) -> Any:
    return replace(made.run, testbed=replace(made.run.testbed, auditor=auditor))  # type: ignore[arg-type]


def one(tmp_path: Path, profile: Profile = SMOKE, kinds: Sequence[str] = ("json",), **changes: Any) -> SetUp:
    return set_up(tmp_path, profile, ("a",), kinds, **changes)


def planned(made: SetUp, **changes: Any) -> Any:
    return replace(made.plan.blocks[0][0], **changes)


def records(made: SetUp) -> Any:
    return store.read(made.run.store.folder)


def of_type(made: SetUp, kind: str) -> Verdict:
    found: tuple[Verdict, ...] = records(made).verdicts
    (one_of_it,) = [verdict for verdict in found if verdict.test_type == kind]
    return one_of_it


def test_a_process_is_told_step_by_step(tmp_path: Path) -> None:
    made = one(tmp_path, levels(16, 32), ("json", "db"))
    replicating.run(made.run, made.plan.blocks[0][0])
    stages = [(state.test_type, state.stage, state.level) for state in made.display.states if not state.windows]
    assert list(dict.fromkeys(stages)) == [
        ("http", "verifying", ""),
        *[
            (kind, stage, level)
            for kind in ("json", "db")
            for stage, level in (
                ("verifying", ""),
                ("warm-up", ""),
                ("measure", "c16"),
                ("measure", "c32"),
                ("verifying after the load", ""),
            )
        ],
    ]
    assert len(made.display.lines) == 4
    assert made.display.lines[0].startswith("a json c16: 40,000 req/s, 50 µs CPU")
    assert made.display.lines[3].startswith("a db c32: ")


def test_a_verifier_is_asked_for_this_process_on_its_database_and_first_thoroughly(tmp_path: Path) -> None:
    for process, thorough in ((0, True), (1, False)):
        made = one(tmp_path / str(process), kinds=("db",))
        asked: list[Any] = []
        verifier = made.fake.verifier
        for name in ("connection", "check", "after_load", "table_use", "statements"):
            real = getattr(verifier, name)

            def noted(*words: Any, _real: Any = real, _name: str = name, _asked: Any = asked, **named: Any) -> Any:
                _asked.append((_name, [getattr(word, "name", None) for word in words], named))
                return _real(*words, **named)

            setattr(verifier, name, noted)
        replicating.run(made.run, planned(made, process=process, block=7))
        place = {"replicate": process, "thorough": thorough}
        assert [each for each in asked if each[0] in ("connection", "check")] == [
            ("connection", [None], place),
            ("check", [None, "db", "hello_world"], {**place, "levels": (C32,)}),
        ]
        assert [name for name, *_ in asked if name != "statements"] == [
            "table_use", "connection", "check", "after_load", "table_use",
        ]  # fmt: skip
        (record,) = records(made).replicates
        assert record == ReplicateRecord(
            implementation="a",
            block=7,
            process=process,
            started_at=1_700_001_000.0,
            first_answer=0.5,
            status="ok",
            log=f"logs/a/r{process}.log",
            samples=1,
        )
        assert of_type(made, "load") == Verdict(
            implementation="a",
            test_type="load",
            replicate=process,
            thorough=thorough,
            outcome=Outcome.PASS,
            results=of_type(made, "load").results,
            duration=0.0,
        )


def test_a_process_has_tables_as_seeded_or_a_database_of_its_own(tmp_path: Path) -> None:
    made = one(tmp_path)
    with Replicate(made.run, planned(made)) as shared:
        assert shared.database.address.name == "hello_world"
    assert made.fake.world.events == [("restore", "hello_world"), ("start", "a"), ("stop", "a")]
    with Replicate(made.run, planned(made, process=3), own_database=True) as own:
        assert own.database.address.name == "own-a-3"
    assert made.fake.world.events[3:] == [("start", "a"), ("stop", "a")]


def test_a_target_is_all_that_a_load_needs_to_know(tmp_path: Path) -> None:
    made = one(tmp_path, levels(16, 32), jit=frozenset("a"))
    with Replicate(made.run, planned(made, block=4, process=2)) as process:
        target = process.target("json")
        assert target is not None
        assert target == Target(
            server=process.server,
            test_type=target.test_type,
            levels=(C16, C32),
            verdict=target.verdict,
            database=process.database,
            jit=True,
            block=4,
            process=2,
            ledger=process.answered,
        )
        assert target.test_type.name == "json"
        assert target.verdict == of_type(made, "json")


def test_what_http_does_wrong_is_wrong_for_every_test_type(tmp_path: Path) -> None:
    made = one(tmp_path)
    verdict = Verdict(
        implementation="a", test_type="http", replicate=0, thorough=True, outcome=Outcome.FAIL,
        results=(GOOD, BAD, ODD), duration=0.1,
    )  # fmt: skip
    made.fake.verifier.connection = lambda *_, **__: verdict  # type: ignore[method-assign]
    replicating.run(made.run, planned(made))
    assert of_type(made, "http") == verdict
    failed = of_type(made, "json")
    assert (failed.outcome, failed.results[1:]) == (Outcome.FAIL, (BAD,))
    (record,) = records(made).replicates
    assert (record.status, record.reason) == ("failed", "json: body (json.1): wrong expected 1, got 2")
    assert made.display.lines == ["! a json: body (json.1): wrong expected 1, got 2"]
    assert not records(made).samples


@pytest.mark.parametrize(
    ("error", "status", "reason", "said"),
    [
        (StartError("a: exited"), "failed", "a: exited", ["! a: exited"]),
        (psycopg.OperationalError(" no\n"), "failed", "PostgreSQL: no", ["! PostgreSQL: no"]),
        (ValueError("a bug"), "interrupted", "", []),
        (KeyboardInterrupt(), "interrupted", "", []),
        (StoreError("disk full"), "interrupted", "", []),
        (MachineLostError("app is away"), "interrupted", "", []),
    ],
)
def test_what_keeps_a_server_from_starting_is_in_its_record(
    tmp_path: Path, error: BaseException, status: str, reason: str, said: list[str]
) -> None:
    made = one(tmp_path)

    def start(*_: object, **__: object) -> None:
        raise error

    made.fake.runtime.start = start  # type: ignore[method-assign, assignment]
    with pytest.raises(type(error)), Replicate(made.run, planned(made)):
        pass
    (record,) = records(made).replicates
    assert (record.status, record.reason, record.first_answer) == (status, reason, None)
    assert made.display.lines == said
    assert not [verdict for verdict in records(made).verdicts if verdict.test_type == "load"]


@pytest.mark.parametrize(
    ("error", "is_recorded"),
    [
        (ServerDiedError("gone"), True),
        (psycopg.OperationalError("no"), True),
        (StoreError("full"), False),
        (MachineLostError("away"), False),
        (KeyboardInterrupt(), False),
        (None, False),
    ],
)
def test_a_failed_process_is_a_record_and_what_ends_the_run_is_not(
    error: BaseException | None, is_recorded: bool
) -> None:
    assert recorded(error) is is_recorded


def test_an_error_in_a_process_ends_it_and_is_recorded(tmp_path: Path) -> None:
    made = one(tmp_path)
    with Replicate(made.run, planned(made)) as process:
        folder = made.run.store.folder
        process.fail("json: something")
        raise ServerDiedError(f"the server ended; log: {folder}/logs/a/r0.log")
    (record,) = records(made).replicates
    assert record.reason == "json: something\nthe server ended; log: logs/a/r0.log"
    assert made.display.lines == ["! a json: something", f"! the server ended; log: {folder}/logs/a/r0.log"]
    assert made.fake.world.alive == {}
    with pytest.raises(MachineLostError), Replicate(made.run, planned(made, process=1)):
        raise MachineLostError("away")


def test_an_error_while_it_is_stopped_is_recorded_and_one_that_ends_the_run_goes_on(tmp_path: Path) -> None:
    made = one(tmp_path)
    with Replicate(made.run, planned(made)) as process:
        process._stack.callback(raising, StartError("would not stop"))
    assert records(made).replicates[0].reason == "would not stop"
    with pytest.raises(StoreError, match="disk full"), Replicate(made.run, planned(made, process=1)) as process:
        process._stack.callback(raising, StoreError("disk full"))
    assert records(made).replicates[1].status == "interrupted"
    with Replicate(made.run, planned(made, process=2)) as process:
        process._stack.callback(raising, StoreError("second"))
        raise StartError("first")
    assert records(made).replicates[2].reason == "first"


def raising(error: Exception) -> None:
    raise error


def test_a_load_that_failed_is_a_reason_and_the_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = one(tmp_path, kinds=("json", "db"))

    def swept(_bed: object, target: Target, *_: object) -> list[Sample]:
        if target.test_type.name == "json":
            raise LoadError("the generator ended early")
        return []

    monkeypatch.setattr(sweep, "sweep", swept)
    replicating.run(made.run, planned(made))
    (record,) = records(made).replicates
    assert (record.status, record.reason) == ("failed", "json: the generator ended early")
    assert [state.test_type for state in made.display.states][-1] == "db"


def test_a_sample_that_a_gate_keeps_out_is_a_reason_with_its_words(tmp_path: Path) -> None:
    made = one(tmp_path)
    failed = [
        {"name": n, "outcome": "fail", "value": 1.0, "threshold": 0.0, "word": w}
        for n, w in (("a", "no"), ("b", "never"))
    ]
    warned = {"name": "c", "outcome": "warn", "value": 1.0, "threshold": 0.0, "word": "perhaps"}
    with Replicate(made.run, planned(made)) as process:
        process.keep(Sample.model_validate({**SAMPLE.model_dump(), "gates": [*failed, warned]}))
        process.keep(Sample.model_validate({**SAMPLE.model_dump(), "gates": [warned]}))
    assert process.reasons == ["query c64 q20: no, never"]
    assert [sample.audited for sample in records(made).samples] == [None, None]
    assert len(made.display.lines) == 2


@pytest.mark.parametrize("seed", range(12))
def test_an_audit_stands_on_the_side_that_the_seed_draws_and_in_the_sample_beside_it(tmp_path: Path, seed: int) -> None:
    made = one(tmp_path, levels(16, 32), seed=seed)
    auditor = Auditing(made)
    run = audited(made, auditor)
    with Replicate(run, planned(made)) as process:
        target = process.target("json")
        assert target is not None
        place = process.audit_place(target)
        process.measure("json")
    ((kind, level, drawn, expected, seconds),) = auditor.asked
    assert (kind, level) == ("json", place.level)
    assert 0 <= drawn < 1 << 31
    measured_before = place.behind or place.level == C32
    assert expected == (pytest.approx(40_000) if measured_before else 20_000.0)
    assert seconds in (1.0, 2.0)
    samples = records(made).samples
    assert [sample.level for sample in samples if sample.audited] == [place.level]
    assert samples[0].audited is None or samples[0].audited.requests == 40
    assert (run.audit_time.audits, run.audit_time.owed) == (1, 0)
    assert run.audit_time.spent == pytest.approx(2.5)
    assert process.answered.owed == Due()


def test_both_sides_and_all_levels_are_drawn_and_each_again_when_all_had_their_turn(tmp_path: Path) -> None:
    made = one(tmp_path, levels(16, 32))
    places: list[AuditPlace] = []
    with Replicate(made.run, planned(made)) as process:
        target = process.target("json")
        assert target is not None
        for number in range(16):
            process.planned = planned(made, process=number)
            places.append(process.audit_place(target))
    assert {place.behind for place in places} == {True, False}
    pairs = [{place.level for place in places[turn : turn + 2]} for turn in range(0, 16, 2)]
    assert pairs == [{C16, C32}] * 8
    assert len({tuple(place.level for place in places[turn : turn + 2]) for turn in range(0, 16, 2)}) == 2


def test_what_is_drawn_of_a_process_is_its_own(tmp_path: Path) -> None:
    made = one(tmp_path)
    with Replicate(made.run, planned(made)) as process:
        draws = {process._dice("json").random(), process._dice("db").random()}
        process.planned = planned(made, process=1)
        draws.add(process._dice("json").random())
        process.planned = planned(made, implementation="b")
        draws.add(process._dice("json").random())
        process._run = replace(made.run, seed=2)
        draws.add(process._dice("json").random())
        assert process._dice("json").random() in draws
    assert len(draws) == 5


def test_what_an_audit_finds_is_in_the_verdict_and_a_failure_is_a_reason(tmp_path: Path) -> None:
    made = one(tmp_path, seed=3)
    run = audited(made, Auditing(made, GOOD, ODD, BAD))
    replicating.run(run, planned(made))
    verdict = of_type(made, "json")
    found = [result for result in verdict.results if result.check in ("body", "date", "status")]
    assert (verdict.outcome, found) == (Outcome.FAIL, [GOOD, ODD, BAD])
    (record,) = records(made).replicates
    assert record.reason.splitlines()[0] == "json: in an audited sample: body (json.1): wrong expected 1, got 2"


def test_an_audit_counts_against_the_table(tmp_path: Path) -> None:
    made = one(tmp_path, kinds=("update",))
    run = audited(made, Auditing(made))
    with Replicate(run, planned(made)) as process:
        target = process.target("update")
        assert target is not None
        level = target.levels[0]
        before = process.answered.owed
        process.audit(target, level)
        due = Due.of(target.test_type, level, 38)
        assert (before, process.answered.owed, process.answered.failed) == (Due(), due, 2)
        process.answered.failed = 0
        process.answered.owed = Due()


def test_without_an_auditor_nothing_is_audited(tmp_path: Path) -> None:
    made = one(tmp_path)
    with Replicate(made.run, planned(made)) as process:
        target = process.target("json")
        assert target is not None
        told = len(made.display.states)
        process.audit(target, C32)
    assert len([state for state in made.display.states if state.level]) == 0
    assert told <= len(made.display.states)
    assert made.run.audit_time.audits == 0


def test_an_audit_has_the_length_that_its_time_allows_and_is_accounted_for_when_it_fails(tmp_path: Path) -> None:
    made = one(tmp_path)
    asked: list[Any] = []

    class Time:
        def load_seconds(self, wanted: float, *, owed: bool, seed: int) -> float:
            asked.append(("load", wanted, owed, seed))
            return 1.25

        def took(self, load_seconds: float, seconds: float, *, owed: bool) -> None:
            asked.append(("took", load_seconds, seconds, owed))

    auditor = Auditing(made)
    run = replace(audited(made, auditor), audit_time=Time())
    with Replicate(run, planned(made)) as process:
        target = process.target("json")
        assert target is not None
        process.audit(target, C32, 2.0, owed=False)
        process.audit(target, C32)
        seeds = [seed for *_, seed in (each for each in asked if each[0] == "load")]
        assert asked == [
            ("load", 2.0, False, seeds[0]),
            ("took", 1.25, 2.5, False),
            ("load", 2.0, True, seeds[1]),
            ("took", 1.25, 2.5, True),
        ]
        assert [(drawn, seconds) for _, _, drawn, _, seconds in auditor.asked] == [(seed, 1.25) for seed in seeds]
        process._measured = [SAMPLE.model_copy(update={"test_type": "json", "throughput": 123.0})] * 2
        process.audit(target, C32)
        assert auditor.asked[2][2] not in seeds  # it comes after another sample
        assert auditor.asked[2][3] == 123.0
        process._measured.append(SAMPLE)  # of another test type
        process.audit(target, C32)
        assert auditor.asked[3][2:4] == auditor.asked[2][2:4]

        def fails(*_: object) -> None:
            made.fake.world.clock.sleep(4.0)
            raise LoadError("lost")

        process._run = replace(run, testbed=replace(run.testbed, auditor=fails))
        with pytest.raises(LoadError):
            process.audit(target, C32)
        assert asked[-1] == ("took", 1.25, 4.0, True)


COSTS = Closed(connections=8)


def cost_of(
    tmp_path: Path,
    *,
    audit: float | None,
    samples: Sequence[float | None],
    level: Load = COSTS,
    jit: bool = False,
    **more: Any,
) -> tuple[Replicate, Auditing]:
    """What is made of an audited request's cost beside those of samples; the target's verdict afterwards."""
    made = one(tmp_path, jit=frozenset("a") if jit else frozenset())
    auditor = Auditing(made, cpu=more.get("second_audit", audit))
    run = audited(made, auditor)
    with Replicate(run, planned(made)) as process:
        target = process.target("json")
        assert target is not None
        process._measured = [
            SAMPLE.model_copy(
                update={"test_type": "json", "level": level, "cpu_per_request": cost, "steady": more.get("steady")}
            )
            for cost in samples
        ]
        load = AuditedLoad(duration=1.0, requests=40, cpu_per_request=audit, latency=None)
        process._audited["json"] = replicates._Audit(level=level, load=load, came_first=more.get("came_first", True))
        process._judge_cost(target)
    return process, auditor


def said_of_cost(process: Replicate) -> list[tuple[Outcome, str | None]]:
    results = process._verdicts["json"].results if "json" in process._verdicts else ()
    return [(r.outcome, r.actual) for r in results if r.check == "audited-cost-agrees"]


@pytest.mark.parametrize(
    ("audit", "samples", "level"),
    [
        (None, (1e-3,), COSTS),
        (1e-3, (), COSTS),
        (1e-3, (None,), COSTS),
        (9e-3, (1e-3,), Closed(connections=7)),  # a request costs mostly that both ends wake each other
    ],
)
def test_a_cost_that_is_not_known_is_not_judged(
    tmp_path: Path, audit: float | None, samples: Sequence[float | None], level: Load
) -> None:
    process, auditor = cost_of(tmp_path, audit=audit, samples=samples, level=level)
    assert (said_of_cost(process), auditor.asked) == ([], [])


def test_a_cost_is_held_against_the_median_of_the_others(tmp_path: Path) -> None:
    process, auditor = cost_of(tmp_path, audit=1.4e-3, samples=(0.5e-3, 1e-3, None, 7e-3))
    assert (said_of_cost(process), auditor.asked) == ([(Outcome.PASS, None)], [])


def test_a_dear_audit_is_looked_at_again_in_the_other_order(tmp_path: Path) -> None:
    """The fake server costs 50 µs: a second audit of 150 µs makes 3, the first of 3 ms beside 1 ms the same."""
    process, auditor = cost_of(tmp_path, audit=3e-3, samples=(1e-3,), second_audit=150e-6)
    assert [(kind, level, seconds) for kind, level, _, _, seconds in auditor.asked] == [("json", COSTS, 1.0)]
    assert auditor.asked[0][3] == SAMPLE.throughput
    ((outcome, actual),) = said_of_cost(process)
    assert (outcome, actual) == (Outcome.FAIL, "3.00")
    assert process.reasons[0].startswith("json: in audited samples: audited-cost-agrees (load.12): ")
    assert [state.level for state in process._run.progress.display.states if state.level][:1] == ["c8"]  # type: ignore[attr-defined]
    spent = process._run.audit_time
    assert (spent.audits, spent.owed) == (1, 1)  # it was not planned


@pytest.mark.parametrize(("came_first", "before"), [(True, 1), (False, 0)])
def test_the_second_look_is_in_the_other_order(tmp_path: Path, came_first: bool, before: int) -> None:
    process, _ = cost_of(tmp_path, audit=3e-3, samples=(1e-3,), second_audit=150e-6, came_first=came_first)
    clock = process._run.testbed.clock
    ((_, _, began),) = process._run.testbed.runtime.world.loads  # type: ignore[attr-defined]
    first = 1000.5 + 0.1 + 0.1  # start, HTTP, verification
    assert began == pytest.approx(first if before else first + 2.5)
    assert clock.monotonic() >= began + 1.0


@pytest.mark.parametrize(("steady", "asked"), [(True, 1), (False, 0)])
def test_a_compiler_that_is_still_at_work_is_no_reason_to_look_again(tmp_path: Path, steady: bool, asked: int) -> None:
    process, auditor = cost_of(tmp_path, audit=3e-3, samples=(1e-3,), second_audit=150e-6, jit=True, steady=steady)
    assert len(auditor.asked) == asked
    assert [outcome for outcome, _ in said_of_cost(process)] == [Outcome.FAIL if steady else Outcome.WARN]


def test_what_the_database_did_for_an_audit_is_judged_by_itself(tmp_path: Path) -> None:
    made = one(tmp_path, kinds=("db",))
    run = audited(made, Auditing(made))
    asked: list[Any] = []
    before, after = DatabaseCounters(fetched=1), DatabaseCounters(fetched=5)

    def load(*words: Any, **named: Any) -> tuple[CheckResult, ...]:
        asked.append((words, named))
        return (ODD,)

    with Replicate(run, planned(made)) as process:
        target = process.target("db")
        assert target is not None
        real, made.fake.verifier.load = made.fake.verifier.load, load  # type: ignore[method-assign]
        process.answered.audit_alone = lambda *what: (before, after, Due(reads=7, writes=8, fortunes=9))  # type: ignore[method-assign]
        process.audit(target, C32)
        made.fake.verifier.load = real  # type: ignore[method-assign]
        process.answered.owed = Due()
    assert asked == [((before, after), {"answered_reads": 7, "answered_writes": 8, "answered_fortunes": 9})]
    assert ODD in of_type(made, "db").results


class Late:
    """A verifier whose counters are complete after so many looks; knows what they were held against."""

    def __init__(self, made: SetUp, looks: int, sessions: int = 1) -> None:
        self.looks, self.sessions = looks, sessions
        self.asked: list[Any] = []
        made.fake.verifier.table_use = self.use  # type: ignore[method-assign, assignment]
        made.fake.verifier.load = self.load  # type: ignore[method-assign]

    def use(self, _: object) -> DatabaseCounters:
        return DatabaseCounters(fetched=0, sessions=self.sessions)

    def load(self, *words: Any, **named: Any) -> tuple[CheckResult, ...]:
        self.asked.append((words, named))
        self.looks -= 1
        return (GOOD, BAD) if self.looks > 0 else (GOOD,)


def test_counters_that_sessions_publish_late_are_waited_for(tmp_path: Path) -> None:
    made = one(tmp_path, kinds=("db",))
    late = Late(made, looks=4)
    with Replicate(made.run, planned(made)) as process:
        process.answered.owed = Due(reads=3, writes=4, fortunes=5)
        process.answered.failed = 6
    use = DatabaseCounters(fetched=0, sessions=1)
    named = {"answered_reads": 3, "answered_writes": 4, "answered_fortunes": 5, "failed_responses": 6}
    assert late.asked == [((use, use), named)] * 4
    assert made.fake.world.clock.monotonic() == pytest.approx(1000.6 + 3 * 0.2)
    assert records(made).replicates[0].status == "ok"


@pytest.mark.parametrize(("sessions", "seconds"), [(1, 10.2), (0, 0.0)])
def test_rows_that_are_missing_fail_each_test_type_that_counts_them(
    tmp_path: Path, sessions: int, seconds: float
) -> None:
    """Ten seconds are waited for sessions that have not ended; without one all is known."""
    made = one(tmp_path, kinds=("json", "db"))
    Late(made, looks=1000, sessions=sessions)
    began: list[float] = []
    with Replicate(made.run, planned(made)) as process:
        for kind in ("json", "db"):
            target = process.target(kind)
            assert target is not None
            process.verify_after_load(target)
        began.append(made.fake.world.clock.monotonic())
    assert made.fake.world.clock.monotonic() - began[0] == pytest.approx(seconds, abs=0.21)
    assert of_type(made, "load").results == (GOOD, BAD)
    assert BAD in of_type(made, "db").results
    assert of_type(made, "db").outcome is Outcome.FAIL
    assert of_type(made, "json").outcome is Outcome.PASS
    assert process.reasons == ["load: body (json.1): wrong expected 1, got 2"]


def test_a_check_after_the_load_that_fails_is_a_reason(tmp_path: Path) -> None:
    made = one(tmp_path)
    made.fake.verifier.after_load = lambda *_: (BAD, GOOD)  # type: ignore[method-assign]
    replicating.run(made.run, planned(made))
    assert of_type(made, "json").results[1:] == (BAD, GOOD)
    reason = records(made).replicates[0].reason
    assert reason == "json: after the load: body (json.1): wrong expected 1, got 2"


def test_a_verdict_with_more_results_has_the_worst_outcome() -> None:
    verdict = Verdict(
        implementation="a", test_type="json", replicate=0, thorough=True, outcome=Outcome.PASS, results=(GOOD,),
        duration=0.1,
    )  # fmt: skip
    assert with_results(verdict, (ODD,)) == verdict.model_copy(update={"results": (GOOD, ODD), "outcome": Outcome.WARN})
    assert with_results(verdict, (ODD, BAD)).outcome is Outcome.FAIL


def test_failed_checks_are_explained_in_a_line_each() -> None:
    bare = BAD.model_copy(update={"expected": None, "message": "too late"})
    verdict = Verdict(
        implementation="a", test_type="json", replicate=0, thorough=True, outcome=Outcome.FAIL,
        results=(GOOD, BAD, ODD, bare), duration=0.1,
    )  # fmt: skip
    assert explain(verdict) == "body (json.1): wrong expected 1, got 2; body (json.1): too late"


def test_a_process_is_restricted_to_test_types_in_its_own_order(tmp_path: Path) -> None:
    made = one(tmp_path, kinds=("json", "db", "update"))
    whole = planned(made)
    assert list(restricted(whole, ["update", "json", "other"]).test_types) == ["json", "update"]
    assert restricted(whole, []) == replace(whole, test_types={})


def test_a_process_whose_postgresql_ended_is_measured_again_twice_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = one(tmp_path)
    ends = iter(["PostgreSQL was killed", "PostgreSQL was killed", "PostgreSQL was killed"])
    database = SimpleNamespace(obituary=lambda: next(ends, None))
    run = replace(made.run, testbed=replace(made.run.testbed, database=database))
    done: list[Any] = []
    monkeypatch.setattr(replicating, "_run", lambda *words: done.append(words))
    aside: list[Any] = []
    monkeypatch.setattr(replicating, "set_aside", lambda *words: aside.append(words))
    replicating.run(run, planned(made, process=4))
    assert len(done) == 3
    assert aside == [(made.run.store.folder, {("a", 4)})] * 2
    assert made.display.lines == ["! PostgreSQL was killed; a is measured again"] * 2


def test_a_snapshot_of_statements_is_looked_at_in_the_process_s_own_database(tmp_path: Path) -> None:
    made = one(tmp_path)
    asked: list[Any] = []

    def statements(address: Any) -> Snapshot | None:
        asked.append(address.name)
        return None

    made.fake.verifier.statements = statements  # type: ignore[method-assign, assignment]
    with Replicate(made.run, planned(made), own_database=True) as process:
        assert process.answered.look() is None
        assert process.answered.now() == made.fake.world.clock.time()
    assert asked == ["own-a-0"]
