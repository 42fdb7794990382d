"""How a run ends at its time limit, and how much of the time it spends on measurements."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import Exit, UsageError
from harness.experiment.loop import MeasuringClock
from harness.experiment.predicted import dry_run, planned_seconds, predict
from harness.experiment.selection import make_plan
from harness.experiment.steps import Done, Process, Rest, Start, Step, StepResult, Stop
from harness.plan import profile as profiles
from harness.plan.implementation import Implementation
from harness.plan.profile import Profile
from harness.records.run_info import BuildRecord
from harness.records.verification_record import Outcome
from harness.report.tables import ranking_tables
from harness.stats.unranked import NOT_REACHED
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour, FakeClock

LATE = "not reached: time was up"
SHORT = 12.0  # time limit in seconds; enough to verify two servers and for a few loads


def quick(seconds: float, processes: int = 1) -> Profile:
    profile = profiles.load_profile("quick")
    number = {"minimum": processes, "maximum": processes, "looks": ()}
    return profile.model_copy(
        update={
            "interleaved": profile.interleaved.model_copy(update={"time_seconds": seconds}),
            "processes": profile.processes.model_copy(update=number),
        }
    )


def short(folder: Path, **servers: Behaviour) -> FakeRun:
    known = servers or {"a": Behaviour(), "b": Behaviour()}
    return FakeRun(folder, known, quick(SHORT), ("json", "query", "fortune"))


def test_a_run_without_time_is_incomplete(tmp_path: Path) -> None:
    fake = short(tmp_path)
    outcome = fake.run()
    records = fake.records()
    assert records.info.status == "incomplete"
    assert outcome.exit_code == Exit.FAILED
    assert outcome.failures
    assert all(line.endswith(f": {LATE}") for line in outcome.failures)
    assert records.info.problems == outcome.failures
    assert {verdict.line for verdict in outcome.verdicts} == {"a: verified", "b: verified"}
    measured = {(t.implementation, t.test_type, t.load.label) for t in records.trials}
    planned = {(n, k, load.label) for n in "ab" for k, loads in records.info.loads.items() for load in loads}
    named = {
        (name, kind, label)
        for name, kind, labels in (line.removesuffix(f": {LATE}").split(" ", 2) for line in outcome.failures)
        for label in labels.split(", ")
    }
    assert named == planned - measured


def test_fewer_test_types_run_out_of_time(tmp_path: Path) -> None:
    servers = {"a": Behaviour(), "b": Behaviour()}
    fake = FakeRun(tmp_path, servers, quick(SHORT), ("json", "query", "fortune"), only={"b": ("json",)})
    outcome = fake.run()
    assert outcome.records.info.status == "incomplete"
    assert predict(make_plan(fake.settings()), fake.seed).untried
    assert not any(line.startswith(("b query", "b fortune")) for line in outcome.failures)


def test_reports_distinguish_incomplete_from_failed_runs(tmp_path: Path) -> None:
    fake = short(tmp_path)
    outcome = fake.run()
    assert any(note.startswith("the run is incomplete, because time ran out") for note in outcome.ranking.notes)
    reasons = {row.reason for kind in outcome.ranking.test_types.values() for t in kind.tables for row in t.rows}
    assert NOT_REACHED in reasons
    assert any(
        LATE in remark
        for table in ranking_tables(fake.records().info, outcome.ranking, every_load=True)
        for remark in table.remarks
    )
    (folder,) = (tmp_path / "results").iterdir()
    completed = json.loads((folder / "results.json").read_text())["completed"]
    assert any(text.startswith("incomplete: ") and LATE in text for text in completed.values())
    assert json.loads((folder / "progress.json").read_text())["status"] == "incomplete"


def test_failures_outweigh_cells_without_time(tmp_path: Path) -> None:
    fake = short(tmp_path)
    fake.verifier.fails_before = frozenset({("a", "json")})
    outcome = fake.run()
    assert fake.records().info.status == "failed"
    assert "a json: verification failed" in outcome.failures
    assert any(line.endswith(LATE) for line in outcome.failures)
    assert not any(line.startswith("a json") and line.endswith(LATE) for line in outcome.failures)
    (verdict,) = (each for each in outcome.verdicts if each.implementation == "a")
    assert verdict.line == "a: failed: 1 violation"


def test_failed_loads_count_as_tried(tmp_path: Path) -> None:
    """After two failures, a test type is not loaded again. The report must not say that time ran out."""
    trouble = dict.fromkeys(range(1, 30), "fails")
    outcome = FakeRun(tmp_path, {"a": Behaviour(trouble=trouble)}, quick(300.0)).run()
    assert outcome.failures
    assert not any(LATE in line for line in outcome.failures)
    assert any("no valid trial" in line for line in outcome.failures)
    assert outcome.records.info.status == "failed"


def test_unmeasured_cells_name_the_dead_process(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(dies_after=5.0)}, quick(300.0), ("json", "query"))
    outcome = fake.run()
    assert any(
        line.endswith("not tried: the process failed before this load was measured") for line in outcome.failures
    )
    assert not any(LATE in line for line in outcome.failures)
    (verdict,) = outcome.verdicts
    assert verdict.line == "a: failed: the server ended (killed by SIGKILL)"


def test_an_implementation_that_never_starts_is_not_started(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, {"a": Behaviour(), "no": Behaviour(never_starts=True)}, quick(120.0)).run()
    lines = [verdict.line for verdict in outcome.verdicts]
    assert lines == ["a: verified", "no: not started: no valid response within 60 s"]
    assert any(line.startswith("no json") and "not tried: no process started" in line for line in outcome.failures)


def test_an_incomplete_run_cannot_be_resumed(tmp_path: Path) -> None:
    fake = short(tmp_path)
    fake.run()
    before = fake.records().info
    with pytest.raises(
        UsageError, match=r"has no time left, so it cannot be resumed\. Start a new run with a larger --time"
    ):
        replace(fake, resume="latest").run()
    assert fake.records().info == before


def timed(name: str, seconds: float) -> Profile:
    """Return a profile with one process per implementation and the given time limit."""
    profile = profiles.load_profile(name)
    limit = profile.interleaved.model_copy(update={"time_seconds": seconds})
    once = profile.processes.model_copy(update={"minimum": 1, "maximum": 1, "looks": ()})
    return profile.model_copy(update={"interleaved": limit, "processes": once})


@pytest.mark.parametrize(("seconds", "reached"), [(10.0, False), (400.0, True)])
def test_unreached_rates_are_named(tmp_path: Path, seconds: float, *, reached: bool) -> None:
    outcome = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, timed("latency", seconds)).run()
    assert any(trial.purpose == "share" for trial in outcome.records.trials) is reached
    assert (f"a json at given rates: {LATE}" in outcome.failures) is not reached
    assert outcome.records.info.status == ("complete" if reached else "incomplete")


def test_techempowers_order_does_not_rest_without_time(tmp_path: Path) -> None:
    fake = FakeRun(
        tmp_path, {"a": Behaviour(), "b": Behaviour()}, timed("techempower", 60.0), ("json", "db", "fortune")
    )
    outcome = fake.run()
    assert outcome.records.info.status == "incomplete"
    assert fake.world.clock.monotonic() - 1_000.0 < 70.0
    named = [line for line in outcome.failures if line.startswith("b ")]
    assert len(named) == 3  # one line per test type, which names all loads
    assert all(line.endswith(LATE) for line in named)


@pytest.mark.parametrize("name", ["quick", "latency", "techempower"])
def test_prediction_and_run_reach_the_same_cells(name: str, tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, timed(name, 20.0), ("json", "db"))
    outcome = fake.run()
    assert bool(predict(make_plan(fake.settings()), fake.seed).untried) is bool(outcome.failures)


def test_a_slow_start_takes_no_measuring_time(tmp_path: Path) -> None:
    # Slow starts extend the run instead of shortening the measurement.
    servers = {"fast": Behaviour(), "slow": Behaviour(start_seconds=4.3)}
    usual = FakeRun(tmp_path / "usual", servers, quick(120.0), seed=3)
    alike = usual.run()
    late = FakeRun(tmp_path / "late", {**servers, "slow": Behaviour(start_seconds=55.0)}, quick(120.0), seed=3)
    outcome = late.run()
    assert len(outcome.records.trials) == len(alike.records.trials)
    assert outcome.records.info.status == "complete"
    took, took_usually = (run.world.clock.monotonic() for run in (late, usual))
    assert 45.0 < took - took_usually < 56.0
    assert any("starting slow took" in line and "longer than planned" in line for line in late.display.lines)
    assert any("slow starts and stops extended the run by" in line for line in late.display.lines)
    assert not any("longer than planned" in line for line in usual.display.lines)


def test_slow_verification_takes_no_measuring_time(tmp_path: Path) -> None:
    counts = []
    for seconds in (2.0, 30.0):  # seconds per verification; the plan expects at most the first value
        fake = FakeRun(tmp_path / str(seconds), {"a": Behaviour(), "b": Behaviour()}, quick(120.0), seed=3)
        fake.verifier.seconds = seconds
        counts.append(len(fake.run().records.trials))
    assert counts[0] == counts[1]


def test_builds_take_no_measuring_time(tmp_path: Path) -> None:
    trials = []
    for seconds in (0.0, 400.0):
        fake = FakeRun(tmp_path / str(seconds), {"a": Behaviour(), "b": Behaviour()}, quick(120.0), seed=3)

        def build(
            implementation: Implementation, log: Path, fake: FakeRun = fake, seconds: float = seconds
        ) -> BuildRecord:
            fake.world.clock.sleep(seconds)
            return BuildRecord(status="ok", duration=seconds)

        fake.runtime.build = build  # type: ignore[method-assign]
        trials.append(len(fake.run().records.trials))
        (announcement,) = (line for line in fake.display.lines if line.startswith("builds took"))
        assert ("13 min 20 s" in announcement) is bool(seconds)
        second = FakeRun(tmp_path / str(seconds), fake.servers, quick(120.0))
        second.run()
        (prediction,) = (line for line in second.display.lines if line.startswith("builds run first"))
        assert ("about 13 min 20 s, based on earlier runs" in prediction) is bool(seconds)
    assert trials[0] == trials[1]


def test_the_measuring_clock_ignores_delays() -> None:
    clock, delays = FakeClock(), list[tuple[Step, float]]()
    lengths = {"a": 2.0, "b": 10.0}

    def show(step: Step) -> StepResult:
        if isinstance(step, Start | Stop):
            clock.sleep(lengths[step.process.implementation])
        else:
            clock.sleep(7.0)
        return Done()

    def planned(step: Step) -> float:
        return 3.0 if isinstance(step, Start | Stop) else float("inf")

    measuring = MeasuringClock(
        clock=clock, execute_step=show, planned=planned, report_delay=lambda *what: delays.append(what)
    )
    began = measuring.monotonic()
    slow = Start(process=Process("b", 0))
    for step in (Start(process=Process("a", 0)), slow, Rest(seconds=7.0), Stop(process=Process("a", 0))):
        measuring.execute(step)
    assert measuring.monotonic() - began == pytest.approx(2.0 + 3.0 + 7.0 + 2.0)
    ((late, beyond),) = delays
    assert late == slow
    assert beyond == pytest.approx(7.0)


def test_a_start_as_long_as_predicted_extends_nothing(tmp_path: Path) -> None:
    fake = short(tmp_path)
    fake.write_folders()
    plan = make_plan(fake.settings())
    prediction, start = predict(plan, 1), Start(process=Process("a", 0))
    assert planned_seconds(plan, start) == pytest.approx(3.0 + 3 * 1.5)
    before = prediction.monotonic()
    prediction.execute(start)
    assert prediction.monotonic() - before == pytest.approx(planned_seconds(plan, start))
    assert planned_seconds(plan, Rest(seconds=1.0)) == float("inf")


def test_a_dry_run_names_the_cells_without_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake = short(tmp_path)
    outcome = fake.run()
    assert dry_run(replace(fake.settings(), json=True), lambda *_: ()) == Exit.OK
    foretold = json.loads(capsys.readouterr().out)["unreached"]
    assert foretold
    names = {line.split(" ")[0] for line in foretold}
    assert names <= {line.split(" ")[0] for line in outcome.failures} | {"a", "b"}


def test_a_dry_run_of_resume_counts_remaining_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, quick(120.0, processes=2))
    fake.run()
    predicted_seconds = []
    for resume in (None, "latest"):
        assert dry_run(replace(fake.settings(), json=True, resume=resume), lambda *_: ()) == Exit.OK
        predicted_seconds.append(json.loads(capsys.readouterr().out)["seconds"])
    assert (predicted_seconds[0] > 100.0, predicted_seconds[1]) == (True, 0.0)


def test_verdicts_include_skipped_implementations(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, quick(120.0))
    fake.run()
    path = tmp_path / "frameworks" / "Fake" / "b" / "benchmark_config.json"
    other = json.loads(path.read_text())
    del other["tests"][0]["default"]["json_url"]
    other["tests"][0]["default"]["db_url"] = "/db"
    selection = fake.settings().selection
    fake.asked = {"selection": replace(selection, test=("a", "b"))}
    fake.write_folders = lambda: path.write_text(json.dumps(other))  # type: ignore[method-assign, assignment]
    outcome = fake.run()
    lines = [verdict.line for verdict in outcome.verdicts]
    assert lines[0] == "a: verified"
    assert lines[1].startswith("b: skipped: declares none of the selected test types")
    assert all(v.outcome is not Outcome.FAIL for v in outcome.records.verdicts)
