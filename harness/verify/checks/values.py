"""Checks of returned rows against the database, for test types that read rows and for updates."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from harness.verify.checks import READING_TYPES, Finding, check, exchange_check
from harness.verify.checks.evidence import (
    CLOCK_SLACK_SECONDS,
    HIGHEST_ID,
    HIGHEST_NUMBER,
    Evidence,
    Exchange,
    RandomNumbers,
    TableSnapshot,
    TableVersion,
)
from harness.verify.checks.randomness import FALSE_ALARM, binomial_tails

UPDATE = frozenset({"update"})
WORLD_TABLES = ("world", "World")
# Upper bounds of age classes. The age is the seconds from a response to a snapshot. Most older rows have been
# overwritten.
AGES = (0.02, 0.1, 0.5)
# Seconds; rows of these ages are compared with rows that are at least OLDER times as old.
YOUNG_AGES = (0.002, 0.005, 0.02)
OLDER = 4
BURST = 2.0  # factor by which writes may exceed the mean rate, or the rate of responses near a snapshot


@check("rows.3", READING_TYPES, lambda evidence: evidence.history is not None)
def equals_row(evidence: Evidence) -> Iterator[Finding]:
    """Require that all returned (id, randomNumber) pairs are rows of the table."""
    history = evidence.history
    assert history is not None  # noqa: S101 - needs
    # An implementation reads one of two tables. Use the table that matches better.
    wrong = min((_wrong_rows(evidence, versions) for versions in history.values()), key=len, default=[])
    for exchange, identifier, number, held in wrong:
        stale = any(version.rows.get(identifier) == number for versions in history.values() for version in versions)
        problem = "has an outdated value" if stale else "is not in the table"
        yield Finding(
            f"GET {exchange.target}: row {identifier} {problem}. Read the row again for each request",
            expected=" or ".join(f"randomNumber {value}" for value in held) if held else "an id of the table",
            actual=f"randomNumber {number}",
        )


def _wrong_rows(
    evidence: Evidence, versions: Sequence[TableVersion[int]]
) -> list[tuple[Exchange, int, int, list[int]]]:
    """Return rows that were not in the table at the time: exchange, id, number, and the numbers in the table."""
    wrong = []
    for exchange in evidence.ok_exchanges:
        tables = [version.rows for version in versions if version.overlaps(exchange)]
        for identifier, number in exchange.rows:
            held = list(dict.fromkeys(table[identifier] for table in tables if identifier in table))
            if number not in held and (identifier, number) not in evidence.cached_rows:
                wrong.append((exchange, identifier, number, held))
    return wrong


# ---- update ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Write:
    """A row of a response: epoch seconds of the request and of the response, and the new number."""

    sent: float
    received: float
    number: int


@check("update.1", UPDATE, lambda evidence: bool(evidence.snapshots))
def update_stored(evidence: Evidence) -> Iterator[Finding]:
    """Require that each row of each snapshot contains the number from the last response before the snapshot."""
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
            f"row {identifier} does not hold the number of the last response. Commit before responding",
            expected="randomNumber " + " or ".join(map(str, allowed)),
            actual=f"{held}",
        )


def _find_outdated(
    writes: Mapping[int, Sequence[_Write]], snapshot: TableSnapshot, name: str, slack: float
) -> Iterator[tuple[int, list[int], int | None]]:
    """Yield rows that have an outdated number in a snapshot: id, permitted numbers, actual number.

    A number is outdated if a later write of the row began after its response, and ended before the snapshot. ``slack``
    is the error of the clocks in seconds.
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
    lost: int = 0  # rows that have a different number in the table
    expected_lost: float = 0.0  # upper bound of the number expected by chance


def _find_lost(evidence: Evidence, name: str) -> Iterator[Finding]:
    """Find more changed rows in a sample than other requests can have overwritten.

    Each write affects each row with the same probability. The number of overwritten rows is therefore no more dispersed
    than a binomial variable with the same mean (Hoeffding 1956).
    """
    classes = {age: _AgeClass() for age in AGES}
    sent = sorted(e.sent_at for e in evidence.concurrent)
    received = sorted(e.received_at for e in evidence.concurrent)
    rate = len(sent) / max(received[-1] - sent[0], CLOCK_SLACK_SECONDS) if sent else 0.0
    for snapshot, exchange in product(evidence.snapshots, evidence.concurrent):
        age = snapshot.since - exchange.received_at
        if not exchange.ok or not CLOCK_SLACK_SECONDS < age < AGES[-1]:
            continue
        age_class = classes[next(limit for limit in AGES if age <= limit)]
        overlapping = bisect_right(sent, snapshot.until) - bisect_left(received, exchange.sent_at)
        requests = max(overlapping, rate * (snapshot.until - exchange.sent_at))
        chance = 1 - math.exp(-BURST * evidence.rows_per_response * requests / HIGHEST_ID)
        table = snapshot.world.get(name, {})
        for identifier, numbers in _numbers_by_row([exchange]).items():
            age_class.rows += 1
            age_class.lost += table.get(identifier) not in numbers
            age_class.expected_lost += chance
    for limit, found in classes.items():
        rows, lost, expected = found.rows, found.lost, found.expected_lost
        if rows and lost > expected and binomial_tails(lost, rows, expected / rows)[1] < FALSE_ALARM:
            yield Finding(
                f"{lost} of {rows} rows did not hold the number of a response up to {limit:g} s old. Write every row",
                expected=f"at most {expected:.0f} overwritten by other requests",
                actual=f"{lost} with another number",
            )


