"""Verification of trials catches servers that cheat only under load, and accepts honest servers."""

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
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import ClosedLoop, Load, OpenLoop, Scenario
from harness.records.trial_record import TrialEvidence
from harness.records.verification_record import Outcome
from harness.runtime import NO_DATABASE, DatabaseAddress, Server, Upstream
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.tests.approve import approve
from harness.tests.doubles.order_server import OrderServer
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.gallery import ROGUES, UNDER_LOAD
from harness.tests.doubles.service import ServiceDouble
from harness.tests.doubles.upstream import FakeUpstream
from harness.tests.verify.subjects import as_server, exchange, finding_lines
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
PAUSE_SECONDS = 0.2  # pause between two trials on a process, as in a run
DELAY_SECONDS = 0.005  # delay of the upstream server
TRIALS = 3  # enough to detect servers that cheat in some trials only


def usual_load(test_type: str) -> ClosedLoop | Scenario:
    """Return a load that server doubles can handle."""
    kind = TEST_TYPES[test_type]
    if kind.open_loop:
        return Scenario(factor=8, connections=16)
    return ClosedLoop(
        connections=16, queries=20 if kind.counts_rows else None, depth=16 if kind.sweep == "pipeline" else 1
    )


@dataclass
class Trials:
    """A server process on which trials run one after another."""

    server: ReferenceServer
    database: DatabaseAddress
    upstream: Upstream
    verifier: Verifier = field(default_factory=Verifier)
    rate: float | None = None  # requests per second in the previous trial
    number: int = 0
    process_findings: set[str] = field(default_factory=set)  # failed checks of the process as a whole

    def trial(
        self, test_type: str, load: Load | None = None, *, seconds: float = SECONDS, written: bool = True
    ) -> TrialEvidence:
        """Run a trial. Unless ``written`` is set, the generator records no responses."""
        if self.number:
            time.sleep(PAUSE_SECONDS)
        self.number += 1
        context = TrialContext(
            server=as_server(self.server, self.upstream),
            test_type=TEST_TYPES[test_type],
            load=load or usual_load(test_type),
            database=self.database,
            seconds=seconds,
            rate=self.rate,
            seed=self.number,
        )
        evidence, self.rate = verify_load(self.verifier.verify_trial(context), written=written)
        return evidence


@contextmanager
def trials(double: Rogue | type[ReferenceServer], database: DatabaseAddress) -> Iterator[Trials]:
    """Start a server double on seeded tables, yield its trials, and stop it."""
    with FakeUpstream(DELAY_SECONDS) as upstream:
        server = (double.server if isinstance(double, Rogue) else double)(database, upstream.url)
        running = Trials(server=server, database=database, upstream=upstream)
        running.verifier.start_process(database)
        with server:
            yield running
    results = running.verifier.end_process(database)
    running.process_findings |= {result.check for result in results if result.outcome is not Outcome.PASS}


@pytest.fixture
def seeded(postgres: EmbeddedDatabase) -> DatabaseAddress:
    postgres.restore()
    return postgres.address


def failed_checks(evidence: TrialEvidence) -> set[str]:
    return {result.check for result in evidence.objections}


