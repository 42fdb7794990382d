"""What a page is sent is enough to recompute every ratio as the ranking has it, to 1e-9."""

import numpy as np
import pytest
from scipy import special

from harness.benchmarks.simulation import sample
from harness.records.models import Sample
from harness.stats.model import LogMean, Table
from harness.stats.ranking import rank
from harness.tests.stats.records import run


def samples(servers: int, blocks: int) -> list[Sample]:
    generator = np.random.default_rng(servers)
    return [
        sample(f"s{i}", block, float(100 * 1.2**i * np.exp(0.05 * generator.normal())))
        for i in range(servers)
        for block in range(blocks)
    ]


def ratio(one: LogMean, other: LogMean, *, moderated: bool, confidence: float) -> tuple[float, float, float]:
    """The three formulas of docs/method.md, written out as a page has them."""
    assert one.squared_error is not None
    assert other.squared_error is not None
    assert one.freedom is not None
    assert other.freedom is not None
    error = one.squared_error + other.squared_error
    c, d, f, g = one.squared_error / error, other.squared_error / error, one.freedom, other.freedom
    if not moderated:
        freedom, scale = 1 / (c**2 / f + d**2 / g), 1.0
    elif min(f, g) <= 4:
        freedom, scale = min(f, g), 1.0
    else:
        first = c * f / (f - 2) + d * g / (g - 2)
        second = c**2 * f**2 / ((f - 2) ** 2 * (f - 4)) + d**2 * g**2 / ((g - 2) ** 2 * (g - 4))
        freedom = 4 + first**2 / second
        scale = (first * (freedom - 2) / freedom) ** 0.5
    half = float(special.stdtrit(freedom, 0.5 + confidence / 2)) * scale * error**0.5
    value = one.mean - other.mean
    return float(np.exp(value)), float(np.exp(value - half)), float(np.exp(value + half))


def headline(servers: int, blocks: int) -> Table:
    names = [f"s{i}" for i in range(servers)]
    return rank(run(*names, reference="s1"), samples(servers, blocks), [], []).test_types["json"].headline


@pytest.mark.parametrize(("servers", "blocks"), [(12, 3), (12, 5), (40, 4)])
def test_ratios_to_the_reference_follow_from_log_means(servers: int, blocks: int) -> None:
    table = headline(servers, blocks)
    how = table.throughput_comparability
    assert how is not None
    assert how.basis in {"moderated", "welch"}
    rows = {row.implementation: row.throughput for row in table.rows}
    base = rows["s1"]
    assert base is not None
    assert base.log_mean is not None
    for name, standing in rows.items():
        if name == "s1" or standing is None or standing.log_mean is None or standing.to_reference is None:
            continue
        known = standing.to_reference
        moderated = how.basis == "moderated"
        found = ratio(standing.log_mean, base.log_mean, moderated=moderated, confidence=0.95)
        assert found == pytest.approx((known.value, known.low, known.high), rel=1e-9)
        found = ratio(standing.log_mean, base.log_mean, moderated=moderated, confidence=1 - how.pair_level)
        assert found[1:] == pytest.approx((known.simultaneous_low, known.simultaneous_high), rel=1e-9)


def test_ratios_of_few_rows_follow_from_values_and_blocks() -> None:
    table = headline(3, 5)
    assert table.throughput_comparability is not None
    assert table.throughput_comparability.basis == "paired"
    one, base = (next(row.throughput for row in table.rows if row.implementation == name) for name in ("s0", "s1"))
    assert one is not None
    assert base is not None
    shared = dict(zip(base.estimate.blocks, base.estimate.values, strict=True))
    logs = [
        np.log(value / shared[block])
        for block, value in zip(one.estimate.blocks, one.estimate.values, strict=True)
        if block in shared
    ]
    half = special.stdtrit(len(logs) - 1, 0.975) * np.std(logs, ddof=1) / len(logs) ** 0.5
    assert one.to_reference is not None
    assert (one.to_reference.low, one.to_reference.high) == pytest.approx(
        (np.exp(np.mean(logs) - half), np.exp(np.mean(logs) + half)), rel=1e-9
    )


def test_what_a_row_is_compared_on_is_said_in_words() -> None:
    assert "moderated by those of the run's other cells" in getattr(
        headline(40, 4).throughput_comparability, "text", ""
    )
    assert "too few implementations" in getattr(headline(3, 5).throughput_comparability, "text", "")
