"""What a run's page first needs of a ranking: its headline tables, with what the page shows of each row."""

from harness.stats.model import ClosedLoopLatency, Estimate, Ranking, Ratio, Row, Standing, TestTypeRanking

DIGITS = 10  # significant ones of what is shown: what the page computes of them agrees with the ranking to 1e-9


def shown(ranking: Ranking) -> Ranking:
    """Without tables of single levels, values of single replicates, and what intervals are made of: half the bytes."""
    return ranking.model_copy(update={"test_types": {name: _test(test) for name, test in ranking.test_types.items()}})


def _test(test: TestTypeRanking) -> TestTypeRanking:
    headline = test.headline.model_copy(update={"rows": tuple(_row(row) for row in test.headline.rows)})
    return test.model_copy(update={"headline": headline, "levels": ()})


def _row(row: Row) -> Row:
    return row.model_copy(
        update={
            "throughput": _standing(row.throughput),
            "cpu_per_request": _standing(row.cpu_per_request),
            "latency": _latency(row.latency),
        }
    )


def _latency(latency: ClosedLoopLatency | None) -> ClosedLoopLatency | None:
    if latency is None:
        return None
    percentiles = {name: _estimate(each) for name, each in latency.percentiles.items()}
    return latency.model_copy(update={"mean": _estimate(latency.mean), "percentiles": percentiles})


def _standing(standing: Standing | None) -> Standing | None:
    if standing is None:
        return None
    return standing.model_copy(
        update={
            "estimate": _estimate(standing.estimate),
            "to_reference": _ratio(standing.to_reference),
            "to_best": _ratio(standing.to_best),
            "log_mean": None,
            "comparison": None,
            "components": None,
        }
    )


def _estimate(estimate: Estimate) -> Estimate:
    return estimate.model_copy(
        update={
            "median": _rounded(estimate.median),
            "low": _rounded(estimate.low),
            "high": _rounded(estimate.high),
            "values": (),
            "blocks": (),
        }
    )


def _ratio(ratio: Ratio | None) -> Ratio | None:
    return ratio and ratio.model_copy(
        update={
            "value": _rounded(ratio.value),
            "low": _rounded(ratio.low),
            "high": _rounded(ratio.high),
            "simultaneous_low": None,
            "simultaneous_high": None,
        }
    )


def _rounded(value: float | None) -> float | None:
    return value if value is None else float(f"{value:.{DIGITS}g}")
