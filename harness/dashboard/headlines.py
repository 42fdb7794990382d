"""What a run's page first needs of a ranking: its headline tables, with what the page shows of each row."""

from harness.rank.model import Ranking, Ratio, Row, Standing, TestTypeRanking


def shown(ranking: Ranking) -> Ranking:
    """Without tables of single levels, values of single replicates, and what intervals are made of: half the bytes."""
    return ranking.model_copy(update={"test_types": {name: _test(test) for name, test in ranking.test_types.items()}})


def _test(test: TestTypeRanking) -> TestTypeRanking:
    headline = test.headline.model_copy(update={"rows": tuple(_row(row) for row in test.headline.rows)})
    return test.model_copy(update={"headline": headline, "levels": ()})


def _row(row: Row) -> Row:
    return row.model_copy(
        update={"throughput": _standing(row.throughput), "cpu_per_request": _standing(row.cpu_per_request)}
    )


def _standing(standing: Standing | None) -> Standing | None:
    if standing is None:
        return None
    return standing.model_copy(
        update={
            "estimate": standing.estimate.model_copy(update={"values": (), "blocks": ()}),
            "to_reference": _ratio(standing.to_reference),
            "to_best": _ratio(standing.to_best),
            "log_mean": None,
            "comparison": None,
        }
    )


def _ratio(ratio: Ratio | None) -> Ratio | None:
    return ratio and ratio.model_copy(update={"simultaneous_low": None, "simultaneous_high": None})
