"""Every rogue is caught by the check meant for it, and no check could be removed without one getting through."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import pytest
from _pytest.mark.structures import ParameterSet

from harness.records.models import CheckResult
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.tests.distribution import DATABASE_GROUP
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.gallery import EVERYONE, ROGUES, UNDER_LOAD
from harness.tests.doubles.serve import WITHOUT_DATABASE
from harness.tests.verify.subjects import objections_to as objections
from harness.verify.checks import LOAD
from harness.verify.checks.registry import CHECKS

FURTHER_TRIES = 2  # of a rogue that a stalled machine kept from being judged
LAST_TRIES = 5  # for a check to be alone in objecting to one of its rogues
AT_ONCE = 8  # servers without a database: they mostly wait, but more of them stand in each other's way

# Object when something can't be counted, which is no server's fault: they have tests of their own.
OF_THE_ENVIRONMENT = {"statements-counted", "upstream-counted", "tables-seen"}
# Judge a load of arrivals: test_order_load.py has what they object to.
OF_ARRIVALS = {name for name, check in CHECKS.items() if check.applies(LOAD) and check.rule.startswith("order.")}
# Judge a service by what it declares: test_declared.py has what each of them alone objects to.
OF_SERVICES = {name for name, check in CHECKS.items() if check.rule == "declared.1"}
# Have rogues that misbehave under load alone: test_trial.py takes those through trials.
UNDER_LOAD_ALONE = {rogue.caught_by for rogue in UNDER_LOAD.values()} - {rogue.caught_by for rogue in ROGUES.values()}
ELSEWHERE = OF_THE_ENVIRONMENT | OF_ARRIVALS | OF_SERVICES | UNDER_LOAD_ALONE

# Of the rogues with a database, those that the fast tests try: one a test type.
QUICK = {"invents-numbers", "does-not-read", "sorted-by-id", "writes-late"}

Found = Mapping[str, CheckResult]  # by the name of the check


class Gallery:
    """What objects to each rogue, found out when first asked for."""

    def __init__(self, start: Callable[[], EmbeddedDatabase]) -> None:
        self._start = start
        self._found: dict[str, Found] = {}
        self._seeded = False  # whether the tables are as the seed has them

    def objections(self, rogue: Rogue) -> Found:
        """The objections to a rogue."""
        if rogue.name not in self._found:
            if together(rogue.caught_by):
                self._find_together()
            else:
                self._found[rogue.name] = self.once(rogue)
            self._find_again(rogue)
        return self._found[rogue.name]

    def once(self, rogue: Rogue) -> Found:
        """The objections to one rogue on the seeded state."""
        if rogue.test_type not in WITHOUT_DATABASE:
            if not self._seeded:
                self._postgres.restore()
            self._seeded = rogue.test_type not in ("update", "order") and rogue.caught_by != "nothing-left-behind"
        return objections(rogue, None if rogue.test_type in WITHOUT_DATABASE else self._postgres.address)

    @cached_property
    def _postgres(self) -> EmbeddedDatabase:
        """Started by the first rogue that reads it."""
        return self._start()

    def _find_together(self) -> None:
        rogues = [rogue for rogue in ROGUES.values() if together(rogue.caught_by)]
        rogues.sort(key=lambda rogue: rogue.test_type != "delay")  # they take longest
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = pool.map(lambda rogue: objections(rogue, None), rogues)
            self._found |= {rogue.name: result for rogue, result in zip(rogues, results, strict=True)}
        for rogue in rogues:
            self._find_again(rogue)

    def _find_again(self, rogue: Rogue) -> None:
        for _ in range(FURTHER_TRIES):
            found = self._found[rogue.name]
            stalled = (
                "answered" in found and rogue.caught_by not in found
            )  # too slow for the patience: little was judged
            if found and not stalled:
                return
            self._found[rogue.name] = self.once(rogue)  # nothing: two segments that a late thread read as one, say

    def alone(self, check: str) -> bool:
        """Whether a check is the only one that objects to one of its rogues.

        An objection is the rogue's when it comes each time: a machine that stalls adds one now and then. So they are
        tried again until one check is left, and only where no rogue had but one at first.
        """
        rogues = own(check)
        if any(self.objections(rogue).keys() == {check} for rogue in rogues):
            return True
        for rogue in rogues:
            found = set(self.objections(rogue))
            for _ in range(LAST_TRIES):
                found &= self.once(rogue).keys()
                if found == {check}:
                    return True
        return False


@pytest.fixture(scope="session")
def gallery(request: pytest.FixtureRequest) -> Gallery:
    return Gallery(lambda: request.getfixturevalue("postgres"))


def own(check: str) -> list[Rogue]:
    """The rogues that this check is meant for."""
    return [rogue for rogue in ROGUES.values() if rogue.caught_by == check]


def together(check: str) -> bool:
    """Whether none of its rogues has a database: those servers can run at the same time."""
    return all(rogue.test_type in WITHOUT_DATABASE for rogue in own(check))


def param(value: str, check: str, rogue: str | None = None) -> ParameterSet:
    """Tests of the same rogues run in the same process, and those of all servers without a database in one.

    Of the others some are among the fast tests, beside those that have a PostgreSQL up already.
    """
    if together(check):
        return pytest.param(value, id=f"{value}@without a database")
    if rogue in QUICK:
        return pytest.param(value, id=f"{value}@{DATABASE_GROUP}")
    return pytest.param(value, id=f"{value}@{check}", marks=pytest.mark.gallery)


def test_the_fast_tests_try_rogues_that_exist() -> None:
    assert ROGUES.keys() >= QUICK


def test_there_is_a_rogue_for_every_rule_that_a_server_can_break() -> None:
    without = OF_THE_ENVIRONMENT | OF_ARRIVALS | OF_SERVICES
    assert CHECKS.keys() - {rogue.caught_by for rogue in EVERYONE.values()} <= without


@pytest.mark.parametrize("name", [param(name, rogue.caught_by, name) for name, rogue in ROGUES.items()])
def test_the_rogue_is_caught_by_the_check_meant_for_it(name: str, gallery: Gallery) -> None:
    rogue = ROGUES[name]
    found = gallery.objections(rogue)
    objection = found.get(rogue.caught_by)
    assert objection is not None, f"only {', '.join(found) or 'nothing'} objects to a server that {rogue.does}"
    assert objection.message
    assert objection.rule == CHECKS[rogue.caught_by].rule


@pytest.mark.parametrize("check", [param(check, check) for check in CHECKS if check not in ELSEWHERE])
def test_without_the_check_some_rogue_gets_through(check: str, gallery: Gallery) -> None:
    """The mutation check: each check is the only one that objects to at least one rogue."""
    assert gallery.alone(check), {rogue.name: set(gallery.objections(rogue)) for rogue in own(check)}
