"""What fresh processes differ by, from several runs of one process each."""

import numpy as np
import pytest

from harness.benchmarks.between import Table, between, tables
from harness.errors import UsageError
from harness.stats.ranking import rank
from harness.tests import records


def drawn(processes: float, windows: float, *, seed: int = 1, runs: int = 400) -> list[Table]:
    """Six tables of five servers: speeds, runs of unlike speed, processes and windows' noise."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(6):
        speeds, drift = generator.normal(0, 1, 5), generator.normal(0, 0.5, (runs, 1))
        noise = generator.normal(0, processes, (runs, 5)) + generator.normal(0, windows, (runs, 5))
        found.append(Table(logs=speeds + drift + noise, from_windows=np.full((runs, 5), windows**2)))
    return found


@pytest.mark.parametrize(("processes", "windows"), [(0.10, 0.05), (0.05, 0.10), (0.05, 0.0)])
def test_the_variance_between_processes_is_what_the_windows_do_not_explain(processes: float, windows: float) -> None:
    found = between(drawn(processes, windows))
    assert found.processes == pytest.approx(processes, rel=0.1)
    assert found.low < processes < found.high
    assert found.seen == pytest.approx(np.hypot(processes, windows), rel=0.03)


def test_where_the_windows_explain_all_nothing_is_left_for_processes() -> None:
    tables = [Table(logs=table.logs, from_windows=table.from_windows * 2) for table in drawn(0.0, 0.1)]
    assert (between(tables).processes, between(tables).low) == (0.0, 0.0)


def test_tests_that_share_processes_are_worth_fewer_degrees_of_freedom_than_they_count() -> None:
    found = between(drawn(0.05, 0.05, runs=3))
    assert found.freedom == pytest.approx(6 * 8 / 3.5)


def test_runs_of_blocks_are_refused() -> None:
    ranking = rank(records.info(), records.samples(), [], [])
    with pytest.raises(UsageError, match="was not measured in turns by one process"):
        list(tables([ranking, ranking], "throughput"))
