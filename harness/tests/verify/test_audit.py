"""Audits, with the real generator: what hides from the probe and from every counter is seen; honest servers pass."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from harness.host.clock import SYSTEM_CLOCK
from harness.measure.audit import Audited, audit
from harness.measure.loadgen.wrk import Wrk
from harness.measure.testbed import Target, Testbed
from harness.plan import profile as profiles
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import CheckResult, Closed, Load, Outcome, Verdict
from harness.runtime import Endpoint, Meter
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.runtime.local import LocalRuntime
from harness.runtime.metering.proc import ProcessTreeMeter
from harness.runtime.metering.sockets import SocketMeter
from harness.tests.doubles.reference import URLS, ReferenceServer
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.audited import AUDITED
from harness.tests.doubles.rogues.everyone import CUNNING, EVERYONE
from harness.tests.doubles.rogues.hidden import HIDDEN
from harness.tests.verify.checks.gallery import settled_table_use
from harness.verify import verification
from harness.verify.checks.load import DatabaseCounters, read_table_use
from harness.verify.checks.registry import CHECKS
from harness.verify.verifier import WireVerifier

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),  # the first of them builds the generator
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not on this machine"),
]
DATABASE = ("db", "query", "update", "fortune")
LEVELS = {"query": Closed(connections=16, queries=20), "update": Closed(connections=16, queries=20)}


@dataclass
class InThisProcess:
    """A server double as the spine sees a server."""

    endpoint: Endpoint
    implementation: Any
    log: Path
    first_answer: float = 0.0
    meter: Meter = field(default_factory=lambda: ProcessTreeMeter(os.getpid()))

    def connections(self) -> SocketMeter:
        return SocketMeter(self.endpoint.port)

    def identity(self) -> str:
        return "this process"

    def require_alive(self) -> None:
        """It is this process."""


@pytest.fixture
def testbed(tmp_path: Path, postgres: EmbeddedDatabase) -> Testbed:
    postgres.restore()
    return Testbed(
        profile=profiles.load("smoke"),
        clock=SYSTEM_CLOCK,
        runtime=LocalRuntime(work=tmp_path),
        generator=Wrk(),
        verifier=WireVerifier(),
        database=postgres,
        server_cpus=1,
        generator_cpus=1,
    )


def objections(testbed: Testbed, server: ReferenceServer, name: str, tmp_path: Path) -> dict[str, CheckResult]:
    """What an audit of this server finds, by check."""
    level = LEVELS.get(name, Closed(connections=16))
    entry = type("Entry", (), {"urls": URLS, "name": "double", "rules": "tfb"})()
    before = read_table_use(testbed.database.address) if name in DATABASE else None
    target = Target(
        server=cast("Any", InThisProcess(server.endpoint, entry, tmp_path / "log")),
        test_type=TEST_TYPES[name],
        levels=(level,),
        verdict=Verdict(
            implementation="double",
            test_type=name,
            replicate=0,
            thorough=False,
            outcome=Outcome.PASS,
            results=(),
            duration=0.0,
        ),
        database=testbed.database,
        jit=False,
        block=0,
        process=0,
    )
    with server:
        audited = audit(testbed, target, level, seed=5, expected=500.0, seconds=2.0)
    counted = _counted(before, testbed, name, level, audited) if before else ()
    results = (*audited.results, *counted)
    assert {result.check for result in results} <= CHECKS.keys()
    return {result.check: result for result in results if result.outcome is Outcome.FAIL}


def _counted(
    before: DatabaseCounters, testbed: Testbed, name: str, level: Load, audited: Audited
) -> tuple[CheckResult, ...]:
    """What the database's own counters say at the end of the server's life."""
    rows = audited.successes * (level.queries or 1)
    return verification.check_load(
        before,
        settled_table_use(testbed.database.address),
        answered_reads=0 if name == "fortune" else rows,
        answered_writes=rows if name == "update" else 0,
        answered_fortunes=audited.successes if name == "fortune" else 0,
    )


@pytest.mark.parametrize("name", ["json", "db", "query", "fortune", "update"])
def test_an_honest_server_passes(name: str, testbed: Testbed, tmp_path: Path) -> None:
    assert objections(testbed, ReferenceServer(testbed.database.address), name, tmp_path) == {}


@pytest.mark.parametrize("rogue", AUDITED, ids=lambda rogue: rogue.name)
def test_what_shows_only_under_load_is_seen(rogue: Rogue, testbed: Testbed, tmp_path: Path) -> None:
    found = objections(testbed, rogue.server(testbed.database.address), rogue.test_type, tmp_path)
    assert rogue.caught_by in found, found


TRIES = 2  # a second of load each, on a machine that may stand still for most of one


# Real servers of their own and a load each: an eighth of them in each check, all of them with TFB_WHOLE_GALLERY=1.
@pytest.mark.parametrize(
    "rogue", (*HIDDEN, *CUNNING)[:: 1 if os.environ.get("TFB_WHOLE_GALLERY") else 8], ids=lambda rogue: rogue.name
)
def test_what_the_gallery_does_is_seen_when_it_waits_for_the_load(
    rogue: Rogue, testbed: Testbed, tmp_path: Path
) -> None:
    for _ in range(TRIES):
        found = objections(testbed, rogue.server(testbed.database.address), rogue.test_type, tmp_path)
        if rogue.caught_by in found:
            break
    assert rogue.caught_by in found, found


def test_at_least_fifty_rogues_are_honest_until_the_load_is_on() -> None:
    waiting = [rogue.name for rogue in EVERYONE.values() if rogue.under_load]
    assert len(waiting) >= 50
    assert len(EVERYONE) >= 200
