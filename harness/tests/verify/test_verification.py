"""The reference server passes verification of each test type. Checks that cannot run are reported."""

import dataclasses
import re
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import ClosedLoop
from harness.records.verification_record import Outcome, VerificationRecord
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.tests.approve import approve
from harness.tests.doubles.reference import URLS, ReferenceServer
from harness.tests.doubles.rogues.gallery import ROGUES
from harness.tests.doubles.upstream import FakeUpstream
from harness.tests.verify.subjects import Listening, as_server, objections, verified
from harness.verify import verifier
from harness.verify.checks.registry import CHECKS

LEVELS = {"query": (1, 5, 20), "cached-query": (1, 100), "update": (1, 20)}


def run(
    server: ReferenceServer,
    name: str,
    database: DatabaseAddress | None,
    upstream: FakeUpstream | None = None,
    *,
    thorough: bool = True,
) -> VerificationRecord:
    if name == "http":
        return verified(server, name, thorough=thorough)
    loads = tuple(ClosedLoop(connections=8, queries=queries) for queries in LEVELS.get(name, (None,)))
    seen, kind = as_server(server, upstream), TEST_TYPES[name]
    return verifier.Verifier().verify_test_type(seen, kind, database, process=3, thorough=thorough, loads=loads)


@pytest.fixture(scope="module")
def upstream() -> Iterator[FakeUpstream]:
    with FakeUpstream() as double:
        yield double


@pytest.fixture(scope="module")
def reference(database: DatabaseAddress, upstream: FakeUpstream) -> Iterator[Listening]:
    with Listening(database, upstream.url) as server:
        yield server


@pytest.mark.parametrize("thorough", [True, False])
def test_the_reference_server_passes_every_check(
    thorough: bool, reference: Listening, database: DatabaseAddress, upstream: FakeUpstream
) -> None:
    versions = "SELECT sum(xmin::text::bigint) FROM world"
    results: dict[str, dict[str, object]] = {}
    common: list[str] = []  # checks of the first test type
    for name in (*URLS, "http"):
        reference.heads.clear()
        with connect(database) as view:
            before = view.execute(versions).fetchone()
            verdict = run(reference, name, database, upstream, thorough=thorough)
            changed = view.execute(versions).fetchone() != before
        assert objections(verdict) == {}
        assert 0 < verdict.duration < 600
        of_time = thorough and name in ("http", "delay")  # the number of requests depends on time
        ran = [result.check for result in verdict.results]
        known = {c.name for c in CHECKS.values() if c.applies(name) and not c.rule.startswith(("declared", "load"))}
        # date-moves takes several seconds, so it runs only for "http".
        assert not thorough or known - {*ran} == (set() if name == "http" else {"date-moves"})
        requests = [] if of_time else reference.take_requests()
        # Brief verification runs fewer checks.
        checks = [check for check in ran if thorough and (name == "json" or check not in common)]
        common = common or ran
        summary = f"{verdict.outcome}, database {'changed' if changed else 'unchanged'}"
        results[name] = {
            "": ", ".join((summary, *checks)),
            "bytes": " ".join(map(str, verdict.response_bytes.values())),
        }
        results[name]["requests"] = "; ".join(
            # The number of rows is random for the updates whose pages are counted.
            re.sub(r"(?<=127\.0\.0\.1:)\d+|(?<= 40 × GET /updates\?queries=)\d+", "NUMBER", line)
            for line in requests
            if name == "json" or not line.startswith("Host:")
        )
        if name in ("fan-out", "fortune"):  # sums and messages are random, so sizes vary
            del results[name]["bytes"]
            ((least, most),) = verdict.response_bytes.values()
            assert most <= 1.02 * least
    approve(f"verify-asked-{'thoroughly' if thorough else 'briefly'}", results, ("duration_seconds",))


def test_the_implementation_selects_the_rules() -> None:
    with ROGUES["closes-each-time"].server() as double:
        server, verify = as_server(double, rules="techempower"), verifier.Verifier()
        found = [verify.verify_http(server, process=0, thorough=False)]
        found += [verify.verify_test_type(server, TEST_TYPES["json"], None, process=0, thorough=False, loads=())]
    assert [{one.check for one in each.results if one.waived} for each in found] == [{"keep-alive"}] * 2


def test_uncounted_statements_warn_without_administrator(reference: ReferenceServer, database: DatabaseAddress) -> None:
    nobody = dataclasses.replace(database, admin_user=None, admin_password=None)
    verdict = run(reference, "db", nobody)
    assert verdict.outcome is Outcome.WARN
    (objection,) = objections(verdict).values()
    assert (objection.check, objection.rule) == ("statements-counted", "statements.1")
    assert "administrator" in objection.message


def test_row_shapes_are_checked_without_database(database: DatabaseAddress) -> None:
    with ROGUES["string-ids"].server(database) as server:
        verdict = run(server, "db", None)
    assert [check for check, result in objections(verdict).items() if result.outcome is Outcome.FAIL] == ["rows-exact"]


def test_servers_cannot_detect_verification(reference: ReferenceServer, database: DatabaseAddress) -> None:
    with connect(database) as measured:
        before = measured.execute("SELECT name, setting FROM pg_settings ORDER BY name").fetchall()
        extensions = measured.execute("SELECT extname, extversion FROM pg_extension").fetchall()
        run(reference, "db", database)
        assert measured.execute("SELECT name, setting FROM pg_settings ORDER BY name").fetchall() == before
        assert measured.execute("SELECT extname, extversion FROM pg_extension").fetchall() == extensions
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            measured.execute("SELECT * FROM pg_stat_statements")


def test_the_server_role_owns_and_creates_nothing(database: DatabaseAddress) -> None:
    with connect(database) as measured:
        for statement in ("CREATE TABLE mine (id int)", "CREATE TEMPORARY TABLE mine (id int)", "CREATE SCHEMA mine"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                measured.execute(statement.encode())
        owned = measured.execute("SELECT count(*) FROM pg_class WHERE relowner = current_user::regrole").fetchone()
        assert owned == (0,)


@pytest.mark.parametrize(("jumps", "expected"), [(0, 1), (2, 3), (9, 4)])
def test_verification_repeats_after_a_clock_jump(jumps: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[[], float] = time.time
    judged = list[int]()
    monkeypatch.setattr(time, "time", lambda: real() - 3600 * min(len(judged), jumps))

    def run_checks() -> int:
        judged.append(len(judged) + 1)
        return judged[-1]

    assert verifier.retry_on_clock_jump(run_checks)() == expected
