"""How a run ends: what failed, and which records say so."""

import json
from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.host.clock import SYSTEM_CLOCK
from harness.records import store
from harness.records.models import Build, Outcome, RunInfo
from harness.records.store import RunStore
from harness.run import workflow
from harness.run.progress import Progress, QuietDisplay
from harness.tests import records


def built(info: RunInfo, **reasons: str) -> RunInfo:
    """Every implementation built, those with a reason failed."""
    changed = [
        i.model_copy(
            update={"build": Build(status="failed" if i.name in reasons else "ok", reason=reasons.get(i.name, ""))}
        )
        for i in info.implementations
    ]
    return info.model_copy(update={"implementations": tuple(changed)})


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    written = records.write(tmp_path)
    written.write_info(built(records.info()))
    return written


def test_a_cell_without_a_valid_sample_fails_the_run(run: RunStore) -> None:
    outcome = workflow.conclude(run, "complete", clock=SYSTEM_CLOCK)
    assert outcome.failures == ("slow query c64 q20: no valid sample",)
    assert (outcome.exit_code, outcome.records.info.status) == (1, "failed")


def test_a_complete_run_has_all_its_files_and_exit_code_0(run: RunStore) -> None:
    whole = [s for s in records.samples() if not s.rankable]
    for sample in whole:
        run.add_sample(sample.model_copy(update={"gates": (), "attempt": 1}))
    outcome = workflow.conclude(run, "complete", clock=SYSTEM_CLOCK)
    assert (outcome.failures, outcome.exit_code, outcome.records.info.status) == ((), 0, "complete")
    assert set(json.loads((run.folder / "ranking.json").read_text())["test_types"]) == set(records.LEVELS)
    assert json.loads((run.folder / "results.json").read_text())["frameworks"] == ["fast", "slow"]


def test_a_failed_build_replicate_and_verdict_are_named_once_each(run: RunStore) -> None:
    run.write_info(built(records.info(), slow="mvn package failed (exit status 1):\nlast line\nlog: x"))
    run.add_replicate(
        records.replicate("fast", 1, "failed").model_copy(update={"reason": "fast: the server ended:\nmore"})
    )
    run.add_verdict(records.verdict("fast", "json", Outcome.FAIL))
    assert workflow.failures(store.read(run.folder)) == (
        "fast json: verification failed",
        "slow failed: mvn package failed (exit status 1):",
        "fast replicate 2: the server ended:",
    )


def test_an_interrupted_run_says_so_and_blames_nobody(run: RunStore) -> None:
    workflow.give_up(run, Progress(QuietDisplay()), KeyboardInterrupt(), SYSTEM_CLOCK)
    info = store.read(run.folder).info
    assert (info.status, info.problems) == ("interrupted", ("interrupted",))


def test_a_run_that_failed_keeps_the_reason(run: RunStore) -> None:
    workflow.give_up(run, Progress(QuietDisplay()), StoreError("disk full"), SYSTEM_CLOCK)
    info = store.read(run.folder).info
    assert (info.status, info.problems) == ("failed", ("disk full",))


def test_what_cannot_be_written_at_the_end_does_not_hide_the_first_error(
    run: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("second")

    monkeypatch.setattr(run, "write_info", fail)
    workflow.give_up(run, Progress(QuietDisplay()), StoreError("first"), SYSTEM_CLOCK)
    assert store.read(run.folder).info.status == "complete"  # as it was
