"""The stages of a run: what each hands to the next, what is told, and what stands in the run's files afterwards."""

import json
import logging
import platform
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from harness.errors import EnvironmentLacksError, Exit, StoreError, UsageError
from harness.host import process, provision
from harness.host.leftovers import Leftover
from harness.measure.sweep import Budget
from harness.plan import plan as planning
from harness.plan import profile as profiles
from harness.plan.config import Settings, Twins
from harness.plan.hosts import Hosts, Postgres
from harness.plan.plan import Plan, PlannedReplicate
from harness.records import calibration, store
from harness.records.models import Build, Closed, NoiseFloor, Outcome, ReplicateRecord, RunInfo, RunRecords
from harness.records.store import RunStore
from harness.report import techempower
from harness.run import blocks, duets, preparation, resuming, workflow
from harness.run.audit_time import AuditTime
from harness.run.preparation import (
    build_all,
    cells_of,
    choose_work,
    describe,
    make_plan,
    of_those_built,
    opening,
    reference,
    twins,
)
from harness.run.progress import Progress
from harness.run.workflow import RunOutcome, failures
from harness.runtime import upstream
from harness.runtime.machines.runtime import MachinesRuntime
from harness.tests import records
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour, FakeClock
from harness.tests.run.measuring import SetUp, Teller, set_up

SMOKE = profiles.load("smoke")
C32 = Closed(connections=32)


def leftover(name: str, removed: list[str], *, certain: bool = True, why: str = "") -> Leftover:
    def remove() -> None:
        if why:
            raise OSError(why)
        removed.append(name)

    return Leftover(kind="process", name=name, certain=certain, remove=remove)


def cleared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *found: Leftover, consents: bool = True
) -> tuple[list[str], list[object]]:
    """The lines that were told, and what was asked."""
    asked: list[object] = []

    def answer(consent: str, question: str) -> bool:
        asked.append((consent, question))
        return consents

    monkeypatch.setattr(provision, "consents", answer)
    display = Teller()
    fake = FakeRun(tmp_path, {"a": Behaviour()})
    workflow.clear_leftovers(fake.settings(), Progress(display, clock=fake.world.clock), found)
    return display.lines, asked


def test_what_a_killed_run_left_is_removed_with_consent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    removed: list[str] = []
    found = (
        leftover("postgres (pid 8)", removed),
        leftover("x", removed, why="busy"),
        leftover("y", removed, certain=False),
    )
    lines, asked = cleared(monkeypatch, tmp_path, *found)
    names = "process postgres (pid 8), process x"
    assert asked == [("ask", f"a run that was killed has left: {names}. Remove?")]
    assert lines == [f"removed what a killed run had left: {names}", "! could not be removed: process x: busy"]
    assert removed == ["postgres (pid 8)"]


def test_without_consent_it_stays_and_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    removed: list[str] = []
    lines, _ = cleared(monkeypatch, tmp_path, leftover("x", removed), consents=False)
    assert lines == ["! a killed run has left process x, beside which this one measures: ./tfb clean removes it"]
    assert removed == []


def test_what_may_be_another_s_is_not_spoken_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cleared(monkeypatch, tmp_path, leftover("x", [], certain=False)) == ([], [])
    assert cleared(monkeypatch, tmp_path) == ([], [])


def test_a_run_tells_its_length_and_what_is_broken_first(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE)
    selected = replace(made.selected, problems=("x: broken", "y: broken"))
    workflow.tell(made.run.progress, selected, made.plan)
    assert made.display.lines == ["! x: broken", "! y: broken", "preparing"]
    assert made.display.states[-1].stage == "preparing"
    assert made.run.progress.expected_seconds == made.plan.expected_seconds
    assert made.display.states[-1].problems == ("x: broken", "y: broken")


