"""``--dry-run``: prints the plan and the predicted length of a run, without starting a process."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence

from harness.errors import Exit
from harness.experiment import first_use
from harness.experiment.first_use import FirstUseTask
from harness.experiment.predicted import Prediction, predict
from harness.experiment.selection import limit_memory, make_plan, remaining_share
from harness.host import machine
from harness.plan.plan import Plan, concurrent_groups
from harness.plan.run_settings import Settings
from harness.records import store
from harness.records.run_folders import find_run
from harness.report.tables import format_count
from harness.units import format_elapsed


def dry_run(
    settings: Settings, find_chores: Callable[[Settings, Plan], Sequence[FirstUseTask]] = first_use.find_chores
) -> int:
    """Print the predicted run, as text or JSON, and return the exit code."""
    plan = limit_memory(make_plan(settings), settings.results, machine.free_memory())
    predicted, chores = predict(plan, settings.seed), find_chores(settings, plan)
    finished: frozenset[tuple[str, int]] = frozenset()
    if settings.resume:
        finished = store.finished_processes(store.read_run(find_run(settings.results, settings.resume)))
    share = remaining_share(plan, finished)
    builds = first_use.past_build_seconds(plan, settings.results)
    for problem in filter(None, (*plan.problems, predicted.shortage)):
        print(f"! {problem}", file=sys.stderr)
    if settings.json:
        _print_json(plan, predicted, share, chores, builds)
        return Exit.OK
    for number, group in enumerate(concurrent_groups(plan, settings.seed), 1):
        print(f"group {number}: {', '.join(candidate.implementation for candidate in group)}")
    for candidate in plan.candidates:
        for kind, loads in candidate.test_types.items():
            print(f"{candidate.implementation}  {kind}  {', '.join(load.label for load in loads)}")
    count = plan.profile.processes
    least = f"{count.minimum} to " if count.maximum > count.minimum else ""
    print(
        f"{format_count(plan.cells, 'cell')}, {least}{format_count(count.maximum, 'process')} of each, "
        f"{format_count(predicted.trials, 'trial')}; about {format_elapsed(share * predicted.seconds)}"
        f"{' remaining' * bool(finished)}, {predicted.measuring / max(1.0, predicted.seconds):.0%} of it measuring, "
        "builds not counted"
    )
    print(first_use.describe_builds(builds))
    if chores:
        print(first_use.describe_chores(chores))
    return Exit.OK


def _print_json(
    plan: Plan, predicted: Prediction, share: float, chores: Sequence[FirstUseTask], builds: Mapping[str, float | None]
) -> None:
    """Print the predicted run as JSON; ``share`` is the remaining share of the plan."""
    count = plan.profile.processes
    document = {
        "processes": {"minimum": count.minimum, "maximum": count.maximum},
        "trials": predicted.trials,
        "seconds": share * predicted.seconds,
        "measuring_seconds": share * predicted.measuring,
        "first_use": [{"what": chore.what, "seconds": chore.seconds} for chore in chores],
        "build_seconds": builds,
        "unreached": predicted.untried,
        "cells": [
            {"implementation": candidate.implementation, "test_type": kind, "loads": [load.label for load in loads]}
            for candidate in plan.candidates
            for kind, loads in candidate.test_types.items()
        ],
    }
    print(json.dumps(document))
