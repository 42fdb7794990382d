"""Runs the real workflow with in-memory fakes and writes real records."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.experiment import workflow
from harness.experiment.progress import Display, ProgressTracker
from harness.experiment.run_context import Dependencies
from harness.experiment.stage_conclude import RunOutcome
from harness.plan import profile as profiles
from harness.plan.implementation import Implementation
from harness.plan.profile import Profile
from harness.plan.run_settings import Settings
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import store
from harness.records.run_folders import list_runs
from harness.records.run_info import Machine
from harness.records.run_records import RunProgress, RunRecords
from harness.tests.doubles.fakes_runtime import FakeGenerator, FakeRuntime
from harness.tests.doubles.fakes_verifier import FakeVerifier
from harness.tests.doubles.fakes_world import Behaviour, FakeWorld

MACHINE = Machine(
    hostname="fake", os="fake", kernel="fake", cpu_model="fake", cpus_online=2, cpus_usable=(0, 1), memory_bytes=8 << 30
)
URLS = {
    "query": "/query?queries=",
    "update": "/update?queries=",
    "order": "/orders",
}  # any other test type's path is its name


@dataclass
class SilentDisplay(Display):
    """A progress display that collects lines instead of printing them."""

    lines: list[str] = field(default_factory=list)
    closed: bool = False

    def show(self, state: RunProgress, *, changed: str, stays: bool = False) -> None:
        self.lines += [changed] if changed else []

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeRun:
    """A run of fake implementations. ``run`` executes the real workflow, which writes its records to ``folder``."""

    folder: Path
    servers: Mapping[str, Behaviour]
    profile: Profile = field(default_factory=lambda: profiles.load_profile("smoke"))
    test_types: Sequence[str] = ("json",)
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)  # implementation -> fewer test types
    seed: int = 1
    jit: frozenset[str] = frozenset()
    resume: str | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)  # additional settings
    world: FakeWorld = field(default_factory=FakeWorld)
    display: SilentDisplay = field(default_factory=SilentDisplay)

    def __post_init__(self) -> None:
        self.world.behaviours.update(self.servers)
        self.runtime = FakeRuntime(self.world)
        self.verifier = FakeVerifier(self.world)
        self.generator = FakeGenerator()
        self.witness = FakeGenerator(name="wrk")

    def run(self) -> RunOutcome:
        """Execute the workflow and return its outcome."""
        self.write_folders()
        progress = ProgressTracker(self.display, clock=self.world.clock)
        return workflow.benchmark(self.settings(), progress, dependencies=self.dependencies())

    def settings(self) -> Settings:
        known = Settings(
            command=("fake",),
            test_types=tuple(self.test_types),
            profile=self.profile,
            seed=self.seed,
            results_name="fake",
            results_environment="fake",
            results=self.folder / "results",
            frameworks=(self.folder / "frameworks",),
            resume=self.resume,
        )
        return replace(known, **self.asked)

    def dependencies(self) -> Dependencies:
        return Dependencies(
            clock=self.world.clock,
            choose_runtime=self._choose,
            verifier=self.verifier,
            generators={"loadgen": lambda _: self.generator, "wrk": lambda _: self.witness},
            machine=lambda: MACHINE.model_copy(update={"cpus_usable": tuple(range(self.world.cpus))}),
            open_files=lambda: 1 << 20,
            free_memory=self.world.free_memory,
            revision=lambda: ("fake", False),
            leftovers=lambda: (),
            first_use=lambda *_: (),
        )

    def _choose(self, _: Settings, made: Sequence[Implementation], logs: Path, *, run_id: str) -> FakeRuntime:
        if self.world.talks:
            self.runtime.accounts = {"asked": f"{run_id}, {logs.name}, {len(made)} made"}
        return self.runtime

    def records(self) -> RunRecords:
        """Read the latest run's records."""
        return store.read_run(list_runs(self.folder / "results")[-1], with_series=True)

    def write_folders(self) -> None:
        for name in self.servers:
            home = self.folder / "frameworks" / "Fake" / name
            home.mkdir(parents=True, exist_ok=True)
            urls = {
                TEST_TYPES[kind].url_key: URLS.get(kind, f"/{kind}") for kind in self.only.get(name, self.test_types)
            }
            entry = {"language": "Java" if name in self.jit else "Fake", **urls}
            document = {"framework": name, "tests": [{"default": entry}]}
            (home / "benchmark_config.json").write_text(json.dumps(document))
