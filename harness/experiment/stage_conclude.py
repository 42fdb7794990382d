"""The last stage of a run: ranks the trials and records how the run ended."""

import json
from dataclasses import dataclass, replace
from typing import Literal

from harness.errors import Exit
from harness.experiment.ending import final_status, judge_implementations
from harness.experiment.stage_measure import Measured
from harness.host.clock import Clock
from harness.records import store
from harness.records.run_records import RunRecords
from harness.records.store import RunStore
from harness.report import techempower
from harness.report.verification_results import ImplementationVerdict
from harness.stats.ranking import rank
from harness.stats.ranking_model import Ranking


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """A finished run: its records, ranking, failures and verdicts."""

    records: RunRecords
    ranking: Ranking
    failures: tuple[str, ...]  # failures, followed by the cells that the run had no time to measure
    verdicts: tuple[ImplementationVerdict, ...] = ()  # one verdict for each implementation

    @property
    def exit_code(self) -> Exit:
        """The exit code: OK only if every selected cell was measured and every implementation passed verification."""
        return Exit.FAILED if self.failures else Exit.OK


def conclude(measured: Measured) -> RunOutcome:
    """Record the end of a complete run and return the result."""
    context = measured.context
    outcome = record_end(context.store, "complete", clock=context.dependencies.clock)
    context.progress.finish(outcome.records.info.status)
    skipped = tuple(
        ImplementationVerdict(implementation=i, verdict="skipped", reason=reason) for i, reason in measured.skipped
    )
    return replace(outcome, verdicts=(*judge_implementations(outcome.records), *skipped))


def record_end(
    run_store: RunStore, status: Literal["complete", "failed", "interrupted"], reason: str = "", *, clock: Clock
) -> RunOutcome:
    """Rank a run's trials. Write run.json, ranking.json and, in TechEmpower's format, results.json.

    ``status`` is "complete" if every step was executed. Otherwise, ``reason`` explains why the run stopped early.
    """
    run_store.require_unchanged()
    recorded = store.read_run(run_store.folder)
    final, problems, failures = final_status(recorded, status, reason)
    end = {"status": final, "completed_at": clock.time(), "problems": problems}
    info = recorded.info.model_copy(update=end)
    records = replace(recorded, info=info)
    try:
        ranking = rank(info, records.trials, records.processes, records.verdicts)
        run_store.write_text("ranking.json", ranking.to_json())
        run_store.write_text("results.json", json.dumps(techempower.document(records), indent=1))
    finally:
        # Write run.json last, so that ranking.json exists before the final status. Write it even after an error.
        run_store.write_info(info)
    return RunOutcome(records=records, ranking=ranking, failures=failures)