@pytest.mark.parametrize(("cpus", "server", "others"), [((), 4, 4), (("0-2", "3"), 3, 1)])
def test_a_testbed_has_the_run_s_cpus_rules_and_tools(
    tmp_path: Path, cpus: tuple[str, ...], server: int, others: int
) -> None:
    profile = SMOKE
    if cpus:
        profile = SMOKE.model_copy(update={"server_cpus": cpus[0], "other_cpus": cpus[1]})
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, profile, display=Teller())
    fake.world.cpus = 4
    fake._write()
    auditor: Any = object()
    asked: Any = []
    settings = fake.settings()
    needs = replace(fake.dependencies(), auditing=lambda runtime: asked.append(runtime) or auditor)
    selected = choose_work(settings)
    plan = make_plan(selected, settings)
    folder = RunStore(tmp_path / "run", started_at=0.0)
    progress = Progress(fake.display, clock=fake.world.clock)
    with fake.runtime.database() as database:
        run = workflow.set_up(
            settings, needs, selected, plan, needs.machine(), fake.runtime, database, folder, progress
        )
    bed = run.testbed
    assert (bed.profile, bed.clock, bed.runtime, bed.generator) == (
        profile, fake.world.clock, fake.runtime, fake.generator,
    )  # fmt: skip
    assert (bed.verifier, bed.database, bed.auditor, bed.links) == (fake.verifier, database, auditor, {})
    assert (bed.server_cpus, bed.generator_cpus) == (server, others)
    assert bed.tell == progress.second
    assert asked == [fake.runtime]
    assert (run.store, run.progress, run.seed, run.rate_tools) == (folder, progress, 1, needs.rate_tools)
    assert run.implementations == {each.name: each for each in selected.implementations}
    assert run.budget == Budget(seconds=plan.maximum_seconds * profile.gates.repeat_budget_share)
    assert run.audit_time == AuditTime.of(plan, profile)
    assert (run.free_memory, run.stopping) == (needs.free_memory, needs.stopping)
    assert fake.display.lines == ["making the load generator of the audits ready"]


class Elsewhere(MachinesRuntime):
    """Two clients on other machines, in name alone."""

    def __init__(self) -> None:
        """Nobody is asked."""

    def client_cpus(self) -> int:
        return 6

    def to_clients(self) -> dict[str, float]:
        return {"one": 5e8, "two": 1e9}


def test_clients_elsewhere_have_their_own_cpus_and_links(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE)
    needs, runtime = made.fake.dependencies(), Elsewhere()
    words = (made.selected, made.plan, needs.machine(), runtime, made.run.testbed.database, made.run.store)
    found = workflow.set_up(made.fake.settings(), needs, *words, made.run.progress)
    assert (found.testbed.server_cpus, found.testbed.generator_cpus) == (2, 6)
    assert found.testbed.links == {"one": 5e8, "two": 1e9}


def test_flags_for_cpus_win_over_the_profile_and_are_named_where_they_do_not_fit(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE.model_copy(update={"server_cpus": "0", "other_cpus": "1"}))
    needs = made.fake.dependencies()

    def with_cpus(settings: Settings) -> Any:
        words = (made.selected, made.plan, needs.machine(), made.fake.runtime, made.run.testbed.database)
        return workflow.set_up(settings, needs, *words, made.run.store, made.run.progress)

    found = with_cpus(replace(made.fake.settings(), cpuset_cpus="0-1"))
    assert (found.testbed.server_cpus, found.testbed.generator_cpus) == (2, 1)
    with pytest.raises(UsageError, match=r"^--cpuset-cpus: CPU 7 is not among"):
        with_cpus(replace(made.fake.settings(), cpuset_cpus="7"))
    unfit = made.run.testbed.profile.model_copy(update={"other_cpus": "7"})
    with pytest.raises(UsageError, match=r"^other_cpus: CPU 7 is not among"):
        with_cpus(replace(made.fake.settings(), profile=unfit))


def test_a_database_that_exists_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = set_up(tmp_path, SMOKE)
    monkeypatch.setattr(workflow, "external", lambda *where: where)
    there = replace(made.fake.settings(), hosts=Hosts(database=Postgres(host="db", port=5433)))
    assert workflow.open_database(there, made.fake.runtime) == ("db", 5433)  # type: ignore[comparison-overlap]
    with workflow.open_database(made.fake.settings(), made.fake.runtime) as own:
        assert own.address.name == "hello_world"


def test_duets_are_played_by_the_ranking_of_the_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = records.write(tmp_path)
    made = set_up(tmp_path / "made", SMOKE)
    run = replace(made.run, store=written)
    played: list[Any] = []
    monkeypatch.setattr(duets, "run", lambda *words: played.append(words))
    workflow.play_duets(run, records.info(), lambda ranking: sorted(ranking.test_types))  # type: ignore[arg-type, return-value]
    ((who, pairs, verdicts),) = played
    assert (who, pairs) == (run, ["json", "query"])
    assert sorted(verdicts) == [(name, kind) for name in ("fast", "slow") for kind in ("json", "query")]


