"""Records verdicts on processes, and reports each cause of failure once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.experiment.progress import ProgressTracker
from harness.experiment.running_process import RunningProcess
from harness.records.outcome import Outcome, worst_outcome
from harness.records.store import RunStore
from harness.records.verification_record import CheckResult, VerificationRecord
from harness.report.causes import cause_key, format_result, group_causes

FailedCheck: TypeAlias = tuple[str, CheckResult]  # test type, and a check result that fails it


@dataclass(kw_only=True)
class FailureReporter:
    """A recorder of verdicts and failures of a run's processes, which reports each cause once."""

    store: RunStore
    progress: ProgressTracker
    _reported: set[object] = field(default_factory=set)  # pairs of implementation and cause

    def add_verdict(self, running: RunningProcess, verdict: VerificationRecord) -> None:
        """Record a verdict on a test type, and replace an earlier verdict."""
        running.verdicts[verdict.test_type] = verdict
        self.store.add_verdict(verdict)

    def add_results(self, running: RunningProcess, test_type: str, results: Sequence[CheckResult]) -> list[FailedCheck]:
        """Add results to the verdict on a test type, and return the failed results."""
        if results:
            self.add_verdict(running, with_results(running.verdicts[test_type], results))
        return [(test_type, result) for result in results if result.outcome is Outcome.FAIL]

    def report_causes(
        self, running: RunningProcess, failed: Sequence[FailedCheck], when: str = "", quoted: Sequence[str] = ()
    ) -> None:
        """Report each cause once for all test types that it fails.

        Args:
            running: The failed process.
            failed: The failed checks.
            when: The time of the failure, as a phrase.
            quoted: Lines of the server's log.
        """
        log = f"; server log: {' | '.join(quoted)}" if quoted else ""
        for cause in group_causes(failed):
            identity = cause_key(cause.result)
            if identity not in running.reported_causes:
                running.reported_causes.add(identity)
                text = f"{', '.join(cause.test_types)}: {f'{when}: ' if when else ''}{format_result(cause.result)}{log}"
                self.fail(running, text, cause=(cause.test_types, identity))

    def report_ignored_variables(self, running: RunningProcess, failed: Sequence[FailedCheck]) -> None:
        """Report database variables that a server ignores, if a test type that needs the database failed."""
        kinds = running.implementation.test_types
        if running.refusal_watch and any(kinds[kind].reads_database for kind, _ in failed):
            for mistake in running.refusal_watch.find_mistakes(running.log, expected=True):
                self.fail(running, f"{running.process.implementation} {mistake}")

    def fail(self, running: RunningProcess, reason: str, cause: object = None) -> None:
        """Record why a process failed. Report each cause once for all processes of an implementation."""
        running.reasons.append(reason)
        name = running.process.implementation
        if cause is not None and (name, cause) in self._reported:
            return
        self._reported.add((name, cause))
        self.progress.problem(reason if reason.startswith(f"{name}:") else f"{name} {reason}")


def with_results(verdict: VerificationRecord, results: Sequence[CheckResult]) -> VerificationRecord:
    """Return the verdict with additional results; the outcome is the worst of all results."""
    combined = (*verdict.results, *results)
    outcome = worst_outcome(result.outcome for result in combined)
    return verdict.model_copy(update={"results": combined, "outcome": outcome})
