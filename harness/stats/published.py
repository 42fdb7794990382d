"""A run beside a round that TechEmpower published: order and ratios on the test types and names that both have. Pure.

The machines differ, and so do generators, networks and rules: requests per second of the two are never divided by each
other. What can be held together is each implementation's share of the geometric mean of those that both measured, and
which of two is the faster.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.errors import UsageError
from harness.records import bounded
from harness.stats.model import Ranking

FILE_BYTES = 64 << 20  # of a results.json
SWEEPS_QUERIES = ("query", "update", "cached-query")  # shown at their last level, the others at their best one
TYPES = {"cached_query": "cached-query"}


@dataclass(frozen=True, kw_only=True)
class Round:
    """Requests per second: test type -> name -> the figure that its published table would show."""

    name: str
    environment: str
    rates: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Beside:
    """One implementation of one test type in both."""

    test_type: str
    implementation: str
    round_rank: int
    run_rank: int
    round_share: float  # of the geometric mean of those that both have
    run_share: float


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Pairs of one test type: in the same order in both, or not."""

    test_type: str
    pairs: int
    same: int
    reversed_decided: tuple[tuple[str, str], ...]  # (faster in the run, slower in it), where the run's ranks are apart


@dataclass(frozen=True, kw_only=True)
class Held:
    """What the two have in common."""

    rows: tuple[Beside, ...]
    agreements: tuple[Agreement, ...]
    only_round: int  # names that the run has not
    only_run: tuple[str, ...]


def read_round(path: Path) -> Round:
    """Read a results.json; raises UsageError for a file that is none."""
    try:
        document: Any = bounded.parse(bounded.read(path, FILE_BYTES))
        if not isinstance(document, dict):
            raise TypeError("not an object")  # noqa: TRY301 - said as the others
        raw = document["rawData"]
        seconds = float(document.get("duration") or 15)
        rates = {
            TYPES.get(kind, kind): {
                str(name): rate
                for name, entries in found.items()
                if isinstance(entries, list) and (rate := _rate(TYPES.get(kind, kind), entries, seconds)) is not None
            }
            for kind, found in raw.items()
            if isinstance(found, dict)
        }
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: not a results.json of TechEmpower's: {error!r}") from error
    return Round(
        name=str(document.get("name") or path.stem),
        environment=str(document.get("environmentDescription") or "a machine that it does not name"),
        rates={kind: found for kind, found in rates.items() if found},
    )


def _rate(kind: str, entries: list[object], seconds: float) -> float | None:
    """Requests per second without errors, at the level that a table shows; None without a figure."""
    found = [_one(entry, seconds) for entry in entries]
    if kind in SWEEPS_QUERIES:
        return found[-1] if found else None
    return max((rate for rate in found if rate), default=None)


def _one(entry: object, seconds: float) -> float | None:
    if not isinstance(entry, dict):
        return None
    total = float(entry.get("totalRequests") or 0) - float(entry.get("5xx") or 0)
    begun, ended = entry.get("startTime"), entry.get("endTime")
    took = float(ended) - float(begun) if begun and ended and float(ended) > float(begun) else seconds
    return total / took if total > 0 else None


def hold(round_: Round, ranking: Ranking) -> Held:
    """The rows that both have, by test type and the run's order. A name such as ``x@tree`` counts as ``x``."""
    rows: list[Beside] = []
    agreements: list[Agreement] = []
    seen: set[str] = set()
    everything: set[str] = set()
    for kind, found in ranking.test_types.items():
        theirs = round_.rates.get(kind, {})
        own = {row.implementation: row for row in found.headline.rows if row.throughput is not None and row.ranked}
        everything |= own.keys()
        both = {name: row for name, row in own.items() if name.partition("@")[0] in theirs}
        if not both:
            continue
        seen |= both.keys()
        in_round = {name: theirs[name.partition("@")[0]] for name in both}
        in_run = {name: row.throughput.estimate.median for name, row in both.items() if row.throughput}
        round_shares, run_shares = _shares(in_round), _shares(in_run)
        round_ranks, run_ranks = _ranks(in_round), _ranks(in_run)
        rows += [
            Beside(
                test_type=kind,
                implementation=name,
                round_rank=round_ranks[name],
                run_rank=run_ranks[name],
                round_share=round_shares[name],
                run_share=run_shares[name],
            )
            for name in sorted(both, key=lambda name: run_ranks[name])
        ]
        pairs = list(combinations(sorted(both), 2))
        same = [(a, b) for a, b in pairs if (in_round[a] > in_round[b]) == (in_run[a] > in_run[b])]
        against = []
        for a, b in set(pairs) - set(same):
            fast, slow = (a, b) if in_run[a] > in_run[b] else (b, a)
            first, second = both[fast].throughput, both[slow].throughput
            if first and second and first.rank.high < second.rank.low:
                against.append((fast, slow))
        agreements.append(
            Agreement(test_type=kind, pairs=len(pairs), same=len(same), reversed_decided=tuple(sorted(against)))
        )
    named = {name for found in round_.rates.values() for name in found}
    return Held(
        rows=tuple(rows),
        agreements=tuple(agreements),
        only_round=len(named - {name.partition("@")[0] for name in seen}),
        only_run=tuple(sorted(everything - seen)),
    )


def _shares(rates: Mapping[str, float]) -> dict[str, float]:
    """Each one over the geometric mean of all."""
    mean = math.exp(fmean(math.log(rate) for rate in rates.values()))
    return {name: rate / mean for name, rate in rates.items()}


def _ranks(rates: Mapping[str, float]) -> dict[str, int]:
    return {name: place for place, name in enumerate(sorted(rates, key=lambda name: -rates[name]), 1)}
