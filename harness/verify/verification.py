"""Verification of one test type of a running server: gathers evidence once, then runs every registered check over it.

Thorough in an implementation's first replicate, brief in later ones and after each load. A failed check is part of the
verdict; only what prevents verification altogether is an error.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

from harness.plan.testtypes import Requests, TestType
from harness.records.models import CheckResult, Load, Outcome, Verdict
from harness.records.models import worst as worst_of
from harness.runtime import DatabaseAddress, Server
from harness.verify import wire
from harness.verify.changes import Changing, around
from harness.verify.checks import LOAD, SERVER, connection
from harness.verify.checks.asking import Asking, Client, Further
from harness.verify.checks.evidence import HIGHEST_ID, Case, Due, Evidence, Exchange, History, Immediate, Planted
from harness.verify.checks.http import DATE_BEHIND_SECONDS
from harness.verify.checks.load import DatabaseCounters
from harness.verify.checks.registry import CHECKS, GATHERERS
from harness.verify.checks.statement_counts import Snapshot, StatementCounts
from harness.verify.tables import Tables, tables

CONNECTIONS = 8  # of the crowd
FRESH_CONNECTIONS = 24  # each asked twice: a broken worker among several is met
ON_ONE_CONNECTION = 120  # plain requests one after the other: what breaks once in a hundred is met
PIPELINE = 16
LATE_SECONDS = 0.1  # after the last single update, before the table is compared

# The ways of asking for a number of rows, and what must come.
CLAMPING = (
    Case(name="absent", count=1),
    Case(name="empty", suffix="", count=1),
    Case(name="not a number", suffix="foo", count=1),
    Case(name="zero", suffix="0", count=1),
    Case(name="negative", suffix="-1", count=1),
    Case(name="one", suffix="1", count=1),
    Case(name="two", suffix="2", count=2),
    Case(name="a fraction", suffix="1.5", count=1),
    Case(name="a number and more", suffix="5abc", count=1),
    Case(name="a plus sign", suffix="%2B5", count=1, or_count=5),
    Case(name="the most", suffix="500", count=500),
    Case(name="one too many", suffix="501", count=500),
    Case(name="20 digits", suffix="12345678901234567890", count=500),
)
PLAIN = Case(name="plain")


def rows(count: int) -> Case:
    """An ordinary request for so many rows."""
    return Case(name=f"{count} rows", suffix=f"{count}", count=count)


def cases(requests: Sequence[Requests]) -> list[Case]:
    """The requests of a crowd, one by one."""
    return [PLAIN if r.rows is None else rows(r.rows) for r in requests for _ in range(r.times)]


FURTHER_SECONDS = 1.5
# Mean number of decimal digits of a uniform value of 1..10000.
MEAN_DIGITS = sum(len(str(value)) for value in range(1, HIGHEST_ID + 1)) / HIGHEST_ID

# A mean over the few dozen requests of the shortest load strays 0.35 / sqrt(values) digits around that; the numbers of
# the table, fixed by the seed, have a mean of their own within 0.01 of it.
DIGITS_MARGIN = 0.25
FRAMING_MARGIN = 1.0  # Content-Length or a chunk's size gains or loses a digit


def check(
    server: Server,
    test_type: TestType,
    database: DatabaseAddress | None,
    *,
    process: int,
    thorough: bool,
    loads: Sequence[Load],
    patience: float = wire.PATIENCE,
) -> Verdict:
    """Verify one test type; ``patience`` is how long to wait for bytes (seconds)."""
    began = time.monotonic()
    gathering = _Gathering(server, test_type, database, thorough=thorough, patience=patience)
    evidence = gathering.gather()
    sizes = {}
    for queries in sorted({load.queries for load in loads}, key=lambda q: q or 0) or [None]:
        size = gathering.size(queries)
        if size is not None:
            sizes["" if queries is None else f"{queries}"] = size
    return _verdict(server, test_type.name, evidence, process, began, sizes)


def check_connection(
    server: Server, *, process: int, thorough: bool = True, patience: float = wire.PATIENCE
) -> Verdict:
    """The HTTP checks of the server as a whole, as a verdict of its own whose test type is ``http``."""
    began = time.monotonic()
    # json and plaintext first: their answers are cheap, differ from each other and never change.
    urls, kinds = server.implementation.urls, list(server.implementation.test_types.values())
    if any(kind.requests for kind in kinds):  # what a service declares is all that is asked of it
        return _verdict(server, SERVER, Evidence(test_type=SERVER, url="", thorough=thorough), process, began, {})
    constant = [kind for kind in kinds if kind.answer in ("message", "greeting")]
    targets = [kind.target(urls[kind.name]) for kind in (constant or kinds)[:2]]
    client = Client(server.endpoint, kinds[0], targets[0], patience)
    evidence = Evidence(test_type=SERVER, url=targets[0], thorough=thorough, rules=server.implementation.rules)
    first = client.ask([PLAIN])
    if thorough:
        evidence.wire = connection.gather(server.endpoint, targets, patience)
    evidence.exchanges = first + client.ask([PLAIN] * 3)
    if thorough:
        evidence.dates = _await_new_date(client, first)
    return _verdict(server, SERVER, evidence, process, began, {})


def _verdict(
    server: Server, name: str, evidence: Evidence, process: int, began: float, sizes: dict[str, tuple[float, float]]
) -> Verdict:
    results = judge(evidence)
    return Verdict(
        implementation=server.implementation.name,
        test_type=name,
        process=process,
        thorough=evidence.thorough,
        outcome=worst(results),
        results=results,
        duration=time.monotonic() - began,
        response_bytes=sizes,
    )


def after_load(server: Server, test_type: TestType, database: DatabaseAddress | None) -> tuple[CheckResult, ...]:
    """After the load, briefly: the server still verifies, and the table that was updated is consistent."""
    if database and test_type.writes_database and test_type.has_rows:
        with tables(database) as view:
            view.settle()  # wrk leaves when its time is up; what it had asked for last is still being written
    return judge(_Gathering(server, test_type, database, thorough=False, patience=wire.PATIENCE).gather())


def after_process(
    before: DatabaseCounters, after: DatabaseCounters, due: Due, *, failed: int = 0
) -> tuple[CheckResult, ...]:
    """Of a whole process, once it has stopped: whether what it answered under load reached the table, and what is left.

    ``before`` and ``after`` are read (``checks.load.read_counters``) before the server starts and after it has stopped;
    ``due`` is for all good answers under load, ``failed`` are those of update that said that something failed.
    """
    return judge(Evidence(test_type=LOAD, url="", use=after.since(before), due=due, failed_responses=failed))


def counted(view: Tables, before: Snapshot, due: Due, rows: int) -> tuple[StatementCounts, tuple[CheckResult, ...]]:
    """What the database has counted since, once it is what was due, or its stragglers' time is up; and the verdict.

    ``rows``: that one statement may have written.
    """

    def judged(counts: StatementCounts) -> tuple[CheckResult, ...]:
        return judge(Evidence(test_type=LOAD, url="", due=due.less(counts.open_portals, rows), counts=counts))

    counts = view.counted_since(before, lambda now: worst(judged(now)) is Outcome.PASS)
    return counts, judged(counts)


def judge(evidence: Evidence) -> tuple[CheckResult, ...]:
    """All checks that hold for the evidence, in the order of the registry."""
    results = ((check, check.run(evidence)) for check in CHECKS.values() if check.holds_for(evidence))
    return tuple(result for check, result in results if check.speaks(result, evidence))


def worst(results: Sequence[CheckResult]) -> Outcome:
    """The worst outcome of checks."""
    return worst_of(result.outcome for result in results)


class _Gathering:
    """Gathers the evidence of one test type."""

    def __init__(
        self, server: Server, test_type: TestType, database: DatabaseAddress | None, *, thorough: bool, patience: float
    ) -> None:
        url = server.implementation.urls[test_type.name]
        self._type = test_type
        self._database = database if test_type.reads_database else None
        self._thorough = thorough
        self._asking = Asking(
            endpoint=server.endpoint,
            test_type=test_type,
            url=url,
            patience=patience,
            thorough=thorough,
            upstream=server.upstream,
            database=self._database,
        )
        self._client = self._asking.plain()
        self.evidence = Evidence(
            test_type=test_type.checked_as, url=self._client.url, thorough=thorough, rules=server.implementation.rules
        )

    def gather(self) -> Evidence:
        if gather := GATHERERS.get(self._type.checked_as):
            gather(self._asking, self.evidence)
            return self.evidence
        with tables(self._database) if self._database else nullcontext() as view:
            if self._type.writes_database:
                self._update(view)
            elif self._type.answer == "page":
                self._fortune(view)
            else:
                self._read_only(view)
        return self.evidence

    def size(self, queries: int | None) -> tuple[float, float] | None:
        """Wire size of a response at a level's query count; asks where it was not asked before."""
        if self._type.requests:
            return None  # each may be as long as it likes
        case = PLAIN if queries is None else rows(queries)
        seen = [exchange for exchange in self.evidence.all if exchange.case.suffix == case.suffix and exchange.ok]
        if not seen:
            if all(exchange.response is None for exchange in self.evidence.all):
                return None  # it does not answer at all: no use in waiting again
            seen = self._client.ask([case] * 2)
        return response_bytes(seen)

    # ---- what each kind of test asks -----------------------------------------------------------------------------

    def _read_only(self, view: Tables | None) -> None:
        evidence = self.evidence
        evidence.exchanges = self._client.ask(self._singles())
        # Rows are changed behind a server that answers and has to read them.
        may_change = view and view.admin and self._thorough and self._type.counts_statements and self._answers()
        changing = Changing(view) if view and may_change else None
        with changing.under_way() if changing else nullcontext(lambda: False) as still_changing:
            self._crowd(view, still_changing)
        if self._thorough and self._answers():
            evidence.exchanges += self._client.crowd([self._plain()] * FRESH_CONNECTIONS * 2, FRESH_CONNECTIONS)
        if view is None:
            return
        if changing is None:
            evidence.history = History(first=view.world())
            return
        if self._answers():
            evidence.exchanges += changing.between(self._client, self._plain(), CONNECTIONS)
        evidence.history = changing.history
        changing.end(put_back=True)

    def _plain(self) -> Case:
        """An ordinary request of this test type."""
        return rows(20) if self._type.counts_rows else PLAIN

    def _update(self, view: Tables | None) -> None:
        evidence = self.evidence
        evidence.before = view.world() if view else None
        for exchange in self._client.asking([*[rows(5)] * 10, *self._singles()]):
            evidence.exchanges.append(exchange)
            if view and exchange.ok and len(evidence.exchanges) <= 10:
                after = view.world([identifier for identifier, _ in exchange.rows])
                evidence.immediate.append(Immediate(exchange=exchange, after=after))
        time.sleep(LATE_SECONDS)  # rows written late are another check's business than rows never written
        evidence.between = view.world() if view else None
        self._crowd(view)
        evidence.after = view.world() if view else None

    def _fortune(self, view: Tables | None) -> None:
        evidence = self.evidence
        evidence.fortunes = view.fortunes() if view else None
        evidence.exchanges = self._client.ask([PLAIN] * 3)
        self._crowd(view)
        if view and view.admin and self._thorough:
            with view.planted_fortune() as planted:
                evidence.planted = Planted(rows=planted, exchange=self._client.ask([PLAIN])[0])

    def _singles(self) -> list[Case]:
        if not self._type.counts_rows:
            return [PLAIN] * (ON_ONE_CONNECTION if self._thorough else 3)
        found = list(CLAMPING) if self._thorough else [rows(1), rows(2), rows(20)]
        url = self.evidence.url
        if "?" not in url:  # a path such as /updates/: nothing can be left out or repeated
            return [case for case in found if case.name != "absent"]
        if self._thorough:
            parameter = url.partition("?")[2].rstrip("=")
            found.append(Case(name="repeated", suffix=f"2&{parameter}=3", count=2, or_count=3))
        return found

    def _crowd(self, view: Tables | None, while_this: Callable[[], bool] = lambda: False) -> None:
        """Many requests at once, and more ``while_this``; in a thorough verification their statements are counted."""
        evidence, crowd = self.evidence, self._type.crowd
        if self._type.sweep == "pipeline":
            evidence.crowd = self._client.pipelined(PLAIN, 24 if self._thorough else 2, PIPELINE)
        elif not self._thorough and self._answers():
            evidence.crowd = self._client.crowd(cases(crowd.brief), CONNECTIONS)
        elif self._answers():
            begun = view.statements() if view and self._type.counts_statements else None
            evidence.uncounted = view.uncounted if view else None
            until = time.monotonic() + FURTHER_SECONDS
            further = Further(cases=cases(crowd.further), while_this=lambda: time.monotonic() < until)
            around_changes = around(self._plain(), while_this)
            evidence.crowd = self._client.crowd(cases(crowd.thorough), CONNECTIONS, further=(further, around_changes))
            if view and begun:
                due = Due.of_crowd(self._type, evidence.crowd)
                evidence.counts, _ = counted(view, begun, due, 1)
                evidence.due = due.less(evidence.counts.open_portals, 1)

    def _answers(self) -> bool:
        """No use in sending thousands of requests to a server that leaves them unanswered."""
        return all(exchange.response is not None for exchange in self.evidence.exchanges)