def ended(
    tmp_path: Path, status: Literal["complete", "failed", "interrupted"], reason: str = "", **info: Any
) -> tuple[RunOutcome, RunStore]:
    written = records.write(tmp_path)
    builds = tuple(i.model_copy(update={"build": Build(status="ok")}) for i in records.info().implementations)
    written.write_info(records.info().model_copy(update={"implementations": builds, **info}))
    clock = FakeClock()
    return workflow.conclude(written, status, reason, clock=clock), written


def test_a_run_that_missed_something_has_failed_and_each_problem_once(tmp_path: Path) -> None:
    outcome, written = ended(tmp_path, "complete", problems=("x: broken", "x: broken"))
    missed = ("x: broken", "slow query c64 q20: no valid sample")
    assert (outcome.failures, outcome.exit_code) == (missed, Exit.FAILED)
    info = store.read(written.folder).info
    assert (info.status, info.problems, info.completed_at) == ("failed", missed, 1_700_001_000.0)
    assert outcome.records.info == info
    assert json.loads((written.folder / "ranking.json").read_text()) == json.loads(outcome.ranking.recorded())
    text = (written.folder / "results.json").read_text()
    assert text.startswith('{\n "')
    assert json.loads(text)["frameworks"] == ["fast", "slow"]


def test_techempower_s_file_is_made_of_the_records_and_their_ranking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def document(*of: Any) -> dict[str, int]:
        asked.append(of)
        return {"x": 1}

    monkeypatch.setattr(techempower, "document", document)
    outcome, written = ended(tmp_path, "complete")
    assert asked == [(outcome.records, outcome.ranking)]
    assert (written.folder / "results.json").read_text() == '{\n "x": 1\n}\n'


@pytest.mark.parametrize(("reason", "said"), [("", "interrupted"), ("disk full", "disk full")])
def test_a_run_that_was_cut_off_says_why_and_blames_nobody(tmp_path: Path, reason: str, said: str) -> None:
    outcome, _ = ended(tmp_path, "interrupted", reason, problems=("x: broken",))
    assert outcome.failures == ()
    assert (outcome.records.info.status, outcome.records.info.problems) == ("interrupted", ("x: broken", said))


def test_an_error_before_a_run_began_or_one_that_keeps_it_as_it_was_concludes_nothing(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE)
    empty = RunStore(tmp_path / "empty", started_at=0.0)
    workflow.give_up(empty, made.run.progress, StoreError("full"), FakeClock())
    assert not (empty.folder / "run.json").exists()
    workflow.give_up(made.run.store, made.run.progress, UsageError("is complete"), FakeClock())
    assert store.read(made.run.store.folder).info.status == "running"
    assert made.display.states == []
    workflow.give_up(made.run.store, made.run.progress, StoreError("full"), FakeClock())
    assert (made.display.states[-1].status, made.display.states[-1].stage) == ("failed", "failed")


def test_an_error_while_giving_up_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = set_up(tmp_path, SMOKE)

    def fails(*_: object, **__: object) -> None:
        raise StoreError("second")

    monkeypatch.setattr(workflow, "conclude", fails)
    with caplog.at_level(logging.ERROR, logger="tfb"):
        workflow.give_up(made.run.store, made.run.progress, KeyboardInterrupt(), FakeClock())
    assert [record.getMessage() for record in caplog.records] == ["second"]


def replicated(name: str, status: str, reason: str = "", process: int = 0) -> ReplicateRecord:
    return records.replicate(name, process, status).model_copy(update={"reason": reason, "process": process})


def run_of(*, builds: dict[str, Build | None] | None = None, **changes: Any) -> RunRecords:
    """The invented run with these builds; all are well without."""
    known = {"fast": Build(status="ok"), "slow": Build(status="ok"), **(builds or {})}
    info = records.info()
    info = info.model_copy(
        update={
            "implementations": tuple(
                i.model_copy(update={"build": known[i.name], "test_types": ("json", "query")})
                for i in info.implementations
            ),
            **changes.pop("info", {}),
        }
    )
    sound = [sample.model_copy(update={"gates": ()}) for sample in records.samples()]
    return RunRecords(info=info, **{"samples": sound, **changes})


