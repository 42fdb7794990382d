"""Each rogue (a deliberately wrong server) fails the check that it targets, and each check has a rogue."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import pytest
from _pytest.mark.structures import ParameterSet

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.verification_record import CheckResult
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.tests.distribution import DATABASE_GROUP
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.gallery import EVERYONE, ROGUES, WITHOUT_DATABASE
from harness.tests.verify.subjects import objections_to as objections
from harness.verify.checks import CONDUCT, LOAD
from harness.verify.checks.registry import CHECKS

FURTHER_TRIES = 2  # maximum retries after the machine stalled
AT_ONCE = 8  # rogues without a database that run concurrently; most of them only wait, but more would interfere

# Checks that fail only if the environment prevents counting. No server can cause this, so they have separate tests.
OF_THE_ENVIRONMENT = {"statements-counted", "tables-seen"}
# Checks of the order service under load, tested in test_order_load.py.
OF_ARRIVALS = {name for name, check in CHECKS.items() if check.applies(LOAD) and check.rule.startswith("order.")}
# Checks of declared expectations, tested in test_expectations.py.
OF_SERVICES = {name for name, check in CHECKS.items() if check.rule == "declared.1"}
# Checks of the protocols plugin, tested in extras/protocols/test_payload_gallery.py.
OF_PROTOCOLS = {
    name
    for name, check in CHECKS.items()
    if any(check.applies(kind.name) and not check.applies("json") for kind in TEST_TYPES.values() if kind.group)
} - {"plaintext-body"}

# Rogues with a database that run in the fast tests, one for each test type.
QUICK = {"invents-numbers", "does-not-read", "sorted-by-id", "writes-late"}

Found = Mapping[str, CheckResult]  # name of the failed check -> result


class Gallery:
    def __init__(self, start: Callable[[], EmbeddedDatabase]) -> None:
        self._start = start
        self._seeded = False  # the tables contain the seeded rows

    def objections(self, rogue: Rogue) -> Found:
        """Return the checks that a rogue fails. Rogues with a database start with seeded tables."""
        results = self._together[rogue.name] if rogue.test_type in WITHOUT_DATABASE else self._once(rogue)
        for _ in range(FURTHER_TRIES):
            stalled = (
                "answered" in results and rogue.caught_by not in results
            )  # responses were too slow for the targeted check to run
            if results and not stalled:
                break
            results = self._once(rogue)  # a delayed thread may, for example, read two segments at once
        return results

    def _once(self, rogue: Rogue) -> Found:
        if rogue.test_type in WITHOUT_DATABASE:
            return objections(rogue, None)
        if not self._seeded:
            self._postgres.restore()
        self._seeded = rogue.test_type not in ("update", "order") and rogue.caught_by != "nothing-left-behind"
        return objections(rogue, self._postgres.address)

    @cached_property
    def _postgres(self) -> EmbeddedDatabase:
        """Start PostgreSQL when the first rogue needs it."""
        return self._start()

    @cached_property
    def _together(self) -> Mapping[str, Found]:
        """Run all rogues without a database concurrently, the slowest first. Return the checks that each one fails."""
        rogues = [rogue for rogue in ROGUES.values() if rogue.test_type in WITHOUT_DATABASE]
        rogues.sort(key=lambda rogue: rogue.test_type != "delay")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return dict(zip((rogue.name for rogue in rogues), pool.map(self._once, rogues), strict=True))


@pytest.fixture(scope="session")
def gallery(request: pytest.FixtureRequest) -> Gallery:
    return Gallery(lambda: request.getfixturevalue("postgres"))


def param(rogue: Rogue) -> ParameterSet:
    """Return a test parameter. Its id ends with the group of tests that share a process.

    One process runs all rogues without a database. A rogue with a database runs beside the other rogues of its check,
    or in the process that has a PostgreSQL server anyway.
    """
    if rogue.test_type in WITHOUT_DATABASE:
        return pytest.param(
            rogue, id=f"{rogue.name}@without a database", marks=(pytest.mark.gallery, pytest.mark.without_database)
        )
    if rogue.name in QUICK:
        return pytest.param(rogue, id=f"{rogue.name}@{DATABASE_GROUP}")
    return pytest.param(rogue, id=f"{rogue.name}@{rogue.caught_by}", marks=pytest.mark.gallery)


def test_every_check_has_a_rogue() -> None:
    # Checks of processes and folders are tested in test_process_conduct.py and faults/test_contributor.py.
    of_conduct = {name for name, check in CHECKS.items() if check.applies(CONDUCT)}
    without = OF_THE_ENVIRONMENT | OF_ARRIVALS | OF_SERVICES | OF_PROTOCOLS | of_conduct
    assert CHECKS.keys() - {rogue.caught_by for rogue in EVERYONE.values()} <= without


@pytest.mark.parametrize("rogue", [param(rogue) for rogue in ROGUES.values()])
def test_the_rogue_fails_its_check(rogue: Rogue, gallery: Gallery) -> None:
    found = gallery.objections(rogue)
    objection = found.get(rogue.caught_by)
    assert objection is not None, f"only {', '.join(found) or 'nothing'} objects to a server that {rogue.does}"
    assert objection.message
    assert objection.rule == CHECKS[rogue.caught_by].rule
