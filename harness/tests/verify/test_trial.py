"""Trials with the real generator: what hides from every short look is seen, honest servers are let be."""

import base64
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields
from email.utils import formatdate
from itertools import product, repeat
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LoadError
from harness.plan.discovery import Rules
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import ClosedLoop, Load, OpenLoop, Scenario
from harness.records.outcome import Outcome
from harness.records.trial_record import TrialEvidence
from harness.runtime import NO_DATABASE, DatabaseAddress, Upstream
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.tests.approve import approve
from harness.tests.doubles.order_server import OrderServer
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.gallery import ROGUES, UNDER_LOAD
from harness.tests.doubles.service import ServiceDouble
from harness.tests.doubles.upstream import FakeUpstream
from harness.tests.verify.subjects import as_server, exchange, said
from harness.tests.verify.trials import WITH_GENERATOR, verify_load
from harness.verify.checks import expectations
from harness.verify.checks.evidence import Exchange, RequestCounts
from harness.verify.checks.verification_client import Client
from harness.verify.database_tables import open_tables
from harness.verify.trial import TrialContext, TrialVerification, plan_sampling
from harness.verify.verification import PLAIN
from harness.verify.verifier import Verifier

TYPES = ("json", "plaintext", "db", "query", "cached-query", "fortune", "update", "fan-out", "order")
SINGLE = ClosedLoop(connections=1)
SECONDS = 1.5
BETWEEN_SECONDS = 0.2  # two trials of a process, which others come between in a run
DELAY_SECONDS = 0.005  # of the upstream
TRIALS = 3  # what shows in some of a process's trials only


def usual_load(test_type: str) -> ClosedLoop | Scenario:
    """A load that the server doubles can bear."""
    kind = TEST_TYPES[test_type]
    if kind.open_loop:
        return Scenario(factor=8, connections=16)
    return ClosedLoop(
        connections=16, queries=20 if kind.counts_rows else None, depth=16 if kind.sweep == "pipeline" else 1
    )


@dataclass
class Trials:
    """One process of a server, with its trials one after another."""

    server: ReferenceServer
    database: DatabaseAddress
    upstream: Upstream
    verifier: Verifier = field(default_factory=Verifier)
    rate: float | None = None  # requests/s of the last trial
    number: int = 0
    left: set[str] = field(default_factory=set)  # checks that object to what the process has left behind

    def trial(
        self, test_type: str, load: Load | None = None, *, seconds: float = SECONDS, written: bool = True
    ) -> TrialEvidence:
        """One trial; not ``written``: by a generator that writes no answers out."""
        if self.number:
            time.sleep(BETWEEN_SECONDS)
        self.number += 1
        server, kind = as_server(self.server, self.upstream), TEST_TYPES[test_type]
        load = load or usual_load(test_type)
        context = TrialContext(
            server=server,
            test_type=kind,
            load=load,
            database=self.database,
            seconds=seconds,
            rate=self.rate,
            seed=self.number,
        )
        evidence, self.rate = verify_load(self.verifier.verify_trial(context), written=written)
        return evidence


@contextmanager
def trials(double: Rogue | type[ReferenceServer], database: DatabaseAddress) -> Iterator[Trials]:
    """A process with its beginning and its end; the tables are as they were seeded."""
    with FakeUpstream(DELAY_SECONDS) as upstream:
        server = (double.server if isinstance(double, Rogue) else double)(database, upstream.url)
        running = Trials(server=server, database=database, upstream=upstream)
        running.verifier.start_process(database)
        with server:
            yield running
    running.left |= {
        result.check for result in running.verifier.end_process(database) if result.outcome is not Outcome.PASS
    }


@pytest.fixture
def seeded(postgres: EmbeddedDatabase) -> DatabaseAddress:
    postgres.restore()
    return postgres.address


def named(evidence: TrialEvidence) -> set[str]:
    return {result.check for result in evidence.objections}


