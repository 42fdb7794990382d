"""Are ids and new numbers drawn uniformly and independently? Exact tests, each with a stated false-alarm rate.

Each check is a test of the hypothesis "independent, uniform over 1..10000" that rejects a truthful server with a
probability below ``FALSE_ALARM``: exact binomial tails with a Bonferroni correction over the cells looked at, and the
exact occupancy distribution of the number of distinct values. Nothing is approximated by a normal distribution.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from harness.verify.checks import QUERY_TYPES, ROW_TYPES, Finding, check
from harness.verify.checks.evidence import HIGHEST_ID, Evidence, Exchange

FALSE_ALARM = 1e-9
CELLS = 20
NEAR = (20, 250, 2500)  # distances between ids: neighbours, one page of the table, one part of it
ENOUGH = 300  # values: with fewer, the tests say nothing
# With fewer an objection may come, but none means little, and a verdict does not name the check then: a tenth of the
# table that is never drawn shows from 490 ids on (0.95^490, that a cell is empty by chance, is below the limit), a walk
# through the table from 655 on (by the occupancy distribution).
SPEAKS = 655
OCCUPANCY_LIMIT = 1500  # values looked at by the occupancy test, whose cost is quadratic


def _drawn(evidence: Evidence) -> bool:
    return len(_ids(evidence)) >= ENOUGH


def _many(evidence: Evidence) -> bool:
    return len(_ids(evidence)) >= SPEAKS


@check("random.1", ROW_TYPES, _drawn, enough=_many)
def ids_uniform(evidence: Evidence) -> Iterator[Finding]:
    """Ids of many requests are uniform over 1..10000."""
    yield from _uneven("ids", _ids(evidence))


@check("random.2", ROW_TYPES, lambda evidence: len(_ids(evidence)) > 1, enough=_many)
def ids_repeat_by_chance(evidence: Evidence) -> Iterator[Finding]:
    """Ids repeat as often as chance has it: no smaller set of rows, and no walk through all of them."""
    ids = _ids(evidence)[:OCCUPANCY_LIMIT]
    distinct = len(set(ids))
    distribution = occupancy(len(ids))
    few, many = distribution[: distinct + 1].sum(), distribution[distinct:].sum()
    if min(few, many) < FALSE_ALARM / 2:
        expected = float(np.dot(distribution, np.arange(len(distribution))))
        yield Finding(
            f"{len(ids)} random ids name {distinct} different rows: "
            + ("they come from a part of the table" if few < many else "they are not drawn at random"),
            expected=f"about {expected:.0f} different rows",
            actual=f"{distinct} (probability {min(few, many):.1g})",
        )


@check("random.3", ROW_TYPES, lambda evidence: len(_ids(evidence)) > 1, enough=_many)
def ids_independent(evidence: Evidence) -> Iterator[Finding]:
    """What one request draws says nothing about the next."""
    if QUERY_TYPES(evidence.test_type):
        yield from _overlaps(evidence)
        yield from _within(evidence)
    else:
        yield from _steps(evidence)


@check("random.4", frozenset({"update"}), _drawn, enough=_many)
def numbers_uniform(evidence: Evidence) -> Iterator[Finding]:
    """New random numbers are uniform over 1..10000."""
    yield from _uneven("numbers", [number for exchange in _ordinary(evidence) for _, number in exchange.rows])


def _ordinary(evidence: Evidence) -> list[Exchange]:
    """The crowd's ordinary requests; none for hundreds of rows, which may avoid repeats."""
    return [exchange for exchange in evidence.crowd if exchange.ok and (exchange.case.count or 1) <= 20]


def _ids(evidence: Evidence) -> list[int]:
    return [identifier for exchange in _ordinary(evidence) for identifier, _ in exchange.rows]


