"""The ranking of runs whose truth is known."""

import math

import numpy as np
import pytest
from scipy import stats

from harness.plan.profile import Processes
from harness.records import models
from harness.records.models import Closed, Gate, Load, Outcome, RunInfo, Scenario, Trial
from harness.stats.compare import noise_floor
from harness.stats.model import Quantity, Ranking, Table
from harness.stats.ranking import rank
from harness.stats.verdicts import unranked
from harness.studies.worlds import Logs, World, draw
from harness.tests.doubles.records import process, verdict
from harness.tests.doubles.runs import LOAD, MACHINE, run_info, trial, trials

NAMES = ["vertx", "es4x", "resteasy", "express"]
LOADS: dict[str, tuple[Load, ...]] = dict.fromkeys(("json", "db", "query"), (LOAD,))
TWO = Processes(minimum=2, maximum=2)
C16, C256 = (Closed(connections=count) for count in (16, 256))
Q1, Q20 = (Closed(connections=64, queries=count) for count in (1, 20))
X4, X8 = (Scenario(factor=factor, connections=64) for factor in (4.0, 8.0))


def played(truth: tuple[float, ...] = (1.5, 0.7, 0.0, 0.0)) -> tuple[RunInfo, list[Trial]]:
    world = World(truth=truth, processes=2, rounds=5, tables=3, window=0.05)
    tables: dict[tuple[str, Load], Logs] = {
        (kind, LOAD): logs for kind, logs in zip(LOADS, draw(world, np.random.default_rng(1)), strict=True)
    }
    return run_info(NAMES, TWO, reference="resteasy", loads=LOADS), trials(tables, NAMES)


def ranked(info: RunInfo, made: list[Trial], verdicts: list[models.Verdict] | None = None) -> Ranking:
    return rank(info, made, [], verdicts or [])


def groups(table: Table, by: Quantity = "throughput") -> list[set[str]]:
    """Who ties, best first."""
    found: dict[int, set[str]] = {}
    for row in table.rows:
        standing = row.throughput if by == "throughput" else row.cpu_per_request
        if standing:
            found.setdefault(standing.tie_group, set()).add(row.implementation)
    return [found[number] for number in sorted(found)]


def test_what_differs_is_ranked_and_what_does_not_ties() -> None:
    ranking = ranked(*played())
    table = ranking.test_types["db"].headline
    assert [row.implementation for row in table.rows][:2] == ["vertx", "es4x"]
    assert groups(table) == groups(table, "cpu") == [{"vertx"}, {"es4x"}, {"resteasy", "express"}]
    first, last = table.rows[0].throughput, table.rows[-1].throughput
    assert (first.rank.label, last.rank.label) == ("1", "3–4")
    assert (first.to_reference.low or 9) < math.exp(1.5) < (first.to_reference.high or 0)
    assert first.estimate.processes == len(first.estimate.values) == 2


def test_a_score_is_the_geometric_mean_of_ratios_to_the_reference() -> None:
    ranking = ranked(*played())
    own = {score.implementation: score.throughput for score in ranking.overall if score.throughput}
    assert own["resteasy"].estimate.median == pytest.approx(1.0)
    assert ranking.reference == "resteasy"
    mean = math.exp(np.mean([math.log(ratio) for ratio in ranking.overall[0].ratios.values()]))
    assert own["vertx"].estimate.median == pytest.approx(mean)
    assert own["resteasy"].tie_group == own["express"].tie_group == 3


def test_cpu_per_request_leads_on_a_shared_machine_only() -> None:
    info, made = played()
    slow = [t.model_copy(update={"cpu_per_request": t.throughput * 1e-7}) for t in made]  # the fastest costs most
    for grade, leading, first in (("D", "cpu", "resteasy"), ("A", "throughput", "vertx")):
        graded = info.model_copy(update={"machine": MACHINE.model_copy(update={"grade": grade})})
        ranking = ranked(graded, slow)
        assert ranking.leading == leading
        assert (ranking.overall[0].implementation == "vertx") == (first == "vertx")


