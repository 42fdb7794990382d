"""Takes honest variants past verification: what fails of them is a defect of a check."""

from harness.records.models import CheckResult, Outcome
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.tests.doubles.honest import Honest
from harness.tests.verify.subjects import verified
from harness.verify.verifier import Verifier

PATIENCE = 4.0  # seconds; the machine may be busy, and a slow answer is no dishonest one


def objections(honest: Honest, postgres: EmbeddedDatabase) -> list[tuple[str, CheckResult]]:
    """What fails of this variant, as (test type, result); warnings are none."""
    postgres.restore()
    verifier = Verifier()
    verifier.begin(postgres.address)
    found: list[tuple[str, CheckResult]] = []
    with honest.server(postgres.address) as server:
        for name in ("http", *honest.test_types):
            verdict = verified(server, name, postgres.address, patience=PATIENCE)
            found += [(name, result) for result in verdict.results]
    found += [("load", result) for result in verifier.end(postgres.address)]
    return [(name, result) for name, result in found if result.outcome is Outcome.FAIL]
