"""``python -m harness.studies.auditing NAME… [--type json db] [--time 10m]``: shows what auditing costs a server.

A run in which a coin decides of each trial whether its answers are sampled, its statements counted and rows changed
behind the server, or it is only loaded. Ratios of audited to plain trials within each cell of each process, with a 95 %
interval; beside them the same ratio of two random halves of the plain ones, which should be 1.
"""

import argparse
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from scipy.stats import t

from harness.cli.run import settings
from harness.cli.verbs import asked
from harness.experiment import workflow
from harness.experiment.progress import Progress, display
from harness.plan.testtypes import TestType
from harness.records.models import CheckResult, Evidence, Load, Trial
from harness.runtime import DatabaseAddress, Server
from harness.verify.checks.evidence import Account, Sampling
from harness.verify.trial import TrialAudit
from harness.verify.verifier import Verifier

METRICS = ("cpu_per_request", "throughput")


class Plain(TrialAudit):
    """A load of which nothing is looked at: one answer in a billion is written out."""

    def __init__(self) -> None:
        self.sampling = Sampling(share=1e-9, answers=1, bytes=1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def judge(self, *, good: int, failed: int, account: Account | None, answers: object) -> Evidence:
        """Nothing."""
        return Evidence(answers=0, of=good + failed)


class Halved(Verifier):
    """Audits a trial or leaves it alone; what a process leaves behind is not judged, since half of it is not known."""

    def trial(
        self, server: Server, test_type: TestType, load: Load, database: DatabaseAddress, *,
        seconds: float, rate: float | None, seed: int,
    ) -> TrialAudit:  # fmt: skip
        """By the trial's own seed."""
        if random.Random(seed).random() < 0.5:
            return Plain()
        return super().trial(server, test_type, load, database, seconds=seconds, rate=rate, seed=seed)

    def end(self, database: DatabaseAddress) -> tuple[CheckResult, ...]:
        """Nothing."""
        super().end(database)
        return ()


Halves = dict[tuple[object, ...], tuple[list[float], list[float]]]


def halves(trials: Iterable[Trial], metric: str, seed: int | None = None) -> Halves:
    """Logarithms of the plain and of the audited trials of each cell of each process; with a seed of plain halves."""
    found: Halves = defaultdict(lambda: ([], []))
    dice = random.Random(seed)
    for trial in trials:
        value = getattr(trial, metric)
        audited = trial.evidence is not None and trial.evidence.answers > 0
        if not value or trial.purpose != "measure" or (seed is not None and audited):
            continue
        second = audited if seed is None else dice.random() < 0.5
        found[trial.implementation, trial.test_type, trial.load, trial.process][second].append(math.log(value))
    return found


def ratio(found: Halves) -> tuple[float, float, float, int]:
    """Audited over plain: geometric mean over cells with its 95 % interval, and how many cells have both."""
    logs = [statistics.fmean(b) - statistics.fmean(a) for a, b in found.values() if a and b]
    if len(logs) < 2:
        return math.nan, math.nan, math.nan, len(logs)
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    width = float(t.ppf(0.975, len(logs) - 1)) * error
    return math.exp(mean), math.exp(mean - width), math.exp(mean + width), len(logs)


def main(argv: Sequence[str] | None = None) -> None:
    """Run, and print two lines a metric."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs=argparse.REMAINDER, help="of ./tfb run")
    words = ("run", *parser.parse_args(argv).words)
    needs = workflow.Dependencies(verifier=Halved())
    outcome = workflow.benchmark(settings(asked(words), words), Progress(display(quiet=False)), needs)
    for metric in METRICS:
        for name, seed in (("audited ÷ plain", None), ("plain ÷ plain", 1)):
            value, low, high, cells = ratio(halves(outcome.records.trials, metric, seed))
            print(f"{metric}: {name} {value:.3f} [{low:.3f}, {high:.3f}] over {cells} cells")


if __name__ == "__main__":
    main()
