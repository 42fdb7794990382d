"""Sequential stopping: which implementation x test type still needs replicates, and why.

The data is looked at only at the replicate counts of the profile, each look with its own share of the error
(``rules.alpha_at``). Looking after every replicate at 95 % calls a true tie different in 22 to 25 % of runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.plan.profile import Replication
from harness.records.models import Load, Sample
from harness.stats import estimates, metric, pairs, priors, rules
from harness.stats.metric import MetricRows
from harness.stats.moderation import Prior
from harness.stats.values import CellValues, Matrix, best_level, collect, log_matrix


@dataclass(frozen=True, kw_only=True)
class Undecided:
    """One implementation x test type that needs another replicate."""

    implementation: str
    test_type: str
    reason: str


def undecided(
    samples: Sequence[Sample], expected: Sequence[tuple[str, str]], replication: Replication
) -> tuple[Undecided, ...]:
    """What needs another block, after any number of blocks; empty when the run is done.

    Past looks are replayed from the samples, so the answer depends on nothing but the records: an implementation that
    was decided at a look stays decided, and a resumed run stops where the uninterrupted one would have. A block counts
    when anything was measured in it; one whose samples all failed their gates was used up all the same.
    """
    blocks = sorted({sample.block for sample in samples if sample.duet_partner is None})
    done = len(blocks)
    if done >= replication.maximum:
        return ()
    looks = rules.looks(replication)
    following = next(look for look in looks if look > done)
    waiting = dict.fromkeys(expected, _not_yet(done, following, replication))
    for look in looks:
        if look > done or not waiting:
            break
        counted = set(blocks[:look])
        seen = [sample for sample in samples if sample.block in counted]
        reasons = _at_look(seen, expected, replication, rules.alpha_at(replication, look))
        waiting = {key: reasons[key] for key in waiting if key in reasons}
        if look < done:
            waiting = {key: f"{why}; next look at {following} replicates" for key, why in waiting.items()}
    return tuple(
        Undecided(implementation=name, test_type=test_type, reason=why) for (name, test_type), why in waiting.items()
    )


def _not_yet(done: int, following: int, replication: Replication) -> str:
    if done < replication.minimum:
        return f"{done} of at least {replication.minimum} replicates"
    return f"{done} replicates, next look at {following}"


def _at_look(
    samples: Sequence[Sample], expected: Sequence[tuple[str, str]], replication: Replication, alpha: float
) -> dict[tuple[str, str], str]:
    """Reasons of what is undecided at a look, by implementation and test type."""
    cells = collect(samples)
    known = priors.of_run(cells)
    reasons: dict[tuple[str, str], str] = {}
    for test_type in dict.fromkeys(kind for _, kind in expected):
        names = [name for name, kind in expected if kind == test_type]
        headline = {name: cell for name in names if (cell := _headline(cells.get((name, test_type), {})))}
        for name in names:
            if name not in headline:
                reasons[name, test_type] = "no valid sample yet"
        members = list(headline.items())
        for title, rows, prior in (
            ("throughput", metric.throughput(members), known.throughput),
            ("CPU per request", metric.cpu_per_request(members), known.cpu_per_request),
        ):
            for name, why in _open(rows, title, replication, alpha, prior).items():
                reasons.setdefault((name, test_type), why)
    return reasons


def _headline(cells: Mapping[Load, CellValues]) -> CellValues | None:
    """The cell that the headline table will show: the highest query count, or the best level so far."""
    by_queries = [level for level, cell in cells.items() if level.queries is not None and cell.throughput]
    level = max(by_queries, key=lambda level: level.queries or 0) if by_queries else best_level(cells)
    return cells[level] if level is not None else None


def _open(rows: MetricRows, title: str, replication: Replication, alpha: float, prior: Prior) -> dict[str, str]:
    """Implementations whose order is neither decided nor known to be a tie within the half-width, with the reason.

    A pair is settled when it differs significantly at this look's share of the error, or when the interval of its
    ratio is narrow enough to publish whatever it says. A lone implementation needs a narrow interval of its own.
    """
    names = list(rows.values)
    if not names:
        return {}
    narrow = float(np.log1p(replication.half_width))
    if len(names) == 1:
        return _alone(names[0], log_matrix(list(rows.values.values())), title, replication)
    compared, _ = metric.comparable(rows, prior)
    decided = pairs.significant(compared, alpha).rejected
    widths = pairs.half_widths(compared, replication.confidence)
    with np.errstate(invalid="ignore"):
        settled = decided | (widths <= narrow)
    np.fill_diagonal(settled, val=True)
    widths = np.where(settled, -1.0, np.nan_to_num(widths, nan=np.inf))
    found = {}
    for i in np.nonzero(~settled.all(axis=1))[0]:
        j = int(np.argmax(widths[i]))
        width = widths[i, j]
        is_known = "unknown" if not np.isfinite(width) else f"known to ±{np.expm1(width):.1%}"
        found[names[i]] = (
            f"{title}: order against {names[j]} is open, ratio {is_known}, wanted ±{replication.half_width:.1%}"
        )
    return found


def _alone(name: str, logs: Matrix, title: str, replication: Replication) -> dict[str, str]:
    stats = estimates.moments(logs)
    low, high = estimates.intervals(stats, replication.confidence)
    half = float(np.log(high[0] / low[0]) / 2)
    if half <= np.log1p(replication.half_width):
        return {}
    return {name: f"{title}: known to ±{np.expm1(half):.1%}, wanted ±{replication.half_width:.1%}"}
