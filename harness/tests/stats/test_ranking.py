"""Tests for rankings of runs with given true values."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import special

from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop, Load, Scenario
from harness.records.measurements import ErrorCounts, Latency
from harness.records.run_info import BuildRecord, MachineSet, NoiseFloor, RunInfo
from harness.records.run_records import ProcessRecord
from harness.records.trial_record import Trial, TrialEvidence, ValidityCheck
from harness.records.verification_record import CheckResult, Outcome, VerificationRecord
from harness.stats.cell_comparison import noise_floor
from harness.stats.ranking import rank
from harness.stats.ranking_model import Ranking
from harness.stats.unranked import caveats
from harness.studies.coverage import Logs, SimulatedRun, draw_run
from harness.tests.approve import approve, describe_tables
from harness.tests.doubles.records import process, verdict
from harness.tests.doubles.runs import LOAD, MACHINE, run_info, trial, trials
from harness.tests.stats.dense import dense, luck

NAMES = ["vertx", "es4x", "resteasy", "express"]
LOADS: dict[str, tuple[Load, ...]] = dict.fromkeys(("json", "db", "query"), (LOAD,))
TWO = ProcessLimits(minimum=2, maximum=2)
C8, C16, C32, C256 = (ClosedLoop(connections=count, depth=1 + count // 256) for count in (8, 16, 32, 256))
Q1, Q20 = (ClosedLoop(connections=64, queries=count) for count in (1, 20))
X4, X8 = (Scenario(factor=factor, connections=64) for factor in (4.0, 8.0))


def played(truth: tuple[float, ...] = (1.5, 0.7, 0.0, 0.0)) -> tuple[RunInfo, list[Trial]]:
    world = SimulatedRun(truth=truth, processes=2, rounds=5, tables=3, window=0.05)
    tables: dict[tuple[str, Load], Logs] = {
        (kind, LOAD): logs for kind, logs in zip(LOADS, draw_run(world, np.random.default_rng(1)), strict=True)
    }
    return run_info(NAMES, TWO, reference="resteasy", loads=LOADS), trials(tables, NAMES)


def ranked(info: RunInfo, made: list[Trial], verdicts: Sequence[VerificationRecord] = ()) -> Ranking:
    return rank(info, made, [], verdicts)


def test_differing_servers_are_ranked_and_others_tie() -> None:
    ranking = ranked(*played())
    table = ranking.test_types["db"].headline
    assert [row.implementation for row in table.rows][:2] == ["vertx", "es4x"]
    groups = [(row.throughput.tie_group, row.cpu_per_request.tie_group) for row in table.rows]
    assert groups == [(1, 1), (2, 2), (3, 3), (3, 3)]
    first, last = table.rows[0].throughput, table.rows[-1].throughput
    assert (first.rank.label, last.rank.label) == ("1", "3–4")
    assert (first.to_reference.low or 9) < math.exp(1.5) < (first.to_reference.high or 0)
    assert first.estimate.processes == len(first.estimate.values) == 2


def test_smoke_profile_has_figures_but_no_ranks() -> None:
    info, made = played()
    ranking = ranked(info.model_copy(update={"settings": {"profile": {"ranked": False}}}), made)
    rows = ranking.test_types["db"].headline.rows
    assert all(row.throughput and not row.ranked for row in rows)
    assert (ranking.overall, ranking.notes) == ((), ())


@pytest.mark.parametrize(
    ("visits", "headline", "rows"),
    [
        ({C256: 1, C16: 3}, C16, C16),
        ({C256: 1, C16: 1}, None, C256),  # None: the best load of each implementation
        ({C16: 1, C8: 1}, None, C8),  # equal loads: the one with fewer connections
        ({Q1: 2, Q20: 1}, Q20, Q20),
        ({X8: 2, X4: 2}, X8, X8),
        ({X8: 1, X4: 3}, X4, X4),
    ],
)
def test_headline_load_by_visits_queries_arrivals_or_best(
    visits: dict[Load, int], headline: Load | None, rows: Load
) -> None:
    info = run_info(["a", "b"], TWO, loads={"test": tuple(visits)})
    measured = [
        trial(name, 100.0 + 800 * (load == C256) + p + r, p, r, test_type="test", load=load)
        for name in "ab"
        for p in range(2)
        for load, count in visits.items()
        for r in range(count)
    ]
    headline_table = ranked(info, measured).test_types["test"].headline
    assert headline_table.load == headline
    assert {row.load for row in headline_table.rows} == {rows}


@pytest.mark.parametrize(
    ("rounds", "note"),
    [(1, "the variance between processes is unknown"), (2, "intervals assume that processes differ by 5%")],
)
def test_note_on_a_single_process(rounds: int, note: str) -> None:
    measured = [trial(name, 1000.0 + r, 0, r) for name in "ab" for r in range(rounds)]
    ranking = ranked(run_info(["a", "b"], TWO), measured)
    assert f"each implementation was measured in a single process: {note}" in ranking.notes
    (first, *_) = ranking.test_types["json"].headline.rows
    assert (first.throughput.estimate.low is None) == (rounds == 1)


def test_merged_run_compares_within_deployments() -> None:
    """The second deployment is ten times as fast and favours b. A deployment's processes count as one unit."""
    generator = np.random.default_rng(3)
    sets = [MachineSet(name=f"d{d}", machine=MACHINE, processes=tuple(range(d, 8, 2))) for d in range(2)]
    measured = [
        trial(name, 10.0 ** (3 + p % 2) * math.exp(0.2 * (p % 2) * (name == "b") + generator.normal() * 0.001), p)
        for name in "ab"
        for p in range(8)
    ]
    info = run_info(["a", "b"], TWO, reference="a")
    merged, plain = ranked(info.model_copy(update={"sets": tuple(sets)}), measured), ranked(info, measured)
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