class TestWithGenerator:
    pytestmark = WITH_GENERATOR
    few = ClosedLoop(connections=16, queries=1)  # all answers can be judged, and each row of the table has to be theirs

    @pytest.mark.parametrize(("name", "load"), [*zip(TYPES, repeat(None)), ("update", few)])
    def test_an_honest_server_passes_and_many_of_its_answers_were_judged_or_all(
        self, name: str, load: ClosedLoop | None, seeded: DatabaseAddress
    ) -> None:
        with trials(OrderServer if name == "order" else ReferenceServer, seeded) as running:
            seen = [running.trial(name, load) for _ in range(2)]
        assert [evidence.objections for evidence in seen] == [(), ()]
        assert seen[1].judged >= (seen[1].received if load else min(50, seen[1].received)) > 0
        assert running.left == set()

    @pytest.mark.parametrize("rogue", UNDER_LOAD.values(), ids=lambda rogue: rogue.name)
    def test_what_waits_for_a_load_is_caught(self, rogue: Rogue, seeded: DatabaseAddress) -> None:
        with trials(rogue, seeded) as running:
            found = (named(running.trial(rogue.test_type, seconds=rogue.seconds)) for _ in range(TRIALS))
            seen = any(rogue.caught_by in names for names in found)
        assert seen or rogue.caught_by in running.left, rogue.does

    @pytest.mark.parametrize("name", ["rolls-back", "writes-the-same", "writes-late-when-busy"])
    def test_a_row_that_is_none_of_theirs_is_seen(self, name: str, seeded: DatabaseAddress) -> None:
        with trials(UNDER_LOAD[name], seeded) as running:
            found = [named(running.trial("update", self.few, seconds=1.0)) for _ in range(2)][1]
        assert "update-stored" in found

    def test_of_a_generator_that_writes_no_answers_the_statements_are_judged(self, seeded: DatabaseAddress) -> None:
        with trials(UNDER_LOAD["serves-memory-when-busy"], seeded) as running:
            evidence = running.trial("db", written=False)
        assert "rows-read" in named(evidence)
        assert evidence.judged == 0


def audit(
    server: ReferenceServer | ServiceDouble,
    kind: str,
    database: DatabaseAddress,
    load: Load = SINGLE,
    upstream: Upstream | None = None,
    verifier: Verifier | None = None,
    rules: Rules = "tfb",
) -> TrialVerification:
    """Of a load that the test makes itself."""
    seen = server.server if isinstance(server, ServiceDouble) else as_server(server, upstream, rules)
    found = seen.implementation.test_types[kind]
    context = TrialContext(server=seen, test_type=found, load=load, database=database, seconds=1.0, rate=10.0, seed=1)
    return (verifier or Verifier()).verify_trial(context)


def line(answer: Exchange, number: int = 0) -> str:
    """As the generator writes it, of the request of this number."""
    ahead = max(time.time() - time.monotonic() for _ in range(20))
    sent, received = (round((at - ahead) * 1e9) for at in (answer.sent_at, answer.received_at))
    came, always = answer.response, {"connection": answer.connection, "request": number, "size_bytes": 150}
    assert came is not None
    body = base64.b64encode(came.body).decode()
    head = {"sent_ns": sent, "received_ns": received, "status": came.status, "headers": came.headers}
    return json.dumps({**always, **head, "body_base64": body}) + "\n"


def accounted(**counts: Any) -> RequestCounts:
    nothing: dict[str, Any] = {one.name: 0 for one in fields(RequestCounts)} | {"statuses": {}, "all_recorded": True}
    return RequestCounts(**nothing | counts)


