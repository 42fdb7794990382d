"""Loads of the order service by arithmetic: every request is answered in the same time, unless told otherwise."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.measure.loadgen import Load, LoadGenerator, LoadResult, Played
from harness.measure.loadgen.scenario import ANSWERS
from harness.records.models import Errors, Latency
from harness.records.orders import ArrivalTimes, OperationTimes

POINTS = ("50", "75", "90", "95", "99", "99.9", "99.99")


def constant(seconds: float, count: int) -> Latency:
    """So many times of this length."""
    return Latency(
        basis="open-loop, intended send time",
        mean=seconds,
        stdev=0.0,
        min=seconds,
        max=seconds,
        percentiles=dict.fromkeys(POINTS, seconds),
        histogram=((seconds, count),),
    )


@dataclass
class FakeScenarios:
    """What every load shows; arrivals are as many as the rate says."""

    response: float = 0.002  # seconds of each request
    lag: float = 20e-6  # seconds, p99
    failed: int = 0  # first requests that are answered with another status, of each use case
    unfinished: int = 0  # first requests without an answer, of each use case
    loads: list[tuple[Mapping[str, Any], int]] = field(default_factory=list)  # plan and seed

    def __call__(self, plan: Mapping[str, object], seed: int, folder: Path) -> LoadGenerator:
        self.loads.append((plan, seed))
        return FakeScenario(shows=self, plan=plan, folder=folder)


@dataclass
class FakeScenario:
    """One load of a plan."""

    shows: FakeScenarios
    plan: Mapping[str, Any]
    folder: Path | None
    program: str = "fake-scenario"
    waits_for_go: bool = True
    timeout_seconds: float = 8.0

    def arguments(self, load: Load) -> Sequence[str]:
        rate = sum(case["rate"] * len(case["steps"]) for case in self.plan["use_cases"])
        return [json.dumps(asdict(load)), json.dumps({"rate": rate})]

    def result(self, load: Load, output: str) -> LoadResult:
        if self.folder is not None:
            (self.folder / ANSWERS).write_text('{"complete": true}\n')
        shows, seconds = self.shows, json.loads(output)["duration"]
        operations: list[OperationTimes] = []
        use_cases: list[ArrivalTimes] = []
        for case in self.plan["use_cases"]:
            due = round(case["rate"] * seconds)
            done = due - shows.failed - shows.unfinished
            use_cases.append(
                ArrivalTimes(
                    use_case=case["name"],
                    due=due,
                    done=done,
                    latency=constant(shows.response * len(case["steps"]), done),
                )
            )
            for place, step in enumerate(case["steps"]):
                operations.append(
                    OperationTimes(
                        use_case=case["name"],
                        operation=step["name"],
                        due=done if place else due,
                        answered=done,
                        errors=Errors(status=0 if place else shows.failed),
                        latency=constant(shows.response, done),
                        service=constant(shows.response, done),
                    )
                )
        answered, cases = sum(one.answered for one in operations), len(use_cases)
        lost = shows.unfinished * cases
        played = Played(
            due=sum(case.due for case in use_cases),
            done=sum(case.done for case in use_cases),
            failed=shows.failed * cases,
            unfinished=lost,
            requests_due=sum(one.due for one in operations),
            requests_answered=answered,
            requests_unfinished=lost,
            refused=0,
            operations=tuple(operations),
            use_cases=tuple(use_cases),
            latency=constant(shows.response, answered),
            lag_p99=shows.lag,
            lag_max=shows.lag,
        )
        return LoadResult(
            duration=seconds,
            requests=answered,
            bytes=300 * answered,
            errors=Errors(status=shows.failed * cases, timeout=lost),
            latency=played.latency,
            cpu_seconds=seconds / 10,
            played=played,
        )