def test_run_without_trials_has_empty_tables() -> None:
    info, _ = played()
    ranking = ranked(info.model_copy(update={"status": "running"}), [])
    assert {row.reason for t in ranking.test_types.values() for row in t.headline.rows} == {"missing"}
    assert not any(note.startswith("each implementation was measured") for note in ranking.notes)
    assert ranking.overall == ()


def copies(gaps: Mapping[str, Sequence[float]], noise: float = 0.0, rounds: int = 1) -> list[Trial]:
    """Return trials of two copies of an implementation.

    ``gaps`` maps test types to log differences, one per process.
    """
    return [
        trial(name, 100 * math.exp((name != "a") * gap + noise * luck(kind, name, p, r)), p, r, test_type=kind)
        for kind, own in gaps.items()
        for name, (p, gap), r in itertools.product(("a", "a~twin"), enumerate(own), range(rounds))
    ]


def test_noise_floor_exceeds_differences_of_copies() -> None:
    apart = (0.01, -0.01, 0.02, -0.02, 0.0)  # log differences with mean 0
    half = special.stdtrit(4, 0.975) * np.std(apart, ddof=1) / math.sqrt(5)
    cancels = {"json": apart, "db": [-each for each in apart]}  # no cell differs significantly
    always = dict.fromkeys(("json", "db"), [math.log(1.03)] * 5)
    lasting = copies({"json": [0.04] * 5, "db": [-0.05] * 5}, 0.003, 2)  # almost cancel in the mean of the two cells
    for measured, low, high in (
        (copies(always), 0.03 - 1e-9, 0.03 + 1e-9),
        (copies({"json": apart}), math.expm1(half) - 1e-9, math.expm1(half) + 1e-9),
        (copies(cancels), -1e-9, 1e-9),
        (lasting, 0.05, 0.07),
    ):
        floor = noise_floor(measured, ("a", "a~twin"), profile="quick", measured_at=1.0)
        assert floor.pairs == 5
        assert low < floor.throughput < high
        assert low < floor.cpu_per_request < high
    assert noise_floor(copies({"json": [0.0, 0.0]}), ("a", "a~twin"), profile="quick", measured_at=1.0).pairs == 2
    with pytest.raises(ValueError, match="at least two pairs of processes, but the run has 1"):
        noise_floor(copies({"json": [0.0]}), ("a", "a~twin"), profile="quick", measured_at=1.0)


