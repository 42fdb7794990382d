"""The whole ranking of a run's folder: its samples, and beside them the loads at given rates and the order service."""

from collections.abc import Sequence
from pathlib import Path

from harness.rank.capacity import with_latency
from harness.rank.closed_loop_rows import with_closed_loop
from harness.rank.model import Ranking
from harness.rank.orders import with_orders
from harness.rank.ranking import rank
from harness.results import orders, rates
from harness.results.records import ReplicateRecord, RunInfo, Sample, Verdict


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
