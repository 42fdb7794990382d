"""What windows vary by is told from servers apart, and neighbours in time from strangers."""

import math
import random

import pytest

from harness.benchmarks import windows
from harness.benchmarks.windows import Window
from harness.errors import UsageError


def drifting(count: int = 400, apart: float = 1.0) -> list[Window]:
    """Two servers a factor of four apart on a machine that is slow for four seconds and quick for four."""
    dice = random.Random(1)
    servers = [dice.choice((("a", 1), ("b", 4))) for _ in range(count)]
    slow = [0.2 if at * apart % 8 < 4 else -0.2 for at in range(count)]
    return [
        Window(at * apart, server, 1.0, math.log(1e-5 * cost) + slow[at] + dice.gauss(0, 0.05))
        for at, (server, cost) in enumerate(servers)
    ]


def test_neighbours_in_time_are_alike_whatever_server_they_are_of() -> None:
    found = {(one.low, one.high): one.correlation for one in windows.alike(drifting())}
    assert found[0.0, 1.5] > 0.4
    assert found[3.0, 6.0] < -0.4
    assert abs(found[24.0, 48.0]) < 0.1


def test_the_spread_is_of_windows_and_not_of_servers() -> None:
    (found,) = windows.spreads(drifting()).values()
    assert found == pytest.approx(math.hypot(0.2, 0.05), rel=0.1)


def test_lengths_are_told_apart() -> None:
    lengths = ((1.0, 0.1), (2.0, 0.3))
    made = [Window(at, "a", length, spread * (-1) ** at) for length, spread in lengths for at in range(50)]
    assert windows.spreads(made) == pytest.approx({1.0: 0.1, 2.0: 0.3}, rel=0.02)
    lines = list(windows.report(made))
    assert "| 1 | 10.1% |" in lines
    assert any(line.startswith("| 0 to 1.5 |") for line in lines)


def test_one_lap_shows_nothing() -> None:
    with pytest.raises(UsageError, match="--laps 2"):
        windows.spreads([Window(0.0, "a", 1.0, 0.0)])


@pytest.mark.parametrize("text", ["http://127.0.0.1:8080/json", "=12", "http://x/=y"])
def test_a_server_is_a_url_and_a_process(text: str) -> None:
    with pytest.raises(UsageError, match="expected URL=PID"):
        windows.main([text])
