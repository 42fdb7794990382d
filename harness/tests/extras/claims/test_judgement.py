"""Verdicts from the records of a run: each metric's ratio with the interval of rank's own comparison."""

import pytest

from harness.benchmarks.simulation import MACHINE, sample
from harness.claims import judgement
from harness.claims.judgement import Place
from harness.records.models import Errors, Closed, Outcome, ReplicateRecord, Sample, ServerUse
from harness.tests.claims.records import LEVEL, claim, claim_of, records, run_of, side

STEADY = {"a": (2500.0, 2520.0, 2490.0, 2510.0, 2505.0), "b": (1000.0, 1010.0, 995.0, 1003.0, 1001.0)}


def test_a_ratio_within_its_tolerance_is_supported_with_its_interval() -> None:
    found = judgement.of_run(claim(ratio=2.5), run_of(STEADY))
    (statement,) = found.statements
    assert (found.verdict, statement.processes) == ("supported", 5)
    assert statement.value == pytest.approx(2.5, rel=0.01)
    assert statement.low is not None
    assert 2.4 < statement.low < 2.5
    assert statement.confidence == pytest.approx(1 - 0.05 * (25 - 9) / 64)  # of the second of three looks


def test_the_verdict_follows_the_figures() -> None:
    turned = {"a": STEADY["b"], "b": STEADY["a"]}
    assert judgement.of_run(claim(ratio=2.5), run_of(turned)).verdict == "refuted"
    assert judgement.of_run(claim(ratio=5.0), run_of(STEADY)).verdict == "direction only"
    noisy = {"a": (2500.0, 900.0, 4000.0), "b": (1000.0, 1900.0, 700.0)}
    assert judgement.of_run(claim(ratio=2.5), run_of(noisy)).verdict == "undecided"


def test_a_cell_that_was_not_measured_is_undecided_with_its_name() -> None:
    found = judgement.of_run(claim(ratio=2.5), run_of({"a": STEADY["a"]}))
    assert found.statements[0].reason == "b json c64: not measured"
    assert found.verdict == "undecided"


def test_samples_that_a_gate_keeps_out_are_no_evidence_and_their_gate_is_told() -> None:
    gate = {"name": "errors", "outcome": Outcome.FAIL, "value": 3.0, "threshold": 0.0, "word": "errors"}
    bad = [
        Sample.model_validate({**s.model_dump(), "gates": [gate]}) if s.implementation == "b" else s
        for s in run_of(STEADY).samples
    ]
    assert (
        judgement.of_run(claim(ratio=2.5), records(bad)).statements[0].reason
        == "b json c64: kept out by its gates: errors"
    )


def test_two_levels_of_one_server_can_be_compared() -> None:
    more = Closed(connections=640)
    samples = [sample("a", i, v, test_type="json", level=LEVEL) for i, v in enumerate(STEADY["b"])]
    samples += [sample("a", i, v * 5, test_type="json", level=more) for i, v in enumerate(STEADY["b"])]
    found = judgement.of_run(claim(of=side("a", 640), to=side("a"), ratio=5.0), records(samples))
    assert found.statements[0].value == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("memory", 0.5), ("throughput-per-memory", 5.0), ("threads", 0.1), ("cpu-per-request", 0.4)],
)
def test_each_metric_has_its_own_ratio(metric: str, expected: float) -> None:
    samples = []
    for one in run_of(STEADY).samples:
        small = one.implementation == "a"
        use = ServerUse(
            cpu_seconds=10.0,
            rss_peak=(1e8 if small else 2e8) + one.block,
            rss_mean=None,
            wait_share=None,
            throttled_seconds=None,
            threads_peak=20 if small else 200,
        )
        samples.append(one.model_copy(update={"server": use}))
    found = judgement.of_run(claim(metric=metric, ratio=expected), records(samples))
    assert found.statements[0].value == pytest.approx(expected, rel=0.02)


def test_the_time_to_the_first_answer_is_of_processes() -> None:
    run = run_of(STEADY)
    starts = [
        ReplicateRecord(implementation=name, block=i, started_at=0.0, first_answer=seconds + i / 100, status="ok")
        for name, seconds in (("a", 1.0), ("b", 2.0))
        for i in range(5)
    ]
    with_starts = records(run.samples)
    found = judgement.of_run(
        claim(metric="first-answer", ratio=0.5),
        type(with_starts)(info=with_starts.info, samples=run.samples, replicates=starts),
    )
    assert (found.verdict, found.statements[0].processes) == ("supported", 5)


def test_errors_are_counted_over_all_samples() -> None:
    errors = claim_of({"name": "n", "metric": "errors", "of": side("a"), "none": True})
    clean = run_of(STEADY)
    assert judgement.of_run(errors, clean).statements[0].verdict == "supported"
    one = clean.samples[0].model_copy(update={"errors": Errors(read=2)})
    found = judgement.of_run(errors, records([one, *clean.samples[1:]])).statements[0]
    assert (found.verdict, found.value) == ("refuted", 2.0)


def test_a_program_is_judged_by_the_figures_of_its_starts() -> None:
    program = {"command": ["java", "Threads.java"]}
    threads = claim_of(
        {"name": "time", "of": "slow", "to": "quick", "ratio": 9.0},
        {"name": "fails", "of": "refused", "some": True},
        program=program,
    )
    starts = [{"slow": 0.18 + i / 1000, "quick": 0.02, "refused": 0.0} for i in range(5)]
    found = judgement.of_program(threads, starts, Place(machine=MACHINE, measured_at=0.0))
    assert [statement.verdict for statement in found.statements] == ["supported", "refuted"]
    assert (found.verdict, found.figures[0]["slow"]) == ("refuted", 0.18)


def test_a_figure_that_a_program_does_not_print_is_named() -> None:
    threads = claim_of({"name": "time", "of": "slow", "to": "quick", "ratio": 9.0}, program={"command": ["x"]})
    found = judgement.of_program(threads, [{"slow": 1.0}], Place(machine=MACHINE, measured_at=0.0))
    assert found.statements[0].reason == "no start printed quick"