def validity_check(name: str, outcome: Outcome = Outcome.FAIL, flag: str = "") -> ValidityCheck:
    return ValidityCheck(name=name, outcome=outcome, value=1.0, threshold=0.0, flag=flag)


PLAN: dict[str, tuple[Load, ...]] = {"json": (LOAD,), "query": (Q1, Q20), "plaintext": (C16, C256), "update": (LOAD,)}
ABSENT = {("ref", "update"), ("edge", "query")}
SPEED = {"ref": 1.0, "quick": 1.6, "floor": 2.5, "edge": 2.2, "loose": 0.7, "gated": 1.3}
ERRORS, STEAL, CALM = (
    validity_check("errors", flag="few errors"),
    validity_check("steal", Outcome.WARN, "steal"),
    validity_check("c", Outcome.PASS),
)
VALIDITY_CHECKS: dict[
    tuple[str, str, Load, int, int], tuple[ValidityCheck, ...]
] = {  # (implementation, test type, load, process, round) -> validity checks
    ("gated", "query", Q20, 0, 0): (ERRORS, validity_check("contended", Outcome.WARN, "contended")),
    ("gated", "query", Q20, 1, 0): (ERRORS, validity_check("overrun"), CALM),
    ("gated", "query", Q20, 2, 0): (validity_check("overrun"), validity_check("bound")),
    ("gated", "json", LOAD, 1, 1): (ERRORS, STEAL),
    ("quick", "json", LOAD, 0, 0): (STEAL, CALM),
    ("quick", "json", LOAD, 0, 1): (validity_check("contended", Outcome.WARN, "contended"), STEAL),
}
WAIVED = CheckResult(check="w", rule="w.1", outcome=Outcome.WARN, waived=True)
LIE = TrialEvidence(judged=9, received=9, objections=(WAIVED.model_copy(update={"outcome": Outcome.FAIL}),))
OWN: dict[str, dict[str, object]] = {
    "ref": {"test_types": ("json", "query", "plaintext")},
    "floor": {"tags": ("LIMIT", "other")},
    "edge": {"tags": ("limit",)},
    "loose": {
        "rules": "techempower",
        "allowed": ("a", "b"),
        "build": BuildRecord(status="ok", stand_ins=("c", "d")),
    },
    "unbuilt": {"build": BuildRecord(status="failed", reason="no compiler")},
}
NOISY = NoiseFloor(implementation="ref", profile="p", measured_at=0, pairs=5, throughput=0.25, cpu_per_request=0.02)
SETS = tuple(MachineSet(name=f"d{d}", machine=MACHINE, processes=(d,)) for d in range(21))
OTHERS: dict[str, dict[str, object]] = {
    "cpu": {"machine": MACHINE.model_copy(update={"grade": "C"}), "noise_floor": None},
    "without reference": {"reference": None, "status": "interrupted", "settings": {"network": "bridge"}},
    "of nobody": {"reference": "dead"},
    "of the floor": {"reference": "floor"},
    "merged": {"sets": SETS},
    "a few": {"sets": SETS[:2], "status": "running", "machine": MACHINE.model_copy(update={"grade": "D"})},
}