def test_what_failed_verification_or_answered_wrongly_under_load_has_no_rank() -> None:
    info, made = played()
    objection = models.CheckResult(check="rows", rule="db.1", outcome=Outcome.FAIL)
    lie = models.Evidence(answers=10, of=100, objections=(objection,))
    made = [
        t.model_copy(update={"evidence": lie}) if (t.implementation, t.test_type) == ("es4x", "db") else t for t in made
    ]
    ranking = ranked(info, made, [verdict("vertx", "json"), verdict("vertx", "query", Outcome.FAIL)])
    reasons = {
        (k, r.implementation): r.reason for k, t in ranking.test_types.items() for r in t.headline.rows if r.reason
    }
    assert reasons == {
        ("db", "es4x"): "wrong answers under load: rows",
        ("query", "vertx"): "verification failed: status-ok",
    }
    assert {score.implementation: score.missing for score in ranking.overall if score.missing} == {
        "vertx": ("query",),
        "es4x": ("db",),
    }


def test_a_profile_that_only_checks_that_things_run_shows_figures_and_ranks_nothing() -> None:
    info, made = played()
    ranking = ranked(info.model_copy(update={"settings": {"profile": {"ranked": False}}}), made)
    rows = ranking.test_types["db"].headline.rows
    assert all(row.throughput and not row.ranked for row in rows)
    assert (ranking.overall, ranking.notes) == ((), ())


def test_gates_keep_trials_out_and_flag_what_they_warn_of() -> None:
    info, made = played()
    fail = Gate(name="errors", outcome=Outcome.FAIL, value=1.0, threshold=0.0, word="errors")
    warn = Gate(name="contended", outcome=Outcome.WARN, value=0.1, threshold=0.05, word="contended")
    spoiled = []
    for t in made:
        failed = t.test_type == "db" and (t.implementation == "express" or (t.implementation, t.round) == ("es4x", 0))
        gates = (fail,) if failed else (warn,) if t.implementation == "vertx" else ()
        spoiled.append(t.model_copy(update={"gates": gates, "throughput": t.throughput * (9 if failed else 1)}))
    rows = {row.implementation: row for row in ranked(info, spoiled).test_types["db"].headline.rows}
    assert rows["express"].reason == "kept out by its gates: errors"
    assert (rows["es4x"].dropped, rows["es4x"].trials, rows["es4x"].ranked) == (2, 10, True)
    assert rows["es4x"].throughput.estimate.median == pytest.approx(1000 * math.exp(0.7), rel=0.2)
    assert rows["vertx"].flags == ("contended", "provisional")


def test_the_witness_stands_for_no_cell() -> None:
    info, made = played()
    other = [trial("es4x", 1e9, test_type=kind).model_copy(update={"purpose": "witness"}) for kind in LOADS]
    assert ranked(info, made + other).test_types == ranked(info, made).test_types


@pytest.mark.parametrize(
    ("visits", "headline", "rows"),
    [
        ({C256: 1, C16: 4}, C16, C16),
        ({C256: 1, C16: 1}, None, C256),  # each one's best
        ({Q1: 2, Q20: 1}, Q20, Q20),
        ({X8: 2, X4: 2}, X8, X8),
        ({X8: 1, X4: 3}, X4, X4),
    ],
)
def test_the_headline_is_the_load_with_most_visits_or_queries_or_arrivals_else_each_ones_best(
    visits: dict[Load, int], headline: Load | None, rows: Load
) -> None:
    info = run_info(["a", "b"], TWO, loads={"test": tuple(visits)})
    made = [
        trial(name, 100.0 + 800 * (load == C256) + p + r, p, r, test_type="test", load=load)
        for name in "ab"
        for p in range(2)
        for load, count in visits.items()
        for r in range(count)
    ]
    found = ranked(info, made).test_types["test"].headline
    assert found.load == headline
    assert {row.load for row in found.rows} == {rows}