def test_a_run_in_which_all_went_well_has_no_failures() -> None:
    assert failures(run_of(replicates=[replicated("fast", "ok")])) == ()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (run_of(builds={"slow": None}), ("slow was not built",)),
        (
            run_of(builds={"slow": Build(status="skipped", reason="no cargo\nlog: x")}, samples=[]),
            (
                "fast json c64: no valid sample",
                "fast query c64 q1: no valid sample",
                "fast query c64 q20: no valid sample",
                "slow skipped: no cargo",
            ),
        ),
        (
            run_of(verdicts=[records.verdict("fast", "query", Outcome.FAIL), records.verdict("slow", "json")]),
            ("fast query: verification failed",),
        ),
        (
            run_of(replicates=[replicated("fast", "interrupted"), replicated("slow", "failed", "slow: gone\nlog", 3)]),
            ("fast replicate 1: interrupted", "slow replicate 4: gone"),
        ),
        (
            run_of(info={"cells": {"fast": {"json": (Closed(connections=9),)}}}),
            ("fast json c9: no valid sample",),  # of the cells that were asked for alone
        ),
        (run_of(info={"cells": {"fast": {"json": ()}, "slow": {"query": (records.QUERIES[0],)}}}), ()),
    ],
)
def test_each_failure_is_a_sentence(found: RunRecords, said: tuple[str, ...]) -> None:
    assert failures(found) == said


def test_a_test_type_that_an_implementation_does_not_have_is_not_missed() -> None:
    found = run_of(samples=[])
    lacking = found.info.implementations[0].model_copy(update={"test_types": ("query",)})
    info = found.info.model_copy(update={"implementations": (lacking,)})
    assert failures(replace(found, info=info)) == (
        "fast query c64 q1: no valid sample",
        "fast query c64 q20: no valid sample",
    )


def test_a_new_run_s_folder_is_named_by_the_moment_and_never_another_s(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()})
    clock = FakeClock()
    clock.sleep(0.25)
    name = time.strftime("%Y%m%d-%H%M%S", time.localtime(1_700_001_000))
    one, done = workflow.open_store(fake.settings(), clock)
    two, _ = workflow.open_store(fake.settings(), clock)
    assert (one.folder, two.folder) == (tmp_path / "results" / name, tmp_path / "results" / f"{name}-250")
    assert (one.started_at, done) == (1_700_001_000.25, frozenset())


def resumable(tmp_path: Path, status: str) -> tuple[Settings, RunStore]:
    fake = FakeRun(tmp_path, {"a": Behaviour()}, resume="latest")
    written = records.write(tmp_path / "results")
    written.write_info(records.info().model_copy(update={"status": status, "started_at": 77.0}))
    return fake.settings(), written


def test_a_run_to_resume_is_that_folder_with_what_it_has_finished(tmp_path: Path) -> None:
    settings, written = resumable(tmp_path, "interrupted")
    found, done = workflow.open_store(settings, FakeClock())
    assert (found.folder, found.started_at) == (written.folder, 77.0)
    assert done == store.finished(store.read(written.folder)) != frozenset()


def test_a_run_that_is_complete_or_goes_on_elsewhere_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, written = resumable(tmp_path / "complete", "complete")
    damaged: list[object] = []
    monkeypatch.setattr(resuming, "require_undamaged", lambda *words: damaged.append(words))
    with pytest.raises(UsageError) as refused:
        workflow.open_store(settings, FakeClock())
    assert str(refused.value) == f"run {written.run_id} is complete: there is nothing to resume"
    known = store.read(written.folder)
    assert damaged == [(written.folder, known, store.finished(known))]
    settings, written = resumable(tmp_path / "running", "running")
    workflow.open_store(settings, FakeClock())  # a killed one
    with written.locked(), pytest.raises(UsageError, match="still going on"):
        workflow.open_store(settings, FakeClock())


def test_the_harness_s_log_is_a_file_of_the_run_while_it_is_locked(tmp_path: Path) -> None:
    folder = RunStore(tmp_path / "run", started_at=0.0)
    root = logging.getLogger("tfb")
    before, level = list(root.handlers), root.level
    try:
        with workflow.logged(folder):
            logging.getLogger("tfb.process").info("start: %s", "x")
            assert store.is_locked(folder.folder)
    finally:
        root.setLevel(level)
    logging.getLogger("tfb.process").warning("after")
    assert root.handlers == before
    (line,) = (folder.folder / "logs" / "harness.log").read_text().splitlines()
    assert line.endswith(" INFO tfb.process: start: x")
    assert not store.is_locked(folder.folder)


