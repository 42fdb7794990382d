"""Which cells need more processes, at looks that share out the error. Pure, and replayed from the records alone.

Looking after every process at 95 % would call a true tie different in 22 to 25 % of runs.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from pydantic import ValidationError

from harness.plan.profile import Processes, Section
from harness.records.models import RunInfo, Trial, Undecided
from harness.stats import fit, pairs
from harness.stats.fit import CONFIDENCE
from harness.stats.tables import Tables
from harness.stats.values import CPU, THROUGHPUT, Cell, Key, Metric, best_load, by_type, collect, headline_load

AnySection = TypeVar("AnySection", bound=Section)


def processes_of(info: RunInfo) -> Processes:
    """How many processes the run was to have, and its looks; without a record of it, one look at all of them."""
    return section(info, "processes", Processes) or Processes(
        minimum=max(1, min(info.processes_expected, info.processes_maximum)), maximum=max(1, info.processes_maximum)
    )


def section(info: RunInfo, name: str, kind: type[AnySection]) -> AnySection | None:
    """A section of the run's profile; None when absent or of other keys than today's."""
    profile = info.settings.get("profile")
    try:
        return kind.model_validate(profile[name]) if isinstance(profile, dict) and name in profile else None
    except ValidationError:
        return None


def looks(rules: Processes) -> tuple[int, ...]:
    """Numbers of processes at which the data is looked at; the last is the maximum, where the run ends in any case."""
    return (*sorted({look for look in rules.looks if rules.minimum <= look < rules.maximum}), rules.maximum)


def alpha_at(rules: Processes, processes: int) -> float:
    """Family-wise error that the look at this many processes may spend.

    By a share of the whole that grows with the square of the processes (Kim & DeMets 1987, rho = 2): early looks find
    what is clear, and most of the error is left for the last one, where what is close is decided. A count between two
    looks (an interrupted run) is the next look, taken early.
    """
    counts = looks(rules)
    index = next((i for i, look in enumerate(counts) if look >= processes), len(counts) - 1)
    before = (counts[index - 1] / counts[-1]) ** 2 if index else 0.0
    return (1 - CONFIDENCE) * ((counts[index] / counts[-1]) ** 2 - before)


def undecided(trials: Sequence[Trial], expected: Sequence[tuple[str, str]], rules: Processes) -> tuple[Undecided, ...]:
    """What needs another process, of the (implementation, test type) expected; empty when the run is done.

    Past looks are replayed: what was decided at one stays decided, and a resumed run stops where the uninterrupted one
    would have.
    """
    done = 1 + max((trial.process for trial in trials), default=-1)
    if done >= rules.maximum:
        return ()
    following = next(look for look in looks(rules) if look > done)
    least = f" of at least {rules.minimum}" if done < rules.minimum else ""
    waiting = dict.fromkeys(expected, f"{done}{least} processes, next look at {following}")
    for look in looks(rules):
        if look > done or not waiting:
            break
        seen = [trial for trial in trials if trial.process < look]
        reasons = _at_look(seen, expected, rules, alpha_at(rules, look))
        late = f"; next look at {following} processes" if look < done else ""
        waiting = {key: reasons[key] + late for key in waiting if key in reasons}
    return tuple(Undecided(implementation=name, test_type=kind, reason=why) for (name, kind), why in waiting.items())


def _at_look(
    trials: Sequence[Trial], expected: Sequence[tuple[str, str]], rules: Processes, alpha: float
) -> dict[tuple[str, str], str]:
    """Reasons of what is undecided at a look."""
    tables = headlines(collect(trials), expected)
    reasons = {(name, kind): "no valid trial yet" for name, kind in expected if name not in tables[kind]}
    for metric in (THROUGHPUT, CPU):
        found = Tables({k: {n: c.values(metric) for n, c in rows.items()} for k, rows in tables.items() if rows})
        for kind in found.fits:
            for name, why in _open(found.means(kind), metric, rules, alpha).items():
                reasons.setdefault((name, str(kind)), why)
    return reasons


def headlines(cells: Mapping[Key, Cell], expected: Sequence[tuple[str, str]]) -> dict[str, dict[str, Cell]]:
    """The cells of each test type's headline table by implementation, of those that have a figure."""
    found: dict[str, dict[str, Cell]] = {kind: {} for _, kind in expected}
    every = by_type(cells)
    for name, kind in expected:
        own = every[kind].get(name, {})
        load = headline_load(every[kind]) or best_load(own)
        if load in own and own[load].kept:
            found[kind][name] = own[load]
    return found


def _open(table: fit.Means, metric: Metric, rules: Processes, alpha: float) -> dict[str, str]:
    """Rows whose order against a neighbour is neither decided nor known to be a tie within the half-width."""
    found: dict[str, str] = {}
    narrow, wanted = np.log1p(rules.half_width), f"wanted ±{rules.half_width:.1%}"
    order = np.argsort(table.mean)
    if len(order) == 1:
        (half,) = table.half_width()
        return {} if half <= narrow else {table.names[0]: f"{metric.title}: {_known(half)}, {wanted}"}
    differ = pairs.significant(table, alpha)
    for one, other in pairwise(order):
        (half,) = pairs.differences(table, table, np.asarray([one]), np.asarray([other])).half_width()
        if differ[one, other] or half <= narrow:
            continue
        for row, against in ((one, other), (other, one)):
            name = table.names[against]
            found[table.names[row]] = f"{metric.title}: order against {name} is open, ratio {_known(half)}, {wanted}"
    return found


def _known(half: float) -> str:
    return f"known to ±{np.expm1(half):.1%}" if np.isfinite(half) else "unknown"
