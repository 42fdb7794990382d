"""Assertions about the records of a smoke run. They run for each runtime."""

import pytest

from harness.records.loads import ClosedLoop
from harness.records.verification_record import Outcome
from harness.tests.e2e.conftest import Finished

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]

IMPLEMENTATIONS = {"es4x", "express", "resteasy", "vertx-web"}
TEST_TYPES = {"json", "plaintext", "db", "query", "fortune", "update"}


def test_the_run_is_complete_without_failures(run: Finished) -> None:
    assert run.records.info.problems == ()
    assert (run.status, run.records.info.status) == (0, "complete"), run.stderr
    assert run.records.problems == ()
    assert {process.implementation for process in run.records.processes} >= IMPLEMENTATIONS
    for process in run.records.processes:
        assert process.status == "ok", process.reason
        assert 0 < (process.startup_time or 0) < 60
        assert (run.folder / process.log).exists()


def test_core_implementations_pass_thorough_verification(run: Finished) -> None:
    verified = {(v.implementation, v.test_type) for v in run.records.verdicts if v.thorough}
    assert verified >= {(name, kind) for name in IMPLEMENTATIONS for kind in (*TEST_TYPES, "http")}
    results = [(v.implementation, v.test_type, r) for v in run.records.verdicts for r in v.results]
    assert [each for each in results if each[2].outcome is Outcome.FAIL] == []
    counted = {(name, kind): r.outcome for name, kind, r in results if r.check == "statements-counted"}
    assert {kind for name, kind in counted if name in IMPLEMENTATIONS} >= {"db", "query", "fortune", "update"}
    assert set(counted.values()) == {Outcome.PASS}


def test_every_trial_is_valid_and_verified(run: Finished) -> None:
    for trial in run.records.trials:
        assert trial.generator == "loadgen"
        assert trial.errors.total == 0, trial.id
        assert trial.requests > 100, trial.id
        assert trial.rankable, (trial.id, trial.validity)
        assert trial.evidence is not None
        assert 0 < trial.evidence.judged <= trial.evidence.received
        assert trial.evidence.objections == ()
        assert 0 < trial.server.cpu_seconds <= trial.duration * len(run.records.info.machine.cpus_usable) * 1.2
        assert (trial.server.rss_peak or 0) > 20e6
        assert trial.server.wait_share is not None


def test_windows_add_up_to_the_trial(run: Finished) -> None:
    without = []
    for trial in run.records.trials:
        assert isinstance(trial.load, ClosedLoop)
        responses = [window.responses for window in trial.windows if window.responses is not None]
        if not responses:
            without.append(trial.id)
            continue
        # Requests in flight at the end of the load count as sent, but not as responses.
        under_way = trial.load.connections * trial.load.depth
        assert sum(responses) <= trial.requests * 1.02 + under_way, trial.id
        whole = sum(window.duration for window in trial.windows) / trial.duration
        assert sum(responses) >= trial.requests * whole * 0.5, trial.id
    # On a stalled machine, a two-second load may have no complete window. This must stay rare.
    assert len(without) <= len(run.records.trials) // 10, without


def test_the_ranking_has_every_cell_of_the_four(run: Finished) -> None:
    assert set(run.ranking.test_types) == TEST_TYPES
    for test_type in run.ranking.test_types.values():
        rows = {row.implementation: row for row in test_type.headline.rows}
        assert {name: rows[name].reason for name in IMPLEMENTATIONS if rows[name].reason} == {}
