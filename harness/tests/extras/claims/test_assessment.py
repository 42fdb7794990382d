"""Verdicts on claims, derived from recorded runs."""

import pytest

from harness.extras.claims import assessment, show
from harness.records.measurements import ErrorCounts
from harness.records.run_records import ProcessRecord
from harness.records.verdicts import ClaimConclusion
from harness.records.verification_record import Outcome
from harness.stats.ranking_model import Ratio
from harness.tests.doubles.records import verdict
from harness.tests.extras.claims.claim_records import STEADY, claim, claim_of, judged, run_of, side, trials
from harness.tests.report import made


def test_context_does_not_affect_the_verdict() -> None:
    fields = {"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), "ratio": 2.5}
    wrong = {**fields, "name": "more", "ratio": None, "order": "lower"}
    result = judged(claim_of(fields, {**wrong, "context": True}), run_of(STEADY))
    assert [each.verdict for each in result.statements] == ["supported", "refuted"]
    sentence = f"Holds here: {show.measured(result.statements[0])}, claimed 2.5×."
    assert (result.verdict, result.sentence) == ("supported", sentence)
    assert judged(claim_of(fields, wrong), run_of(STEADY)).verdict == "refuted"
    assert judged(claim_of(fields, wrong, can=True), run_of(STEADY)).verdict == "supported"


def test_unreachable_rate_needs_a_larger_machine() -> None:
    """A rate is out of reach if server and generator together need more CPUs than the machine has."""
    dear = trials({"b": [1.0] * 9}, validity=[made.validity_check("errors", Outcome.FAIL)])  # excluded trials
    measured = run_of([*dear, *trials(STEADY)])
    one = measured.trials[-1]  # b needs more CPU time per request
    cost = (one.server.cpu_seconds + one.generator_cpu_seconds) / one.requests
    for rate, word in ((1.9 / cost, "supported"), (5.5 / cost, "needs a larger machine")):
        (statement,) = judged(claim(ratio=2.5, needs={"of": 1.0, "to": rate, "why": "queues"}), measured).statements
        assert statement.verdict == word
    assert "need 6 CPUs" in statement.reason
    assert statement.theory == "queues"
    assert statement.value == pytest.approx(2.5, rel=0.01)


def test_expected_ratio_depends_on_the_cpus() -> None:
    rounds = {"calls": 20, "less": 1}
    two_cpus = claim(ratio=2.98, rounds=rounds, why="so many rounds")
    (statement,) = judged(two_cpus, run_of({"a": [20_000.0] * 5, "b": [1000.0] * 5})).statements
    assert (statement.expected, statement.verdict) == (20.0, "supported")
    assert two_cpus.compare[0].expected(10) == 3.0


def test_missing_or_excluded_cells_are_undecided_with_reason() -> None:
    alone = judged(claim(ratio=2.5), run_of({"a": STEADY["a"]}))
    assert (alone.verdict, alone.statements[0].reason) == ("undecided", "b json c64: not measured")
    bad = [
        *trials({"a": STEADY["a"]}),
        *trials({"b": STEADY["b"]}, validity=[made.validity_check("errors", Outcome.FAIL)]),
    ]
    kept_out = judged(claim(ratio=2.5), run_of(bad)).statements[0]
    assert (kept_out.verdict, kept_out.reason) == ("undecided", "b json c64: excluded by validity checks: errors")
    failed = verdict("b", "json", Outcome.FAIL)
    refused = judged(claim(ratio=2.5), run_of(trials(STEADY), verdicts=[failed])).statements[0]
    assert (refused.verdict, refused.reason) == ("undecided", "b json: verification failed: status-ok")


def test_verdict_records_its_runs_and_their_concerns() -> None:
    records = run_of(STEADY)
    old = records.info.model_copy(update={"machine": made.machine("D", ("busy", "small")), "revision": "old"})
    own = {"started_at": 2000.0, "completed_at": None, "revision": "new", "run_id": "2"}
    new = old.model_copy(update={"machine": made.machine("C", ("small", "hot")), **own})
    result = assessment.judge_by_runs(claim(ratio=2.5), records, [new, old])
    assert (result.measured_at, result.revision, result.runs) == (2000.0, "new", ("2", old.run_id))
    assert (result.grade, result.concerns) == ("D", ("small", "hot", "busy"))


def test_the_startup_time_is_of_processes() -> None:
    starts = [
        ProcessRecord(implementation=name, process=i, started_at=0.0, startup_time=seconds + i / 100, status="ok")
        for name, seconds in (("a", 1.0), ("b", 2.0))
        for i in range(5)
    ]
    result = judged(claim(metric="startup-time", ratio=0.5), run_of(trials(STEADY), processes=starts))
    assert (result.verdict, result.statements[0].processes) == ("supported", 5)


def test_errors_are_counted_in_excluded_trials_too() -> None:
    errors = claim_of({"name": "n", "metric": "errors", "of": side("a"), "order": "none"})
    clean = trials(STEADY)
    assert judged(errors, run_of(clean)).statements[0].verdict == "supported"
    bad = made.trial("a", 0, 1000.0, errors=ErrorCounts(read=2), validity=[made.validity_check("errors", Outcome.FAIL)])
    result = judged(errors, run_of([bad])).statements[0]
    assert (result.verdict, result.value) == ("refuted", 2.0)
    assert result.remarks == ("errors",)
    nothing = judged(errors, run_of([made.trial("a", 0, 0.0)])).statements[0]
    assert (nothing.verdict, nothing.reason) == ("undecided", "0 in 0 requests")


def test_programs_are_judged_by_printed_figures() -> None:
    threads = claim_of(
        {"name": "time", "figures": ["slow", "quick"], "ratio": 9.0},
        {"name": "fails", "figures": ["refused"], "order": "some"},
        {"name": "unknown", "figures": ["slow", "refused"], "ratio": 9.0},
        program=["java", "Threads.java"],
    )
    starts = [{"slow": 0.18 + i / 1000, "quick": 0.02, "refused": 0.0} for i in range(5)]
    result = assessment.judge_by_program(
        threads, starts, made.machine(), measured_at=0.0, profile="claims", runtime="local"
    )
    assert [statement.verdict for statement in result.statements] == ["supported", "refuted", "undecided"]
    assert result.statements[0].value == pytest.approx(9.1, abs=0.01)
    assert result.statements[2].reason == "the program printed zero at one or more starts"
    assert (result.verdict, result.figures[0]["slow"]) == ("refuted", 0.18)
    differently = [*starts, {**starts[0], "refused": 1.0}]
    result = assessment.judge_by_program(
        threads, differently, made.machine(), measured_at=0.0, profile="claims", runtime="local"
    )
    assert (result.statements[1].verdict, result.statements[1].reason) == ("undecided", "1 in 6 starts")


def between(low: float, high: float) -> Ratio:
    return Ratio(value=(low * high) ** 0.5, low=low, high=high)


@pytest.mark.parametrize(
    ("expected", "low", "high", "word"),
    [
        (2.5, 2.3, 2.7, "supported"),
        (2.5, 1.2, 1.5, "direction only"),
        (2.5, 3.5, 4.0, "direction only"),
        (2.5, 0.5, 0.9, "refuted"),
        (2.5, 1.5, 2.5, "direction only"),  # the direction is certain, but the claimed ratio is not
        (2.5, 1.01, 1.03, "refuted"),  # differences below 5 % are irrelevant
        (2.5, 0.9, 4.0, "undecided"),
        (0.4, 0.6, 0.8, "direction only"),
        (1.0, 0.95, 1.05, "supported"),
        (1.0, 1.3, 1.4, "refuted"),  # equality has no direction
        (0.95, 0.5, 0.6, "refuted"),
        (1.0, 0.95, 1.3, "undecided"),
    ],
)
def test_intervals_are_compared_with_tolerance_and_1(
    expected: float, low: float, high: float, word: ClaimConclusion
) -> None:
    result = assessment.judge_claimed_ratio(expected, 0.15, between(low, high), processes=5, smallest_relevant=0.05)
    assert result.conclusion == word
    assert bool(result.more_processes) == (word == "undecided" or (low, high) == (1.5, 2.5))


@pytest.mark.parametrize(
    ("order", "low", "high", "word"),
    [
        ("higher", 1.01, 1.2, "supported"),
        ("higher", 1.01, 1.03, "refuted"),  # differences below 5 % are irrelevant
        ("not higher", 1.01, 1.03, "supported"),
        ("higher", 0.8, 0.9, "refuted"),
        ("higher", 0.97, 1.04, "refuted"),  # the interval excludes differences of 5 %
        ("higher", 0.9, 1.2, "undecided"),
        ("not lower", 0.8, 0.94, "refuted"),
        ("not lower", 0.9, 1.2, "undecided"),
        ("not higher", 0.9, 1.04, "supported"),
        ("not higher", 1.06, 1.2, "refuted"),
    ],
)
def test_order_is_decided_by_the_interval(order: str, low: float, high: float, word: ClaimConclusion) -> None:
    result = assessment.judge_claimed_order(order, 0.05, between(low, high), processes=5)
    assert result.conclusion == word
    assert bool(result.more_processes) == (word == "undecided")


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.7, 0.9, "supported"), (0.8, 0.95, "undecided"), (0.92, 0.98, "refuted")]
)
def test_substantial_difference_has_the_declared_minimum(low: float, high: float, word: ClaimConclusion) -> None:
    assert (
        assessment.judge_claimed_order("lower", 0.10, between(low, high), processes=5, substantial=True).conclusion
        == word
    )


def test_one_process_each_decides_nothing() -> None:
    result = assessment.judge_claimed_ratio(
        2.5, 0.15, Ratio(value=2.5, low=None, high=None), processes=1, smallest_relevant=0.05
    )
    assert (result.conclusion, result.more_processes) == ("undecided", 1)


def test_further_processes_grow_with_squared_width() -> None:
    # With 5 processes, the interval of the log ratio is 0.1 ± 0.2. It excludes 0, a ratio of 1, if its width is halved.
    # That takes four times as many processes.
    result = assessment.judge_claimed_ratio(8.0, 0.15, between(0.904837, 1.349859), processes=5, smallest_relevant=0.05)
    assert result.more_processes == pytest.approx(15, abs=1)


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("supported", "supported"), "supported"),
        (("supported", "direction only"), "direction only"),
        (("direction only", "undecided"), "undecided"),
        (("undecided", "refuted"), "refuted"),
        (("needs a larger machine", "direction only"), "needs a larger machine"),
        ((), "undecided"),
    ],
)
def test_claim_has_the_worst_of_its_verdicts(words: tuple[ClaimConclusion, ...], word: ClaimConclusion) -> None:
    assert assessment.combine_conclusions(words) == word
