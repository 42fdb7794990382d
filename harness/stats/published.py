"""Compares a run with a published TechEmpower round, for the test types and implementations that both measured.

Machines, load generators, networks and rules differ, so no throughput of the run is divided by one of the round.
Two comparisons are possible: throughput relative to the geometric mean of the common implementations, and the order of
each pair.
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

MAX_FILE_BYTES = 64 << 20  # maximum size of a results.json
# Test types that are displayed at their last level; all others are displayed at their best level.
QUERY_SWEEPS = ("query", "update", "cached-query")
TEST_TYPE_BY_KEY = {"cached_query": "cached-query"}


@dataclass(frozen=True, kw_only=True)
class PublishedRates:
    """A published round. ``rates``: test type -> name -> requests per second in the published table."""

    name: str
    environment: str
    rates: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class SharedCell:
    """An implementation and test type that both the round and the run measured."""

    test_type: str
    implementation: str
    round_rank: int
    run_rank: int
    round_share: float  # relative to the geometric mean of the common implementations
    run_share: float


@dataclass(frozen=True, kw_only=True)
class OrderAgreement:
    """The number of pairs that have the same order in the run and the round, for a test type."""

    test_type: str
    pairs: int
    same: int
    # (faster, slower) in the run, if the rank intervals in the run do not overlap
    reversed_decided: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class RoundComparison:
    """The comparison of a run with a round."""

    rows: tuple[SharedCell, ...]
    agreements: tuple[OrderAgreement, ...]
    only_run: tuple[str, ...]  # names that do not occur in the round


def read_round(path: Path) -> PublishedRates:
    """Read a results.json file.

    Raises:
        UsageError: The file cannot be read, or is not a TechEmpower results.json.
    """
    try:
        document: Any = safe_read.parse_json(safe_read.read(path, MAX_FILE_BYTES))
        seconds = _parse_number(document.get("duration") or 15)
        rates: dict[str, dict[str, float]] = {}
        for key, by_name in document["rawData"].items():
            kind = TEST_TYPE_BY_KEY.get(key, key)
            for name, entries in by_name.items():  # other members of rawData are line counts
                if isinstance(entries, list) and (rate := _successful_responses(kind, entries) / seconds) > 0:
                    rates.setdefault(kind, {})[name] = _parse_number(rate)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}. Expected a TechEmpower results.json") from error
    except (ValueError, ArithmeticError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: this is not a TechEmpower results.json ({error!r:.300})") from error
    return PublishedRates(
        name=str(document.get("name") or path.stem),
        environment=str(document.get("environmentDescription") or "an unnamed machine"),
        rates=rates,
    )


def _successful_responses(kind: str, entries: list[Any]) -> float:
    """Return the number of successful responses at the level in the published table, or 0 if there is none."""
    by_level = [
        _parse_number(entry.get("totalRequests") or 0) - _parse_number(entry.get("5xx") or 0) for entry in entries
    ]
    return max(by_level[-1:] if kind in QUERY_SWEEPS else by_level, default=0.0)


def _parse_number(value: float | str) -> float:
    """Convert a number to float. Raises ValueError or OverflowError unless it is finite and not negative."""
    found = float(value)
    if not math.isfinite(found) or found < 0:
        raise ValueError(f"{value!r:.40} must be a finite number that is not negative")
    return found


def compare_with_round(round_: PublishedRates, ranking: Ranking) -> RoundComparison:
    """Compare the run with the round by test type, in the run's order. A name such as ``x@tree`` counts as ``x``.

    The run contributes the leading figure: throughput, or requests per CPU second. If a server has a machine to itself,
    throughput is proportional to requests per CPU second.
    """
    rows: list[SharedCell] = []
    agreements: list[OrderAgreement] = []
    only_run: set[str] = set()
    by_cpu = ranking.leading == "cpu"
    for kind, test_type in ranking.test_types.items():
        theirs, own = round_.rates.get(kind, {}), {}
        for row in test_type.headline.rows:
            standing = row.cpu_per_request if by_cpu else row.throughput
            if standing and row.ranked:
                own[row.implementation] = standing
        in_round = {name: theirs[plain] for name in own if (plain := name.partition("@")[0]) in theirs}
        only_run |= own.keys() - in_round.keys()
        if not in_round:
            continue
        in_run = {name: own[name].estimate.median ** (-1 if by_cpu else 1) for name in in_round}
        here, there = (sorted(rates, key=lambda name: -rates[name]) for rates in (in_run, in_round))
        means = geometric_mean(in_run.values()), geometric_mean(in_round.values())
        rows += [
            SharedCell(
                test_type=kind, implementation=name, round_rank=there.index(name) + 1, run_rank=place,
                round_share=in_round[name] / means[1], run_share=in_run[name] / means[0],
            )
            for place, name in enumerate(here, 1)
        ]  # fmt: skip
        pairs = list(combinations(here, 2))
        against = [(fast, slow) for fast, slow in pairs if in_round[fast] < in_round[slow]]
        decided = tuple(sorted((a, b) for a, b in against if own[a].rank.high < own[b].rank.low))
        agreements.append(
            OrderAgreement(test_type=kind, pairs=len(pairs), same=len(pairs) - len(against), reversed_decided=decided)
        )
    only_run -= {row.implementation for row in rows}
    return RoundComparison(rows=tuple(rows), agreements=tuple(agreements), only_run=tuple(sorted(only_run)))