def everything() -> tuple[RunInfo, list[Trial], list[ProcessRecord], list[VerificationRecord]]:
    """Return a run with all special cases: failed builds, failed validity checks, unplanned loads, missing values."""
    cells = [(kind, load) for kind, own in {**PLAN, "plaintext": (C16, C256, C32, C8)}.items() for load in own]
    collected = []
    for (name, speed), (kind, load), p, r in itertools.product(SPEED.items(), cells, range(3), range(2)):
        if (name, kind) in ABSENT or (load == C8 and name != "quick") or (load == Q20 and r):
            continue
        noise, cheap = 0.03 * luck(p) + 0.02 * luck(name, kind, load.label, p, r), 1 / speed if name != "quick" else 1.2
        rate = 1000 * speed * math.exp(0.3 * cells.index((kind, load)) + noise)
        times = Latency(
            basis="closed-loop, service time", mean=2 / rate, stdev=0.0, min=0.0, max=9 / rate,
            percentiles={"50": 1 / rate, "90": 2 / rate, "99": 4 / rate, "99.9": 5 / rate},
        )  # fmt: skip
        good, cpu = (name, kind, p, r) != ("gated", "json", 2, 0), 4e-4 * cheap * math.exp(noise)
        validity = VALIDITY_CHECKS.get((name, kind, load, p, r), ())
        trial_ = trial(name, rate * good, p, r, test_type=kind, load=load, cpu_per_request=cpu, validity=validity)
        use = {"rss_peak": 5e7 * speed + p if name != "edge" else None, "threads_peak": 8 + p if r else None}
        fields = {
            "errors": ErrorCounts(read=p, status=r),
            "evidence": LIE if (name, kind, p) == ("gated", "update", 1)
            else trial_.evidence if name != "floor" else None,
            "steady": name != "loose", "latency": times if (name, kind, p) != ("quick", "query", 1) else None,
            "server": trial_.server.model_copy(update=use),
        }  # fmt: skip
        collected.append(trial_.model_copy(update=fields))
    evidence = TrialEvidence(judged=9, received=9, objections=(WAIVED, WAIVED.model_copy(update={"check": "v"})))
    collected.append(
        collected[-1].model_copy(update={"implementation": "loose", "evidence": evidence, "purpose": "witness"})
    )
    failed, half = ("failed", "failed", "failed"), ("failed", "ok", "failed")
    states = {"dead": failed, "mute": failed, "quick": failed, "half": half, "ref": ("ok", "ok", "interrupted")}
    started = [
        process(name, p).model_copy(
            update={"startup_time": 0.2 * (1 + p), "status": status, "reason": f"no port {p}" * (name != "mute")}
        )
        for name, own in states.items()
        for p, status in enumerate(own)
    ]
    wrong, server = verdict("edge", "json", Outcome.FAIL), verdict("loose", "http")
    verdicts = [verdict("ref", "json"), wrong.model_copy(update={"results": wrong.results * 2})]
    names = [*SPEED, "unbuilt", "dead", "mute", "half"]
    info = run_info(names, ProcessLimits(minimum=3, maximum=5, looks=(3,)), loads=PLAN)
    implementations = tuple(each.model_copy(update=OWN.get(each.name, {})) for each in info.implementations)
    complete_info = info.model_copy(
        update={"implementations": implementations, "noise_floor": NOISY, "reference": "ref"}
    )
    return complete_info, collected, started, [*verdicts, server.model_copy(update={"results": (WAIVED, WAIVED)})]


def test_ranking_of_a_complex_run_is_as_approved() -> None:
    info, measured, started, verdicts = everything()
    ranking = rank(info, measured, started, verdicts)
    by_type = ranking.test_types
    first = by_type["json"].headline.rows[0]
    results: dict[str, object] = {
        **{
            title: lines
            for title, lines in describe_tables(info, ranking).items()
            if not title.startswith(("query", "update"))
        },
        **{
            kind: {row.implementation: f"{row.reason} [{', '.join(row.flags)}]" for row in by_type[kind].headline.rows}
            for kind in ("query", "update")
        },
        "first row": {"throughput": first.throughput, "latency": first.latency},
        "notes": ranking.notes,
    }
    for name, update in OTHERS.items():
        other = rank(info.model_copy(update=update), measured, started, verdicts)
        cpu = {each.implementation: each.cpu.estimate for each in other.overall if each.cpu and name != "merged"}
        order = " ".join(each.implementation for each in other.overall)
        results[name] = {"leading": other.leading, "notes": other.notes, "order": order, "cpu": cpu}
    approve("stats-ranking", dense(results))


