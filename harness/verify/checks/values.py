"""Checks that compare returned rows with the database, for test types that read or update rows."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from harness.verify.checks import READING_TYPES, Finding, check, exchange_check
from harness.verify.checks.evidence import (
    CLOCK_SLACK_SECONDS,
    HIGHEST_NUMBER,
    Evidence,
    Exchange,
    RandomNumbers,
    TableSnapshot,
    TableVersion,
)
from harness.verify.checks.randomness import FALSE_ALARM, binomial_tails
from harness.verify.checks.statement_counts import HIGHEST_ID

UPDATE = frozenset({"update"})
WORLD_TABLES = ("world", "World")
# Upper bounds of age classes in seconds. A row's age is the time from the response to a snapshot. Rows older than
# the last bound are ignored, because most of them have been overwritten.
AGES = (0.02, 0.1, 0.5)
# Rows that are at most this old (in seconds) are compared with rows that are at least OLDER times as old.
YOUNG_AGES = (0.002, 0.005, 0.02)
OLDER = 4
BURST = 2.0  # safety factor: actual writes may be this many times more frequent than the sample suggests


@check("rows.3", READING_TYPES, lambda evidence: evidence.history is not None)
def equals_row(evidence: Evidence) -> Iterator[Finding]:
    """Require that all returned (id, randomNumber) pairs were in the table when the server handled the request."""
    history = evidence.history
    assert history is not None  # noqa: S101 - guaranteed by ``needs``
    # A server reads either "world" or "World". Compare with the table that matches more of the returned rows.
    wrong = min((_wrong_rows(evidence, versions) for versions in history.values()), key=len, default=[])
    for exchange, identifier, number, stored in wrong:
        stale = any(version.rows.get(identifier) == number for versions in history.values() for version in versions)
        missing = "has a value that was never in the table" if stored else "is not in the table"
        problem = "has an outdated value" if stale else missing
        yield Finding(
            f"GET {exchange.target}: row {identifier} {problem}. Read the row again for each request",
            expected=" or ".join(f"randomNumber {value}" for value in stored) if stored else "an id in the table",
            actual=f"randomNumber {number}",
        )


def _wrong_rows(
    evidence: Evidence, versions: Sequence[TableVersion[int]]
) -> list[tuple[Exchange, int, int, list[int]]]:
    """Return the rows that the table did not contain during the exchange, as (exchange, id, number, stored numbers)."""
    wrong_rows = []
    for exchange in evidence.ok_exchanges:
        tables = [version.rows for version in versions if version.overlaps(exchange)]
        for identifier, number in exchange.rows:
            stored = list(dict.fromkeys(table[identifier] for table in tables if identifier in table))
            if number not in stored and (identifier, number) not in evidence.cached_rows:
                wrong_rows.append((exchange, identifier, number, stored))
    return wrong_rows


# ---- update ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Write:
    """A new number that a response returned for a row, with the epoch seconds of the request and the response."""

    sent: float
    received: float
    number: int


@check("update.1", UPDATE, lambda evidence: bool(evidence.snapshots))
def update_stored(evidence: Evidence) -> Iterator[Finding]:
    """Require that each snapshot contains, for every row, the number from the last response before the snapshot."""
    if not evidence.complete:
        yield from min((list(_find_lost(evidence, name)) for name in WORLD_TABLES), key=len)
        yield from _find_late(evidence.age_pairs)
        return
    writes: dict[int, list[_Write]] = defaultdict(list)
    for exchange in evidence.ok_exchanges:
        for identifier, number in exchange.rows:
            writes[identifier].append(_Write(exchange.sent_at, exchange.received_at, number))
    slack = CLOCK_SLACK_SECONDS if evidence.under_load else 0.0
    by_table = (
        [row for snapshot in evidence.snapshots for row in _find_outdated(writes, snapshot, name, slack)]
        for name in WORLD_TABLES
    )
    for identifier, allowed, held in min(by_table, key=len):
        yield Finding(
            f"row {identifier} does not contain the number from the last response. Commit before responding",
            expected="randomNumber " + " or ".join(map(str, allowed)),
            actual=f"{held}",
        )


def _find_outdated(
    writes: Mapping[int, Sequence[_Write]], snapshot: TableSnapshot, name: str, slack: float
) -> Iterator[tuple[int, list[int], int | None]]:
    """Yield rows that have an outdated number in a snapshot, as (id, permitted numbers, actual number).

    A number is outdated if a later update of the row began after this number was returned, and finished before the
    snapshot. ``slack`` is the uncertainty of the clocks in seconds.
    """
    table = snapshot.world.get(name, {})
    for identifier, row_writes in writes.items():
        completed = [write.sent for write in row_writes if write.received <= snapshot.since - slack]
        if completed:
            latest = max(completed)
            allowed = [
                write.number
                for write in row_writes
                if write.received >= latest and write.sent <= snapshot.until + slack
            ]
            if table.get(identifier) not in allowed:
                yield identifier, allowed, table.get(identifier)


@dataclass
class _AgeClass:
    rows: int = 0
    lost: int = 0  # rows with a different number in the snapshot than in the response
    expected_lost: float = 0.0  # upper bound on the expected number of rows that other requests have overwritten


def _find_lost(evidence: Evidence, name: str) -> Iterator[Finding]:
    """Yield a finding if a sample has more lost rows than other requests could have overwritten.

    A row is lost if a snapshot contains a different number than the response. Other requests choose rows at random, so
    the number of overwritten rows varies no more than a binomial variable with the same mean (Hoeffding 1956).
    """
    classes = {age: _AgeClass() for age in AGES}
    sent_at = sorted(e.sent_at for e in evidence.concurrent)
    received_at = sorted(e.received_at for e in evidence.concurrent)
    rate = len(sent_at) / max(received_at[-1] - sent_at[0], CLOCK_SLACK_SECONDS) if sent_at else 0.0
    for snapshot, exchange in product(evidence.snapshots, evidence.concurrent):
        age = snapshot.since - exchange.received_at
        if not exchange.ok or not CLOCK_SLACK_SECONDS < age < AGES[-1]:
            continue
        age_class = classes[next(limit for limit in AGES if age <= limit)]
        overlapping = bisect_right(sent_at, snapshot.until) - bisect_left(received_at, exchange.sent_at)
        requests = max(overlapping, rate * (snapshot.until - exchange.sent_at))
        chance = 1 - math.exp(-BURST * evidence.rows_per_response * requests / HIGHEST_ID)
        table = snapshot.world.get(name, {})
        for identifier, numbers in _numbers_by_row([exchange]).items():
            age_class.rows += 1
            age_class.lost += table.get(identifier) not in numbers
            age_class.expected_lost += chance
    for limit, age_class in classes.items():
        rows, lost, expected = age_class.rows, age_class.lost, age_class.expected_lost
        if rows and lost > expected and binomial_tails(lost, rows, expected / rows)[1] < FALSE_ALARM:
            yield Finding(
                f"{lost} of {rows} rows did not have the number returned at most {limit:g} s earlier. Write every row",
                expected=f"at most {expected:.0f} rows overwritten by other requests",
                actual=f"{lost} with a different number",
            )


def count_age_pairs(evidence: Evidence) -> Counter[tuple[float, bool]]:
    """Pair newer rows with older rows, and count the pairs in which exactly one row is lost.

    A row is lost if a snapshot contains a different number than the response. In each pair, the older row's response
    arrived before the request for the newer row was sent. Every write that can overwrite the newer row can therefore
    also overwrite the older row. With a correct server, the lost row is the newer row in at most half of the counted
    pairs. This limit holds no matter how many rows other requests write.

    Returns:
        The number of pairs by (maximum age of the newer row in seconds, whether the newer row is lost).
    """
    counts: Counter[tuple[float, bool]] = Counter()
    by_time = sorted((e for e in evidence.concurrent if e.ok), key=lambda e: e.received_at)
    for snapshot, max_age in product(evidence.snapshots, YOUNG_AGES):
        ages = [(snapshot.since - exchange.received_at, exchange) for exchange in by_time]
        older = [exchange for age, exchange in reversed(ages) if OLDER * max_age <= age < AGES[-1]]
        for young in (exchange for age, exchange in ages if CLOCK_SLACK_SECONDS < age <= max_age):
            if partner := next((e for e in older if e.received_at <= young.sent_at), None):
                older.remove(partner)
                for table in snapshot.world.values():
                    pairs = zip(_lost_rows(young, table), _lost_rows(partner, table), strict=False)
                    counts.update((max_age, young_lost) for young_lost, older_lost in pairs if young_lost != older_lost)
    return counts


def _lost_rows(exchange: Exchange, table: RandomNumbers) -> list[bool]:
    """Return, for each row of a response, whether the row is lost: the table contains a different number."""
    return [table.get(identifier) not in numbers for identifier, numbers in _numbers_by_row([exchange]).items()]


def _find_late(age_pairs: Mapping[tuple[float, bool], int]) -> Iterator[Finding]:
    """Yield a finding if newer rows are lost more often than older rows, which shows that commits are late."""
    for max_age in YOUNG_AGES:
        young, older = age_pairs.get((max_age, True), 0), age_pairs.get((max_age, False), 0)
        if binomial_tails(young, young + older, 0.5)[1] < FALSE_ALARM:
            yield Finding(
                f"rows returned at most {max_age * 1000:g} ms earlier were not stored, but older rows were. Commit "
                "before responding",
                expected="if only one of two rows is lost, it is the newer row in at most half of all cases",
                actual=f"in {young} of {young + older} cases",
            )


@check("update.2", UPDATE, lambda evidence: evidence.complete and bool(evidence.snapshots))
def no_other_row_changed(evidence: Evidence) -> Iterator[Finding]:
    """Require that only returned rows changed, and that no row was added or removed."""
    if any(not e.ok or len(e.rows) != len(e.row_objects) for e in evidence.all_exchanges):
        return  # a response with errors may contain any row; other checks report the errors
    returned = {identifier for exchange in evidence.ok_exchanges for identifier, _ in exchange.rows}
    for name, before in evidence.snapshots[0].world.items():
        after = evidence.snapshots[-1].world[name]
        for identifier in (before.keys() | after.keys()) - returned:
            if before.get(identifier) != after.get(identifier):
                yield Finding(
                    f"row {identifier} of {name} changed, but no response contains it. Write only the returned rows",
                    expected=f"{before.get(identifier)}",
                    actual=f"{after.get(identifier)}",
                )


@exchange_check("update.3", UPDATE)
def one_number_a_row(exchange: Exchange) -> Iterator[Finding]:
    """Find responses with different numbers for the same row, although the table stores only one number per row."""
    for identifier, numbers in _numbers_by_row([exchange]).items():
        if len(set(numbers)) > 1:
            yield Finding(
                f"row {identifier} occurs with different random numbers in one response. Draw distinct rows",
                expected="each row once, or with the same number",
                actual=" and ".join(map(str, numbers)),
            )


@check("update.4", UPDATE, lambda evidence: bool(evidence.snapshots))
def numbers_change(evidence: Evidence) -> Iterator[Finding]:
    """Require that new numbers are neither the old numbers nor the old numbers plus a constant.

    The old numbers are those in the last snapshot before the request.
    """
    steps: Counter[int] = Counter()
    returned = 0
    for exchange in evidence.ok_exchanges:
        earlier = [s for s in evidence.snapshots if s.until < exchange.sent_at - CLOCK_SLACK_SECONDS]
        tables = earlier[-1].world.values()
        rows = set(exchange.rows)
        returned += len(rows)
        for identifier, number in rows:
            steps.update({(number - table[identifier]) % HIGHEST_NUMBER for table in tables if identifier in table})
    step, times = max(steps.items(), key=lambda item: item[1], default=(0, 0))
    if binomial_tails(times, returned, len(WORLD_TABLES) / HIGHEST_NUMBER)[1] * HIGHEST_NUMBER < FALSE_ALARM:
        constant = f"the old number plus {step}" if step else "the old number"
        yield Finding(
            f"{times} of {returned} returned rows have {constant}. Draw a new random number for each row",
            expected="new random numbers",
        )


@check("update.5", UPDATE, lambda evidence: bool(evidence.snapshots))
def table_sound(evidence: Evidence) -> Iterator[Finding]:
    """Require that the table contains exactly the ids 1..10000, each with a number in range."""
    for name, table in evidence.snapshots[-1].world.items():
        if table.keys() != set(range(1, HIGHEST_ID + 1)):
            yield Finding(
                f"{name} does not have exactly the ids 1..{HIGHEST_ID}. Do not insert or delete rows",
                actual=f"{len(table)} rows",
            )
        for identifier, number in table.items():
            if not 1 <= number <= HIGHEST_NUMBER:
                yield Finding(
                    f"row {identifier} of {name} has a number out of range. Write numbers in the expected range",
                    expected=f"1..{HIGHEST_NUMBER}",
                    actual=f"{number}",
                )


def _numbers_by_row(exchanges: Iterable[Exchange]) -> dict[int, list[int]]:
    """Return the numbers that successful responses contain for each id, in the order of the responses."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for exchange in exchanges:
        for identifier, number in exchange.rows if exchange.ok else ():
            numbers[identifier].append(number)
    return numbers
