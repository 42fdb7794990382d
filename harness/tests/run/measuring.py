"""A run on the fakes that is set up and not yet begun: for tests that look at one of its parts."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.plan.plan import Plan
from harness.plan.profile import Profile
from harness.records.models import RunInfo, Sample
from harness.records.store import RunStore
from harness.run import preparation, workflow
from harness.run.preparation import Selected
from harness.run.progress import Progress, State
from harness.run.running import Run
from harness.tests.doubles.fakes_run import FakeRun, SilentDisplay
from harness.tests.doubles.fakes_runtime import FakeDatabase
from harness.tests.doubles.fakes_world import Behaviour


@dataclass
class Teller(SilentDisplay):
    """Remembers each state that was told, and the line beside it."""

    states: list[State] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    def show(self, state: State, *, changed: str) -> None:
        super().show(state, changed=changed)
        self.states.append(state)
        self.changes.append(changed)

    @property
    def said(self) -> list[str]:
        """Each moment in a line: stage, of what, and what is new; seconds of a load apart."""
        found: list[str] = []
        for state, changed in zip(self.states, self.changes, strict=True):
            where = " ".join(word for word in (state.implementation, state.test_type, state.level) if word)
            counted = f"{state.block}/{state.blocks} {state.done}/{state.total}"
            line = " | ".join((state.stage, where, counted, changed))
            if not state.windows:
                found.append(line)
        return found


@dataclass(frozen=True)
class SetUp:
    """A run with what it was made of."""

    fake: FakeRun
    selected: Selected
    plan: Plan
    run: Run
    info: RunInfo
    display: Teller


def set_up(
    folder: Path,
    profile: Profile,
    names: Sequence[str] = ("a", "b"),
    test_types: Sequence[str] = ("json", "query"),
    **changes: Any,
) -> SetUp:
    """Before the first server."""
    behaviours = {name: Behaviour() for name in names}
    display = Teller()
    fake = FakeRun(folder, behaviours, profile, test_types=test_types, display=display, **changes)
    fake._write()
    settings, needs = fake.settings(), fake.dependencies()
    selected = preparation.choose_work(settings)
    plan = preparation.make_plan(selected, settings)
    store = RunStore(folder / "results" / "run", started_at=5.0)
    progress = Progress(display, clock=fake.world.clock)
    database = FakeDatabase(fake.world)
    machine = needs.machine()
    run = workflow.set_up(settings, needs, selected, plan, machine, fake.runtime, database, store, progress)
    info = preparation.describe(settings, selected, plan, machine, fake.runtime, store, (None, None))
    store.write_info(info)
    display.states.clear()
    display.changes.clear()
    display.lines.clear()
    return SetUp(fake, selected, plan, run, info, display)


def nothing(*_: object, **__: object) -> Any:
    """Whatever is asked."""
    return nullcontext()


def of(samples: Sequence[Sample], name: str) -> list[Sample]:
    """Those of one implementation."""
    return [sample for sample in samples if sample.implementation == name]
