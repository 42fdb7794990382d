"""Answers against the database: rows that are read equal the table, rows that are updated are what the table holds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.verify.checks import READING_TYPES, Finding, check
from harness.verify.checks.evidence import (
    CLOCKS_SECONDS,
    HIGHEST_ID,
    HIGHEST_NUMBER,
    Evidence,
    Exchange,
    Look,
    Table,
    World,
)

UPDATE = frozenset({"update"})


@check("rows.5", READING_TYPES, lambda evidence: bool(evidence.versions))
def equals_row(evidence: Evidence) -> Iterator[Finding]:
    """Every id and randomNumber is a row of the table."""
    # An implementation reads one of the twins: it is held against the one that it agrees with best.
    names = evidence.versions[0].world.tables
    wrong = None
    for name in names:
        found = _wrong(evidence, name)
        wrong = found if wrong is None or len(found) < len(wrong) else wrong
        if not wrong:
            return
    for exchange, identifier, number, held in wrong or ():
        older = any(
            number == version.world.tables[name].get(identifier) for version in evidence.versions for name in names
        )
        yield Finding(
            message=f"GET {exchange.target}: row {identifier} is "
            + ("stale: the table held that number before, not when it was asked for" if older else "not in the table"),
            expected=" or ".join(f"randomNumber {one}" for one in held) if held else "an id of the table",
            actual=f"randomNumber {number}",
        )


def _ever_held(evidence: Evidence, identifier: int) -> set[int | None]:
    """Every number that the row had at any time, in either twin."""
    return {table.get(identifier) for version in evidence.versions for table in version.world.tables.values()}


def _wrong(evidence: Evidence, name: str) -> list[tuple[Exchange, int, int, list[int]]]:
    """Rows that were answered and that this twin did not hold then: exchange, id, number, what it held."""
    found = []
    for exchange in evidence.good:
        tables = [version.world.tables[name] for version in evidence.versions if version.may_answer(exchange, name)]
        for identifier, number in exchange.rows:
            for table in tables:
                if table.get(identifier) == number:
                    break
            else:
                held = [table[identifier] for table in tables if identifier in table]
                found.append((exchange, identifier, number, held))
    return found


@check("update.1", UPDATE, lambda evidence: evidence.between is not None)
def update_stored(evidence: Evidence) -> Iterator[Finding]:
    """After single requests the table holds, for every row, the number that was answered last."""
    answered = {i: (numbers, e) for e in evidence.exchanges if e.ok for i, numbers in _given(e).items()}
    _, after = _written_twin(evidence, evidence.before, evidence.between)
    for identifier, (numbers, exchange) in answered.items():
        if after.get(identifier) not in numbers:
            yield Finding(
                message=f"GET {exchange.target}: row {identifier} does not hold what was answered",
                expected="randomNumber " + " or ".join(map(str, numbers)),
                actual=f"randomNumber {after.get(identifier)}",
            )


def _given(exchange: Exchange) -> dict[int, list[int]]:
    """id -> the numbers that one answer gives the row: more than one is update.5's business."""
    given: dict[int, list[int]] = {}
    for identifier, number in exchange.rows:
        given.setdefault(identifier, []).append(number)
    return given


@check("update.2", UPDATE, lambda evidence: bool(evidence.immediate or evidence.looks))
def written_before_answered(evidence: Evidence) -> Iterator[Finding]:
    """The rows are written when the answer comes, not some time later."""
    writes: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    for exchange in evidence.crowd if evidence.looks else ():
        for identifier, number in exchange.rows if exchange.ok else ():
            writes[identifier].append((exchange.sent_at, exchange.received_at, number))
    for look in evidence.looks:
        for identifier in min((_not_yet(writes, look, t) for t in look.world.tables.values()), key=len, default=[]):
            yield Finding(
                message=f"row {identifier} was not yet written when its answer had come, while many asked",
                expected="a number that was answered for it last",
                actual="an earlier one",
            )
    for seen in evidence.immediate:
        given = _given(seen.exchange)
        late = min(
            (
                [i for i, numbers in given.items() if table.get(i) not in numbers]
                for table in seen.after.tables.values()
            ),
            key=len,
            default=[],
        )
        for identifier in late:
            yield Finding(
                message=f"GET {seen.exchange.target}: row {identifier} was not yet written when the answer had come",
                expected="randomNumber " + " or ".join(map(str, given[identifier])),
                actual="another number, read right after the answer",
            )


def _not_yet(writes: Mapping[int, Sequence[tuple[float, float, int]]], look: Look, table: Table) -> list[int]:
    """Rows of which a look found an older number than those that had been answered by then.

    ``writes``: sent at, received at and number of each answer, by row. A number is too old when another write of the
    row began after its answer had come, and was itself answered before the look.
    """
    found = []
    for identifier, answers in writes.items():
        begun = [sent for sent, received, _ in answers if received < look.since - CLOCKS_SECONDS]
        if begun:
            latest = max(begun)
            may = {n for sent, received, n in answers if received >= latest and sent <= look.until + CLOCKS_SECONDS}
            if table.get(identifier) not in may:
                found.append(identifier)
    return found


