"""If every response is late, verification blames the machine.

If only waiting requests are late, it blames the server.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.runtime import Endpoint
from harness.tests.verify.subjects import exchange
from harness.verify.checks import delay
from harness.verify.checks.evidence import NOT_INTEGERS, Evidence, Exchange, QueryVariant
from harness.verify.checks.registry import CHECKS
from harness.verify.checks.verification_client import Client, VerificationTask

# (variant, index among concurrent requests, number of earlier batches) -> seconds by which a response is late.
DelayFunction = Callable[[QueryVariant, int, int], float]


class ScriptedClient(Client):
    """A client that sends nothing. ``late`` determines how late each response is."""

    def __init__(self, late: DelayFunction) -> None:
        super().__init__(Endpoint(host="127.0.0.1", port=1), TEST_TYPES["delay"], "/delay?ms=")
        self.late = late
        self.batches: list[str] = []  # name of each batch's first variant
        self.sequential: list[str] = []

    def send_in_order(self, cases: Iterable[QueryVariant], connection: int = 0) -> list[Exchange]:
        variants = list(cases)
        self.sequential += [case.name for case in variants]
        return [self.exchange(case, 0.01) for case in variants]

    def send_concurrently(self, cases: Sequence[QueryVariant], connections: int) -> list[Exchange]:
        earlier = self.batches.count(cases[0].name)
        self.batches.append(cases[0].name)
        return [self.exchange(case, self.late(case, place, earlier)) for place, case in enumerate(cases)]

    def exchange(self, case: QueryVariant, late: float) -> Exchange:
        made = exchange("Hello, World!", case, target=self.prepare(case).target)
        return replace(made, received_at=delay.requested_seconds(made) + late)


def gathered(late: DelayFunction) -> tuple[Evidence, ScriptedClient]:
    script = ScriptedClient(late)
    asking = SimpleNamespace(load_client=lambda: script, variant_client=lambda _: script, timeout=1.0, thorough=True)
    evidence = Evidence(test_type="delay")
    delay.gather(cast("VerificationTask", asking), evidence)
    return evidence, script


def objections(evidence: Evidence) -> list[str]:
    return [check.name for check in CHECKS.values() if check.rule.startswith("delay") and list(check.find(evidence))]


def test_a_slow_machine_does_not_fail_delays() -> None:
    evidence, _ = gathered(lambda case, place, earlier: place * 0.02 if case.name != "absent" else 0.0)
    assert delay.elapsed_seconds(evidence.concurrent, delay.WITH_DELAY) == pytest.approx(0.2 + 127 * 0.02)
    assert "delays-overlap" not in objections(evidence)


def test_a_passing_stall_is_tried_again() -> None:
    evidence, script = gathered(lambda case, place, earlier: 3.0 if (case, earlier) == (delay.WITH_DELAY, 0) else 0.01)
    assert objections(evidence) == []
    assert script.batches.count("at once") == 2
    assert sum(exchange.case == delay.WITH_DELAY for exchange in evidence.exchanges) == delay.CONCURRENT_REQUESTS


def test_late_concurrent_responses_are_requested_again() -> None:
    evidence, script = gathered(lambda case, place, earlier: 0.4 if case.suffix == "foo" else 0.01)
    assert objections(evidence) == []
    assert script.sequential == ["plain"] * 3 + ["foo"]
    suffixes = ("=", "=foo", "=1.5", "=-1", "=0", "=20", "=1000", "=2000", "=12345678901234567890", "=010")
    assert {one.target for one in evidence.exchanges} == {
        "/delay",
        *(f"/delay?ms{number}" for number in (*suffixes, *(f"={text}" for text in NOT_INTEGERS))),
    }


@pytest.mark.parametrize(("workers", "objects"), [(1, True), (8, True), (20, False), (128, False)])
def test_small_thread_pools_fail_concurrent_delays(workers: int, objects: bool) -> None:
    evidence, script = gathered(lambda case, place, _: place // workers * 0.2 if case == delay.WITH_DELAY else 0.0)
    assert objections(evidence) == (["delays-overlap"] if objects else [])
    assert script.batches.count("at once") == (delay.TRIES if objects else 1)