def count_age_pairs(evidence: Evidence) -> Counter[tuple[float, bool]]:
    """Count pairs of a young and an older row in a sample, where a snapshot contains the number of exactly one of them.

    The response with the older row precedes the request of the young row. Every write that can overwrite the young row
    can also overwrite the older row. At any rate of other writes, the young row is therefore lost in at most half of
    the pairs.

    Returns:
        The number of pairs by the maximum age of the young row, and by whether the young row is lost.
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
    """Return whether the table contains a different number, for each row of a response."""
    return [table.get(identifier) not in numbers for identifier, numbers in _numbers_by_row([exchange]).items()]


def _find_late(age_pairs: Mapping[tuple[float, bool], int]) -> Iterator[Finding]:
    """Find that young rows are lost more often than older rows, which means that the server writes after responding."""
    for max_age in YOUNG_AGES:
        young, older = age_pairs.get((max_age, True), 0), age_pairs.get((max_age, False), 0)
        if binomial_tails(young, young + older, 0.5)[1] < FALSE_ALARM:
            yield Finding(
                f"rows of responses up to {max_age * 1000:g} ms old were not stored, but older rows were. Commit "
                "before responding",
                expected="in pairs with one lost row, the younger row is lost at most half of the time",
                actual=f"in {young} of {young + older}",
            )


@check("update.2", UPDATE, lambda evidence: evidence.complete and bool(evidence.snapshots))
def no_other_row_changed(evidence: Evidence) -> Iterator[Finding]:
    """Require that rows in no response are unchanged, and that no row was added or removed."""
    if any(not e.ok or len(e.rows) != len(e.row_objects) for e in evidence.all_exchanges):
        return  # an unreadable response makes the changes unknown; other checks report it
    returned = {identifier for exchange in evidence.ok_exchanges for identifier, _ in exchange.rows}
    for name, before in evidence.snapshots[0].world.items():
        after = evidence.snapshots[-1].world[name]
        for identifier in (before.keys() | after.keys()) - returned:
            if before.get(identifier) != after.get(identifier):
                yield Finding(
                    f"row {identifier} of {name} changed although no response named it. Write only requested rows",
                    expected=f"{before.get(identifier)}",
                    actual=f"{after.get(identifier)}",
                )


@exchange_check("update.3", UPDATE)
def one_number_a_row(exchange: Exchange) -> Iterator[Finding]:
    """Find responses that contain two numbers for the same row, because the table can store only one of them."""
    for identifier, numbers in _numbers_by_row([exchange]).items():
        if len(set(numbers)) > 1:
            yield Finding(
                f"row {identifier} has two numbers in one response. Draw different rows",
                expected="each row once, or with the same number",
                actual=" and ".join(map(str, numbers)),
            )


@check("update.4", UPDATE, lambda evidence: bool(evidence.snapshots))
def numbers_change(evidence: Evidence) -> Iterator[Finding]:
    """Require that differences between new and old numbers are random, given a snapshot just before the request."""
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
            f"{times} of {returned} rows were returned with {constant}. Draw a new random number for each row",
            expected="new random numbers",
        )


@check("update.5", UPDATE, lambda evidence: bool(evidence.snapshots))
def table_sound(evidence: Evidence) -> Iterator[Finding]:
    """Require that the table has 10,000 rows, each with a number in range."""
    for name, table in evidence.snapshots[-1].world.items():
        if table.keys() != set(range(1, HIGHEST_ID + 1)):
            yield Finding(
                f"{name} does not have the ids 1..{HIGHEST_ID}. Insert and delete no rows", actual=f"{len(table)} rows"
            )
        for identifier, number in table.items():
            if not 1 <= number <= HIGHEST_NUMBER:
                yield Finding(
                    f"row {identifier} of {name} holds a number out of range. Write numbers in the expected range",
                    expected=f"1..{HIGHEST_NUMBER}",
                    actual=f"{number}",
                )


def _numbers_by_row(exchanges: Iterable[Exchange]) -> dict[int, list[int]]:
    """Return the numbers that successful responses contain for each row, in order."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for exchange in exchanges:
        for identifier, number in exchange.rows if exchange.ok else ():
            numbers[identifier].append(number)
    return numbers