def test_builds_are_told_recorded_and_their_failures_said(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE)
    folder = made.run.store
    logs: list[object] = []

    def build(implementation: Any, log: Path) -> Build:
        logs.append(log)
        made.fake.world.clock.sleep(2.0)
        if implementation.name == "a":
            return Build(status="ok", duration=2.0)
        return Build(status="failed", reason=f"no compiler; log: {log}")

    made.fake.runtime.build = build  # type: ignore[method-assign]
    found = build_all(made.fake.runtime, made.selected, made.info, made.run.progress, folder)
    log = folder.folder / "logs"
    assert logs == [log / "a" / "build.log", log / "b" / "build.log"]
    assert {i.name: i.build for i in found.implementations} == {
        "a": Build(status="ok", duration=2.0),
        "b": Build(status="failed", reason="no compiler; log: logs/b/build.log"),
    }
    assert made.display.lines == [
        f"building a; its log: {log}/a/build.log",
        "building a took 2 s",
        f"building b; its log: {log}/b/build.log",
        "building b took 2 s",
        f"! b failed: no compiler; log: {log}/b/build.log",
    ]
    assert store.read(folder.folder).info == found
    assert [[p.implementation for p in block] for block in of_those_built(made.plan, found).blocks] == [["a"]]
    unbuilt = found.model_copy(update={"implementations": made.info.implementations})
    assert of_those_built(made.plan, unbuilt).blocks == ((),)


@pytest.mark.parametrize(
    ("runtime", "asked", "place"),
    [
        ("fake", "local", "fake runtime"),
        ("docker", "auto", "docker runtime (auto: a container engine answers)"),
        ("local", "auto", "local runtime (auto: no container engine answers)"),
    ],
)
def test_the_first_line_of_a_run_says_what_where_how_and_until_when(
    tmp_path: Path, runtime: str, asked: Any, place: str
) -> None:
    made = set_up(tmp_path, SMOKE)
    made.fake.runtime.name = runtime
    settings = replace(made.fake.settings(), runtime=asked)
    plan = replace(made.plan, expected_seconds=185.0)
    end = time.strftime("%H:%M", time.localtime(1_700_000_185.0))
    said = opening(settings, made.selected, plan, made.fake.runtime, 1_700_000_000.0)
    assert said == (f"2 implementations, {place}, profile smoke, seed 1; expected end {end} (3 min 05 s, builds apart)")


def described(tmp_path: Path, **changes: Any) -> tuple[RunInfo, SetUp]:
    made = set_up(tmp_path, SMOKE, ("a", "b"), ("json", "db"))
    made.fake.runtime.accounts = {"servers": "nobody"}
    settings = replace(made.fake.settings(), **changes)
    selected = replace(made.selected, problems=("x: broken",))
    machine = made.fake.dependencies().machine()
    info = describe(settings, selected, made.plan, machine, made.fake.runtime, made.run.store, ("abc", True))
    return info, made


def test_a_run_s_record_says_all_that_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    floor = NoiseFloor(
        implementation="a", profile="smoke", measured_at=1.0, pairs=3, throughput=0.02, cpu_per_request=0.01
    )
    looked: Any = []
    monkeypatch.setattr(calibration, "latest", lambda *what: looked.append(what) or floor)
    monkeypatch.setattr(platform, "python_version", lambda: "3.99")
    info, made = described(
        tmp_path, cpuset_cpus="0", network_mode="host", allow={"a": ("io_uring",)}, reverse_order=True,
        claims=("one", "two"), reference="b", order="duet", set_name="left", unit="q/0001",
    )  # fmt: skip
    machine = made.fake.dependencies().machine()
    assert info == RunInfo(
        run_id="run",
        name="fake",
        environment="fake",
        status="running",
        started_at=5.0,
        command=("fake",),
        profile="smoke",
        runtime="fake",
        order="duet",
        seed=1,
        settings={
            "profile": SMOKE.model_dump(mode="json"),
            "cpuset_cpus": "0",
            "network_mode": "host",
            "network": "host",
            "accounts": {"servers": "nobody"},
            "allow": {"a": ("io_uring",)},
            "reverse_order": True,
            "claims": ["one", "two"],
        },
        reference="b",
        machine=machine,
        tools={"python": "3.99", "fake": "1"},
        revision="abc",
        dirty=True,
        implementations=tuple(i.info() for i in made.selected.implementations),
        levels={"json": (C32,), "db": (C32,)},
        cells={},
        blocks_expected=1,
        blocks_maximum=1,
        noise_floor=floor,
        problems=("x: broken",),
        set_name="left",
        unit="q/0001",
    )
    assert looked[-1] == (made.fake.settings().results, "smoke", machine)


