"""Answers against the database: rows that are read equal the table, rows that are updated are what the table holds."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from harness.verify.checks import READING_TYPES, Finding, check, each
from harness.verify.checks.evidence import (
    CLOCKS_SECONDS,
    HIGHEST_ID,
    HIGHEST_NUMBER,
    Evidence,
    Exchange,
    TableSnapshot,
    Version,
)
from harness.verify.checks.randomness import FALSE_ALARM, tails

UPDATE = frozenset({"update"})
TWINS = ("world", "World")
AGES = (0.02, 0.1, 0.5)  # seconds from the answer to the look, in classes; older ones are mostly overwritten
YOUNG = (0.002, 0.005, 0.02)  # seconds, likewise, of rows that are held against others of at least
OLDER = 4  # times that age
BURST = 2.0  # times as many rows may be written as in the mean, or as the answers around a look tell


@check("rows.3", READING_TYPES, lambda evidence: evidence.history is not None)
def equals_row(evidence: Evidence) -> Iterator[Finding]:
    """Every id and randomNumber is a row of the table."""
    history = evidence.history
    assert history is not None  # noqa: S101 - needs
    # An implementation reads one of the twins: it is held against the one that it agrees with best.
    wrong = min((_wrong(evidence, versions) for versions in history.values()), key=len, default=[])
    for exchange, identifier, number, held in wrong:
        stale = any(version.rows.get(identifier) == number for versions in history.values() for version in versions)
        why = "stale: what the table held at another time than it was asked for" if stale else "not in the table"
        yield Finding(
            f"GET {exchange.target}: row {identifier} is {why}",
            expected=" or ".join(f"randomNumber {one}" for one in held) if held else "an id of the table",
            actual=f"randomNumber {number}",
        )


def _wrong(evidence: Evidence, versions: Sequence[Version[int]]) -> list[tuple[Exchange, int, int, list[int]]]:
    """Rows that were answered and that this twin did not hold then: exchange, id, number, what it held."""
    found = []
    for exchange in evidence.good:
        tables = [version.rows for version in versions if version.may_answer(exchange)]
        for identifier, number in exchange.rows:
            held = list(dict.fromkeys(table[identifier] for table in tables if identifier in table))
            if number not in held and (identifier, number) not in evidence.cached:
                found.append((exchange, identifier, number, held))
    return found


# ---- update ----------------------------------------------------------------------------------------------------------


@check("update.1", UPDATE, lambda evidence: bool(evidence.looks))
def update_stored(evidence: Evidence) -> Iterator[Finding]:
    """Whenever the table is looked at, each row holds a number that was answered for it last, by then."""
    if not evidence.whole:
        yield from min((list(_lost(evidence, name)) for name in TWINS), key=len)
        yield from _late(evidence.pairs)
        return
    writes: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    for exchange in evidence.good:
        for identifier, number in exchange.rows:
            writes[identifier].append((exchange.sent_at, exchange.received_at, number))
    slack = CLOCKS_SECONDS if evidence.under_load else 0.0
    found = ([one for look in evidence.looks for one in _unstored(writes, look, name, slack)] for name in TWINS)
    for identifier, may, held in min(found, key=len):
        yield Finding(
            f"row {identifier} does not hold what was answered for it last",
            expected="randomNumber " + " or ".join(map(str, may)),
            actual=f"{held}",
        )


def _unstored(
    writes: Mapping[int, Sequence[tuple[float, float, int]]], look: TableSnapshot, name: str, slack: float
) -> Iterator[tuple[int, list[int], int | None]]:
    """Rows of which a look found an older number than had been answered by then: id, what may be, what is.

    ``writes``: sent at, received at and number of each answer, by row. A number is too old when another write of the
    row began after its answer had come, and was itself answered before the look.
    """
    table = look.world.get(name, {})
    for identifier, answers in writes.items():
        begun = [sent for sent, received, _ in answers if received <= look.since - slack]
        if begun:
            latest = max(begun)
            may = [n for sent, received, n in answers if received >= latest and sent <= look.until + slack]
            if table.get(identifier) not in may:
                yield identifier, may, table.get(identifier)


def _lost(evidence: Evidence, name: str) -> Iterator[Finding]:
    """Of a share of the answers: more of their rows hold another number than other answers can have written since.

    Each write hits each row with the same probability, so how many rows are overwritten until a look is no more spread
    than a binomial number of the same mean (Hoeffding 1956).
    """
    seen: dict[float, list[float]] = {age: [0, 0, 0.0] for age in AGES}  # rows, those with another number, expected
    sent, received = sorted(e.sent_at for e in evidence.crowd), sorted(e.received_at for e in evidence.crowd)
    rate = len(sent) / max(received[-1] - sent[0], CLOCKS_SECONDS) if sent else 0.0
    for look in evidence.looks:
        table = look.world.get(name, {})
        for exchange in evidence.crowd:
            before = look.since - exchange.received_at
            if not exchange.ok or not CLOCKS_SECONDS < before < AGES[-1]:
                continue
            of_age = seen[next(age for age in AGES if before <= age)]
            beside = bisect_right(sent, look.until) - bisect_left(received, exchange.sent_at)
            writes = BURST * evidence.rows_each * max(beside, rate * (look.until - exchange.sent_at))
            chance = 1 - math.exp(-writes / HIGHEST_ID)
            for identifier, numbers in _given([exchange]).items():
                of_age[0] += 1
                of_age[1] += table.get(identifier) not in numbers
                of_age[2] += chance
    for age, (rows, lost, expected) in seen.items():
        if rows and lost > expected and tails(int(lost), int(rows), expected / rows)[1] < FALSE_ALARM:
            yield Finding(
                f"{lost:.0f} of {rows:.0f} rows did not hold what was answered up to {age:g} s before",
                expected=f"at most {expected:.0f} overwritten by other answers",
                actual=f"{lost:.0f} with another number",
            )


def pairs(evidence: Evidence) -> Counter[tuple[float, bool]]:
    """Of a share of the answers: pairs of a young row and an older one of which a look found but one as answered.

    How many, by the age of the young one at most, and whether it is the one not found. The older had been answered
    when the young one was asked for: what can have overwritten the young one can have overwritten the older, and it is
    the young one with a probability of 1/2 at most, at whatever rate others write.
    """
    found: Counter[tuple[float, bool]] = Counter()
    good = sorted((e for e in evidence.crowd if e.ok), key=lambda e: e.received_at)
    for look, age in product(evidence.looks, YOUNG):
        older = [e for e in reversed(good) if OLDER * age <= look.since - e.received_at < AGES[-1]]
        for young in (e for e in good if CLOCKS_SECONDS < look.since - e.received_at <= age):
            if partner := next((e for e in older if e.received_at <= young.sent_at), None):
                older.remove(partner)
                rows = zip(_given([young]).items(), _given([partner]).items(), strict=False)
                for table, ((i, its), (j, others)) in product(look.world.values(), rows):
                    if (lost := table.get(i) not in its) != (table.get(j) not in others):
                        found[age, lost] += 1
    return found


def _late(found: Mapping[tuple[float, bool], int]) -> Iterator[Finding]:
    for age in YOUNG:
        young, older = found.get((age, True), 0), found.get((age, False), 0)
        if tails(young, young + older, 0.5)[1] < FALSE_ALARM:
            yield Finding(
                f"rows did not hold what was answered up to {age * 1000:g} ms before, and older ones did",
                expected="the answer after the commit: of pairs, the younger row in half of the cases at most",
                actual=f"in {young} of {young + older}",
            )


@check("update.2", UPDATE, lambda evidence: evidence.whole and bool(evidence.looks))
def no_other_row_changed(evidence: Evidence) -> Iterator[Finding]:
    """Rows that were not answered are as they were, and none came or went."""
    if any(not e.ok or len(e.rows) != len(e.items) for e in evidence.all):
        return  # what an answer that can't be read has changed is unknown; the check that it fails says so
    answered = {identifier for exchange in evidence.good for identifier, _ in exchange.rows}
    for name, before in evidence.looks[0].world.items():
        after = evidence.looks[-1].world[name]
        for identifier in (before.keys() | after.keys()) - answered:
            if before.get(identifier) != after.get(identifier):
                yield Finding(
                    f"row {identifier} of {name} changed although no answer named it",
                    expected=f"{before.get(identifier)}",
                    actual=f"{after.get(identifier)}",
                )


@each("update.3", UPDATE)
def one_number_a_row(exchange: Exchange) -> Iterator[Finding]:
    """An answer does not give one row two numbers: the table can hold only one."""
    for identifier, numbers in _given([exchange]).items():
        if len(set(numbers)) > 1:
            message = f"row {identifier} was given two numbers in one answer"
            actual = " and ".join(map(str, numbers))
            yield Finding(message, expected="each row once, or with the same number", actual=actual)


@check("update.4", UPDATE, lambda evidence: bool(evidence.looks))
def numbers_change(evidence: Evidence) -> Iterator[Finding]:
    """The new number is a new one: it differs as it likes from what a look just before its request found in a twin."""
    steps: Counter[int] = Counter()
    answered = 0
    for exchange in evidence.good:
        earlier = [look for look in evidence.looks if look.until < exchange.sent_at - CLOCKS_SECONDS]
        held = earlier[-1].world.values()
        rows = set(exchange.rows)
        answered += len(rows)
        for i, number in rows:
            steps.update({(number - table[i]) % HIGHEST_NUMBER for table in held if i in table})
    step, times = max(steps.items(), key=lambda each: each[1], default=(0, 0))
    if tails(times, answered, len(TWINS) / HIGHEST_NUMBER)[1] * HIGHEST_NUMBER < FALSE_ALARM:
        how = f" plus {step}" if step else ""
        message = f"{times} of {answered} rows were answered with the number that they had{how}"
        yield Finding(message, expected="new random numbers")


@check("update.5", UPDATE, lambda evidence: bool(evidence.looks))
def table_sound(evidence: Evidence) -> Iterator[Finding]:
    """The table has its 10,000 rows, each with a number in range."""
    for name, table in evidence.looks[-1].world.items():
        if table.keys() != set(range(1, HIGHEST_ID + 1)):
            yield Finding(f"{name} does not have the ids 1..{HIGHEST_ID}", actual=f"{len(table)} rows")
        for identifier, number in table.items():
            if not 1 <= number <= HIGHEST_NUMBER:
                message = f"row {identifier} of {name} holds a number out of range"
                yield Finding(message, expected=f"1..{HIGHEST_NUMBER}", actual=f"{number}")


def _given(exchanges: Iterable[Exchange]) -> dict[int, list[int]]:
    """Id -> the numbers that good answers give the row, in order; several in one answer are update.3's business."""
    given: dict[int, list[int]] = defaultdict(list)
    for exchange in exchanges:
        for identifier, number in exchange.rows if exchange.ok else ():
            given[identifier].append(number)
    return given
