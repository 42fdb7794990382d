"""A load that was observed, with a figure of its own in every field: what is handed on is told by its value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from harness.measure.loadgen import Load, LoadResult
from harness.measure.observe import Observation
from harness.measure.testbed import Target, Testbed
from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import (
    CheckResult,
    ClientUse,
    Errors,
    Latency,
    Closed,
    Load,
    Outcome,
    ServerUse,
    Verdict,
    Window,
)
from harness.runtime import DatabaseAddress, Endpoint
from harness.tests.doubles.fakes_runtime import FakeRuntime, FakeWatch
from harness.tests.doubles.fakes_world import World
from harness.verify.checks.evidence import Case, Exchange

LEVEL = Closed(connections=64, queries=20)
LATENCY = Latency(
    basis="closed-loop, wrk-corrected",
    mean=0.001,
    stdev=0.002,
    min=0.0001,
    max=0.5,
    percentiles={"50": 0.0009, "99": 0.004},
    histogram=((0.00123411, 390), (0.00123456, 600), (0.0, 10)),
)
BINNED = LATENCY.model_copy(update={"histogram": ((0.0, 10), (0.00123, 990))})
WINDOW = Window(start=0.5, duration=1.0, responses=250.0, server_cpu=0.5, wait_share=0.01, rss=3e8, connections=63)
CLIENT = ClientUse(
    client="one", connections=64, threads=2, requests=1000, bytes=150_000, duration=4.0, cpu_seconds=0.75,
    wait_seconds=0.01, begun=0.1, begun_within=0.02,
)  # fmt: skip
USE = ServerUse(
    cpu_seconds=2.0, rss_peak=3e8, rss_mean=2e8, wait_share=0.03, throttled_seconds=0.01, pids=(7,), threads_peak=9
)
WRONG = CheckResult(check="body", rule="query.1", outcome=Outcome.FAIL)
ASKED = Exchange(case=Case(name="20 rows"), target="/q", sent_at=1.0, received_at=2.0, connection=0, response=None)


def result(**changes: Any) -> LoadResult:
    """Four seconds: a thousand responses, of which twenty had another status."""
    known: dict[str, Any] = {
        "duration": 4.0,
        "requests": 1000,
        "bytes": 150_000,
        "errors": Errors(read=3, status=20),
        "latency": LATENCY,
        "cpu_seconds": 0.75,
    }
    return LoadResult(**known | changes)


def observation(**changes: Any) -> Observation:
    """What was seen of it."""
    known: dict[str, Any] = {
        "started_at": 1_700_000_123.0,
        "command": ("wrk", "-c", "64"),
        "result": result(),
        "windows": (WINDOW,),
        "server": USE,
        "database_cpu_seconds": 0.6,
        "steal_share": 0.011,
        "connections": 63,
        "idle_cpu_share": 0.004,
        "restarted": True,
        "clients": (CLIENT,),
        "responses_per_request": 0.98,
    }
    return Observation(**known | changes)


@dataclass
class Book:
    """A ledger that remembers what it was told."""

    told: list[tuple[object, ...]] = field(default_factory=list)

    def load_begins(self, kind: TestType) -> None:
        self.told.append(("begins", kind.name))

    def load_ends(self, kind: TestType) -> None:
        self.told.append(("ends", kind.name))

    def load_answered(self, kind: TestType, level: Load, good: int, failed: int) -> None:
        self.told.append(("answered", kind.name, level, good, failed))

    def watched(self, kind: TestType, level: Load, exchanges: Sequence[Exchange]) -> None:
        self.told.append(("watched", kind.name, level, tuple(exchanges)))


@dataclass
class Watching:
    """A verifier whose watch has seen a wrong answer; knows what it was asked to watch, and when it began."""

    asked: list[object] = field(default_factory=list)

    def watch(self, *what: object) -> FakeWatch:
        self.asked.append(what)
        seen = self

        class Watch(FakeWatch):
            def __enter__(self) -> "Watch":
                seen.asked.append("on")
                return self

        return Watch(failures=(WRONG,), exchanges=(ASKED,))


def bed(profile: Profile | None = None, **changes: Any) -> Testbed:
    """Three CPUs for servers, two for the generator, and two clients elsewhere."""
    world = World()
    known: dict[str, Any] = {
        "profile": profile or profiles.load("smoke"),
        "clock": world.clock,
        "runtime": FakeRuntime(world),
        "generator": SimpleNamespace(name="closed loop"),
        "verifier": Watching(),
        "database": None,
        "server_cpus": 3,
        "generator_cpus": 2,
        "links": {"one": 50_000.0, "two": 25_000.0},
    }
    return Testbed(**known | changes)


def target(kind: str = "query", levels: Sequence[Load] = (LEVEL,), **changes: Any) -> Target:
    """The fourth block's process 1 of ``a``, whose answers have 140 to 160 bytes."""
    verdict = Verdict(
        implementation="a", test_type=kind, replicate=1, thorough=False, outcome=Outcome.PASS, results=(), duration=0.1,
        response_bytes={"20": (140.0, 160.0), "": (145.0, 151.0)},
    )  # fmt: skip
    known: dict[str, Any] = {
        "server": SimpleNamespace(
            implementation=SimpleNamespace(name="a", urls={kind: "/q?queries=" if kind == "query" else "/" + kind}),
            endpoint=Endpoint(host="app", port=81),
        ),
        "test_type": TEST_TYPES[kind],
        "levels": tuple(levels),
        "verdict": verdict,
        "database": SimpleNamespace(address=DatabaseAddress(host="db", port=1)),
        "jit": False,
        "block": 3,
        "process": 1,
    }
    return Target(**known | changes)


@dataclass(frozen=True)
class Observed:
    """One call of ``observe``."""

    testbed: Testbed
    target: Target
    load: Load
    response_bytes: float | None
    stop: Callable[[Window], bool] | None


def observing(monkeypatch: pytest.MonkeyPatch, module: object, *seen: Observation) -> list[Observed]:
    """Have a module's loads observed so, one after the other (the last again and again); how it asked for them."""
    asked: list[Observed] = []

    def observe(testbed: Testbed, target: Target, load: Load, **named: Any) -> Observation:
        asked.append(Observed(testbed, target, load, named["response_bytes"], named.get("stop")))
        return seen[min(len(asked), len(seen)) - 1]

    monkeypatch.setattr(module, "observe", observe)
    return asked


def load(level: Load = LEVEL, **changes: Any) -> Load:
    """The closed loop of ``target`` on ``bed``."""
    known: Mapping[str, Any] = {
        "url": "http://app:81/q?queries=20",
        "host": "app",
        "accept": "application/json,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7",
        "seconds": 4.0,
        "connections": level.connections,
        "threads": 2,
        "pipeline": level.depth,
    }
    return Load(**{**known, **changes})
