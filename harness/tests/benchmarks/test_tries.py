"""Tries are taken from blocks of their own, equals tie, and a slower server is found; the implementations are whole."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from harness.benchmarks import simulation, tries
from harness.errors import UsageError
from harness.plan.discovery import scan
from harness.plan.profile import Replication
from harness.records.models import Sample

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


def test_turns_are_decided_by_their_own_rounds_whatever_the_rounds_share() -> None:
    """Rounds that differ by a third, and windows by 3 %: copies tie, and a tenth is found in every try."""
    generator = np.random.default_rng(4)
    shared = generator.lognormal(sigma=0.3, size=65)
    samples = [
        sample.model_copy(update={"round": at, "block": 0, "throughput": sample.throughput * shared[at]})
        for sample in run_of(65, 0.03)
        for at in (sample.block,)
    ]
    options = argparse.Namespace(turns=10, tries=6, duration=1, more=10.0)
    first, *_ = lines = tries.turns_report(options, samples, 100).splitlines()
    assert first.startswith("6 tries of 10 rounds, windows of 1 s: 20 s of load a pair")
    copy, _, slower, _ = ([cell.strip() for cell in row.strip("|").split("|")] for row in lines[4:])
    assert copy[:2] == ["spin, spin-copy", "throughput"]
    assert int(copy[2]) >= 5
    assert slower[:5] == ["spin, spin-slower", "throughput", "0", "6", "0"]
    assert float(slower[5].split("×")[0]) == pytest.approx(1 / 1.1, abs=0.02)
    alone = tries.turns_report(options, [s for s in samples if s.implementation != tries.COPY], 100)
    assert tries.COPY not in alone


def test_a_run_in_turns_lasts_as_long_as_its_tries(tmp_path: Path) -> None:
    tries.write_implementations(tmp_path, 123, copy=False)
    assert [i.name for i in scan(tmp_path).implementations] == [tries.PLAIN, tries.SLOWER]
    options = argparse.Namespace(turns=30, tries=20, duration=1, without_copy=True, seed=3, results=None)
    profile = tries._in_turns(options, tmp_path).profile
    assert profile.rounds is not None
    assert profile.rounds.time_seconds == 60 + 20 * 30 * 2 * 1.35
    assert (profile.rounds.every_level, profile.rounds.processes, profile.rounds.headline_seconds) == (True, 1, 1.0)
