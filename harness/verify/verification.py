"""Gathers the evidence of one test type of a running server once, then runs every registered check over it."""

import random
import time
from contextlib import ExitStack, nullcontext
from dataclasses import replace

from harness.records.outcome import Outcome
from harness.records.outcome import worst_outcome as worst_of
from harness.records.verification_record import CheckResult
from harness.verify.changes import history_of
from harness.verify.checks import LOAD
from harness.verify.checks.asking import GIVE_UP_AFTER, Asking, Lane, always_fails
from harness.verify.checks.evidence import (
    HIGHEST_ID,
    Due,
    Evidence,
    QueryVariant,
    TableSnapshot,
    Version,
    clamped,
    odd,
    supersede,
)
from harness.verify.checks.registry import CHECKS, GATHERERS
from harness.verify.checks.statement_counts import Snapshot, snapshot
from harness.verify.database_tables import DatabaseTables, tables

CONNECTIONS = 8  # of the crowd
FRESH_CONNECTIONS = 24  # each asked twice: a broken worker among several is met
ON_ONE_CONNECTION = 120  # plain requests one after the other: what breaks once in a hundred is met
CHANGED_ROWS = HIGHEST_ID // 2  # behind a server that has read them
BEFORE_CHANGE, AFTER_CHANGE = 3, 30  # requests on each of the connections
LOOKS = 10  # at the tables, each right after a single update
# A statement is counted when its portal is closed, which may be after its answer was sent.
STRAGGLING_SECONDS, STRAGGLER_SECONDS = 0.3, 0.02

# The ways of asking for a number of rows, and what must come.
CLAMPING = (
    *(replace(case, count=clamped(f"={case.suffix}", 1, 500) or 1) for case in odd(1, 2, 500, 501)),
    QueryVariant(name="a number and more", suffix="5abc", count=1),
    QueryVariant(name="a plus sign", suffix="%2B5", count=1, or_count=5),
)
PLAIN = QueryVariant(name="plain")

# Mean number of decimal digits of a uniform value of 1..10000.
MEAN_DIGITS = sum(len(str(value)) for value in range(1, HIGHEST_ID + 1)) / HIGHEST_ID
# A mean over the few dozen requests of the shortest load strays 0.35 / sqrt(values) digits around that; the numbers of
# the table, fixed by the seed, have a mean of their own within 0.01 of it.
DIGITS_MARGIN = 0.25
FRAMING_MARGIN = 1.0  # Content-Length or a chunk's size gains or loses a digit


def rows(count: int) -> QueryVariant:
    """An ordinary request for so many rows."""
    return QueryVariant(name=f"{count} rows", suffix=f"{count}", count=count)


def judge(evidence: Evidence) -> tuple[CheckResult, ...]:
    """All checks that hold for the evidence, in the order of the registry."""
    results = ((check, check.run(evidence)) for check in CHECKS.values() if check.holds_for(evidence))
    return tuple(result for check, result in results if result.outcome is not Outcome.PASS or check.enough(evidence))


def counted(view: DatabaseTables, before: Snapshot, due: Due, rows: int) -> Evidence:
    """What the database has counted since, once it is what was due or its stragglers' time is up.

    ``rows``: that one statement may have written.
    """
    until = time.monotonic() + STRAGGLING_SECONDS
    while True:
        now = snapshot(view.connection)
        # What was waiting before has been counted since, or waits still and is nothing of what was due.
        waiting = Due.waiting(now.waiting, rows) - Due.waiting(before.waiting, rows)
        counts, different = now.since(before), len(now.counted)
        evidence = Evidence(test_type=LOAD, due=due - waiting, counts=counts, different=different)
        passes = worst_of(result.outcome for result in judge(evidence)) is Outcome.PASS
        if passes or time.monotonic() > until:
            return evidence
        time.sleep(STRAGGLER_SECONDS)


