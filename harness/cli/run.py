"""``./tfb --test …``: list, plan, measure, verify or debug."""

import argparse
import json
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from harness.cli.arguments import resumed, settings
from harness.cli.verbs import VERBS
from harness.errors import Exit
from harness.report import terminal
from harness.request.config import Settings
from harness.request.discovery import beside_core, scan
from harness.request.plan import Plan
from harness.request.testtypes.registry import TEST_TYPES
from harness.results import store
from harness.run import modes, progress, workflow
from harness.run.preparation import choose_work, make_plan
from harness.servers import upstream
from harness.units import format_seconds


def run(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Carry out one parsed command line; returns the exit code."""
    if options.new:
        return VERBS["new"].load()([])
    chosen = settings(options, argv)
    if chosen.resume:
        info = store.read_whole(store.find(chosen.results, chosen.resume)).info
        chosen = resumed(chosen, info)
    _say_what_else(chosen)
    if chosen.dry_run:
        return _dry_run(chosen)
    match chosen.mode:
        case "verify":
            return modes.verify(chosen)
        case "debug":
            return modes.debug(chosen)
        case "benchmark":
            return _benchmark(chosen)


def _benchmark(chosen: Settings) -> int:
    outcome = workflow.benchmark(chosen, progress.Progress(progress.display(quiet=chosen.quiet or chosen.json)))
    if chosen.json:
        print(outcome.ranking.model_dump_json())
        return outcome.exit_code
    console = terminal.console()
    terminal.show(outcome.records.info, outcome.ranking, console)
    folder = outcome.records.info.run_id
    console.print(
        f"\nFiles: {chosen.results.name}/{folder}/   again: ./tfb report {folder}   in a browser: ./tfb dashboard"
    )
    return outcome.exit_code


def _say_what_else(chosen: Settings) -> None:
    """Name the implementations beside the core, once, where a person reads."""
    others = beside_core(scan(chosen.frameworks).implementations, chosen.selection)
    if chosen.quiet or chosen.json:
        return
    if others:
        print(f"tfb: also here, beside the core: {', '.join(others)} (--test all, or by name)", file=sys.stderr)
    left_out = [name for name in chosen.test_types if TEST_TYPES[name].calls_upstream and not upstream.available()]
    if left_out:
        print(
            f"tfb: left out: {', '.join(left_out)} (cargo builds its upstream: apt-get install cargo)", file=sys.stderr
        )


def _dry_run(chosen: Settings) -> int:
    selected = choose_work(chosen)
    plan = make_plan(selected, chosen)
    if chosen.json:
        print(json.dumps(_plan_document(plan)))
        return Exit.OK
    console = Console()
    console.print(
        f"Profile {chosen.profile.name}: {chosen.profile.description}\n"
        f"{len(selected.candidates)} implementations, {plan.cells} cells, at least {plan.minimum_blocks} and at most "
        f"{len(plan.blocks)} replicates each, seed {plan.seed}\n"
        f"Expected {format_seconds(plan.expected_seconds)}, at most "
        f"{format_seconds(plan.maximum_seconds)}, builds apart"
    )
    cpus = chosen.cpuset_cpus or chosen.profile.server_cpus
    console.print(f"CPUs of the server: {cpus or 'all'}; of database and wrk: {chosen.profile.other_cpus or 'all'}")
    table = Table(box=None, padding=(0, 2))
    for header in ("block", "order"):
        table.add_column(header)
    for number, block in enumerate(plan.blocks, 1):
        table.add_row(str(number), "  ".join(planned.implementation for planned in block))
    console.print(table)
    for name, levels in plan.blocks[0][0].test_types.items():
        console.print(f"  {name:<13}{'  '.join(level.label for level in levels)}")
    for problem in selected.problems:
        console.print(f"! {problem}", style="red")
    return Exit.OK


def _plan_document(plan: Plan) -> dict[str, object]:
    return {
        "seed": plan.seed,
        "cells": plan.cells,
        "expected_seconds": plan.expected_seconds,
        "maximum_seconds": plan.maximum_seconds,
        "minimum_blocks": plan.minimum_blocks,
        "blocks": [[planned.implementation for planned in block] for block in plan.blocks],
        "test_types": {
            planned.implementation: {
                name: [level.model_dump() for level in levels] for name, levels in planned.test_types.items()
            }
            for planned in plan.blocks[0]
        },
    }