def test_score_is_geometric_mean_of_ratios() -> None:
    ranking = ranked(*played())
    scores = {score.implementation: score.throughput for score in ranking.overall if score.throughput}
    assert scores["resteasy"].estimate.median == pytest.approx(1.0)
    assert ranking.reference == "resteasy"
    mean = math.exp(np.mean([math.log(ratio) for ratio in ranking.overall[0].ratios.values()]))
    assert scores["vertx"].estimate.median == pytest.approx(mean)
    assert scores["resteasy"].tie_group == scores["express"].tie_group == 3


def test_failed_verification_or_wrong_responses_have_no_rank() -> None:
    info, measured = played()
    objection = CheckResult(check="rows", rule="db.1", outcome=Outcome.FAIL)
    lie = TrialEvidence(judged=10, received=100, objections=(objection,))
    measured = [
        t.model_copy(update={"evidence": lie}) if (t.implementation, t.test_type) == ("es4x", "db") else t
        for t in measured
    ]
    ranking = ranked(info, measured, [verdict("vertx", "json"), verdict("vertx", "query", Outcome.FAIL)])
    reasons = {
        (k, r.implementation): r.reason for k, t in ranking.test_types.items() for r in t.headline.rows if r.reason
    }
    assert reasons == {
        ("db", "es4x"): "wrong responses under load: rows",
        ("query", "vertx"): "verification failed: status-ok",
    }
    assert {score.implementation: score.missing for score in ranking.overall if score.missing} == {
        "vertx": ("query",),
        "es4x": ("db",),
    }


def test_validity_checks_exclude_and_flag_trials() -> None:
    info, trials = played()
    fail = ValidityCheck(name="errors", outcome=Outcome.FAIL, value=1.0, threshold=0.0, flag="errors")
    warn = ValidityCheck(name="contended", outcome=Outcome.WARN, value=0.1, threshold=0.05, flag="contended")
    spoiled = []
    for t in trials:
        failed = t.test_type == "db" and (t.implementation == "express" or (t.implementation, t.round) == ("es4x", 0))
        validity = (fail,) if failed else (warn,) if t.implementation == "vertx" else ()
        spoiled.append(t.model_copy(update={"validity": validity, "throughput": t.throughput * (9 if failed else 1)}))
    rows = {row.implementation: row for row in ranked(info, spoiled).test_types["db"].headline.rows}
    assert rows["express"].reason == "excluded by validity checks: errors"
    assert (rows["es4x"].dropped, rows["es4x"].trials, rows["es4x"].ranked) == (2, 10, True)
    assert rows["es4x"].throughput.estimate.median == pytest.approx(1000 * math.exp(0.7), rel=0.2)
    assert rows["vertx"].flags == ("contended", "provisional")


def test_the_witness_stands_for_no_cell() -> None:
    info, trials = played()
    witness = {"purpose": "witness", "evidence": None}  # wrk records no responses
    other = [trial("es4x", 1e9, test_type=kind).model_copy(update=witness) for kind in LOADS]
    assert ranked(info, trials + other).test_types == ranked(info, trials).test_types


def test_a_difference_below_the_noise_floor_ties() -> None:
    info, made = played(truth=(0.3, 0.0, 0.0, 0.0))
    floor = NoiseFloor(implementation="x", profile="p", measured_at=0.0, pairs=5, throughput=0.5, cpu_per_request=0.0)
    table = ranked(info.model_copy(update={"noise_floor": floor}), made).test_types["db"].headline
    assert {row.throughput.tie_group for row in table.rows} == {1}
    assert [row.implementation for row in table.rows if row.cpu_per_request.tie_group == 1] == ["vertx"]


@pytest.mark.parametrize(
    ("status", "expected"), [("complete", ("not audited",)), ("interrupted", ("not audited",)), ("running", None)]
)
def test_running_run_has_no_flag_not_audited(status: str, expected: tuple[str, ...] | None) -> None:
    info = run_info(["a"], ProcessLimits(minimum=1, maximum=1)).model_copy(update={"status": status})
    assert caveats(info, [trial("a", 9.0).model_copy(update={"evidence": None})], []).get(("a", "json")) == expected