class TestWithGenerator:
    pytestmark = WITH_GENERATOR
    few = ClosedLoop(connections=16, queries=1)  # few enough responses to check all of them

    @pytest.mark.parametrize(("name", "load"), [*zip(TYPES, repeat(None)), ("update", few)])
    def test_honest_servers_pass_with_many_judged_responses(
        self, name: str, load: ClosedLoop | None, seeded: DatabaseAddress
    ) -> None:
        with trials(OrderServer if name == "order" else ReferenceServer, seeded) as running:
            evidence = [running.trial(name, load) for _ in range(2)]
        assert [one.objections for one in evidence] == [(), ()]
        later = evidence[1]
        assert later.judged >= (later.received if load else min(50, later.received)) > 0
        assert running.process_findings == set()

    @pytest.mark.parametrize("rogue", UNDER_LOAD.values(), ids=lambda rogue: rogue.name)
    def test_rogues_that_wait_for_a_load_fail(self, rogue: Rogue, seeded: DatabaseAddress) -> None:
        with trials(rogue, seeded) as running:
            findings = (failed_checks(running.trial(rogue.test_type, seconds=rogue.seconds)) for _ in range(TRIALS))
            caught = any(rogue.caught_by in names for names in findings)
        assert caught or rogue.caught_by in running.process_findings, rogue.does

    @pytest.mark.parametrize("name", ["rolls-back", "writes-the-same", "writes-late-when-busy"])
    def test_lost_updates_fail_in_complete_evidence(self, name: str, seeded: DatabaseAddress) -> None:
        with trials(UNDER_LOAD[name], seeded) as running:
            second = [failed_checks(running.trial("update", self.few, seconds=1.0)) for _ in range(2)][1]
        assert "update-stored" in second

    def test_statements_are_judged_without_recorded_responses(self, seeded: DatabaseAddress) -> None:
        with trials(UNDER_LOAD["serves-memory-when-busy"], seeded) as running:
            evidence = running.trial("db", written=False)
        assert "rows-read" in failed_checks(evidence)
        assert evidence.judged == 0


def make_trial(
    server: Server, test_type: str, database: DatabaseAddress, load: Load = SINGLE, verifier: Verifier | None = None
) -> TrialVerification:
    """Return the verification of a trial whose load the test sends itself."""
    kind = server.implementation.test_types[test_type]
    context = TrialContext(server=server, test_type=kind, load=load, database=database, seconds=1.0, rate=10.0, seed=1)
    return (verifier or Verifier()).verify_trial(context)


def recorded_line(recorded: Exchange, request: int = 0) -> str:
    """Return the line that the generator would record for the response to request number ``request``."""
    offset = max(time.time() - time.monotonic() for _ in range(20))
    sent, received = (round((at - offset) * 1e9) for at in (recorded.sent_at, recorded.received_at))
    response, always = recorded.response, {"connection": recorded.connection, "request": request, "size_bytes": 150}
    assert response is not None
    body = base64.b64encode(response.body).decode()
    head = {"sent_ns": sent, "received_ns": received, "status": response.status, "headers": response.headers}
    return json.dumps({**always, **head, "body_base64": body}) + "\n"


def request_counts(**counts: Any) -> RequestCounts:
    zeros: dict[str, Any] = {field.name: 0 for field in fields(RequestCounts)} | {"statuses": {}, "all_recorded": True}
    return RequestCounts(**zeros | counts)