def _uneven(what: str, values: Sequence[int]) -> Iterator[Finding]:
    """Two partitions of 1..10000 into twenty cells, by range and by remainder."""
    low, high = unsuspicious(len(values))
    width = HIGHEST_ID // CELLS
    by_range = Counter((value - 1) // width for value in values)
    by_remainder = Counter(value % CELLS for value in values)
    for label, counts in (("range", by_range), ("remainder", by_remainder)):
        for cell in range(CELLS):
            seen = counts[cell]
            if not low <= seen <= high:
                tail = min(tails(seen, len(values), 1 / CELLS))
                name = f"{cell * width + 1}..{(cell + 1) * width}" if label == "range" else f"{cell} modulo {CELLS}"
                yield Finding(
                    f"the {what} of many requests are not uniform: {name} came {seen} times in {len(values)}",
                    expected=f"about {len(values) / CELLS:.0f} times",
                    actual=f"{seen} (probability {tail:.1g})",
                )


def _steps(evidence: Evidence) -> Iterator[Finding]:
    """Differences of neighbouring draws, modulo the table's size, are uniform too when draws are independent.

    Neighbours on a connection, and in time: of a walk that all connections take together only these tell.
    """
    asked = sorted(_ordinary(evidence), key=lambda e: e.sent_at)
    by_connection: dict[int, list[int]] = {}
    for exchange in asked:
        by_connection.setdefault(exchange.connection, []).extend(i for i, _ in exchange.rows)
    for sequences in (by_connection.values(), [[i for exchange in asked for i, _ in exchange.rows]]):
        # Every other difference only: neighbouring differences share a draw, these are independent of each other.
        steps = [(b - a) % HIGHEST_ID + 1 for one in sequences for a, b in zip(one[::2], one[1::2], strict=False)]
        if len(steps) < ENOUGH:
            continue
        yield from _uneven("differences between neighbouring ids", steps)
        common, times = Counter(steps).most_common(1)[0]
        if tails(times, len(steps), 1 / HIGHEST_ID)[1] * HIGHEST_ID < FALSE_ALARM:
            yield Finding(
                f"an id is {common - 1} after the one before in {times} of {len(steps)} cases",
                expected="independent draws",
                actual=f"difference {common - 1} {times} times",
            )


def _within(evidence: Evidence) -> Iterator[Finding]:
    """The ids of one request are not near each other: no run of neighbours, no page of the table.

    Honest servers may answer in the order of ids, so pairs are drawn from an answer without regard to its order; no id
    is in two of them, and so they are independent.
    """
    dice = random.Random(0)
    distances = []
    for exchange in _ordinary(evidence):
        ids = sorted({identifier for identifier, _ in exchange.rows})
        dice.shuffle(ids)
        distances += [abs(a - b) for a, b in zip(ids[::2], ids[1::2], strict=False)]
    if len(distances) < ENOUGH:
        return
    for near in NEAR:
        seen = sum(distance <= near for distance in distances)
        chance = sum(HIGHEST_ID - distance for distance in range(1, near + 1)) * 2 / (HIGHEST_ID * (HIGHEST_ID - 1))
        if (tail := tails(seen, len(distances), chance)[1]) < FALSE_ALARM / len(NEAR):
            yield Finding(
                f"of {len(distances)} pairs of ids of one request {seen} are at most {near} apart",
                expected=f"about {len(distances) * chance:.0f}",
                actual=f"{seen} (probability {tail:.1g})",
            )
            return


def _overlaps(evidence: Evidence) -> Iterator[Finding]:
    """Two requests for n rows each share about n*n/10000 of them, and hardly ever many more."""
    answers = [frozenset(i for i, _ in exchange.rows) for exchange in _ordinary(evidence)]
    answers = [answer for answer in answers if len(answer) > 1]
    pairs = len(answers) * (len(answers) - 1) / 2
    if not pairs:
        return
    size = max(len(answer) for answer in answers)
    # Each id of one is among the other's with probability size/10000 at most.
    limit = next(k for k in range(size + 2) if tails(k + 1, size, size / HIGHEST_ID)[1] * pairs < FALSE_ALARM)
    holders: dict[int, list[int]] = {}  # id -> places of the answers that name it
    found = 0
    for place, answer in enumerate(answers):
        earlier = Counter(other for identifier in answer for other in holders.get(identifier, ()))
        for other, common in earlier.items():
            if common > limit:
                found += 1
                yield Finding(
                    f"two requests for random rows share {common} of them",
                    expected=f"at most {limit} of {size}",
                    actual=f"rows {', '.join(str(i) for i in sorted(answers[other] & answer)[:8])}…",
                )
        if found > ENOUGH:
            return  # every answer like every other: there is no use in naming all pairs
        for identifier in answer:
            holders.setdefault(identifier, []).append(place)


def tails(seen: int, of: int, probability: float) -> tuple[float, float]:
    """P(X <= seen) and P(X >= seen) of the binomial distribution."""
    from scipy.special import bdtr, bdtrc  # here: what lists or plans need not wait for scipy

    if seen > of:
        return 1.0, 0.0
    return float(bdtr(seen, of, probability)), float(bdtrc(seen - 1, of, probability)) if seen else 1.0


@lru_cache(maxsize=64)
def unsuspicious(total: int) -> tuple[int, int]:
    """The fewest and the most of ``total`` values that one of the CELLS may hold without an objection."""
    from scipy.special import bdtr, bdtrc  # here: likewise

    limit, counts = FALSE_ALARM / (2 * 2 * CELLS), np.arange(total + 1)  # two tails, two partitions
    low, high = bdtr(counts, total, 1 / CELLS) >= limit, bdtrc(counts, total, 1 / CELLS) <= limit
    return int(low.argmax()), int(high.argmax())


@lru_cache(maxsize=16)
def occupancy(draws: int) -> npt.NDArray[np.float64]:
    """P(k different values in ``draws`` uniform draws from 10,000), for k = 0..draws: the exact recursion."""
    probability = np.zeros(draws + 1)
    probability[0] = 1.0
    k = np.arange(draws + 1)
    stay = k / HIGHEST_ID
    move = 1.0 - stay
    for _ in range(draws):
        moved = np.zeros_like(probability)
        moved[1:] = probability[:-1] * move[:-1]
        probability = probability * stay + moved
    return probability
