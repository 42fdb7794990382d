"""Tries are taken from blocks of their own, equals tie, and a slower server is found; the implementations are whole."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from harness.benchmarks import simulation, tries
from harness.errors import UsageError
from harness.request.discovery import scan
from harness.request.profile import Replication
from harness.results.records import Sample

RULE = Replication(minimum=5, maximum=15, looks=(5, 7, 10, 15), half_width=0.025)


def run_of(blocks: int, noise: float, slower: float = 1.1) -> list[Sample]:
    """Samples of the three servers with log-normal noise between replicates."""
    generator = np.random.default_rng(3)
    speeds = {tries.PLAIN: 1.0, tries.COPY: 1.0, tries.SLOWER: 1 / slower}
    return [
        simulation.sample(name, block, 10_000 * speed * float(generator.lognormal(sigma=noise)))
        for block in range(blocks)
        for name, speed in speeds.items()
    ]


def test_copies_tie_and_the_slower_one_is_found() -> None:
    samples = run_of(60, 0.01)
    copies = tries.play(samples, tries.PLAIN, tries.COPY, RULE, 12)
    assert sum(one.found["throughput"] == "tie" for one in copies) >= 11
    slower = tries.play(samples, tries.PLAIN, tries.SLOWER, RULE, 12)
    assert all(one.found["cpu_per_request"] == "first" for one in slower)
    assert all(one.replicates == RULE.minimum for one in slower)


def test_a_try_goes_on_around_the_end_of_the_run() -> None:
    found = tries.play(run_of(15, 0.3), tries.PLAIN, tries.COPY, RULE, 3)
    assert [one.replicates for one in found] == [RULE.maximum] * 3


def test_the_implementations_are_one_folder_with_three_tests(tmp_path: Path) -> None:
    tries.write_implementations(tmp_path, 123)
    found = scan(tmp_path)
    assert not found.problems
    spins = {i.name: i.entry.local.env["SPIN"] for i in found.implementations if i.entry.local}
    assert spins == {tries.PLAIN: "0", tries.COPY: "0", tries.SLOWER: "123"}


def test_too_few_blocks_are_refused_before_anything_is_measured() -> None:
    with pytest.raises(UsageError, match="--blocks 14"):
        tries.main(["--blocks", "14"])


def test_duets_of_a_try_find_the_slower_one_and_show_the_bias() -> None:
    generator = np.random.default_rng(2)
    played: list[Sample] = []
    for start in range(8):
        for number, (other, ratio) in enumerate(((tries.COPY, 1.0), (tries.SLOWER, 1 / 1.1), (tries.PLAIN, 1.0))):
            for pair in range(2):
                names = (tries.PLAIN, other) if pair == 0 else (other, tries.PLAIN)
                at = start * 100 + number * 30 + pair * 10
                for slot, name in enumerate(names):
                    speed = 10_000 * (ratio if name == tries.SLOWER else 1.0) * float(generator.lognormal(sigma=0.003))
                    changed = {"duet_partner": names[1 - slot], "started_at": at + slot * 0.1}
                    played.append(simulation.sample(name, start, speed).model_copy(update=changed))
    options = argparse.Namespace(tries=2, duets=4, duration=2, warm_up=3.0, more=10.0)
    rows = tries.duet_report(options, played, 0.95, 100).splitlines()[4:]
    copy, _, slower, _, itself, _ = ([cell.strip() for cell in row.strip("|").split("|")] for row in rows)
    assert copy[:5] == ["spin, spin-copy", "throughput", "2", "0", "0"]
    assert slower[:5] == ["spin, spin-slower", "throughput", "0", "2", "0"]
    assert float(slower[5].split("%")[0]) == pytest.approx(100 / 1.1 - 100, abs=0.5)
    assert itself[:2] == ["spin with itself", "throughput"]
    assert all(row[5].endswith("in 8 starts") for row in (copy, slower, itself))
