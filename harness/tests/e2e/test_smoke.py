"""The main job on real input: the same assertions on the files of a smoke run, on every runtime."""

import json
import statistics

import psutil
import pytest

from harness.records.models import Outcome
from harness.tests.e2e.conftest import Finished

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]

IMPLEMENTATIONS = {"es4x", "express", "resteasy", "vertx-web"}
TEST_TYPES = {"json", "plaintext", "db", "query", "fortune", "update"}


def test_exits_0_and_says_that_it_is_complete(run: Finished) -> None:
    assert run.records.info.problems == ()
    assert (run.status, run.records.info.status) == (0, "complete"), run.stderr


def test_every_cell_is_present_and_nothing_else(run: Finished) -> None:
    cells = {(s.implementation, s.test_type) for s in run.records.samples}
    assert cells == {(i, t) for i in IMPLEMENTATIONS for t in TEST_TYPES}
    assert run.records.problems == ()


def test_every_cell_is_verified_thoroughly(run: Finished) -> None:
    verified = {(v.implementation, v.test_type) for v in run.records.verdicts if v.thorough}
    assert verified == {(i, t) for i in IMPLEMENTATIONS for t in (*TEST_TYPES, "http", "load")}
    failed = [
        (v.implementation, v.test_type, r.check, r.message)
        for v in run.records.verdicts
        for r in v.results
        if r.outcome is Outcome.FAIL
    ]
    assert failed == []


def test_statements_were_counted_not_guessed(run: Finished) -> None:
    counted = {
        (v.implementation, v.test_type): r.outcome
        for v in run.records.verdicts
        for r in v.results
        if r.check == "statements-counted"
    }
    assert len(counted) == len(IMPLEMENTATIONS) * 4
    assert set(counted.values()) == {Outcome.PASS}


def test_no_errors_and_some_throughput_in_every_sample(run: Finished) -> None:
    for sample in run.records.samples:
        assert sample.errors.total == 0, sample.id
        assert sample.requests > 100, sample.id
        assert sample.rankable, (sample.id, sample.gates)
        assert sample.probe_failures == ()


def test_figures_follow_from_counts(run: Finished) -> None:
    for sample in run.records.samples:
        assert sample.throughput == pytest.approx(sample.requests / sample.duration, rel=1e-9)
        assert sample.cpu_per_request == pytest.approx(sample.server.cpu_seconds / sample.requests, rel=1e-9)
        assert 0 < sample.server.cpu_seconds <= sample.duration * len(run.records.info.machine.cpus_usable) * 1.2
        assert sample.server.rss_peak is not None
        assert sample.server.rss_peak > 20e6
        assert sample.server.wait_share is not None


def test_windows_add_up_to_the_sample(run: Finished) -> None:
    without = []
    for sample in run.records.samples:
        responses = [window.responses for window in sample.windows if window.responses is not None]
        if not responses:
            without.append(sample.id)
            continue
        under_way = sample.level.connections * sample.level.depth  # at the end: on the sockets, not in wrk's count
        assert sum(responses) <= sample.requests * 1.02 + under_way, sample.id
        whole = sum(window.duration for window in sample.windows) / sample.duration
        assert sum(responses) >= sample.requests * whole * 0.5, sample.id
    # A machine that stalls can leave two seconds of load without one whole window; it must stay the exception.
    assert len(without) <= len(run.records.samples) // 10, without


def test_pipelined_runs_have_no_latency_and_the_others_have(run: Finished) -> None:
    for sample in run.records.samples:
        assert (sample.latency is None) == (sample.level.depth > 1), sample.id
        if sample.latency:
            assert sample.latency.min <= sample.latency.percentiles["50"] <= sample.latency.max


def test_the_ranking_shows_medians_of_the_samples(run: Finished) -> None:
    assert set(run.ranking.test_types) == TEST_TYPES
    for test_type in run.ranking.test_types.values():
        assert {row.implementation for row in test_type.headline.rows} == IMPLEMENTATIONS
        for row in test_type.headline.rows:
            assert row.ranked, (row.implementation, row.reason)
            assert row.throughput is not None
            samples = [
                s.throughput
                for s in run.records.samples
                if (s.implementation, s.test_type) == (row.implementation, test_type.test_type)
            ]
            assert row.throughput.estimate.median == pytest.approx(statistics.median(samples))


def test_every_replicate_ended_well_and_told_when_it_first_answered(run: Finished) -> None:
    assert {r.implementation for r in run.records.replicates} == IMPLEMENTATIONS
    for replicate in run.records.replicates:
        assert replicate.status == "ok", replicate.reason
        assert replicate.first_answer is not None
        assert 0 < replicate.first_answer < 60
        assert replicate.log is not None
        assert (run.folder / replicate.log).exists()


def test_techempower_s_document_has_every_cell(run: Finished) -> None:
    document = json.loads((run.folder / "results.json").read_text())
    assert set(document["rawData"]) == TEST_TYPES
    for test_type, entries in document["rawData"].items():
        assert set(entries) == IMPLEMENTATIONS, test_type
        assert all(entry[0]["totalRequests"] > 0 for entry in entries.values())
    # Unsteady compilers of a run as short as this can make an audited request look dear, which warns.
    assert document["verify"]["vertx-web"]["json"] in {"pass", "warn"}
    assert {m["name"] for m in document["testMetadata"]} == IMPLEMENTATIONS


def test_nothing_is_left_running(run: Finished) -> None:
    pids = {pid for sample in run.records.samples for pid in sample.server.pids}
    started = run.records.info.started_at
    alive = [p for p in psutil.process_iter(["pid", "create_time", "cmdline"]) if p.pid in pids]
    left = [p.info["cmdline"] for p in alive if started < p.info["create_time"] < (run.records.info.completed_at or 0)]
    assert left == []
