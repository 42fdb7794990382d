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
from statistics import geometric_mean
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
    only_run: tuple[str, ...]  # names that the round has not


def read_round(path: Path) -> Round:
    """Read a results.json; raises UsageError for a file that is none."""
    try:
        document: Any = bounded.parse(bounded.read(path, FILE_BYTES))
        seconds = _figure(document.get("duration") or 15)
        rates: dict[str, dict[str, float]] = {}
        for name, found in document["rawData"].items():
            kind = TYPES.get(name, name)
            for one, entries in found.items():
                if isinstance(entries, list) and (answers := _answers(kind, entries)) > 0:  # others count lines of code
                    rates.setdefault(kind, {})[one] = _figure(answers / seconds)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, ArithmeticError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: not a results.json of TechEmpower's: {error!r:.300}") from error
    return Round(
        name=str(document.get("name") or path.stem),
        environment=str(document.get("environmentDescription") or "a machine that it does not name"),
        rates=rates,
    )


def _answers(kind: str, entries: list[Any]) -> float:
    """Requests without errors, at the level that a table shows; 0 without a figure."""
    found = [_figure(entry.get("totalRequests") or 0) - _figure(entry.get("5xx") or 0) for entry in entries]
    return max(found[-1:] if kind in SWEEPS_QUERIES else found, default=0.0)


def _figure(value: float | str) -> float:
    """Return a number as a float; raises ValueError or OverflowError unless it is finite and not negative."""
    found = float(value)
    if not math.isfinite(found) or found < 0:
        raise ValueError(f"{value!r:.40} is no count and no duration")
    return found


def hold(round_: Round, ranking: Ranking) -> Held:
    """The rows that both have, by test type and the run's order. A name such as ``x@tree`` counts as ``x``.

    Of the run counts what leads its answer: throughput, or requests per CPU second, to which the throughput of a server
    with a machine of its own is in proportion.
    """
    rows: list[Beside] = []
    agreements: list[Agreement] = []
    only_run: set[str] = set()
    by_cpu = ranking.leading == "cpu"
    for kind, found in ranking.test_types.items():
        theirs, own = round_.rates.get(kind, {}), {}
        for row in found.headline.rows:
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
            Beside(
                test_type=kind, implementation=name, round_rank=there.index(name) + 1, run_rank=place,
                round_share=in_round[name] / means[1], run_share=in_run[name] / means[0],
            )
            for place, name in enumerate(here, 1)
        ]  # fmt: skip
        pairs = list(combinations(here, 2))
        against = [(fast, slow) for fast, slow in pairs if in_round[fast] < in_round[slow]]
        decided = tuple(sorted((a, b) for a, b in against if own[a].rank.high < own[b].rank.low))
        agreements.append(
            Agreement(test_type=kind, pairs=len(pairs), same=len(pairs) - len(against), reversed_decided=decided)
        )
    only_run -= {row.implementation for row in rows}
    return Held(rows=tuple(rows), agreements=tuple(agreements), only_run=tuple(sorted(only_run)))
