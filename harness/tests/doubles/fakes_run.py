"""A whole run on the fakes: the real workflow from the selection to the reports, in memory but for its records."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.benchmarks.simulation import MACHINE
from harness.plan import profile as profiles
from harness.plan.config import Order, Settings
from harness.plan.profile import Profile
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import store
from harness.records.models import RunRecords
from harness.run import workflow
from harness.run.progress import Progress, State
from harness.run.rate_tools import RateTools
from harness.run.running import Dependencies
from harness.run.workflow import RunOutcome
from harness.tests.doubles.fakes_audit import FakeAuditor
from harness.tests.doubles.fakes_orders import FakeScenarios
from harness.tests.doubles.fakes_rates import FakeRates
from harness.tests.doubles.fakes_runtime import FakeGenerator, FakeRuntime, FakeVerifier
from harness.tests.doubles.fakes_world import Behaviour, World

URLS = {
    "json": "/json",
    "plaintext": "/plaintext",
    "db": "/db",
    "query": "/query?queries=",
    "fortune": "/fortune",
    "update": "/update?queries=",
}


@dataclass
class SilentDisplay:
    """Remembers the lines that a run told."""

    lines: list[str] = field(default_factory=list)

    def show(self, state: State, *, changed: str) -> None:
        self.lines += [changed] if changed else []

    def close(self) -> None:
        """Nothing to give back."""


@dataclass
class FakeRun:
    """Implementations, a world and a place for records; ``run`` is the harness's own workflow."""

    folder: Path
    servers: Mapping[str, Behaviour]
    profile: Profile = field(default_factory=lambda: profiles.load("smoke"))
    test_types: Sequence[str] = ("json",)
    order: Order = "blocks"
    seed: int = 1
    jit: frozenset[str] = frozenset()
    audited_cost: Mapping[str, float] = field(default_factory=dict)  # of an audited request ÷ others'; empty: no audits
    resume: str | None = None
    world: World = field(default_factory=World)
    display: SilentDisplay = field(default_factory=SilentDisplay)

    def __post_init__(self) -> None:
        self.world.behaviours.update(self.servers)
        self.runtime = FakeRuntime(self.world)
        self.verifier = FakeVerifier(self.world)
        self.generator = FakeGenerator()
        self.rates = FakeRates()
        self.scenarios = FakeScenarios()

    def run(self) -> RunOutcome:
        """From the selection to the reports."""
        self._write()
        progress = Progress(self.display, clock=self.world.clock)
        return workflow.benchmark(self.settings(), progress, needs=self.dependencies())

    def settings(self) -> Settings:
        return Settings(
            command=("fake",),
            test_types=tuple(self.test_types),
            profile=self.profile,
            order=self.order,
            seed=self.seed,
            results_name="fake",
            results_environment="fake",
            results=self.folder / "results",
            frameworks=(self.folder / "frameworks",),
            generator="fake",
            resume=self.resume,
        )

    def dependencies(self) -> Dependencies:
        return Dependencies(
            auditing=lambda _runtime: FakeAuditor(self.audited_cost) if self.audited_cost else None,
            clock=self.world.clock,
            choose_runtime=lambda *_, **__: self.runtime,
            verifier=self.verifier,
            generators={"fake": lambda _: self.generator},
            rate_tools=RateTools(
                generator=lambda _runtime, rules: partial(self.rates.generator, rules),
                scenarios=lambda _runtime, _drain: self.scenarios,
                null_server=lambda: nullcontext(None),
            ),
            machine=lambda: MACHINE.model_copy(update={"cpus_usable": tuple(range(self.world.cpus))}),
            open_files=lambda: 1 << 20,
            free_memory=self.world.free_memory,
            revision=lambda: ("fake", False),
            leftovers=lambda: (),
        )

    def records(self) -> RunRecords:
        """What is on disk of the latest run."""
        return store.read(store.runs(self.folder / "results")[-1])

    def _write(self) -> None:
        for name in self.servers:
            home = self.folder / "frameworks" / "Fake" / name
            home.mkdir(parents=True, exist_ok=True)
            urls = {TEST_TYPES[kind].url_key: URLS.get(kind, f"/{kind}") for kind in self.test_types}
            entry = {"language": "Java" if name in self.jit else "Fake", **urls}
            document = {"framework": name, "tests": [{"default": entry}]}
            (home / "benchmark_config.json").write_text(json.dumps(document))
