"""Takes honest variants past verification: what fails of them is a defect of a check."""

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import CheckResult, Closed, Outcome
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.tests.doubles.honest import Honest
from harness.verify import verification
from harness.verify.checks.load import read_table_use

PATIENCE = 4.0  # seconds; the machine may be busy, and a slow answer is no dishonest one


def objections(honest: Honest, postgres: EmbeddedDatabase) -> list[tuple[str, CheckResult]]:
    """What fails of this variant, as (test type, result); warnings are none."""
    postgres.restore()
    before = read_table_use(postgres.address)
    found: list[tuple[str, CheckResult]] = []
    with honest.server(postgres.address) as server:
        connection = verification.check_connection(
            implementation=honest.name, urls=honest.urls, endpoint=server.endpoint, replicate=0, patience=PATIENCE
        )
        found += [("http", result) for result in connection.results]
        for name in honest.test_types:
            verdict = verification.check(
                implementation=honest.name,
                urls=honest.urls,
                endpoint=server.endpoint,
                test_type=TEST_TYPES[name],
                database=postgres.address,
                thorough=True,
                replicate=0,
                levels=[Closed(connections=8)],
                patience=PATIENCE,
            )
            found += [(name, result) for result in verdict.results]
    left = verification.check_load(before, read_table_use(postgres.address))
    found += [("load", result) for result in left]
    return [(name, result) for name, result in found if result.outcome is Outcome.FAIL]
