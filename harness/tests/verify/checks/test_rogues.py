"""Every rogue is caught by the check meant for it, and no check could be removed without one getting through."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.results.records import CheckResult
from harness.servers.database.embedded import EmbeddedDatabase
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.gallery import ROGUES
from harness.tests.verify.checks.gallery import objections
from harness.verify import verification
from harness.verify.checks.registry import CHECKS

# An objection is the rogue's when it comes each time: a machine that stalls adds one now and then.
FURTHER_TRIES = 2
LAST_TRIES = 5

WITHOUT_DATABASE = frozenset({"http", "json", "plaintext"})

# Objects when statements can't be counted, which is the database's fault and no server's: test_verify.py has its test.
OF_THE_ENVIRONMENT = {"statements-counted"}

Matrix = Mapping[str, Mapping[str, CheckResult]]


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def matrix(postgres: EmbeddedDatabase, monkeypatch_module: pytest.MonkeyPatch) -> Matrix:
    """Rogue -> check -> its objection. Servers without a database are run several at once: they mostly wait."""
    postgres.restore()
    monkeypatch_module.setattr(verification, "FURTHER_SECONDS", 0.0)  # what verification always sends must be enough
    together = [rogue for rogue in ROGUES.values() if rogue.test_type in WITHOUT_DATABASE]
    with ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda rogue: objections(rogue, None), together)
        found = {rogue.name: result for rogue, result in zip(together, results, strict=True)}
    for rogue in ROGUES.values():
        if rogue.name not in found:
            found[rogue.name] = alone(rogue, postgres)
        for _ in range(FURTHER_TRIES):
            if len(found[rogue.name]) <= 1:
                break
            again = alone(rogue, postgres)
            found[rogue.name] = {name: found[rogue.name][name] for name in found[rogue.name] if name in again}
    return found


def alone(rogue: Rogue, postgres: EmbeddedDatabase) -> Mapping[str, CheckResult]:
    """The objections to one rogue on the seeded state."""
    if rogue.test_type == "update":
        postgres.restore()
    return objections(rogue, None if rogue.test_type in WITHOUT_DATABASE else postgres.address)


def test_there_is_a_rogue_for_every_rule_that_a_server_can_break() -> None:
    assert len(ROGUES) >= 45
    assert CHECKS.keys() - {rogue.caught_by for rogue in ROGUES.values()} == OF_THE_ENVIRONMENT


@pytest.mark.parametrize("name", ROGUES)
def test_the_rogue_is_caught_by_the_check_meant_for_it(name: str, matrix: Matrix) -> None:
    rogue = ROGUES[name]
    objection = matrix[name].get(rogue.caught_by)
    assert objection is not None, f"only {', '.join(matrix[name]) or 'nothing'} objects to a server that {rogue.does}"
    assert objection.message
    assert objection.rule == CHECKS[rogue.caught_by].rule


def test_without_any_one_check_some_rogue_gets_through(matrix: Matrix, postgres: EmbeddedDatabase) -> None:
    """The mutation check: each check is the only one that objects to at least one rogue."""
    caught_alone = {next(iter(found)) for found in matrix.values() if len(found) == 1}
    open_checks = CHECKS.keys() - caught_alone - OF_THE_ENVIRONMENT
    # A stalled machine adds objections of its own: a check that was not alone by then gets further tries.
    left = {check for check in open_checks if not any(is_sole(check, postgres) for _ in range(LAST_TRIES))}
    assert left == set(), {name: sorted(found) for name, found in matrix.items() if len(found) > 1}


def is_sole(check: str, postgres: EmbeddedDatabase) -> bool:
    """Whether one of the check's own rogues gets through without it."""
    return any(set(alone(rogue, postgres)) == {check} for rogue in ROGUES.values() if rogue.caught_by == check)
