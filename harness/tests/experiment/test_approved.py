"""Whole runs of the fake world as they are recorded: harness/tests/approved has what somebody has read of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.records.models import RunRecords
from harness.tests.approve import approve
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour, World

COLD = Behaviour(cold=4.0, process_spread=0.02, window_spread=0.01)
FAULTY = Behaviour(cpu_per_request=80e-6, status_errors=0.01, idle_cpu=0.3, response_bytes=140.0)
OF_THE_RUN = ("settings", "machine", "tools", "schema_version")  # what is asked, and where


def shortened(name: str, **changes: Any) -> Profile:
    """A profile with sections changed."""
    profile = profiles.load(name)
    own = {key: getattr(profile, key).model_copy(update=value) for key, value in changes.items()}
    return profile.model_copy(update=own)


RUNS: dict[str, tuple[dict[str, Behaviour], Profile, tuple[str, ...]]] = {
    "interleaved": (
        {"cold": COLD, "faulty": FAULTY},
        shortened("quick", interleaved={"time_seconds": 90.0}, processes={"minimum": 2, "maximum": 2}),
        ("json", "query", "plaintext"),
    ),
    "search": ({"cold": COLD}, shortened("latency", processes={"minimum": 1, "maximum": 1}), ("json",)),
    "techempower": ({"cold": COLD, "faulty": FAULTY}, profiles.load("techempower"), ("json", "update")),
    "orders": (
        {"cold": COLD},
        shortened("quick", interleaved={"time_seconds": 60.0}, processes={"minimum": 1, "maximum": 1}),
        ("order",),
    ),
}


def told(records: RunRecords) -> dict[str, Any]:
    """The order of all trials, and all that is recorded of the first one of each kind."""
    kinds: dict[object, Any] = {}
    for trial in records.trials:
        kinds.setdefault((trial.implementation, trial.purpose, trial.load.kind), json.loads(trial.recorded()))
    return {
        "order": [f"{trial.id} {trial.purpose} {trial.load.label}" for trial in records.trials],
        "trials": list(kinds.values()),
        "processes": [json.loads(each.recorded()) for each in records.processes],
        "verdicts": [json.loads(each.recorded()) for each in records.verdicts[:4]],
        "run": json.loads(records.info.recorded()),
    }


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_recorded_as_approved(name: str, tmp_path: Path) -> None:
    servers, profile, test_types = RUNS[name]
    world = World(steal=0.03)
    outcome = FakeRun(tmp_path, servers, profile, test_types, jit=frozenset({"cold"}), world=world).run()
    approve(f"run-{name}", told(outcome.records), OF_THE_RUN)
    if name != "techempower":  # its table is that of any
        approve(f"ranking-{name}", json.loads(outcome.ranking.recorded()))
