"""Checks that ids and new numbers are drawn uniformly and independently.

Each check tests the hypothesis that values are independent and uniform over 1..10000. A correct server fails a check
with a probability below ``FALSE_ALARM``. The tests are exact: they use binomial tails, with a Bonferroni correction for
the number of bins, and the distribution of the number of distinct values (occupancy).
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import comb, factorial

import numpy as np
import numpy.typing as npt

from harness.verify.checks import QUERY_TYPES, ROW_TYPES, Finding, check
from harness.verify.checks.evidence import Evidence, Exchange
from harness.verify.checks.statement_counts import HIGHEST_ID

FALSE_ALARM = 1e-9
CELLS = 20  # number of equally wide bins into which a test divides 1..10000
NEAR_DISTANCES = (20, 250, 2500)  # ids this close count as near: neighbours, same page, same section of the table
WINDOW_SIZES = (20, 40)  # numbers of consecutive ids among which a test looks for related ids
MIN_VALUES = 300  # with fewer values, the tests lack statistical power
# With fewer values, verdicts report failures but omit passes, which would prove little. 490 ids reveal a server that
# never reads a contiguous tenth of the table: a tenth contains a whole bin, and the probability of an empty bin
# (0.95^490) is below the limit in ``plausible_counts``. 655 ids reveal a server that reads the table in sequence
# (occupancy distribution).
MIN_VALUES_FOR_PASS = 655
ADVICE = "Draw each value uniformly and independently from 1..10000"


def _has_enough_values(evidence: Evidence) -> bool:
    return len(_ids(evidence)) >= MIN_VALUES


def _has_enough_for_pass(evidence: Evidence) -> bool:
    return len(_ids(evidence)) >= MIN_VALUES_FOR_PASS


@check("random.1", ROW_TYPES, _has_enough_values, has_evidence=_has_enough_for_pass)
def ids_uniform(evidence: Evidence) -> Iterator[Finding]:
    """Require that the ids of many requests are uniformly distributed over 1..10000."""
    yield from _find_uneven("ids", _ids(evidence))


@check("random.2", ROW_TYPES, lambda evidence: len(_ids(evidence)) > 1, has_evidence=_has_enough_for_pass)
def ids_repeat_by_chance(evidence: Evidence) -> Iterator[Finding]:
    """Require that ids repeat as often as random ids do.

    This check detects servers that use only some rows, or that use all rows in turn.
    """
    ids = _ids(evidence)[:1500]  # limited, because the test takes quadratic time
    distinct = len(set(ids))
    distribution = occupancy_distribution(len(ids))
    lower_tail, upper_tail = distribution[: distinct + 1].sum(), distribution[distinct:].sum()
    if min(lower_tail, upper_tail) < FALSE_ALARM / 2:
        expected = float(np.dot(distribution, np.arange(len(distribution))))
        problem = "they come from only part of the table" if lower_tail < upper_tail else "they are not drawn at random"
        yield Finding(
            f"{len(ids)} ids have {distinct} different values: {problem}. {ADVICE}",
            expected=f"about {expected:.0f} different rows",
            actual=f"{distinct} (probability {min(lower_tail, upper_tail):.1g})",
        )


@check("random.3", ROW_TYPES, lambda evidence: len(_ids(evidence)) > 1, has_evidence=_has_enough_for_pass)
def ids_independent(evidence: Evidence) -> Iterator[Finding]:
    """Require that ids are independent of each other, within a request and across requests."""
    sequences = _sequences(evidence)
    if QUERY_TYPES(evidence.test_type):
        yield from _find_overlaps(evidence)
        yield from _find_near_ids(evidence)
    else:
        yield from _find_regular_steps(sequences)
    yield from _find_related_ids(sequences)


@check("random.4", frozenset({"update"}), _has_enough_values, has_evidence=_has_enough_for_pass)
def numbers_uniform(evidence: Evidence) -> Iterator[Finding]:
    """Require that new random numbers are uniformly distributed over 1..10000."""
    yield from _find_uneven("numbers", [number for exchange in _ordinary(evidence) for _, number in exchange.rows])


def _ordinary(evidence: Evidence) -> list[Exchange]:
    """Return the successful concurrent exchanges with at most 20 rows.

    Servers may avoid duplicate ids within a request. In larger requests, this would distort the statistics.
    """
    return [exchange for exchange in evidence.concurrent if exchange.ok and (exchange.case.count or 1) <= 20]


def _ids(evidence: Evidence) -> list[int]:
    return [identifier for exchange in _ordinary(evidence) for identifier, _ in exchange.rows]


def _find_uneven(description: str, values: Sequence[int]) -> Iterator[Finding]:
    """Count values in 20 bins by range, then in 20 bins by remainder. Yield a finding for each implausible count."""
    low, high = plausible_counts(len(values))
    width = HIGHEST_ID // CELLS
    by_range = Counter((value - 1) // width for value in values)
    by_remainder = Counter(value % CELLS for value in values)
    for label, counts in (("range", by_range), ("remainder", by_remainder)):
        for cell in range(CELLS):
            count = counts[cell]
            if not low <= count <= high:
                tail = min(binomial_tails(count, len(values), 1 / CELLS))
                name = f"in {cell * width + 1}..{(cell + 1) * width}" if label == "range" else f"{cell} modulo {CELLS}"
                yield Finding(
                    f"the {description} of many requests are not uniform: {count} of {len(values)} values are "
                    f"{name}. {ADVICE}",
                    expected=f"about {len(values) / CELLS:.0f} times",
                    actual=f"{count} (probability {tail:.1g})",
                )


def _sequences(evidence: Evidence) -> tuple[list[list[int]], ...]:
    """Return each connection's ids in order, and the ids of all connections in chronological order.

    If all connections take ids from a shared counter, only the combined order reveals the pattern.
    """
    exchanges = sorted(_ordinary(evidence), key=lambda e: e.sent_at)
    by_connection: dict[int, list[int]] = {}
    for exchange in exchanges:
        by_connection.setdefault(exchange.connection, []).extend(i for i, _ in exchange.rows)
    return list(by_connection.values()), [[i for exchange in exchanges for i, _ in exchange.rows]]


def _find_related_ids(sequences: Sequence[Sequence[Sequence[int]]]) -> Iterator[Finding]:
    """Find ids that are derived from other ids: mirrored pairs, pairs at a constant distance, arithmetic sequences.

    Derived ids form many pairs with the same sum or the same difference. ``equal_pairs_limit`` returns how many of
    these pairs random ids may form.
    """
    windows = [
        (size, np.unique(ids[start : start + size]))
        for order in sequences
        for ids in order
        for size in WINDOW_SIZES
        for start in range(0, len(ids) - size + 1, WINDOW_SIZES[0])
    ]
    for size, ids in windows:
        first, second = np.triu_indices(len(ids), 1)
        for name, values in (("sum", ids[first] + ids[second]), ("difference", ids[second] - ids[first])):
            if not len(values) or (times := np.bincount(values).max()) <= equal_pairs_limit(size, name, len(windows)):
                continue
            yield Finding(
                f"{times} pairs among {size} consecutive ids have the same {name}. {ADVICE}",
                expected=f"at most {equal_pairs_limit(size, name, len(windows))}",
                actual=f"{name} {np.bincount(values).argmax()}",
            )
            return


@lru_cache(maxsize=64)
def equal_pairs_limit(size: int, name: str, windows: int) -> int:
    """Return how many pairs of ``size`` distinct random ids may plausibly have the same sum or the same difference.

    Regardless of the other ids, a pair has a given sum or difference with a probability of at most p = 1 / (10,000 -
    size). By the union bound, the probability that any m pairs agree is at most p^m * v * s. Here, v is the number of
    possible sums (or differences), and s is the number of sets of m pairs. Pairs with the same sum are disjoint. Pairs
    with the same difference may share an id, so s is at most the number of ways to choose m smaller ids, m larger ids
    and a bijection. The limit includes a Bonferroni correction for both tests (``name``) in all ``windows``.
    """
    for pairs in range(1, size):
        if name == "sum":
            ways = factorial(size) // (factorial(max(0, size - 2 * pairs)) * factorial(pairs) * 2**pairs)
            ways *= 2 * pairs <= size
        else:
            ways = comb(size, pairs) ** 2 * factorial(pairs)
        if 2 * HIGHEST_ID * ways / (HIGHEST_ID - size) ** pairs < FALSE_ALARM / (2 * windows):
            return pairs - 1
    return size


def _find_regular_steps(orders: Sequence[Sequence[Sequence[int]]]) -> Iterator[Finding]:
    """Test that differences between consecutive ids are uniform modulo the table's size."""
    for sequences in orders:
        # Use each id in a single difference, because differences that share an id are dependent.
        steps = [(b - a) % HIGHEST_ID + 1 for ids in sequences for a, b in zip(ids[::2], ids[1::2], strict=False)]
        if len(steps) < MIN_VALUES:
            continue
        yield from _find_uneven("differences between consecutive ids", steps)
        step, times = Counter(steps).most_common(1)[0]
        if binomial_tails(times, len(steps), 1 / HIGHEST_ID)[1] * HIGHEST_ID < FALSE_ALARM:
            yield Finding(
                f"an id exceeds the previous id by {step - 1} in {times} of {len(steps)} cases. {ADVICE}",
                expected="independent draws",
                actual=f"difference {step - 1} {times} times",
            )


