"""The whole ranking of a run's folder: its samples, and beside them the loads at given rates and the order service."""

from collections.abc import Sequence
from pathlib import Path

from harness.records import orders, rates
from harness.records.models import ReplicateRecord, RunInfo, Sample, Verdict
from harness.stats.capacity import with_latency
from harness.stats.closed_loop_rows import with_closed_loop
from harness.stats.model import Ranking
from harness.stats.orders import with_orders
from harness.stats.ranking import rank


def rank_whole(
    folder: Path,
    info: RunInfo,
    samples: Sequence[Sample],
    replicates: Sequence[ReplicateRecord],
    verdicts: Sequence[Verdict],
) -> tuple[Ranking, tuple[str, ...]]:
    """The ranking, and a message for each line of the further files that could not be read."""
    at_rates, arrivals = rates.read(folder), orders.read(folder)
    ranked = with_closed_loop(rank(info, samples, replicates, verdicts), samples)
    ranking = with_latency(ranked, info, at_rates)
    return with_orders(ranking, info, samples, arrivals), (*at_rates.problems, *arrivals.problems)
