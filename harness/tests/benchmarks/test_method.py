"""The replays of both methods count right, wrong and tied as they should, and the report says how it was made."""

from pathlib import Path

import numpy as np
import pytest

from harness.benchmarks import method, trials
from harness.benchmarks.trials import Block, Point
from harness.errors import UsageError
from harness.plan.profile import Replication

RULE = Replication(minimum=5, maximum=10, looks=(5, 7, 10))


def pool(ratio: float, noise: float, blocks: int = 12, seed: int = 4) -> list[Block]:
    """Blocks of two servers, one ``ratio`` times as fast as the other, with log-normal noise in everything."""
    generator = np.random.default_rng(seed)

    def point(speed: float) -> Point:
        luck = float(generator.lognormal(sigma=noise))
        return Point(throughput=1000 * speed * luck, cpu_per_request=1e-3 / (speed * luck))

    return [
        Block(faster=point(ratio), slower=point(1.0), faster_single=point(ratio), slower_single=point(1.0))
        for _ in range(blocks)
    ]


@pytest.mark.parametrize("metric", trials.METRICS)
def test_single_windows_always_show_an_order_even_of_equals(metric: trials.Metric) -> None:
    found = trials.single_windows(pool(1.0, 0.05), metric)
    assert found.right + found.wrong == pytest.approx(1.0)
    assert 0.2 < found.right < 0.8
    assert found.tied == 0.0


def test_this_method_calls_equals_tied_and_a_clear_difference_right() -> None:
    generator = np.random.default_rng(5)
    same = trials.sequential(pool(1.0, 0.02), RULE, 16, generator)["throughput"]
    assert same.tied >= 0.9
    clear = trials.sequential(pool(1.2, 0.02), RULE, 16, generator)["cpu_per_request"]
    assert clear.right >= 0.95
    assert clear.replicates < same.replicates


def test_the_ratio_seen_is_within_blocks() -> None:
    found = trials.true_ratio(pool(1.2, 0.01), "cpu_per_request")
    assert found.value == pytest.approx(1.2, rel=0.02)
    assert found.low is not None
    assert found.low > 1.15


def test_the_report_has_a_line_for_each_method_and_admits_shortened_windows(tmp_path: Path) -> None:
    options = method.parse(["--single", "2", "--tries", "5", "--blocks", "12"])
    pools = method.Pools(
        blocks={difference: pool(1 + difference, 0.02) for difference in method.DIFFERENCES},
        duets={difference: [] for difference in method.DIFFERENCES},
        rounds=1000.0,
        wall_seconds=60.0,
    )
    text = method.report(options, RULE, pools)
    assert "TechEmpower's is 15 s; shortened here" in text
    assert text.count("| 10% |") == 6
    assert "one window, throughput | – | 100% | 0% | 4 |" in text  # any order of equals is wrong
    page = tmp_path / "page.md"
    page.write_text(f"before\n{method.BEGIN}\nold\n{method.END}\nafter\n", encoding="utf-8")
    method.write(page, text)
    assert page.read_text(encoding="utf-8") == f"before\n{method.BEGIN}\n{text}\n{method.END}\nafter\n"


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here", encoding="utf-8")
    with pytest.raises(UsageError, match="has no lines"):
        method.write(page, "text")
    assert page.read_text(encoding="utf-8") == "nothing here"


def test_too_few_blocks_are_refused_before_anything_is_measured() -> None:
    with pytest.raises(UsageError, match="needs at least 5"):
        method.main(["--blocks", "4"])
