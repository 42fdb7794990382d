"""What a ranking settles, as groups: who is first, who second, and who tie. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import geometric_mean

from harness.stats.model import Quantity, Ranking, Score, Standing, Table

Groups = tuple[tuple[str, ...], ...]
PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")


def groups(table: Table | Sequence[Score], by: Quantity = "throughput") -> Groups:
    """Names by tie group, best first: each but a group's own leader is not decided against that leader."""
    return _grouped(_standings(table, by))


def _standings(table: Table | Sequence[Score], by: Quantity) -> Iterable[tuple[str, Standing | None]]:
    if isinstance(table, Table):
        name = "throughput" if by == "throughput" else "cpu_per_request"
        return ((row.implementation, getattr(row, name)) for row in table.rows)
    return ((score.implementation, getattr(score, by)) for score in table)


def _grouped(standings: Iterable[tuple[str, Standing | None]]) -> Groups:
    found: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for name, standing in standings:
        if standing is not None:
            found[standing.tie_group].append((standing.position, name))
    return tuple(tuple(name for _, name in sorted(own)) for _, own in sorted(found.items()))


def scores(ranking: Ranking, by: Quantity) -> tuple[tuple[tuple[str, ...], float], ...]:
    """The groups of the overall score, each with its score: that of a tie is the geometric mean of its members'."""
    own = {name: standing.estimate.median for name, standing in _standings(ranking.overall, by) if standing}
    found = groups(ranking.overall, by)
    return tuple((names, geometric_mean([own[name] for name in names])) for names in found)


def settled(ranking: Ranking) -> str:
    """A sentence: by the figure that leads on this machine, overall or else of the first test type; may be empty."""
    by = ranking.leading
    found = groups(ranking.overall, by)
    if not found:
        found = next((own for test in ranking.test_types.values() if (own := groups(test.headline, by))), ())
    place, parts = 1, []
    for names in found:
        if len(names) > 1:
            parts.append(f"{', '.join(names[:-1])} and {names[-1]} tie")
        else:
            parts.append(f"{names[0]} {PLACES[place - 1] if place <= len(PLACES) else f'{place}th'}")
        place += len(names)
    return "; ".join(parts)
