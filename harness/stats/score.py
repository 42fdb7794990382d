"""The overall score: geometric mean of throughput ratios to a named reference over the scored test types.

A score depends on the run and its reference only, so filtering a view never changes it (an arithmetic mean of
normalised figures would also depend on the reference: Fleming & Wallace 1986). Missing is missing, never 0.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from harness.stats import basis, pairs, sets
from harness.stats.basis import Comparable
from harness.stats.contrasts import Means
from harness.stats.estimates import finite
from harness.stats.model import RankInterval, Score, Standing, Table
from harness.stats.moderation import UNLEARNED
from harness.stats.ranks import ranks
from harness.stats.tables import Rules
from harness.stats.values import CellValues, geometric_mean, log_matrix

Cells = Mapping[str, Mapping[str, CellValues]]  # test type -> implementation -> its headline cell


def scores(names: Sequence[str], headlines: Mapping[str, Table], cells: Cells, rules: Rules) -> tuple[Score, ...]:
    """Scores of all implementations, best first; those with a missing test type last. Empty without a reference."""
    throughput = {kind: _standings(table, "throughput") for kind, table in headlines.items()}
    cpu = {kind: _standings(table, "cpu_per_request") for kind, table in headlines.items()}
    scored = [kind for kind in headlines if rules.reference in throughput[kind]]
    if rules.reference is None or not scored:
        return ()
    complete = [name for name in names if all(name in throughput[kind] for kind in scored)]
    low, high, rank = _intervals(complete, scored, cells, throughput, rules)
    result = []
    for name in names:
        ratios = {
            kind: standing.to_reference.value
            for kind in scored
            if (standing := throughput[kind].get(name)) and standing.to_reference
        }
        point = geometric_mean(list(ratios.values())) if name in complete else None
        costs = [
            standing.to_reference.value
            for kind in scored
            if (standing := cpu[kind].get(name)) and standing.to_reference
        ]
        result.append(
            Score(
                implementation=name,
                score=point,
                low=None if point is None or name not in low else finite(point * low[name]),
                high=None if point is None or name not in high else finite(point * high[name]),
                cpu_score=1 / geometric_mean(costs) if len(costs) == len(scored) and point is not None else None,
                ratios=ratios,
                missing=tuple(kind for kind in scored if kind not in ratios),
                rank=rank.get(name),
            )
        )
    result.sort(key=lambda score: (-(score.score or 0.0), score.implementation))
    return tuple(result)


def _standings(table: Table, metric: str) -> dict[str, Standing]:
    found: dict[str, Standing] = {}
    for row in table.rows:
        standing = row.throughput if metric == "throughput" else row.cpu_per_request
        if standing is not None:
            found[row.implementation] = standing
    return found


def _intervals(
    complete: Sequence[str],
    scored: Sequence[str],
    cells: Cells,
    standings: Mapping[str, Mapping[str, Standing]],
    rules: Rules,
) -> tuple[dict[str, float], dict[str, float], dict[str, RankInterval]]:
    """Relative bounds of each score and its rank interval, from the score of each block.

    One block's score is the geometric mean of its throughputs over the scored test types: test types of one replicate
    share a process, so their errors are not independent and the block is the unit. Only blocks with all test types
    count. Where servers were measured in turns, a score's error is made of those of its rows.
    """
    if not complete:
        return {}, {}, {}
    if all(cells[kind][name].throughput_windows for kind in scored for name in complete):
        return _placed(list(complete), _in_turns(complete, [standings[kind] for kind in scored]), rules)
    by_block = []
    for name in complete:
        per_type = [cells[kind][name].throughput for kind in scored]
        shared = set.intersection(*(set(values) for values in per_type))
        by_block.append({block: geometric_mean([values[block] for values in per_type]) for block in sorted(shared)})
    # An implementation without one complete block has a score, but neither an interval nor a rank.
    kept = [index for index, row in enumerate(by_block) if row]
    if not kept:
        return {}, {}, {}
    names = [complete[index] for index in kept]
    logs = log_matrix([by_block[index] for index in kept])
    of_sets = any(cell.anchored_to for kind in scored for cell in cells[kind].values())
    compared = (
        sets.alone({complete[index]: by_block[index] for index in kept}, rules.reference)
        if of_sets and rules.reference in names
        else basis.alone(logs, names)
    )
    return _placed(names, compared, rules)


def _in_turns(names: Sequence[str], standings: Sequence[Mapping[str, Standing]]) -> Comparable:
    """Mean of each row over the tables, their errors taken for wholly correlated: they share processes and rounds."""
    found = [[standing.log_mean for by_name in standings if (standing := by_name[name])] for name in names]
    rows = [[each for each in row if each is not None] for row in found]
    error = [np.mean([np.sqrt(np.nan if e.squared_error is None else e.squared_error) for e in row]) for row in rows]
    means = Means(
        mean=np.asarray([np.mean([each.mean for each in row]) for row in rows]),
        squared_error=np.square(np.asarray(error)),
        freedom=np.asarray([min(each.freedom or 0.0 for each in row) for row in rows]),
        moderated=True,
    )
    return Comparable(logs=means.mean[:, None], means=means, basis="moderated", prior=UNLEARNED, blocks_removed=True)


def _placed(
    names: Sequence[str], compared: Comparable, rules: Rules
) -> tuple[dict[str, float], dict[str, float], dict[str, RankInterval]]:
    family = pairs.significant(compared, rules.alpha)
    better = pairs.better(compared, family.rejected, rules.throughput_floor, higher=True)
    places = ranks(compared.means.mean, better)
    rank = {name: RankInterval(low=int(places.low[i]), high=int(places.high[i])) for i, name in enumerate(names)}
    if rules.reference not in names:
        return {}, {}, rank
    reference = names.index(rules.reference)
    half = compared.against(reference).half_width(rules.confidence)
    half[reference] = 0.0
    low = {name: float(np.exp(-half[i])) for i, name in enumerate(names)}
    high = {name: float(np.exp(half[i])) for i, name in enumerate(names)}
    return low, high, rank
