"""Each rogue of the group ``protocols`` fails its check, in verification or under load. Honest variants pass."""

from collections.abc import Mapping
from typing import ClassVar

import pytest

from harness.extras.protocols import reference_page
from harness.extras.protocols.upload import MemoryEvidence
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import ClosedLoop
from harness.records.verification_record import CheckResult, Outcome
from harness.runtime import NO_DATABASE
from harness.tests.doubles.honest import Honest
from harness.tests.doubles.rogues import Rogue
from harness.tests.extras.protocols.cheats import CHEATS as PAYLOAD_CHEATS
from harness.tests.extras.protocols.payload_server import PayloadServer
from harness.tests.extras.protocols.stream_cheats import STREAM_CHEATS
from harness.tests.extras.protocols.stream_variants import STREAM_VARIANTS
from harness.tests.extras.protocols.variants import VARIANTS as PAYLOAD_VARIANTS
from harness.tests.verify.trials import WITH_GENERATOR, verify_load
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.registry import CHECKS
from harness.verify.trial import TrialContext
from harness.verify.verification import run_checks
from harness.verify.verifier import Verifier

TIMEOUT_SECONDS = 2.0
TRIALS = 2
CHEATS = {**PAYLOAD_CHEATS, **STREAM_CHEATS}
VARIANTS = (*PAYLOAD_VARIANTS, *STREAM_VARIANTS)
IDLE = [rogue for rogue in CHEATS.values() if not rogue.under_load]
BUSY = [rogue for rogue in CHEATS.values() if rogue.under_load]

Findings = Mapping[str, CheckResult]


def payload_findings(server: PayloadServer, test_type: str) -> Findings:
    """Verify a test type and return all results other than passes, by check."""
    loads = (ClosedLoop(connections=8),)
    verdict = Verifier(TIMEOUT_SECONDS).verify_test_type(
        server.as_server(), TEST_TYPES[test_type], None, process=3, thorough=True, loads=loads
    )
    return {result.check: result for result in verdict.results if result.outcome is not Outcome.PASS}


def load_findings(server: PayloadServer, test_type: str, seconds: float, seed: int) -> tuple[set[str], int]:
    """Run a load. Return the names of the failed checks, and the number of checked responses."""
    kind = TEST_TYPES[test_type]
    load = kind.fixed_loads[-1].model_copy(update={"connections": 24})
    context = TrialContext(
        server=server.as_server(),
        test_type=kind,
        load=load,
        database=NO_DATABASE,
        seconds=seconds,
        rate=None,
        seed=seed,
    )
    evidence, _ = verify_load(Verifier().verify_trial(context))
    return {result.check for result in evidence.objections}, evidence.judged


def test_the_reference_page_is_current() -> None:
    assert reference_page.PAGE.read_text(encoding="utf-8") == reference_page.render()


def test_each_type_has_eight_rogues_and_four_variants() -> None:
    for name in (kind.name for kind in TEST_TYPES.values() if kind.group == "protocols"):
        assert sum(rogue.test_type == name for rogue in CHEATS.values()) >= 8, name
        assert sum(name in honest.test_types for honest in VARIANTS) >= 4, name


@pytest.mark.parametrize(("growth", "outcomes"), [(90 << 20, [Outcome.PASS]), (200 << 20, [Outcome.FAIL]), (None, [])])
def test_memory_of_an_upload_is_bounded(growth: int | None, outcomes: list[Outcome]) -> None:
    evidence = Evidence(test_type="upload", extension=MemoryEvidence(growth=growth))
    assert [result.outcome for result in run_checks(evidence) if result.check == "memory-bounded"] == outcomes


def test_each_check_of_the_group_has_a_rogue() -> None:
    kinds = {kind.name for kind in TEST_TYPES.values() if kind.group == "protocols"}
    own = {name for name, check in CHECKS.items() if any(map(check.applies, kinds)) and not check.applies("hello")}
    assert own - {rogue.caught_by for rogue in CHEATS.values()} <= {"json-valid", "memory-bounded"}


@pytest.mark.gallery
@pytest.mark.parametrize("rogue", IDLE, ids=lambda rogue: rogue.name)
def test_a_payload_rogue_fails_its_check(rogue: Rogue) -> None:
    for _ in range(2):  # on a stalled machine, the first try may miss a difference in response times
        with rogue.server() as server:
            assert isinstance(server, PayloadServer)
            found = payload_findings(server, rogue.test_type)
        if rogue.caught_by in found:
            break
    objection = found.get(rogue.caught_by)
    assert objection is not None, f"only {', '.join(found) or 'nothing'} objects to a server that {rogue.does}"
    assert objection.rule == CHECKS[rogue.caught_by].rule


@pytest.mark.gallery
@pytest.mark.parametrize("honest", VARIANTS, ids=lambda honest: honest.name)
def test_an_honest_payload_server_passes(honest: Honest) -> None:
    with honest.server(None) as server:
        assert isinstance(server, PayloadServer)
        for name in honest.test_types:
            assert payload_findings(server, name) == {}, name


class TestPayloadLoads:
    pytestmark: ClassVar = [*WITH_GENERATOR, pytest.mark.gallery]

    @pytest.mark.parametrize("rogue", BUSY, ids=lambda rogue: rogue.name)
    def test_payload_rogues_under_load_fail(self, rogue: Rogue) -> None:
        with rogue.server() as server:
            assert isinstance(server, PayloadServer)
            found = [load_findings(server, rogue.test_type, 1.5, seed)[0] for seed in range(TRIALS)]
        assert rogue.caught_by in set().union(*found), rogue.does

    @pytest.mark.parametrize("honest", VARIANTS, ids=lambda honest: honest.name)
    def test_honest_payload_servers_pass_under_load(self, honest: Honest) -> None:
        with honest.server(None) as server:
            assert isinstance(server, PayloadServer)
            for name in honest.test_types:
                found, checked = load_findings(server, name, 1.0, 7)
                assert (found, checked > 20) == (set(), True), name
