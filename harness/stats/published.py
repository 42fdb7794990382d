"""Compares a run with a published TechEmpower round, for the test types and implementations that both measured.

Machines, load generators, networks and rules differ, so a run's throughput cannot be compared directly with a round's.
Two comparisons are possible: throughput relative to the geometric mean of the common implementations, and the order of
each pair of implementations.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from harness.errors import UsageError
from harness.records import safe_read
from harness.stats.ranking_model import Ranking

MAX_FILE_BYTES = 64 << 20
# TechEmpower's table shows these test types at the last concurrency level, and all other test types at the best level.
QUERY_SWEEPS = ("query", "update", "cached-query")
TEST_TYPE_BY_KEY = {"cached_query": "cached-query"}


@dataclass(frozen=True, kw_only=True)
class PublishedRates:
    """Throughput of all implementations in a TechEmpower round."""

    name: str
    environment: str
    rates: Mapping[str, Mapping[str, float]]  # test type -> implementation -> requests per second


@dataclass(frozen=True, kw_only=True)
class SharedCell:
    """An implementation and test type that both the round and the run measured."""

    test_type: str
    implementation: str
    round_rank: int
    run_rank: int
    round_share: float  # throughput in the round, relative to the geometric mean of the common implementations
    run_share: float  # throughput in the run, relative to the geometric mean of the same implementations


@dataclass(frozen=True, kw_only=True)
class OrderAgreement:
    """Agreement between a run and a round about the order of implementations in a test type."""

    test_type: str
    pairs: int
    same: int  # number of pairs that both results rank in the same order
    # Pairs (faster in the run, slower in the run) that have the opposite order in the round, although the run's rank
    # intervals do not overlap.
    reversed_decided: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class RoundComparison:
    """Throughput and order of implementations in a run, compared with a published round."""

    rows: tuple[SharedCell, ...]
    agreements: tuple[OrderAgreement, ...]
    only_run: tuple[str, ...]  # implementations that do not occur in the round


def read_round(path: Path) -> PublishedRates:
    """Read a results.json of TechEmpower. Raises UsageError if the file is unreadable or has a different format."""
    try:
        document: Any = safe_read.parse_json(safe_read.read(path, MAX_FILE_BYTES))
        seconds = _parse_number(document.get("duration") or 15)
        rates: dict[str, dict[str, float]] = {}
        for key, by_name in document["rawData"].items():
            kind = TEST_TYPE_BY_KEY.get(key, key)
            for name, entries in by_name.items():  # skip counts of source lines, which are not lists
                if isinstance(entries, list) and (rate := _successful_responses(kind, entries) / seconds) > 0:
                    rates.setdefault(kind, {})[name] = _parse_number(rate)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}. Expected a TechEmpower results.json") from error
    except (ValueError, ArithmeticError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not a TechEmpower results.json ({error!r:.300})") from error
    return PublishedRates(
        name=str(document.get("name") or path.stem),
        environment=str(document.get("environmentDescription") or "an unnamed machine"),
        rates=rates,
    )


def _successful_responses(kind: str, entries: list[Any]) -> float:
    """Return the number of successful responses at the level in TechEmpower's table, or 0 if there is no level."""
    by_level = [
        _parse_number(entry.get("totalRequests") or 0) - _parse_number(entry.get("5xx") or 0) for entry in entries
    ]
    return max(by_level[-1:] if kind in QUERY_SWEEPS else by_level, default=0.0)


def _parse_number(value: float | str) -> float:
    """Convert a number to float. Raises ValueError or OverflowError unless it is finite and non-negative."""
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{value!r:.40} must be a finite, non-negative number")
    return number


def compare_with_round(round_: PublishedRates, ranking: Ranking) -> RoundComparison:
    """Compare a run with a round, in the run's order of test types.

    An implementation ``x@tree`` of the run is compared with ``x`` in the round.

    If the run's leading metric is CPU per request, compare the inverse with the round's throughput. The inverse is
    proportional to the throughput of a server that has the machine to itself.
    """
    rows: list[SharedCell] = []
    agreements: list[OrderAgreement] = []
    only_run: set[str] = set()
    by_cpu = ranking.leading == "cpu"
    for kind, test_type in ranking.test_types.items():
        round_rates, run_standings = round_.rates.get(kind, {}), {}
        for row in test_type.headline.rows:
            standing = row.cpu_per_request if by_cpu else row.throughput
            if standing and row.ranked:
                run_standings[row.implementation] = standing
        in_round = {
            name: round_rates[plain] for name in run_standings if (plain := name.partition("@")[0]) in round_rates
        }
        only_run |= run_standings.keys() - in_round.keys()
        if not in_round:
            continue
        in_run = {name: run_standings[name].estimate.median ** (-1 if by_cpu else 1) for name in in_round}
        run_order, round_order = (sorted(rates, key=lambda name: -rates[name]) for rates in (in_run, in_round))
        means = geometric_mean(in_run.values()), geometric_mean(in_round.values())
        rows += [
            SharedCell(
                test_type=kind, implementation=name, round_rank=round_order.index(name) + 1, run_rank=place,
                round_share=in_round[name] / means[1], run_share=in_run[name] / means[0],
            )
            for place, name in enumerate(run_order, 1)
        ]  # fmt: skip
        pairs = list(combinations(run_order, 2))
        opposite = [(fast, slow) for fast, slow in pairs if in_round[fast] < in_round[slow]]
        decided = tuple(sorted((a, b) for a, b in opposite if run_standings[a].rank.high < run_standings[b].rank.low))
        agreements.append(
            OrderAgreement(test_type=kind, pairs=len(pairs), same=len(pairs) - len(opposite), reversed_decided=decided)
        )
    only_run -= {row.implementation for row in rows}
    return RoundComparison(rows=tuple(rows), agreements=tuple(agreements), only_run=tuple(sorted(only_run)))