def test_levels_of_a_test_type_are_those_of_all_that_have_it_and_cells_are_each_one_s(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE)
    one, two = (
        PlannedReplicate(implementation=name, test_types=types, jit=False)
        for name, types in (("a", {"json": (C32,)}), ("b", {"json": (Closed(connections=8), C32), "db": (C32,)}))
    )
    plan = replace(made.plan, blocks=((one, two), (one,)), minimum_blocks=2)
    settings = replace(made.fake.settings(), cells={})
    machine = made.fake.dependencies().machine()
    info = describe(settings, made.selected, plan, machine, made.fake.runtime, made.run.store, (None, None))
    assert info.levels == {"json": (C32, Closed(connections=8)), "db": (C32,)}
    assert info.cells == {"a": {"json": (C32,)}, "b": {"json": (Closed(connections=8), C32), "db": (C32,)}}
    assert (info.blocks_expected, info.blocks_maximum, info.dirty) == (2, 2, None)
    assert "claims" not in info.settings


def test_the_reference_is_the_one_asked_for_else_the_profile_s_else_the_first_with_most_test_types(
    tmp_path: Path,
) -> None:
    made = set_up(tmp_path, SMOKE)
    settings = made.fake.settings()
    assert reference(replace(settings, reference="b"), made.selected) == "b"
    with pytest.raises(UsageError, match=r"^--reference: 'c' is not among a, b$"):
        reference(replace(settings, reference="c"), made.selected)
    of_profile = replace(settings, profile=SMOKE.model_copy(update={"reference": "b"}))
    assert reference(of_profile, made.selected) == "b"
    assert reference(settings, made.selected) == "a"
    richer = tuple(
        replace(c, test_types={**c.test_types, **({"db": (C32,)} if c.implementation == "b" else {})})
        for c in made.selected.candidates
    )
    assert reference(settings, replace(made.selected, candidates=richer)) == "b"


def test_copies_are_measured_under_a_name_of_their_own(tmp_path: Path) -> None:
    made = set_up(tmp_path / "one", SMOKE)
    other = set_up(tmp_path / "two", SMOKE, ("a",))
    chosen = made.selected.implementations
    wanted = Twins(suffix="-old", frameworks=(tmp_path / "one" / "frameworks",))
    assert [(i.name, i.twin_of, i.folder.name) for i in twins(chosen, wanted)] == [
        ("a-old", "a", "a"),
        ("b-old", "b", "b"),
    ]
    short = Twins(suffix="-old", frameworks=(tmp_path / "two" / "frameworks", tmp_path / "two"))
    with pytest.raises(UsageError) as lacking:
        twins(chosen, short)
    where = f"{tmp_path}/two/frameworks, {tmp_path}/two"
    assert str(lacking.value) == f"{where} holds no b: leave it out with --exclude"
    found = choose_work(replace(made.fake.settings(), twins=wanted))
    assert [i.name for i in found.implementations] == ["a", "b", "a-old", "b-old"]
    assert other.selected.implementations[0].name == "a"


def test_cells_are_those_of_the_test_types_or_the_ones_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = set_up(tmp_path, SMOKE, ("a",), ("json", "db", "fan-out"))
    (one,) = made.selected.implementations
    settings = made.fake.settings()
    monkeypatch.setattr(upstream, "available", lambda: True)
    assert list(cells_of(one, settings)) == ["json", "fan-out", "db"]
    assert cells_of(one, replace(settings, test_types=("db", "query"))) == {"db": (C32,)}
    monkeypatch.setattr(upstream, "available", lambda: False)
    assert list(cells_of(one, settings)) == ["json", "db"]
    named = {"a": {"db": (Closed(connections=5),), "query": (C32,)}}
    assert cells_of(one, replace(settings, cells=named)) == {"db": (Closed(connections=5),)}
    assert cells_of(one, replace(settings, cells={"b": {}})) == {}


def test_a_selection_of_nothing_says_what_there_is(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE)
    with pytest.raises(UsageError) as nothing:
        choose_work(replace(made.fake.settings(), test_types=("order",)))
    assert str(nothing.value) == (
        "nothing to run: the selection matches none of 2 implementations; ./tfb --list-tests shows what there is"
    )
    broken = tmp_path / "frameworks" / "Fake" / "a" / "benchmark_config.json"
    broken.write_text("{")
    with pytest.raises(UsageError, match=rf"^nothing to run: {broken}: .*; \./tfb --list-tests shows what there is$"):
        choose_work(replace(made.fake.settings(), test_types=("order",)))