def loaded(
    trial: TrialVerification, file: Path, requests: int, written: int = 9999, lost: int = 0, changes: int = 0
) -> TrialEvidence:
    """The trial of a load that this process makes; so many of its answers are written out, or lost."""
    kind, server = trial.context.test_type, trial.context.server
    client = Client(
        server.endpoint, kind, kind.request_target(server.implementation.urls[kind.name], trial.context.load)
    )
    cases = ([expectations.declared_variant(one) for one in kind.requests] or [PLAIN]) * requests
    with trial:
        came = client.send_concurrently(cases[: requests // 2], 8)
        time.sleep(0.8 * changes)  # until there was one
        came += client.send_concurrently(cases[requests // 2 : requests], 8)
    came = came[lost:]
    numbers = [kind.requests.index(one.case.declared) if one.case.declared else 0 for one in came]
    file.write_text("".join(map(line, came[:written], numbers)))
    statuses = Counter(str(one.response and one.response.status) for one in came)
    good, whole = statuses["200"], written >= len(came)
    others = {"unfinished": lost, "statuses": statuses, "failed": len(came) - good, "all_recorded": whole}
    account = accounted(sent=requests, received=len(came), successes=good, **others)
    return trial.judge(good=good, failed=len(came) - good, counts=account, answers=file)


FEW, TWENTY = TestWithGenerator.few, ClosedLoop(connections=8, queries=20)
CHANGES = {"changes": True}


@pytest.mark.parametrize(
    ("name", "load", "requests", "how", "judged"),
    [
        ("json", SINGLE, 160, {}, 160),
        ("plaintext", SINGLE, 2100, {}, 2001),
        ("fan-out", SINGLE, 40, {"written": 20}, 20),
        ("db", SINGLE, 160, CHANGES, 160),
        ("query", TWENTY, 40, {}, 40),
        ("cached-query", TWENTY, 340, {}, 301),
        ("fortune", SINGLE, 80, CHANGES, 80),
        ("update", TWENTY, 80, CHANGES, 80),
        ("update", TWENTY, 80, CHANGES | {"written": 40}, 40),
        ("update", TWENTY, 80, CHANGES | {"lost": 9}, 71),
        ("fails-sometimes", SINGLE, 80, {}, 80),
        ("another-sum", SINGLE, 40, {}, 40),
        ("does-not-read", TWENTY, 40, {}, 40),
        ("old-snapshot", TWENTY, 40, CHANGES, 40),
        ("looks-at-the-count", SINGLE, 80, CHANGES, 80),
        ("touches-others", FEW, 80, {}, 80),
    ],
)
def test_an_honest_server_passes_and_what_a_dishonest_one_does_is_seen(
    name: str, load: Load, requests: int, how: dict[str, Any], judged: int, seeded: DatabaseAddress, tmp_path: Path
) -> None:
    verifier, file, rogue = Verifier(), tmp_path / "answers.jsonl", ROGUES.get(name)
    kind = TEST_TYPES[rogue.test_type if rogue else name]
    verifier.start_process(seeded)
    with FakeUpstream() as upstream, (rogue.server if rogue else ReferenceServer)(seeded, upstream.url) as server:
        trial = audit(server, kind.name, seeded, load, upstream, verifier)
        found = loaded(trial, file, requests, **how)
    assert (found.judged, found.received) == (judged, requests - how.get("lost", 0))
    assert rogue.caught_by in named(found) if rogue else found.objections == ()
    nothing = trial.judge(good=0, failed=4, counts=None, answers=file)
    assert (nothing.judged, nothing.received, nothing.objections) == (0, 4, ())
    left = verifier.end_process(seeded)
    counted = {"rows-read"} if kind.counts_statements else set()
    written = {"no-deadlocks", "rows-written"} if kind.writes_database else set()
    assert {result.check for result in left} == {"nothing-left-behind"} | counted | written
    assert rogue or said(*left) == []


def test_how_many_answers_are_judged_and_written_out_is_as_approved() -> None:
    kinds = {name: TEST_TYPES[name] for name in ("json", "fortune", "query", "update")} | ServiceDouble().test_types
    found: dict[str, dict[str, str]] = {}
    loads: tuple[Load, ...] = (SINGLE, TWENTY, OpenLoop(rate=500.0, connections=8))
    for name, load, rate in product(("json", "fortune", "query", "update", "item"), loads, (None, 100.0, 2000.0)):
        judged, written = plan_sampling(kinds[name], load, 4.0, rate)
        limits = " ".join(map(str, astuple(written)))
        found.setdefault(f"{name} {load.label}", {})[f"at {rate}/s:"] = f"{judged} of {limits}"
    approve("verify-sampling", found)


def test_a_service_s_answers_are_held_against_the_requests_that_they_are_of(tmp_path: Path) -> None:
    with ServiceDouble() as service:
        found = loaded(audit(service, "item", NO_DATABASE), tmp_path / "answers.jsonl", 500)
    assert (found.objections, found.judged) == ((), 401)


def test_rows_change_behind_a_server_and_a_cache_may_hold_what_they_held_then_or_an_update_wrote(
    seeded: DatabaseAddress, tmp_path: Path
) -> None:
    verifier, file = Verifier(), tmp_path / "answers.jsonl"

    def objected(kind: str, body: str, *, whole: bool = True) -> bool:
        with audit(server, kind, seeded, verifier=verifier) as trial:
            if not now:
                now.update(next(world for _ in range(500) if (world := view.read_world()) != before))
        file.write_text(line(exchange(body)))
        account = accounted(sent=1, received=1, successes=1, statuses={"200": 1}, all_recorded=whole)
        return "equals-row" in named(trial.judge(good=1, failed=0, counts=account, answers=file))

    with ReferenceServer(seeded) as server, open_tables(seeded) as view:
        before, now = view.read_world(), dict[str, Mapping[int, int]]()
        assert not objected("db", "none")
        assert view.read_world() == before  # put back, for caches
        row, held = next(one for one in now["world"].items() if one not in before["world"].items())
        then = before["world"][row]
        changed_to, never, nowhere = (
            f'[{{"id":{row},"randomNumber":{number}}}]'
            for number in (held, *[n for n in range(1, 5) if n not in (held, then)][:2])
        )
        assert [objected("cached-query", one) for one in (changed_to, never)] == [False, True]
        assert objected("db", changed_to[1:-1])
        objected("update", never)
        assert [objected("cached-query", one) for one in (never, nowhere)] == [False, True]
        objected("update", changed_to, whole=False)
        assert not objected("cached-query", nowhere)


def test_an_interruption_is_not_hidden_by_a_database_that_is_lost_meanwhile(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with ReferenceServer() as server:
        trial = audit(server, "db", postgres.address)

        def interrupted() -> None:
            postgres.restore()  # ends every connection
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), trial:
            interrupted()


NOWHERE = DatabaseAddress(host="127.0.0.1", port=1)


@pytest.mark.parametrize("text", ["{}", "[", '{"headers": [], "status": "x"}'])
def test_a_file_that_is_none_of_the_generator_s_is_told_with_its_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(text + "\n")
    with ReferenceServer() as server:
        with audit(server, "json", NOWHERE) as trial:
            pass
        with pytest.raises(
            LoadError, match=r"answers.jsonl line 1: the load generator wrote an invalid response record"
        ):
            trial.judge(good=1, failed=0, counts=accounted(), answers=file)


@pytest.mark.parametrize(("late", "objections"), [(0.0, set()), (60.0, {"date-now"}), (-60.0, {"date-now"})])
def test_an_answer_has_the_time_of_day_that_the_generator_s_clock_says(
    late: float, objections: set[str], tmp_path: Path
) -> None:
    file = tmp_path / "answers.jsonl"
    at, headers = time.time() + late, [("Date", formatdate(usegmt=True))]
    file.write_text(line(exchange(headers=headers, sent_at=at, received_at=at)))
    with ReferenceServer() as server:
        with audit(server, "json", NOWHERE, rules="techempower") as trial:
            pass
        found = trial.judge(good=1, failed=0, counts=accounted(), answers=file).objections
    assert {one.check for one in found if one.waived} == objections


@pytest.mark.extra("orders")
def test_a_load_of_orders_begins_on_empty_tables_and_is_held_against_them(
    seeded: DatabaseAddress, tmp_path: Path
) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text('{"use_case":"online shop order","variables":{},"order":7,"steps":[]}\n')
    with OrderServer(seeded) as server:
        with audit(server, "order", seeded, Scenario(factor=1.0, connections=8)) as trial:
            pass
        assert trial.judge(good=0, failed=0, counts=None, answers=file).judged == 1
