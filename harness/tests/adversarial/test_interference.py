"""Attack: head forwards its requests to base, or uses CPU time while base is measured."""

from dataclasses import replace

import numpy as np
import pytest

from harness.extras.gate.interference import discard_disturbed
from harness.extras.gate.judge import ALL, ComparedVersions, judge
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.records.run_records import RunRecords
from harness.records.verdicts import worst
from harness.tests.extras.gate.test_judge import REQUESTS, session


def with_idle(records: RunRecords, shares: dict[str, float], request: str | None = None) -> RunRecords:
    """Set the idle sides' CPU share in each trial. ``shares`` maps the side under load to that share."""
    changed = [
        trial.model_copy(update={"idle_cpu_share": shares[trial.implementation]})
        if request in (None, trial.test_type)
        else trial
        for trial in records.trials
    ]
    return replace(records, trials=changed)


def verdicts(factor: float, shares: dict[str, float], request: str | None = None) -> dict[str, str]:
    records = with_idle(session(np.random.default_rng(4), factor, noise=0.01, process=0.005), shares, request)
    result = discard_disturbed(judge(records, ComparedVersions(base="main", head="head")), records)
    found: dict[str, str] = {one.request: one.verdict for one in result.requests}
    assert result.verdict == worst(one.verdict for one in result.requests)
    return found


@pytest.mark.parametrize("factor", [0.7, 1.0])
@pytest.mark.parametrize(
    "shares",
    [
        {HEAD: 0.4, BASE: 0.001, COPY: 0.001},
        {HEAD: 0.1, BASE: 0.0002, COPY: 0.0002},
        {HEAD: 0.0, BASE: 0.9, COPY: 0.9},
        {HEAD: 0.02, BASE: 0.3, COPY: 0.0},
    ],
    ids=[
        "head asks base",
        "head asks base now and then",
        "head works beside base",
        "head works beside a copy",
    ],
)
def test_work_beside_a_load_gets_no_good_verdict(factor: float, shares: dict[str, float]) -> None:
    assert set(verdicts(factor, shares).values()) == {"cannot tell"}


def test_one_request_with_work_beside_it_is_enough() -> None:
    found = verdicts(1.0, {HEAD: 0.4, BASE: 0.0, COPY: 0.0}, REQUESTS[1])
    assert found == {REQUESTS[0]: "same", REQUESTS[1]: "cannot tell", REQUESTS[2]: "same", ALL: "cannot tell"}


@pytest.mark.parametrize("shares", [{HEAD: 0.2, BASE: 0.2, COPY: 0.2}, {HEAD: 0.004, BASE: 0.04, COPY: 0.04}])
def test_equal_or_small_background_load_is_accepted(shares: dict[str, float]) -> None:
    assert "cannot tell" not in verdicts(1.0, shares).values()


def test_a_slower_head_that_interferes_stays_slower() -> None:
    assert verdicts(1.3, {HEAD: 0.4, BASE: 0.0, COPY: 0.0})[REQUESTS[1]] == "slower"
