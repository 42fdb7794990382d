"""Latency at given rates in every rendering: the same figures, and what must be known of them."""

import csv
import io
import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.plan import profile as profiles
from harness.records import store
from harness.stats.capacity import own_share, shown
from harness.stats.model import MachineLatency
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("latency")
    servers = {"quick": Behaviour(cpu_per_request=1e-4), "slow": Behaviour(cpu_per_request=4e-4)}
    FakeRun(folder, servers, profiles.load("latency")).run()
    return store.runs(folder / "results")[-1]


def exported(run: Path, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["report", str(run), "--format", name]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_people_see_the_capacity_at_the_goal_and_latency_over_load(
    run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = exported(run, name, capsys)
    assert "json, capacity at p99 ≤ 10 ms" in text
    assert "json, latency over load" in text
    assert "10% of own" in text
    assert "same for all" in text
    assert "from the intended send time" in text


def test_csv_has_a_line_a_rate_and_one_for_the_goal(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(run, "latency-csv", capsys))))
    kinds = [(row["implementation"], row["kind"]) for row in rows]
    assert kinds.count(("quick", "share")) == 7
    assert kinds.count(("quick", "common")) == 2
    assert kinds.count(("slow", "goal")) == 1
    (goal,) = [row for row in rows if (row["implementation"], row["kind"]) == ("quick", "goal")]
    assert (goal["goal_rank_low"], goal["goal_rank_high"], goal["goal_percentile"]) == ("1", "1", "99.0")
    low, middle, high = (float(goal[f"goal_requests_per_second{end}"]) for end in ("_low", "", "_high"))
    assert low <= middle <= high
    half = next(row for row in rows if row["share"] == "0.5" and row["implementation"] == "quick")
    assert float(half["latency_p99_seconds"]) == pytest.approx(4.605 / 10_000, rel=0.05)


def test_techempower_s_document_has_it_under_a_key_of_our_own(run: Path) -> None:
    document = json.loads((run / "results.json").read_text())
    rows = document["tfb"]["latency"]["json"]["rows"]
    assert [row["implementation"] for row in rows] == ["quick", "slow"]
    assert "latency" not in document["rawData"]["json"]["quick"][0]


def test_a_percentile_is_shown_with_five_slower_requests() -> None:
    assert shown("99", 500)
    assert not shown("99", 499)
    assert shown("99.9", 5000)
    assert not shown("99.9", 4999)


def test_the_machine_s_own_part_is_a_share_of_the_same_percentile() -> None:
    machine = MachineLatency(rate=1000, percentiles={"50": 1e-4}, lag_p99=None)
    assert own_share(machine, 4e-4) == pytest.approx(0.25)
    assert own_share(machine, 5e-5) == 1.0
    assert own_share(None, 4e-4) is None
    assert own_share(machine, 4e-4, "99") is None