def test_a_name_whose_file_is_broken_is_not_called_unknown(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE)
    (tmp_path / "frameworks" / "Fake" / "a" / "benchmark_config.json").write_text("{")
    selection = replace(made.fake.settings().selection, test=("a", "zz"))
    with pytest.raises(UsageError) as unknown:
        choose_work(replace(made.fake.settings(), selection=selection))
    first, *others = str(unknown.value).splitlines()
    assert first.startswith(f"{tmp_path}/frameworks/Fake/a/benchmark_config.json: ")
    assert [line for line in others if "unknown name 'a'" in line] == []
    assert any("unknown name 'zz'" in line for line in others)


def test_broken_files_are_told_of_a_selection_that_does_not_name_each_one(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE)
    (tmp_path / "frameworks" / "Fake" / "b" / "benchmark_config.json").write_text("{")
    settings = made.fake.settings()
    assert len(choose_work(settings).problems) == 1
    by_name = replace(settings, selection=replace(settings.selection, test=("a",)))
    assert choose_work(by_name).problems == ()


def test_a_plan_is_of_the_selection_s_seed_and_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = set_up(tmp_path, SMOKE)
    asked: list[Any] = []
    monkeypatch.setattr(planning, "build", lambda *words, **named: asked.append((words, named)))
    make_plan(made.selected, replace(made.fake.settings(), reverse_order=True, seed=9))
    assert asked == [((made.selected.candidates, SMOKE, 9), {"reverse": True})]


def test_git_that_is_not_there_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def git(words: Any, *, seconds: float) -> SimpleNamespace:
        asked.append((words[-2:], seconds))
        return SimpleNamespace(status=0, stdout="abc\n")

    monkeypatch.setattr(process, "run", git)
    assert preparation.git_state() == ("abc", True)
    assert asked == [(["rev-parse", "HEAD"], 10), (["--porcelain", "-uno"], 30)]

    def lacks(*_: object, **__: object) -> None:
        raise EnvironmentLacksError("git: not found")

    monkeypatch.setattr(process, "run", lacks)
    assert preparation.git_state() == (None, None)


def test_a_whole_run_is_told_from_its_first_line_to_its_end(tmp_path: Path) -> None:
    display = Teller()
    fake = FakeRun(tmp_path, {"a": Behaviour(cpu_per_request=1e-3)}, display=display, audited_cost={"a": 1.0}, seed=4)
    outcome = fake.run()
    folder = tmp_path / "results" / outcome.records.info.run_id
    expected = display.states[3].remaining
    assert expected is not None
    end = time.strftime("%H:%M", time.localtime(1_700_001_000.0 + expected))
    nothing, begun, over = "0/0 0/0", "1/1 0/0", "1/1 1/1"
    ready, auditing = "making the runtime ready", "making the load generator of the audits ready"
    assert [line for line in display.said if "took" not in line] == [
        f"preparing |  | {nothing} | preparing",
        f"{ready} |  | {nothing} | {ready}",
        f"{ready} |  | {nothing} | 1 implementation, fake runtime (auto: no container engine answers), "
        f"profile smoke, seed 4; expected end {end} (15 s, builds apart)",
        f"building |  | {nothing} | building a; its log: {folder}/logs/a/build.log",
        f"starting PostgreSQL |  | {nothing} | starting PostgreSQL",
        f"{auditing} |  | {nothing} | {auditing}",
        f"measuring | a | {begun} | block 1 of 1: a",
        f"verifying | a http | {begun} | ",
        f"verifying | a json | {begun} | ",
        f"warm-up | a json | {begun} | ",
        *[line for line in display.said if line.startswith("measure | a json c32")],
        f"verifying after the load | a json | {begun} | ",
        f"verifying after the load | a json | {over} | ",
        f"verifying after the load | a json | {over} | ",
        f"complete | a json | {over} | ",
    ]
    assert any("1 audits took" in line for line in display.said)
    progress = json.loads((folder / "progress.json").read_text())
    assert (progress["status"], progress["done"], progress["total"]) == ("complete", 1, 1)
    assert outcome.records.info.tools == {**outcome.records.info.tools, "fake": "1", "audits": "loadgen"}
    assert outcome.records.info.schedule == (("a",),)
    log = (folder / "logs" / "harness.log").read_text()
    assert "INFO tfb.workflow: 1 audits took" in log


def test_a_run_without_audits_says_so_in_its_tools_and_one_without_a_build_starts_no_postgresql(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour()}, display=Teller())
    fake.runtime.builds["a"] = Build(status="failed", reason="no compiler")
    assert fake.run().failures == ("a failed: no compiler",)
    assert "starting PostgreSQL" not in fake.display.lines
    well = FakeRun(tmp_path / "well", {"a": Behaviour()})
    assert well.run().records.info.tools["audits"].startswith("none: ")


