"""Records of complete simulated runs match the reviewed files in harness/tests/approved."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.experiment.generators import LoadRun
from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.plan.requests import PreparedRequest
from harness.plan.run_settings import ControlCopy
from harness.plan.testtypes import TestType
from harness.records.loads import ClosedLoop, Scenario
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.tests.approve import approve, describe_tables
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_runtime import RUNS, FakeMachines, FakeSeveral
from harness.tests.doubles.fakes_world import Behaviour, FakeWorld
from harness.tests.doubles.implementations import implementation

COLD = Behaviour(cold=4.0, process_spread=0.02, window_spread=0.01)
FAULTY = Behaviour(cpu_per_request=80e-6, status_errors=0.01, idle_cpu=0.3, response_bytes=140.0)
RUN_FIELDS = ("status", "design", "seed", "reference", "processes_expected", "processes_maximum", "problems")


def shortened(name: str, **changes: Any) -> Profile:
    """Return a profile with changed sections."""
    profile = profiles.load_profile(name)
    changed = {key: getattr(profile, key).model_copy(update=value) for key, value in changes.items()}
    return profile.model_copy(update=changed)


APPROVED: dict[str, tuple[dict[str, Behaviour], Profile, tuple[str, ...]]] = {
    "interleaved": (
        {"cold": COLD, "faulty": FAULTY},
        shortened("quick", interleaved={"time_seconds": 90.0}, processes={"minimum": 2, "maximum": 2}),
        ("json", "query", "plaintext"),
    ),
    "search": ({"cold": COLD}, shortened("latency", processes={"minimum": 1, "maximum": 1}), ("json",)),
    "techempower": ({"cold": COLD, "faulty": FAULTY}, profiles.load_profile("techempower"), ("json", "update")),
    "orders": (
        {"cold": COLD},
        shortened("quick", interleaved={"time_seconds": 60.0}, processes={"minimum": 1, "maximum": 1}),
        ("order",),
    ),
}


def describe_records(records: RunRecords) -> dict[str, Any]:
    """Return the ids of all trials in order, and details of the first trial for each purpose and load."""
    kinds: dict[str, Trial] = {}
    for trial in records.trials:
        source = trial.implementation if trial.purpose == "measure" else trial.purpose
        kinds.setdefault(f"{source} {trial.load.kind}", trial)
    return {
        "order": [trial.id for trial in records.trials],
        **{kind: describe_trial(trial) for kind, trial in kinds.items()},
        "processes": [json.loads(each.to_json()) for each in records.processes],
        "verdicts": [f"{each.implementation} {each.test_type} {each.process} {each.outcome}"
                     for each in records.verdicts],
        "run": {field: getattr(records.info, field) for field in RUN_FIELDS},
        "loads": {kind: [load.label for load in loads] for kind, loads in records.info.loads.items()},
    }  # fmt: skip


def describe_trial(trial: Trial) -> dict[str, Any]:
    """Return a trial's recorded fields without time series and passed validity checks."""
    fields: dict[str, Any] = json.loads(trial.without_histograms().to_json())
    for field in ("windows", "command", "id", "arrivals", "started_at", "process", "round"):
        fields.pop(field, None)
    fields["load"] = trial.load.label
    fields["errors"] = {kind: count for kind, count in fields.get("errors", {}).items() if count}
    fields["latency"] = trial.latency and {"mean": trial.latency.mean, **trial.latency.percentiles}
    if trial.warm_up:
        fields["warm_up"]["windows"] = len(trial.warm_up.windows)
    fields["windows"] = len(trial.windows)
    fields["validity"] = [f"{c.name} {c.outcome}: {c.value:.4g} against {c.threshold:g}"
                          for c in trial.validity if c.outcome != "pass" and c.value is not None]  # fmt: skip
    return fields


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.needs_extra("orders") if name == "orders" else ()) for name in APPROVED],
)
def test_a_run_is_recorded_as_approved(name: str, tmp_path: Path) -> None:
    servers, profile, test_types = APPROVED[name]
    world = FakeWorld(steal=0.03)
    fake = FakeRun(tmp_path, servers, profile, test_types, jit=frozenset({"cold"}), world=world)
    outcome = fake.run()
    records = fake.records()
    tables = describe_tables(records.info, outcome.ranking) if name != "techempower" else {}
    approve(
        f"experiment-run-{name}",
        {**describe_records(records), "tables": tables},
        ("pids", "started_at", "schema_version"),
    )


# A server with rare events, such as late connections, throttling and wrong statuses.
WORN = Behaviour(
    request_bytes=120.0, connects_after=1.2, other_connections=3, throttled=0.01, threads=7, status_errors=0.01
)
TROUBLED = {
    "absent": Behaviour(never_starts=True),
    "breaks": Behaviour(trouble={2: "fails", 5: "never ends", 7: "fails"}),
    "dies": Behaviour(dies_after=9.5),
    "restarts": Behaviour(restarts=True, idle_cpu=0.5, idle_seconds=30.0),
}
CELLS = {
    "a": {"json": (ClosedLoop(connections=8),), "order": (Scenario(factor=4.0, connections=8),)},
    "a@base": {"db": (ClosedLoop(connections=4), ClosedLoop(connections=64))},
}
ROUNDS = {"time_seconds": None, "rounds": 1}


def troubled(folder: Path) -> FakeRun:
    """Return a run of four faulty servers that are up at the same time."""
    profile = shortened("quick", interleaved=ROUNDS)
    return FakeRun(folder, TROUBLED, profile, ("json", "update"), world=FakeWorld(talks=True))


