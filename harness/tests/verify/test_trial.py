"""Trials with the real generator: what hides from every short look is seen, honest servers are let be."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from email.utils import formatdate
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LoadError
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Closed, Evidence, Load, Outcome, Scenario
from harness.runtime import DatabaseAddress, Upstream
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.tests.doubles.orders import OrderServer
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.gallery import UNDER_LOAD
from harness.tests.doubles.upstream import FakeUpstream
from harness.tests.verify.subjects import as_server
from harness.tests.verify.trials import WITH_GENERATOR, audited
from harness.verify.checks.evidence import Account
from harness.verify.tables import tables
from harness.verify.trial import TrialAudit
from harness.verify.verifier import Verifier

TYPES = ("json", "plaintext", "db", "query", "cached-query", "fortune", "update", "fan-out", "order")
SINGLE = Closed(connections=1)
SECONDS = 1.5
BETWEEN_SECONDS = 0.2  # two trials of a process, which others come between in a run
DELAY_SECONDS = 0.005  # of the upstream
TRIALS = 3  # what shows in some of a process's trials only


def usual_load(test_type: str) -> Closed | Scenario:
    """A load that the server doubles can bear."""
    kind = TEST_TYPES[test_type]
    if kind.open_loop:
        return Scenario(factor=8, connections=16)
    return Closed(connections=16, queries=20 if kind.counts_rows else None, depth=16 if kind.sweep == "pipeline" else 1)


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
    ) -> Evidence:
        """One trial; not ``written``: by a generator that writes no answers out."""
        if self.number:
            time.sleep(BETWEEN_SECONDS)
        self.number += 1
        server, kind = as_server(self.server, self.upstream), TEST_TYPES[test_type]
        load = load or usual_load(test_type)
        looking = self.verifier.trial(
            server, kind, load, self.database, seconds=seconds, rate=self.rate, seed=self.number
        )
        evidence, self.rate = audited(server, kind, load, looking, seconds=seconds, seed=self.number, written=written)
        return evidence


@contextmanager
def trials(double: Rogue | type[ReferenceServer], database: DatabaseAddress) -> Iterator[Trials]:
    """A process with its beginning and its end; the tables are as they were seeded."""
    with FakeUpstream(DELAY_SECONDS) as upstream:
        server = (double.server if isinstance(double, Rogue) else double)(database, upstream.url)
        running = Trials(server=server, database=database, upstream=upstream)
        running.verifier.begin(database)
        with server:
            yield running
    running.left |= {result.check for result in running.verifier.end(database) if result.outcome is not Outcome.PASS}


@pytest.fixture
def seeded(postgres: EmbeddedDatabase) -> DatabaseAddress:
    postgres.restore()
    return postgres.address


def named(evidence: Evidence) -> set[str]:
    return {result.check for result in evidence.objections}


class TestWithGenerator:
    pytestmark = WITH_GENERATOR
    few = Closed(connections=16, queries=1)  # all answers can be judged, and each row of the table has to be theirs

    @pytest.mark.parametrize(("name", "load"), [*zip(TYPES, repeat(None)), ("update", few)])
    def test_an_honest_server_passes_and_many_of_its_answers_were_judged_or_all(
        self, name: str, load: Closed | None, seeded: DatabaseAddress
    ) -> None:
        with trials(OrderServer if name == "order" else ReferenceServer, seeded) as running:
            seen = [running.trial(name, load) for _ in range(2)]
        assert [evidence.objections for evidence in seen] == [(), ()]
        assert seen[1].answers >= (seen[1].of if load else min(50, seen[1].of)) > 0
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
        assert evidence.answers == 0


def audit(server: ReferenceServer, kind: str, database: DatabaseAddress, load: Load = SINGLE) -> TrialAudit:
    """Of a load that the test makes itself."""
    return Verifier().trial(as_server(server), TEST_TYPES[kind], load, database, seconds=1.0, rate=10.0, seed=1)


def test_rows_change_behind_a_server_while_a_load_is_on_and_are_put_back_for_caches(seeded: DatabaseAddress) -> None:
    with ReferenceServer(seeded) as server, tables(seeded) as view:
        before = view.world()
        with audit(server, "db", seeded):
            assert any(view.world() != before for _ in range(200))
        assert view.world() == before


def test_an_interruption_is_not_hidden_by_a_database_that_is_lost_meanwhile(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with ReferenceServer() as server:
        trial = audit(server, "db", postgres.address)

        def interrupted() -> None:
            postgres.restore()  # ends every connection
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), trial:
            interrupted()


@pytest.mark.parametrize("line", ["{}", "[", '{"headers": [], "status": "x"}'])
def test_a_file_that_is_none_of_the_generator_s_is_told_with_its_line(line: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(line + "\n")
    with ReferenceServer() as server:
        nothing: dict[str, Any] = {one.name: 0 for one in fields(Account)} | {"statuses": {}}
        with audit(server, "json", DatabaseAddress(host="127.0.0.1", port=1)) as trial:
            pass
        with pytest.raises(LoadError, match=r"answers.jsonl line 1: not an answer"):
            trial.judge(good=1, failed=0, account=Account(**nothing), answers=file)


@pytest.mark.parametrize(("late", "objections"), [(0.0, set()), (60.0, {"date-now"}), (-60.0, {"date-now"})])
def test_an_answer_has_the_time_of_day_that_the_generator_s_clock_says(
    late: float, objections: set[str], tmp_path: Path
) -> None:
    file = tmp_path / "answers.jsonl"
    at = time.monotonic_ns() + round(late * 1e9)
    body = b'{"message":"Hello, World!"}'
    headers = {"Server": "t", "Date": formatdate(usegmt=True), "Content-Type": "application/json"}
    line: dict[str, Any] = {"sent_ns": at, "received_ns": at + 1_000_000, "connection": 0, "request": 0, "status": 200}
    line |= {"headers": [*headers.items(), ("Content-Length", str(len(body)))], "size_bytes": 150}
    file.write_text(json.dumps(line | {"body_base64": base64.b64encode(body).decode()}) + "\n")
    counts = {one.name: 0 for one in fields(Account)} | {"sent": 1, "received": 1, "successes": 1}
    account = Account(**counts | {"statuses": {"200": 1}, "whole": True})  # type: ignore[arg-type]
    with ReferenceServer() as server:
        with audit(server, "json", DatabaseAddress(host="127.0.0.1", port=1)) as trial:
            pass
        assert named(trial.judge(good=1, failed=0, account=account, answers=file)) & {"date-now"} == objections


def test_a_load_of_orders_begins_on_empty_tables_and_is_held_against_them(
    seeded: DatabaseAddress, tmp_path: Path
) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text('{"use_case":"online shop order","variables":{},"order":7,"steps":[]}\n')
    with OrderServer(seeded) as server:
        with audit(server, "order", seeded, Scenario(factor=1.0, connections=8)) as trial:
            pass
        assert trial.judge(good=0, failed=0, account=None, answers=file).answers == 1