def test_no_plan_is_made_of_nothing(tmp_path: Path) -> None:
    made = set_up(tmp_path, SMOKE)
    assert isinstance(made.plan, Plan)
    assert made.plan.cells == 4


def test_what_rates_and_scenarios_need_is_there_before_anything_is_built(tmp_path: Path) -> None:
    asked: list[Any] = []
    latency = profiles.load("latency")

    def lacks(*what: object) -> Any:
        asked.append(what)
        raise EnvironmentLacksError("no cargo")

    for kind, profile, what in (
        ("json", latency, ("fake", latency.latency)),
        ("order", SMOKE, ("fake", SMOKE.orders.drain_seconds)),
    ):
        fake = FakeRun(tmp_path / kind, {"a": Behaviour()}, profile, test_types=(kind,))
        fake._write()
        built: list[object] = []
        fake.runtime.build = lambda *words, built=built: built.append(words)  # type: ignore[method-assign]
        needs = fake.dependencies()
        tools = replace(needs.rate_tools, generator=lacks, scenarios=lacks)
        progress = Progress(Teller(), clock=fake.world.clock)
        with pytest.raises(EnvironmentLacksError):
            workflow.benchmark(fake.settings(), progress, needs=replace(needs, rate_tools=tools))
        assert asked.pop() == what
        assert built == []
        assert not list((tmp_path / kind / "results").glob("*"))  # a folder without a run


def test_each_stage_of_a_run_is_given_what_the_one_before_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def noting(module: Any, name: str) -> None:
        real = getattr(module, name)

        def noted(*words: Any, **named: Any) -> Any:
            asked[name] = (words, named)
            return real(*words, **named)

        monkeypatch.setattr(module, name, noted)

    for name in ("require_files", "clear_leftovers", "tell", "opening", "describe", "build_all", "of_those_built"):
        noting(workflow, name)
    for name in ("set_up", "open_database", "play_duets"):
        noting(workflow, name)
    noting(blocks, "measure")
    monkeypatch.setattr(duets, "run", lambda *_: None)
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, order="duet", display=Teller())
    fake._write()
    left = (leftover("x", [], certain=False),)
    chosen: list[Any] = []

    def choose(*words: Any, **named: Any) -> Any:
        chosen.append((words, named))
        return fake.runtime

    needs = replace(fake.dependencies(), leftovers=lambda: left, choose_runtime=choose, open_files=lambda: 4000)
    settings, progress = fake.settings(), Progress(fake.display, clock=fake.world.clock)
    pairing: Any = lambda _: ()  # noqa: E731
    outcome = workflow.benchmark(settings, progress, pairing, needs)
    selected, plan = choose_work(settings), make_plan(choose_work(settings), settings)
    folder = tmp_path / "results" / outcome.records.info.run_id
    ((words, named),) = chosen
    assert words == (settings, selected.implementations, folder / "logs")
    assert named == {"run_id": folder.name}
    machine = needs.machine()
    assert asked["require_files"] == ((plan, 4000), {})
    assert asked["clear_leftovers"] == ((settings, progress, left), {})
    assert asked["tell"] == ((progress, selected, plan), {})
    assert asked["opening"][0][:4] == (settings, selected, plan, fake.runtime)
    assert asked["opening"][0][4] == 1_700_001_000.0
    described = asked["describe"][0]
    assert described[:5] == (settings, selected, plan, machine, fake.runtime)
    assert (described[5].folder, described[6]) == (folder, ("fake", False))
    assert asked["build_all"][0][:2] == (fake.runtime, selected)
    assert asked["build_all"][0][3:] == (progress, described[5])
    info = asked["of_those_built"][0][1]
    assert [i.build for i in info.implementations] == [Build(status="ok")] * 2
    assert asked["open_database"][0] == (settings, fake.runtime)
    made = asked["set_up"][0]
    assert made[:6] == (settings, needs, selected, plan, machine, fake.runtime)
    assert made[7:] == (described[5], progress)
    run, measured, begun, done = asked["measure"][0]
    assert (measured, done) == (plan, frozenset())
    assert begun.tools["audits"].startswith("none: ")
    duelling, shown, pairs = asked["play_duets"][0]
    assert (duelling, pairs) == (run, pairing)
    assert shown.schedule == outcome.records.info.schedule
    assert store.read(folder).info.status == "complete"