@check("update.3", UPDATE, lambda evidence: evidence.after is not None and bool(evidence.crowd))
def update_stored_in_a_crowd(evidence: Evidence) -> Iterator[Finding]:
    """After many requests at once every row holds a number that was answered for it."""
    answered: dict[int, set[int]] = defaultdict(set)
    for exchange in evidence.crowd:
        for identifier, number in exchange.rows if exchange.ok else ():
            answered[identifier].add(number)
    _, after = _written_twin(evidence, evidence.between, evidence.after)
    for identifier, numbers in answered.items():
        if after.get(identifier) not in numbers:
            yield Finding(
                message=f"row {identifier} does not hold what requests that came together were answered",
                expected=" or ".join(f"{number}" for number in sorted(numbers)),
                actual=f"{after.get(identifier)}",
            )


@check("update.4", UPDATE, lambda evidence: evidence.after is not None and evidence.before is not None)
def no_other_row_changed(evidence: Evidence) -> Iterator[Finding]:
    """Rows that were not answered are as they were, and none came or went."""
    if any(not e.ok or len(e.rows) != len(e.items) for e in evidence.all):
        return  # what an answer that can't be read has changed is unknown; the check that it fails says so
    answered = {identifier for exchange in evidence.good for identifier, _ in exchange.rows}
    assert evidence.before is not None  # noqa: S101 - needs
    assert evidence.after is not None  # noqa: S101 - needs
    for name, before in evidence.before.tables.items():
        after = evidence.after.tables.get(name, {})
        for identifier in before.keys() | after.keys():
            if identifier not in answered and before.get(identifier) != after.get(identifier):
                yield Finding(
                    message=f"row {identifier} of {name} changed although no answer named it",
                    expected=f"{before.get(identifier)}",
                    actual=f"{after.get(identifier)}",
                )


@check("update.5", UPDATE)
def one_number_a_row(evidence: Evidence) -> Iterator[Finding]:
    """An answer does not give one row two numbers: the table can hold only one."""
    for exchange in evidence.good:
        numbers: dict[int, int] = {}
        for identifier, number in exchange.rows:
            if numbers.setdefault(identifier, number) != number:
                yield Finding(
                    message=f"GET {exchange.target}: row {identifier} was given two numbers in one answer",
                    expected="each row once, or with the same number",
                    actual=f"{numbers[identifier]} and {number}",
                )


@check("update.6", UPDATE, lambda evidence: evidence.between is not None)
def numbers_change(evidence: Evidence) -> Iterator[Finding]:
    """The new number is a new one: of many rows hardly any keeps its number by chance."""
    before, _ = _written_twin(evidence, evidence.before, evidence.between)
    first: dict[int, tuple[int, Exchange]] = {}
    for exchange in evidence.exchanges:
        for identifier, number in exchange.rows if exchange.ok else ():
            first.setdefault(identifier, (number, exchange))
    same = [identifier for identifier, (number, _) in first.items() if before.get(identifier) == number]
    # 1,500 rows keep their number 0.15 times by chance: more than 6 of them less than once in 10^9 verifications.
    if len(same) > max(6, len(first) // 250):
        yield Finding(
            message=f"{len(same)} of {len(first)} rows were answered with the number that they had",
            expected="new random numbers",
            actual=f"row {same[0]} kept {before.get(same[0])}",
        )


@check("update.7", UPDATE, lambda evidence: evidence.after is not None)
def table_sound(evidence: Evidence) -> Iterator[Finding]:
    """The table has its 10,000 rows, each with a number in range."""
    assert evidence.after is not None  # noqa: S101 - needs
    for name, table in evidence.after.tables.items():
        if table.keys() != set(range(1, HIGHEST_ID + 1)):
            yield Finding(message=f"{name} does not have the ids 1..{HIGHEST_ID}", actual=f"{len(table)} rows")
        for identifier, number in table.items():
            if not 1 <= number <= HIGHEST_NUMBER:
                yield Finding(
                    message=f"row {identifier} of {name} holds a number out of range",
                    expected=f"1..{HIGHEST_NUMBER}",
                    actual=f"{number}",
                )


def _written_twin(evidence: Evidence, before: World | None, after: World | None) -> tuple[Table, Table]:
    """Before and after of the table that the server writes: the one that agrees best with its answers."""
    if before is None or after is None:
        return {}, {}
    last = {identifier: number for e in evidence.all if e.ok for identifier, number in e.rows}
    names = [name for name in before.tables if name in after.tables]

    def agreement(name: str) -> tuple[int, int]:
        table = after.tables[name]
        return sum(table[i] == n for i, n in last.items() if i in table), _changed(before.tables[name], table)

    chosen = max(names, key=agreement, default=None)
    return ({}, {}) if chosen is None else (before.tables[chosen], after.tables[chosen])


def _changed(before: Table, after: Table) -> int:
    return sum(after.get(identifier) != number for identifier, number in before.items())


def distinct_ids(exchanges: Iterable[Exchange]) -> int:
    """Rows that the answers name, each once a request."""
    return sum(len({identifier for identifier, _ in exchange.rows}) for exchange in exchanges)


CHECKS = (
    equals_row,
    update_stored,
    written_before_answered,
    update_stored_in_a_crowd,
    no_other_row_changed,
    one_number_a_row,
    numbers_change,
    table_sound,
)
