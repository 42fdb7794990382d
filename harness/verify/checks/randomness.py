"""Checks that ids and new numbers are drawn uniformly and independently, by exact tests with given error rates.

Each check tests the hypothesis "independent, uniform over 1..10000". It rejects a correct server with a probability
below ``FALSE_ALARM``. The tests use exact binomial tails with a Bonferroni correction over the cells, and the exact
distribution of the number of distinct values (occupancy). They do not use normal approximations.
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
CELLS = 20  # number of cells in each partition of 1..10000
NEAR_DISTANCES = (20, 250, 2500)  # maximum distances between ids: neighbours, a page and a section of the table
MIN_VALUES = 300  # with fewer values, the tests have no power
# With fewer values, a finding is possible but a pass means little, so verdicts omit the pass. An empty tenth of the
# table is detected from 490 ids (0.95^490 is below the limit). A walk through the table is detected from 655 ids (by
# the occupancy distribution).
MIN_VALUES_FOR_PASS = 655
OCCUPANCY_LIMIT = 1500  # maximum number of values for the occupancy test, which takes quadratic time
ADVICE = "Draw each value uniformly and independently from 1..10000"


def _has_enough_values(evidence: Evidence) -> bool:
    return len(_ids(evidence)) >= MIN_VALUES


def _has_enough_for_pass(evidence: Evidence) -> bool:
    return len(_ids(evidence)) >= MIN_VALUES_FOR_PASS


@check("random.1", ROW_TYPES, _has_enough_values, enough=_has_enough_for_pass)
def ids_uniform(evidence: Evidence) -> Iterator[Finding]:
    """Require that the ids of many requests are uniform over 1..10000."""
    yield from _find_uneven("ids", _ids(evidence))


@check("random.2", ROW_TYPES, lambda evidence: len(_ids(evidence)) > 1, enough=_has_enough_for_pass)
def ids_repeat_by_chance(evidence: Evidence) -> Iterator[Finding]:
    """Require that ids repeat as often as by chance. A subset of rows, or a walk through the table, fails."""
    ids = _ids(evidence)[:OCCUPANCY_LIMIT]
    distinct = len(set(ids))
    distribution = occupancy_distribution(len(ids))
    few, many = distribution[: distinct + 1].sum(), distribution[distinct:].sum()
    if min(few, many) < FALSE_ALARM / 2:
        expected = float(np.dot(distribution, np.arange(len(distribution))))
        problem = "they come from a part of the table" if few < many else "they are not drawn at random"
        yield Finding(
            f"{len(ids)} random ids name {distinct} different rows: {problem}. {ADVICE}",
            expected=f"about {expected:.0f} different rows",
            actual=f"{distinct} (probability {min(few, many):.1g})",
        )


@check("random.3", ROW_TYPES, lambda evidence: len(_ids(evidence)) > 1, enough=_has_enough_for_pass)
def ids_independent(evidence: Evidence) -> Iterator[Finding]:
    """Require that the ids of a request are independent of all other ids."""
    if QUERY_TYPES(evidence.test_type):
        yield from _find_overlaps(evidence)
        yield from _find_near_ids(evidence)
    else:
        yield from _find_regular_steps(evidence)


@check("random.4", frozenset({"update"}), _has_enough_values, enough=_has_enough_for_pass)
def numbers_uniform(evidence: Evidence) -> Iterator[Finding]:
    """Require that new random numbers are uniform over 1..10000."""
    yield from _find_uneven("numbers", [number for exchange in _ordinary(evidence) for _, number in exchange.rows])


def _ordinary(evidence: Evidence) -> list[Exchange]:
    """Return concurrent exchanges with few rows, because servers may avoid duplicates among hundreds of rows."""
    return [exchange for exchange in evidence.concurrent if exchange.ok and (exchange.case.count or 1) <= 20]


def _ids(evidence: Evidence) -> list[int]:
    return [identifier for exchange in _ordinary(evidence) for identifier, _ in exchange.rows]


def _find_uneven(description: str, values: Sequence[int]) -> Iterator[Finding]:
    """Test two partitions of 1..10000 into 20 cells: by range and by remainder."""
    low, high = plausible_counts(len(values))
    width = HIGHEST_ID // CELLS
    by_range = Counter((value - 1) // width for value in values)
    by_remainder = Counter(value % CELLS for value in values)
    for label, counts in (("range", by_range), ("remainder", by_remainder)):
        for cell in range(CELLS):
            count = counts[cell]
            if not low <= count <= high:
                tail = min(binomial_tails(count, len(values), 1 / CELLS))
                name = f"{cell * width + 1}..{(cell + 1) * width}" if label == "range" else f"{cell} modulo {CELLS}"
                yield Finding(
                    f"the {description} of many requests are not uniform: {name} came {count} times in {len(values)}. "
                    f"{ADVICE}",
                    expected=f"about {len(values) / CELLS:.0f} times",
                    actual=f"{count} (probability {tail:.1g})",
                )


def _find_regular_steps(evidence: Evidence) -> Iterator[Finding]:
    """Test that the differences of consecutive ids are uniform modulo the table's size, as for independent draws.

    Ids may be consecutive on a connection or in time. Only the second order reveals a walk that all connections share.
    """
    exchanges = sorted(_ordinary(evidence), key=lambda e: e.sent_at)
    by_connection: dict[int, list[int]] = {}
    for exchange in exchanges:
        by_connection.setdefault(exchange.connection, []).extend(i for i, _ in exchange.rows)
    for sequences in (by_connection.values(), [[i for exchange in exchanges for i, _ in exchange.rows]]):
        # Use every second difference, because adjacent differences share an id and are therefore dependent.
        steps = [(b - a) % HIGHEST_ID + 1 for ids in sequences for a, b in zip(ids[::2], ids[1::2], strict=False)]
        if len(steps) < MIN_VALUES:
            continue
        yield from _find_uneven("differences between consecutive ids", steps)
        common, times = Counter(steps).most_common(1)[0]
        if binomial_tails(times, len(steps), 1 / HIGHEST_ID)[1] * HIGHEST_ID < FALSE_ALARM:
            yield Finding(
                f"an id is {common - 1} after the previous one in {times} of {len(steps)} cases. {ADVICE}",
                expected="independent draws",
                actual=f"difference {common - 1} {times} times",
            )


def _find_near_ids(evidence: Evidence) -> Iterator[Finding]:
    """Test that the ids of a request are not close to each other, as neighbours or ids of the same page would be.

    Servers may sort ids, so pairs are formed at random. Each id is part of at most one pair, which makes pairs
    independent.
    """
    dice = random.Random(0)
    distances = []
    for exchange in _ordinary(evidence):
        ids = sorted({identifier for identifier, _ in exchange.rows})
        dice.shuffle(ids)
        distances += [abs(a - b) for a, b in zip(ids[::2], ids[1::2], strict=False)]
    if len(distances) < MIN_VALUES:
        return
    for near in NEAR_DISTANCES:
        count = sum(distance <= near for distance in distances)
        chance = sum(HIGHEST_ID - distance for distance in range(1, near + 1)) * 2 / (HIGHEST_ID * (HIGHEST_ID - 1))
        if (tail := binomial_tails(count, len(distances), chance)[1]) < FALSE_ALARM / len(NEAR_DISTANCES):
            yield Finding(
                f"{count} of {len(distances)} pairs of ids in one request are at most {near} apart. {ADVICE}",
                expected=f"about {len(distances) * chance:.0f}",
                actual=f"{count} (probability {tail:.1g})",
            )
            return


def _find_overlaps(evidence: Evidence) -> Iterator[Finding]:
    """Test how many ids two requests have in common. For n rows each, this is about n*n/10000, and rarely many more."""
    responses = [frozenset(i for i, _ in exchange.rows) for exchange in _ordinary(evidence)]
    responses = [ids for ids in responses if len(ids) > 1]
    pairs = len(responses) * (len(responses) - 1) / 2
    if not pairs:
        return
    size = max(len(ids) for ids in responses)
    # The probability that the other request contains a given id is at most size/10000.
    limit = next(k for k in range(size + 2) if binomial_tails(k + 1, size, size / HIGHEST_ID)[1] * pairs < FALSE_ALARM)
    holders: dict[int, list[int]] = {}  # id -> indices of the responses that contain it
    findings = 0
    for index, ids in enumerate(responses):
        shared = Counter(other for identifier in ids for other in holders.get(identifier, ()))
        for other, count in shared.items():
            if count > limit:
                findings += 1
                yield Finding(
                    f"two requests for random rows share {count} of them. {ADVICE}",
                    expected=f"at most {limit} of {size}",
                    actual=f"rows {', '.join(str(i) for i in sorted(responses[other] & ids)[:8])}…",
                )
        if findings > MIN_VALUES:
            return  # all responses overlap, so further pairs add nothing
        for identifier in ids:
            holders.setdefault(identifier, []).append(index)


def binomial_tails(successes: int, trials: int, probability: float) -> tuple[float, float]:
    """Return P(X <= successes) and P(X >= successes) of the binomial distribution."""
    # scipy is imported here, because the import is slow, and lists and plans do not need it.
    from scipy.special import bdtr, bdtrc

    if successes > trials:
        return 1.0, 0.0
    upper = float(bdtrc(successes - 1, trials, probability)) if successes else 1.0
    return float(bdtr(successes, trials, probability)), upper


@lru_cache(maxsize=64)
def plausible_counts(total: int) -> tuple[int, int]:
    """Return the minimum and the maximum number of ``total`` values in a cell that cause no finding."""
    from scipy.special import bdtr, bdtrc  # imported here, because the import is slow

    limit, counts = FALSE_ALARM / (2 * 2 * CELLS), np.arange(total + 1)  # two tails and two partitions
    low, high = bdtr(counts, total, 1 / CELLS) >= limit, bdtrc(counts, total, 1 / CELLS) <= limit
    return int(low.argmax()), int(high.argmax())


@lru_cache(maxsize=16)
def occupancy_distribution(draws: int) -> npt.NDArray[np.float64]:
    """Return P(k distinct values in ``draws`` uniform draws from 10,000) for k = 0..draws, by exact recursion."""
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
