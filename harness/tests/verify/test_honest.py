"""No check objects to a server that keeps every requirement in another way than the reference server does."""

import os

import pytest

from harness.records.models import Outcome
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.tests.doubles.honest import HONEST, Honest
from harness.tests.verify.subjects import verified
from harness.verify.verifier import Verifier

PATIENCE = 4.0  # seconds; the machine may be busy, and a slow answer is no dishonest one
# A tenth of the variants; all of them with TFB_WHOLE_GALLERY=1.
CHOSEN = HONEST[:: 1 if os.environ.get("TFB_WHOLE_GALLERY") else 10]


@pytest.mark.gallery
@pytest.mark.parametrize("honest", CHOSEN, ids=lambda honest: honest.name)
def test_an_honest_variant_passes(honest: Honest, postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    verifier = Verifier()
    verifier.begin(postgres.address)
    with honest.server(postgres.address) as server:
        verdicts = [
            verified(server, name, postgres.address, patience=PATIENCE) for name in ("http", *honest.test_types)
        ]
    results = [result for verdict in verdicts for result in verdict.results] + [*verifier.end(postgres.address)]
    assert [result for result in results if result.outcome is Outcome.FAIL] == []