def _await_new_date(client: Client, first: Sequence[Exchange]) -> list[tuple[float, str]]:
    """Ask until Date has changed; it may be refreshed once a second, so a little over that is enough."""
    found = [(e.received_at, date) for e in first if (date := e.header("date"))][:1]
    while found and found[-1][0] - found[0][0] <= DATE_BEHIND_SECONDS and found[-1][1] == found[0][1]:
        time.sleep(0.05)
        now = client.ask([PLAIN])[0]
        found = [found[0], (now.received_at, now.header("date") or found[0][1])]
        if now.response is None:
            break
    return found


def response_bytes(exchanges: Iterable[Exchange]) -> tuple[float, float] | None:
    """The range in which the mean size of responses to one case lies, by what verified ones showed; None without any.

    Constant answers have the size that they have. Rows vary by the digits of their values: what is fixed is measured,
    the digits are set to their expectation, and the range allows for chance.
    """
    good = [exchange for exchange in exchanges if exchange.ok and exchange.response]
    if not good:
        return None
    fixed = [e.response.size - sum(len(f"{i}{number}") for i, number in e.rows) for e in good if e.response]
    values = 2 * len(good[-1].rows)
    if not values:
        return min(fixed), max(fixed)
    middle, margin = values * MEAN_DIGITS, values * DIGITS_MARGIN + FRAMING_MARGIN
    return min(fixed) + middle - margin, max(fixed) + middle + margin