def test_the_floor_has_no_rank_and_the_others_say_how_far_above_it_they_are() -> None:
    info, made = played()
    tagged = tuple(
        one.model_copy(update={"tags": ("limit",)}) if one.name == "vertx" else one for one in info.implementations
    )
    ranking = ranked(info.model_copy(update={"implementations": tagged}), made)
    rows = {row.implementation: row for row in ranking.test_types["json"].headline.rows}
    assert not rows["vertx"].ranked
    assert rows["vertx"].reason.startswith("the floor")
    assert any(flag.startswith("CPU ") and flag.endswith("× the floor") for flag in rows["resteasy"].flags)
    assert "vertx" not in [score.implementation for score in ranking.overall]


def test_a_difference_below_the_noise_floor_ties() -> None:
    info, made = played(truth=(0.3, 0.0, 0.0, 0.0))
    floor = models.NoiseFloor(
        implementation="x", profile="p", measured_at=0.0, pairs=5, throughput=0.5, cpu_per_request=0.0
    )
    table = ranked(info.model_copy(update={"noise_floor": floor}), made).test_types["db"].headline
    assert len(groups(table)) == 1
    assert groups(table, "cpu")[0] == {"vertx"}


def test_latency_and_startup_stand_beside_the_row() -> None:
    info, made = played()
    latency = models.Latency(
        basis="closed-loop, service time", mean=0.002, stdev=0.001, min=0.001, max=0.5,
        percentiles={"50": 0.002, "99": 0.01},
    )  # fmt: skip
    started = [process("es4x", number).model_copy(update={"startup_time": 1.0 + number}) for number in range(2)]
    made = [t.model_copy(update={"latency": latency}) if t.implementation == "es4x" else t for t in made]
    row = next(r for r in rank(info, made, started, []).test_types["db"].headline.rows if r.implementation == "es4x")
    assert row.latency.percentiles["99"].median == pytest.approx(0.01)
    assert "90" not in row.latency.percentiles
    assert row.response_time == pytest.approx(0.002)
    assert (row.latency.maximum, row.startup_time) == (0.5, 1.5)


@pytest.mark.parametrize(
    ("rounds", "note"), [(1, "nothing says how far others would differ"), (2, "fresh ones are taken to differ by 5%")]
)
def test_one_process_of_each_is_said_with_what_its_intervals_rest_on(rounds: int, note: str) -> None:
    made = [trial(name, 1000.0 + r, 0, r) for name in "ab" for r in range(rounds)]
    ranking = ranked(run_info(["a", "b"], TWO), made)
    assert f"one process of each: {note}" in ranking.notes
    (first, *_) = ranking.test_types["json"].headline.rows
    assert (first.throughput.estimate.low is None) == (rounds == 1)


def test_ratios_of_a_merged_run_are_within_its_deployments_which_are_the_unit() -> None:
    """The second deployment is ten times as fast, and favours b: its four processes are no more than one voice."""
    generator = np.random.default_rng(3)
    sets = [models.MachineSet(name=f"d{d}", machine=MACHINE, processes=tuple(range(d, 8, 2))) for d in range(2)]
    made = [
        trial(name, 10.0 ** (3 + p % 2) * math.exp(0.2 * (p % 2) * (name == "b") + generator.normal() * 0.001), p)
        for name in "ab"
        for p in range(8)
    ]
    info = run_info(["a", "b"], TWO, reference="a")
    merged, plain = ranked(info.model_copy(update={"sets": tuple(sets)}), made), ranked(info, made)
    of_merged, of_plain = (
        next(row.throughput for row in each.test_types["json"].headline.rows if row.implementation == "b")
        for each in (merged, plain)
    )
    assert of_merged.to_reference.value == pytest.approx(math.exp(0.1), rel=0.005)
    half_widths = [math.log(each.to_reference.high / each.to_reference.low) for each in (of_merged, of_plain)]
    assert half_widths[0] > 2 * half_widths[1]
    low, high = of_merged.estimate.values
    assert high / low < 1.3
    assert any("2 deployments" in note for note in merged.notes)