def on_machines(folder: Path) -> FakeRun:
    """Return a run with two client machines. One server's socket counters are unknown."""
    profile = profiles.load_profile("smoke").model_copy(update={"duration_seconds": 3.0})
    world = FakeWorld(talks=True, database_cpus=0.25)
    fake = FakeRun(folder, {"worn": WORN, "unseen": Behaviour(sockets=False)}, profile, ("json",), world=world)
    fake.runtime = FakeMachines(world, running=FakeSeveral)
    return fake


def of_cells(folder: Path) -> FakeRun:
    """Return a claim's run. Two copies of the implementation share a database and use one of two CPUs."""
    copy = ControlCopy(suffix="@base", frameworks=(folder / "frameworks",))
    options = {"cells": CELLS, "control_copy": copy, "claims": ("a-claim",), "reverse_order": True, "cpuset_cpus": "0"}
    profile = shortened("quick", interleaved=ROUNDS, processes={"minimum": 1, "maximum": 1})
    fake = FakeRun(
        folder, {"a": Behaviour()}, profile, ("json", "db", "order"), world=FakeWorld(talks=True), asked=options
    )
    fake.runtime.supports_copies = False
    return fake


def of_a_service(folder: Path) -> FakeRun:
    """Return a run of a service that declares requests and has a private database."""
    kind = TestType(
        name="pay",
        response_shape="declared",
        requests=(PreparedRequest(target="/pay"), PreparedRequest(target="/paid")),
    )
    service = replace(implementation(folder / "Fake" / "own", "own", json_url="/"), requests={"pay": kind})
    fake = FakeRun(
        folder,
        {"own": Behaviour()},
        world=FakeWorld(talks=True),
        asked={"services": (service,), "test_types": ("pay",)},
    )
    fake.runtime.side_by_side = False
    return fake


def whose_database_ends(folder: Path) -> FakeRun:
    """Return a run whose database crashes during the loads."""
    servers = {"a": Behaviour(), "b": Behaviour()}
    profile = shortened("quick", interleaved=ROUNDS, processes={"minimum": 1, "maximum": 1})
    fake = FakeRun(folder, servers, profile, world=FakeWorld(talks=True))
    fake.world.database_dies_at = fake.world.clock.now + 15.0
    return fake


def brief(trial: Trial) -> str:
    """Describe a trial in one line."""
    flags = " ".join(check.flag for check in trial.validity if check.flag)
    judged = trial.evidence.objections[-1].message if trial.evidence else ""
    judged = re.sub(r"^.*? (\S+ [\d.]+ s \S+) \d+: ", r"\1: ", judged)  # without the cell and the seed
    return f"{trial.id} by {trial.generator} [{flags}] {len(trial.validity)} checks, {trial.throughput:.6g}/s, {judged}"


def observations(trial: Trial) -> list[str]:
    """Return the observations of a trial, with one line each for the server, each window and each client."""
    parts = (trial.server, *trial.windows, *trial.clients)
    beside = ("cpu_per_request", "database_cpu_seconds", "link_share", "responses_per_request", "connections")
    lines = [
        {key: getattr(trial, key) for key in (*beside, "generator_threads")},
        *(part.model_dump() for part in parts),
    ]
    return [
        brief(trial),
        *(", ".join(format_value(key, value) for key, value in line.items() if value) for line in lines),
    ]


def format_value(key: str, value: object) -> str:
    return f"{key} {value:.6g}" if isinstance(value, float) else f"{key} {value}"


def describe_load(run: LoadRun) -> str:
    sampling = f"{run.sampling.share:g} written" if run.sampling else "none written"
    limits = f"late after {run.late_after} s, {run.lag_share:g}, {sampling}, {len(run.requests)} requests"
    return (
        f"{run.url} {run.host} {run.accept[:16]} {run.load.label} {run.seconds:g} s {run.threads} {run.seed}, {limits}"
    )


@pytest.mark.parametrize(
    "made",
    [
        troubled,
        on_machines,
        pytest.param(of_cells, marks=pytest.mark.needs_extra("orders")),
        of_a_service,
        whose_database_ends,
    ],
)
def test_events_of_a_run_are_as_approved(made: Callable[[Path], FakeRun], tmp_path: Path) -> None:
    fake, earlier = made(tmp_path), len(RUNS)
    outcome = fake.run()
    records = fake.records()
    summary: dict[str, Any] = {
        "said": [each for each in fake.display.lines if each.startswith("!")],
        "failures": outcome.failures,
        "processes": [f"{p.implementation}.{p.process} {p.status} {p.log} {p.reason}" for p in records.processes],
        "trials": [observations(trial) if made is on_machines else brief(trial) for trial in records.trials],
    }
    if made in (of_cells, of_a_service):
        summary["loads"] = [describe_load(run) for run in RUNS[earlier:] if run.sampling]
    if made is of_cells:
        summary["said"] = [re.sub(r"end \d\d:\d\d|; log: .*", "", each) for each in fake.display.lines]
        summary["verdicts"] = [f"{v.test_type}: {v.results[0].message}" for v in records.verdicts]
        summary["settings"] = {key: str(value) for key, value in records.info.settings.items() if key != "profile"}
        summary["cells"] = {name: [*kinds] for name, kinds in records.info.cells.items()}
    approve(f"experiment-events-{made.__name__}", summary)