class Gathering:
    """The evidence of one test type: all is asked, and the tables looked at meanwhile, when this is made."""

    def __init__(self, asking: Asking) -> None:
        self._type = asking.test_type
        self._thorough = asking.thorough
        self._client = asking.plain()
        self._plain = rows(20) if self._type.counts_rows else PLAIN  # an ordinary request
        rules, database = asking.server.implementation.rules, asking.database
        self.evidence = Evidence(test_type=self._type.checked_as, thorough=asking.thorough, rules=rules)
        if own := GATHERERS.get(self._type.checked_as):
            own(asking, self.evidence)
            return
        with tables(database) if database else nullcontext() as view:
            if self._type.writes_database:
                self._update(view)
            elif self._type.response_shape == "page":
                self._fortune(view)
            else:
                self._read_only(view)

    def size(self, queries: int | None) -> tuple[float, float] | None:
        """The range in which the mean size of responses at a level's query count lies, in bytes on the wire.

        Asks where it was not asked before; None where it does not answer. Constant answers have the size that they
        have. Rows vary by the digits of their values: what is fixed is measured, the digits are set to their
        expectation, and the range allows for chance.
        """
        if self._type.requests:
            return None  # each may be as long as it likes
        case = PLAIN if queries is None else rows(queries)
        # Without a number there are answers of another length, too: a page with one fortune more, a sum of no calls.
        good = [e for e in self.evidence.good if e.case == case or (case.suffix and e.case.suffix == case.suffix)]
        if not good and any(exchange.response for exchange in self.evidence.all):
            good = [exchange for exchange in self._client.ask([case] * 2) if exchange.ok]
        if not good:
            return None
        fixed = [e.response.size - sum(len(f"{i}{number}") for i, number in e.rows) for e in good if e.response]
        values = 2 * len(good[-1].rows)
        middle, margin = values * MEAN_DIGITS, values * DIGITS_MARGIN + FRAMING_MARGIN if values else 0.0
        return min(fixed) + middle - margin, max(fixed) + middle + margin

    # ---- what each kind of test asks -----------------------------------------------------------------------------

    def _read_only(self, view: DatabaseTables | None) -> None:
        evidence = self.evidence
        evidence.exchanges = self._client.ask(self._singles())
        self._crowd(view)
        if self._thorough and self._answers():
            evidence.exchanges += self._client.crowd([self._plain] * FRESH_CONNECTIONS * 2, FRESH_CONNECTIONS)
        if view is None:
            return
        if view.admin and self._thorough and self._type.counts_statements and self._answers():
            self._changed(view)
        else:
            evidence.history = history_of(view.world())

    def _changed(self, view: DatabaseTables) -> None:
        """Change rows behind connections that have asked before: what is kept, or was read ahead, is stale now."""
        first = view.world()
        with ExitStack() as stack:
            lanes = [stack.enter_context(Lane(self._client, place)) for place in range(CONNECTIONS)]

            def ask(times: int) -> None:
                for lane in lanes * times:
                    if self._answers():
                        self.evidence.exchanges.append(lane.send(self._plain))

            ask(BEFORE_CHANGE)
            changed = view.change(CHANGED_ROWS, random.Random())
            ask(AFTER_CHANGE)
        self.evidence.history = history_of(first, [changed])
        view.restore(first)  # a cache that is filled once is right again
        view.vacuum()

    def _update(self, view: DatabaseTables | None) -> None:
        evidence = self.evidence
        evidence.looks = [TableSnapshot(view.world())] if view else []

        def look() -> None:
            if view:
                begun = time.time()
                evidence.looks.append(TableSnapshot(view.world(), begun, time.time()))

        with Lane(self._client) as lane:
            for number, case in enumerate([*[rows(5)] * LOOKS, *self._singles()]):
                evidence.exchanges += [lane.send(case)] if self._answers() else []
                if number < LOOKS:
                    look()
        look()
        self._crowd(view)
        look()

    def _fortune(self, view: DatabaseTables | None) -> None:
        evidence = self.evidence
        evidence.fortunes = versions = [Version(rows=view.fortunes())] if view else []
        evidence.exchanges = self._client.ask([PLAIN] * 3)
        self._crowd(view)
        if view and view.admin and self._thorough:
            now = time.time()
            with view.planted_fortune() as planted:
                supersede(versions, planted, now, now)
                evidence.exchanges += self._client.ask([QueryVariant(name="one fortune more")])

    def _singles(self) -> list[QueryVariant]:
        if not self._type.counts_rows:
            return [PLAIN] * (ON_ONE_CONNECTION if self._thorough else 3)
        found = list(CLAMPING) if self._thorough else [rows(1), rows(2), rows(20)]
        url = self._client.url
        if "?" not in url:  # a path such as /updates/: nothing can be left out or repeated
            return [case for case in found if case.name != "absent"]
        if self._thorough:
            parameter = url.partition("?")[2].rstrip("=")
            found.append(QueryVariant(name="repeated", suffix=f"2&{parameter}=3", count=2, or_count=3))
        return found

    def _crowd(self, view: DatabaseTables | None) -> None:
        """Many requests at once; in a thorough verification their statements are counted."""
        evidence = self.evidence
        if self._answers():
            begun = None
            if view and self._thorough and self._type.counts_statements:
                evidence.uncounted, begun = view.uncounted, view.statements()
            asked = self._type.thorough if self._thorough else self._type.brief
            cases = [PLAIN if of.rows is None else rows(of.rows) for of in asked for _ in range(of.times)]
            evidence.crowd = self._client.crowd(cases, CONNECTIONS)
            if view and begun:
                seen = counted(view, begun, Due.of_crowd(self._type, evidence.crowd), 1)
                evidence.counts, evidence.due, evidence.different = seen.counts, seen.due, seen.different

    def _answers(self) -> bool:
        """Return whether thousands of further requests are worthwhile: each had a response, and not all failed."""
        asked = self.evidence.exchanges
        return all(each.response is not None for each in asked) and not (
            len(asked) >= GIVE_UP_AFTER and always_fails(asked)
        )
