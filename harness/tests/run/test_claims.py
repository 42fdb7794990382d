"""Claims from their files to their verdicts, over whole runs of servers whose true cost is known."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from harness.claims.claim import Claim, Program
from harness.claims.planning import Piece, pieces
from harness.errors import EnvironmentLacksError, StartError
from harness.plan import profile as profiles
from harness.records.models import Closed, RunRecords
from harness.report.claims import measured
from harness.run import claims as running
from harness.run.claims import OutOfTime
from harness.run.progress import Progress
from harness.tests.claims.records import claim_of, run_of, side
from harness.tests.doubles.fakes_run import FakeRun, SilentDisplay
from harness.tests.doubles.fakes_world import Behaviour, FakeClock
from harness.tests.stats.test_by_metric import run as run_with_starts

TRUTH = {
    "a": Behaviour(cpu_per_request=50e-6, process_spread=0.01),
    "b": Behaviour(cpu_per_request=125e-6, process_spread=0.01),
    "c": Behaviour(cpu_per_request=125e-6, process_spread=0.01),
}
FASTER = claim_of(
    {"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), "ratio": 2.5},
    {"name": "memory", "metric": "memory", "of": side("a"), "to": side("b"), "ratio": 1.0},
    {"name": "errors", "metric": "errors", "of": side("a"), "none": True},
)


def fake(folder: Path) -> FakeRun:
    profile = profiles.load("claims")
    warm_up = profile.warm_up.model_copy(update={"cap_seconds": 3.0, "jit_cap_seconds": 3.0})
    return FakeRun(folder, TRUTH, profile.model_copy(update={"warm_up": warm_up}))


def piece(*claims: Claim, limit_seconds: float = 3600.0) -> Piece:
    (planned,) = pieces(claims, profiles.load("claims"), lambda _: False, limit_seconds)
    return planned


def measure(run: FakeRun, what: Piece, seconds: float = 3600.0) -> RunRecords:
    run._write()
    progress = Progress(SilentDisplay(), clock=run.world.clock)
    return running.measure(what, run.settings(), progress, seconds, run.dependencies()).records


def test_a_claim_is_settled_by_a_run_over_its_own_cells_alone(tmp_path: Path) -> None:
    records = measure(fake(tmp_path), piece(FASTER))
    assert {(s.implementation, s.test_type, s.level) for s in records.samples} == {
        (name, "json", Closed(connections=64)) for name in "ab"
    }
    assert records.info.settings["claims"] == ["name"]
    (verdict,) = running.verdicts(piece(FASTER), records)
    assert [statement.verdict for statement in verdict.statements] == ["supported"] * 3
    assert verdict.statements[0].value == pytest.approx(2.5, rel=0.05)
    assert records.info.status == "complete"


def test_each_server_is_measured_at_the_levels_of_its_own_claims(tmp_path: Path) -> None:
    levels = claim_of(
        {"name": "x", "metric": "throughput", "of": side("a", 100), "to": side("b"), "order": "higher"},
    )
    records = measure(fake(tmp_path), piece(levels))
    assert {(s.implementation, s.level.connections) for s in records.samples} == {("a", 100), ("b", 64)}
    assert records.info.problems == ()  # b at 100 connections was never asked for


def test_a_run_stops_at_the_look_that_settles_it_and_goes_on_where_it_does_not(tmp_path: Path) -> None:
    equal = claim_of({"name": "x", "metric": "throughput", "of": side("b"), "to": side("c"), "order": "higher"})
    settled = measure(fake(tmp_path / "1"), piece(FASTER))
    undecided = measure(fake(tmp_path / "2"), replace(piece(equal), in_turns=False))
    assert len({s.block for s in settled.samples}) == 3
    assert len({s.block for s in undecided.samples}) == 8


def test_a_ratio_of_load_is_settled_in_turns_with_every_level_in_each_round(tmp_path: Path) -> None:
    levels = claim_of(
        {"name": "x", "metric": "throughput", "of": side("a", 16), "to": side("b", 16), "ratio": 2.5},
        {"name": "y", "metric": "throughput", "of": side("a", 100), "to": side("b", 100), "ratio": 2.5},
    )
    planned = piece(levels, limit_seconds=1.0)
    run = fake(tmp_path)
    records = measure(run, planned)
    assert run.world.clock.monotonic() - 1000.0 == pytest.approx(planned.seconds, rel=0.25)
    windows = Counter((s.implementation, s.level.connections) for s in records.samples)
    assert set(windows) == {(name, connections) for name in "ab" for connections in (16, 100)}
    assert max(windows.values()) - min(windows.values()) <= 3
    assert {s.process for s in records.samples} == {0, 1, 2}
    (verdict,) = running.verdicts(planned, records)
    assert [statement.verdict for statement in verdict.statements] == ["supported"] * 2
    assert {statement.confidence for statement in verdict.statements} == {0.95}
    assert running.ended(records, run.settings())


def test_a_longer_limit_measures_more_processes_and_narrows_the_interval(tmp_path: Path) -> None:
    claim = claim_of({"name": "x", "metric": "throughput", "of": side("a"), "to": side("b"), "ratio": 2.5})
    short, long = (piece(claim, limit_seconds=seconds) for seconds in (1.0, 600.0))
    few, many = (measure(fake(tmp_path / str(each.processes)), each) for each in (short, long))
    assert {s.process for s in few.samples} == set(range(short.processes))
    assert len({s.process for s in many.samples}) > short.processes
    widths = []
    for planned, records in ((short, few), (long, many)):
        ((found,),) = (each.statements for each in running.verdicts(planned, records))
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high / found.low)
    assert widths[1] < widths[0]


def test_a_run_ends_when_its_time_is_over_and_says_what_is_open(tmp_path: Path) -> None:
    records = measure(fake(tmp_path), piece(FASTER), seconds=30.0)
    assert len({s.block for s in records.samples}) < 3
    (verdict,) = running.verdicts(piece(FASTER), records)
    assert verdict.verdict == "undecided"


def test_an_interrupted_piece_is_found_and_resumed(tmp_path: Path) -> None:
    run = fake(tmp_path)
    settings = run.settings()
    assert running.earlier(settings, piece(FASTER)) is None
    records = measure(run, piece(FASTER))
    found = running.earlier(settings, piece(FASTER))
    assert found is not None
    assert found.info.run_id == records.info.run_id
    other = claim_of({"name": "x", "metric": "throughput", "of": side("a"), "to": side("c"), "order": "higher"})
    assert running.earlier(settings, piece(other)) is None  # other cells, though the claim has the same name


@pytest.mark.parametrize(
    ("status", "blocks", "is_over"),
    [("complete", 1, True), ("failed", 3, True), ("failed", 1, False), ("interrupted", 3, False)],
)
def test_a_run_that_came_to_its_end_is_not_resumed(tmp_path: Path, status: str, blocks: int, is_over: bool) -> None:
    records = run_of({"a": (1.0,) * blocks})
    told = replace(records, info=records.info.model_copy(update={"status": status}))
    assert running.ended(told, fake(tmp_path).settings()) is is_over


def test_the_time_of_a_run_is_that_of_this_session_with_a_block_to_come() -> None:
    clock = FakeClock()
    rule = OutOfTime(clock=clock, seconds=100.0)
    started = clock.time()
    records = run_with_starts()
    mine = [r.model_copy(update={"started_at": started, "block": 0, "process": 0}) for r in records.replicates[:1]]
    clock.sleep(49.0)
    assert rule(replace(records, replicates=mine)) is False
    clock.sleep(2.0)
    assert rule(replace(records, replicates=mine)) is True
    before = [r.model_copy(update={"started_at": started - 500}) for r in mine]
    assert rule(replace(records, replicates=before)) is False


def test_a_site_gets_a_line_a_statement() -> None:
    records = run_of({"a": (2500.0, 2510.0, 2505.0), "b": (1000.0, 1001.0, 1002.0)})
    only = claim_of({"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), "ratio": 2.5})
    verdicts = running.verdicts(piece(only), records)
    (line,) = json.loads(running.for_the_site(verdicts, lambda c, i: measured(c.statements[i])))
    assert (line["statement"], line["source"], line["verdict"]) == ("title: rate", "talk, page", "supported")
    assert line["measured"].startswith("2.50× [")


def programmed(*command: str, **needs: str) -> Claim:
    program = Program(command=command, needs=needs, seconds=20.0)
    return claim_of({"name": "time", "of": "slow", "to": "quick", "ratio": 9.0}, program=program.model_dump())


def test_a_program_is_started_some_times_and_judged_by_what_it_prints(tmp_path: Path) -> None:
    run = fake(tmp_path)
    claim = programmed("/bin/echo", '{"slow": 0.18, "quick": 0.02}')
    verdict = running.run_program(claim, run.settings(), Progress(SilentDisplay()), run.dependencies())
    assert len(verdict.figures) == running.PROGRAM_STARTS
    assert verdict.statements[0].value == pytest.approx(9.0)


@pytest.mark.parametrize("printed", ["", "[1]", '{"slow": "much"}', "not JSON"])
def test_output_that_is_no_object_of_numbers_is_shown(tmp_path: Path, printed: str) -> None:
    run = fake(tmp_path)
    with pytest.raises(StartError, match="has to print one JSON object of numbers"):
        running.run_program(
            programmed("/bin/echo", printed), run.settings(), Progress(SilentDisplay()), run.dependencies()
        )


def test_a_tool_that_a_program_needs_and_is_not_there_is_named() -> None:
    program = programmed("x", java=">=999").program
    assert program is not None
    with pytest.raises(EnvironmentLacksError, match=r"needs java >=999: apt-get install openjdk-999"):
        running.environment(program)