def test_a_run_that_measured_nothing_yet_has_empty_tables() -> None:
    info, _ = played()
    ranking = ranked(info.model_copy(update={"status": "running"}), [])
    assert {row.reason for t in ranking.test_types.values() for row in t.headline.rows} == {"missing"}
    assert ranking.overall == ()


def test_what_was_never_measured_says_why() -> None:
    info = run_info(("a", "b"), TWO, loads=LOADS)
    failed = [process("a", n, "failed").model_copy(update={"reason": why}) for n, why in enumerate(("x", "no port"))]
    assert unranked(info, [], failed, []) == {("a", kind): "no port" for kind in LOADS}
    silent = [each.model_copy(update={"reason": ""}) for each in failed]
    assert set(unranked(info, [], silent, []).values()) == {"every start failed"}
    assert unranked(info, [], [*failed, process("a", 2)], []) == unranked(info, [trial("a", 1.0)], failed, []) == {}
    first, second = info.implementations
    broken = first.model_copy(update={"build": models.Build(status="failed", reason="no compiler")})
    info = info.model_copy(update={"implementations": (broken, second)})
    assert unranked(info, [], [], []) == {("a", kind): "build failed: no compiler" for kind in LOADS}


def test_the_noise_floor_holds_what_two_copies_seem_to_differ_by() -> None:
    made = [
        trial(name, speed * (1 + 0.01 * p), p, test_type=kind)
        for name, speed in (("a", 100.0), ("a~twin", 103.0))
        for p in range(5)
        for kind in ("json", "db")
    ]
    floor = noise_floor(made, ("a", "a~twin"), profile="quick", measured_at=1.0)
    assert floor.pairs == 5
    assert floor.throughput == pytest.approx(0.03, abs=1e-9)
    apart = (0.01, -0.01, 0.02, -0.02, 0.0)  # logarithms: nothing lasts
    ups_and_downs = [trial("a", 100.0, p) for p in range(5)]
    ups_and_downs += [trial("a~twin", 100.0 * math.exp(each), p) for p, each in enumerate(apart)]
    floor = noise_floor(ups_and_downs, ("a", "a~twin"), profile="quick", measured_at=1.0)
    half = stats.t.ppf(0.975, 4) * np.std(apart, ddof=1) / math.sqrt(5)
    assert floor.throughput == pytest.approx(math.expm1(half))
    cancels = [(kind, p, sign * each) for kind, sign in (("json", 1), ("db", -1)) for p, each in enumerate(apart)]
    balanced = [trial("a", 100.0, p, test_type=kind) for kind, p, _ in cancels]
    balanced += [trial("a~twin", 100.0 * math.exp(each), p, test_type=kind) for kind, p, each in cancels]
    floor = noise_floor(balanced, ("a", "a~twin"), profile="quick", measured_at=1.0)
    assert floor.throughput == pytest.approx(0.0, abs=1e-9)  # neither cell is told apart
    lasting = [
        (kind, "a" + twin, 1 + sign * 0.04 * bool(twin))
        for kind, sign in (("json", 1), ("db", -1))
        for twin in ("", "~twin")
    ]
    noise = np.random.default_rng(1)
    made_of = [
        trial(name, 100.0 * speed * math.exp(noise.normal() * 0.003), p, r, test_type=kind)
        for kind, name, speed in lasting
        for p in range(5)
        for r in range(2)
    ]
    opposite = noise_floor(made_of, ("a", "a~twin"), profile="quick", measured_at=1.0)
    assert 0.04 < opposite.throughput < 0.06
    assert 0.04 < opposite.cpu_per_request < 0.06
    with pytest.raises(ValueError, match="at least two"):
        noise_floor(made[:1], ("a", "a~twin"), profile="quick", measured_at=1.0)
