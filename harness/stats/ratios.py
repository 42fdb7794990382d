"""The ratio of any two rows of a metric, by the comparison that the tables use."""

from collections.abc import Sequence

import numpy as np

from harness.stats import metric
from harness.stats.estimates import finite
from harness.stats.metric import MetricRows
from harness.stats.model import Ratio
from harness.stats.moderation import Prior


def prior(tables: Sequence[MetricRows]) -> Prior:
    """What all tables of a run teach of the variances of one metric."""
    return metric.prior([metric.fitted(rows) for rows in tables if rows.values])


def ratio(rows: MetricRows, of: str, to: str, known: Prior, confidence: float) -> Ratio | None:
    """Row ``of`` over row ``to`` with its interval at this confidence; None where one of them has no value.

    With a single process each there is a ratio and no interval.
    """
    names = list(rows.values)
    if of not in names or to not in names:
        return None
    compared, _ = metric.comparable(rows, known)
    contrasts = compared.against(names.index(to))
    index = names.index(of)
    effect, half = float(contrasts.difference[index]), float(contrasts.half_width(confidence)[index])
    return Ratio(value=float(np.exp(effect)), low=finite(np.exp(effect - half)), high=finite(np.exp(effect + half)))