def _find_near_ids(evidence: Evidence) -> Iterator[Finding]:
    """Test that the ids of a request are no closer to each other than random ids.

    Servers may sort ids, so the test pairs them at random. Each id is in at most one pair, so the pairs are
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
    for max_distance in NEAR_DISTANCES:
        count = sum(distance <= max_distance for distance in distances)
        chance = (
            sum(HIGHEST_ID - distance for distance in range(1, max_distance + 1)) * 2 / (HIGHEST_ID * (HIGHEST_ID - 1))
        )
        if (tail := binomial_tails(count, len(distances), chance)[1]) < FALSE_ALARM / len(NEAR_DISTANCES):
            yield Finding(
                f"{count} of {len(distances)} pairs of ids in one request are at most {max_distance} apart. {ADVICE}",
                expected=f"about {len(distances) * chance:.0f}",
                actual=f"{count} (probability {tail:.1g})",
            )
            return


def _find_overlaps(evidence: Evidence) -> Iterator[Finding]:
    """Find pairs of requests with too many common ids. By chance, two requests for n rows share about n*n/10000 ids."""
    responses = [frozenset(i for i, _ in exchange.rows) for exchange in _ordinary(evidence)]
    responses = [ids for ids in responses if len(ids) > 1]
    pairs = len(responses) * (len(responses) - 1) / 2
    if not pairs:
        return
    size = max(len(ids) for ids in responses)
    # A response contains a given id with a probability of at most size/10000.
    limit = next(k for k in range(size + 2) if binomial_tails(k + 1, size, size / HIGHEST_ID)[1] * pairs < FALSE_ALARM)
    holders: dict[int, list[int]] = {}  # id -> indices of the responses that contain it
    findings = 0
    for index, ids in enumerate(responses):
        shared = Counter(other for identifier in ids for other in holders.get(identifier, ()))
        for other_index, count in shared.items():
            if count > limit:
                findings += 1
                yield Finding(
                    f"two requests for random rows have {count} rows in common. {ADVICE}",
                    expected=f"at most {limit} of {size}",
                    actual=f"rows {', '.join(str(i) for i in sorted(responses[other_index] & ids)[:8])}…",
                )
        if findings > MIN_VALUES:
            return  # additional findings would not change the verdict
        for identifier in ids:
            holders.setdefault(identifier, []).append(index)


def binomial_tails(successes: int, trials: int, probability: float) -> tuple[float, float]:
    """Return P(X <= successes) and P(X >= successes) for a binomially distributed X."""
    # Import scipy here, because the import is slow and commands such as --list do not need it.
    from scipy.special import bdtr, bdtrc

    if successes > trials:
        return 1.0, 0.0
    upper = float(bdtrc(successes - 1, trials, probability)) if successes else 1.0
    return float(bdtr(successes, trials, probability)), upper


@lru_cache(maxsize=64)
def plausible_counts(total: int) -> tuple[int, int]:
    """Return the smallest and the largest plausible number of values in a bin, given ``total`` values."""
    from scipy.special import bdtr, bdtrc  # imported here, because the import is slow

    # Bonferroni correction for two tails, two partitions into bins (``_find_uneven``), and all bins.
    limit, counts = FALSE_ALARM / (2 * 2 * CELLS), np.arange(total + 1)
    low, high = bdtr(counts, total, 1 / CELLS) >= limit, bdtrc(counts, total, 1 / CELLS) <= limit
    return int(low.argmax()), int(high.argmax())


@lru_cache(maxsize=16)
def occupancy_distribution(draws: int) -> npt.NDArray[np.float64]:
    """Return the probabilities that ``draws`` uniform draws from 10,000 yield 0, 1, ..., ``draws`` distinct values."""
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
