"""Audits take no more than their planned share of a run, but for the one that each cell is owed."""

from pathlib import Path

import pytest

from harness.measure.audit import LEAST_SECONDS
from harness.plan import profile as profiles
from harness.run.audit_time import AuditTime
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour

BEYOND = 1.2  # seconds of an audit beyond its load


def spent(time: AuditTime, audits: int, wanted: float, beyond: float = BEYOND) -> list[float]:
    """The loads of so many owed audits, each of which takes some time beyond its load."""
    loads = []
    for number in range(audits):
        seconds = time.load_seconds(wanted, owed=True, seed=number)
        time.took(seconds, seconds + beyond, owed=True)
        loads.append(seconds)
    return loads


@pytest.mark.parametrize(("wanted", "planned"), [(2.0, 56.0), (10.0, 120.0), (15.0, 90.0)])
def test_audits_that_do_not_fit_are_shortened_as_far_as_their_time_asks(wanted: float, planned: float) -> None:
    time = AuditTime(seconds=planned, owed=24)
    loads = spent(time, 24, wanted)
    assert time.spent <= planned + wanted  # the last one may be a long one
    assert time.spent > 0.8 * planned
    assert min(loads) == LEAST_SECONDS  # nobody can tell from its length what a load is
    assert max(loads) == wanted


def test_audits_that_fit_last_as_long_as_their_samples() -> None:
    assert set(spent(AuditTime(seconds=100.0, owed=24), 24, 2.0)) == {2.0}


def test_every_cell_has_its_audit_however_short_the_run() -> None:
    time = AuditTime(seconds=5.0, owed=24)
    assert set(spent(time, 24, 2.0)[1:]) == {LEAST_SECONDS}
    assert not time.affords_another()


def test_audits_that_are_not_owed_take_what_those_to_come_will_not() -> None:
    time = AuditTime(seconds=60.0, owed=10, reserved=0.2)
    assert time.affords_another()
    unforeseen = 0
    while time.affords_another():
        seconds = time.load_seconds(2.0, owed=False, seed=unforeseen)
        time.took(seconds, seconds + BEYOND, owed=False)
        unforeseen += 1
    assert 3 <= unforeseen <= 6
    spent(time, 10, 2.0)
    assert time.spent <= 60.0 + 2.0


@pytest.mark.parametrize("name", profiles.names())
def test_no_profile_that_ranks_plans_more_than_a_tenth(name: str) -> None:
    assert profiles.load(name).audit_share <= (0.5 if name == "smoke" else 0.1)


@pytest.mark.parametrize("seconds", [300.0, 600.0])
def test_servers_in_turns_are_audited_within_the_share(tmp_path: Path, seconds: float) -> None:
    servers = {name: Behaviour(cpu_per_request=1e-3) for name in "abcd"}
    quick = profiles.load("quick")
    assert quick.rounds is not None
    profile = quick.model_copy(update={"rounds": quick.rounds.model_copy(update={"time_seconds": seconds})})
    fake = FakeRun(tmp_path, servers, profile, test_types=("json", "db"), audited_cost=dict.fromkeys(servers, 1.0))
    fake.run()
    samples = [sample for sample in fake.records().samples if sample.audited]
    assert {(s.implementation, s.test_type) for s in samples} == {(a, b) for a in servers for b in ("json", "db")}
    assert sum(s.audited.duration for s in samples if s.audited) <= 0.1 * seconds