def send_load(
    trial: TrialVerification, file: Path, requests: int, *, written: int = 9999, lost: int = 0, changes: bool = False
) -> TrialEvidence:
    """Send a trial's load from this process and judge the trial.

    ``file`` records the first ``written`` responses. The first ``lost`` responses are dropped. With ``changes``, the
    load pauses halfway until tfb has changed rows.
    """
    kind, server = trial.context.test_type, trial.context.server
    client = Client(
        server.endpoint, kind, kind.request_target(server.implementation.urls[kind.name], trial.context.load)
    )
    cases = ([expectations.declared_variant(request) for request in kind.requests] or [PLAIN]) * requests
    with trial:
        exchanges = client.send_concurrently(cases[: requests // 2], 8)
        time.sleep(0.8 * changes)
        exchanges += client.send_concurrently(cases[requests // 2 : requests], 8)
    exchanges = exchanges[lost:]
    numbers = [kind.requests.index(request.case.declared) if request.case.declared else 0 for request in exchanges]
    file.write_text("".join(map(recorded_line, exchanges[:written], numbers)))
    statuses = Counter(str(request.response and request.response.status) for request in exchanges)
    good, received = statuses["200"], len(exchanges)
    counts = request_counts(
        sent=requests, received=received, successes=good, failed=received - good, unfinished=lost, statuses=statuses,
        all_recorded=written >= received,
    )  # fmt: skip
    return trial.judge(good=good, failed=received - good, counts=counts, responses_file=file)


FEW, TWENTY = TestWithGenerator.few, ClosedLoop(connections=8, queries=20)


@pytest.mark.parametrize(
    ("name", "load", "sent", "judged"),
    [
        ("json", SINGLE, {"requests": 160}, 160),
        ("plaintext", SINGLE, {"requests": 2100}, 2001),
        ("fan-out", SINGLE, {"requests": 40, "written": 20}, 20),
        ("db", SINGLE, {"requests": 160, "changes": True}, 160),
        ("query", TWENTY, {"requests": 40}, 40),
        ("cached-query", TWENTY, {"requests": 340}, 301),
        ("fortune", SINGLE, {"requests": 80, "changes": True}, 80),
        ("update", TWENTY, {"requests": 80, "changes": True}, 80),
        ("update", TWENTY, {"requests": 80, "changes": True, "written": 40}, 40),
        ("update", TWENTY, {"requests": 80, "changes": True, "lost": 9}, 71),
        ("fails-sometimes", SINGLE, {"requests": 80}, 80),
        ("another-sum", SINGLE, {"requests": 40}, 40),
        ("does-not-read", TWENTY, {"requests": 40}, 40),
        ("old-snapshot", TWENTY, {"requests": 40, "changes": True}, 40),
        ("looks-at-the-count", SINGLE, {"requests": 80, "changes": True}, 80),
        ("touches-others", FEW, {"requests": 80}, 80),
    ],
)
def test_trials_catch_rogues_and_pass_honest_servers(
    name: str, load: Load, sent: dict[str, Any], judged: int, seeded: DatabaseAddress, tmp_path: Path
) -> None:
    verifier, file, rogue = Verifier(), tmp_path / "responses.jsonl", ROGUES.get(name)
    kind = TEST_TYPES[rogue.test_type if rogue else name]
    verifier.start_process(seeded)
    with FakeUpstream() as upstream, (rogue.server if rogue else ReferenceServer)(seeded, upstream.url) as server:
        trial = make_trial(as_server(server, upstream), kind.name, seeded, load, verifier)
        evidence = send_load(trial, file, **sent)
    assert (evidence.judged, evidence.received) == (judged, sent["requests"] - sent.get("lost", 0))
    assert rogue.caught_by in failed_checks(evidence) if rogue else evidence.objections == ()
    unrecorded = trial.judge(good=0, failed=4, counts=None, responses_file=file)
    assert (unrecorded.judged, unrecorded.received, unrecorded.objections) == (0, 4, ())
    of_process = verifier.end_process(seeded)
    reading = {"rows-read"} if kind.counts_statements else set()
    writing = {"no-deadlocks", "rows-written"} if kind.writes_database else set()
    assert {result.check for result in of_process} == {"nothing-left-behind"} | reading | writing
    assert rogue or finding_lines(*of_process) == []


def test_sampling_of_responses_is_as_approved() -> None:
    kinds = {name: TEST_TYPES[name] for name in ("json", "fortune", "query", "update")} | ServiceDouble().test_types
    plans: dict[str, dict[str, str]] = {}
    loads: tuple[Load, ...] = (SINGLE, TWENTY, OpenLoop(rate=500.0, connections=8))
    for name, load, rate in product(("json", "fortune", "query", "update", "item"), loads, (None, 100.0, 2000.0)):
        judged, sampling = plan_sampling(kinds[name], load, 4.0, rate)
        limits = " ".join(map(str, astuple(sampling)))
        plans.setdefault(f"{name} {load.label}", {})[f"at {rate}/s:"] = f"{judged} of {limits}"
    approve("verify-sampling", plans)


def test_responses_of_a_service_match_their_requests(tmp_path: Path) -> None:
    with ServiceDouble() as service:
        evidence = send_load(make_trial(service.server, "item", NO_DATABASE), tmp_path / "responses.jsonl", 500)
    assert (evidence.objections, evidence.judged) == ((), 401)


def test_caches_may_hold_rows_of_earlier_trials(seeded: DatabaseAddress, tmp_path: Path) -> None:
    verifier, file = Verifier(), tmp_path / "responses.jsonl"
    changed = dict[str, Mapping[int, int]]()  # tables during the first trial

    def is_wrong(test_type: str, body: str, *, complete: bool = True) -> bool:
        with make_trial(as_server(server), test_type, seeded, verifier=verifier) as trial:
            if not changed:
                changed.update(next(world for _ in range(500) if (world := tables.read_world()) != before))
        file.write_text(recorded_line(exchange(body)))
        counts = request_counts(sent=1, received=1, successes=1, statuses={"200": 1}, all_recorded=complete)
        return "equals-row" in failed_checks(trial.judge(good=1, failed=0, counts=counts, responses_file=file))

    with ReferenceServer(seeded) as server, open_tables(seeded) as tables:
        before = tables.read_world()
        assert not is_wrong("db", "none")
        assert tables.read_world() == before  # restored after the trial, because servers may cache rows
        row, held = next(one for one in changed["world"].items() if one not in before["world"].items())
        other_numbers = [n for n in range(1, 5) if n not in (held, before["world"][row])][:2]
        changed_to, written, never = (f'[{{"id":{row},"randomNumber":{number}}}]' for number in (held, *other_numbers))
        assert [is_wrong("cached-query", body) for body in (changed_to, written)] == [False, True]
        assert is_wrong("db", changed_to[1:-1])
        is_wrong("update", written)
        assert [is_wrong("cached-query", body) for body in (written, never)] == [False, True]
        is_wrong("update", changed_to, complete=False)
        assert not is_wrong("cached-query", never)


def test_a_lost_database_does_not_hide_an_interruption(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with ReferenceServer() as server:
        trial = make_trial(as_server(server), "db", postgres.address)

        def interrupt() -> None:
            postgres.restore()  # ends all connections
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), trial:
            interrupt()


NOWHERE = DatabaseAddress(host="127.0.0.1", port=1)


@pytest.mark.parametrize("text", ["{}", "[", '{"headers": [], "status": "x"}'])
def test_invalid_response_records_are_reported_with_their_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "responses.jsonl"
    file.write_text(text + "\n")
    with ReferenceServer() as server:
        with make_trial(as_server(server), "json", NOWHERE) as trial:
            pass
        with pytest.raises(LoadError, match=r"responses.jsonl line 1: the load generator wrote an invalid"):
            trial.judge(good=1, failed=0, counts=request_counts(), responses_file=file)


@pytest.mark.parametrize(("late", "findings"), [(0.0, set()), (60.0, {"date-now"}), (-60.0, {"date-now"})])
def test_recorded_times_become_times_of_day(late: float, findings: set[str], tmp_path: Path) -> None:
    file = tmp_path / "responses.jsonl"
    at, headers = time.time() + late, [("Date", formatdate(usegmt=True))]
    file.write_text(recorded_line(exchange(headers=headers, sent_at=at, received_at=at)))
    with ReferenceServer() as server:
        with make_trial(as_server(server, rules="techempower"), "json", NOWHERE) as trial:
            pass
        results = trial.judge(good=1, failed=0, counts=request_counts(), responses_file=file).objections
    assert {result.check for result in results if result.waived} == findings


@pytest.mark.needs_extra("orders")
def test_a_load_of_orders_starts_on_empty_tables(seeded: DatabaseAddress, tmp_path: Path) -> None:
    file = tmp_path / "responses.jsonl"
    file.write_text('{"use_case":"online shop order","variables":{},"order":7,"steps":[]}\n')
    with OrderServer(seeded) as server:
        with make_trial(as_server(server), "order", seeded, Scenario(factor=1.0, connections=8)) as trial:
            pass
        assert trial.judge(good=0, failed=0, counts=None, responses_file=file).judged == 1
