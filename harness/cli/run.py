"""``./tfb --test …``: list, plan, measure, verify or debug."""

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.table import Table
from rich.text import Text

from harness.cli import other_runs, told
from harness.cli.arguments import NEWEST
from harness.cli.settings import is_run, resumed, settings
from harness.cli.verbs import VERBS
from harness.console import SafeConsole
from harness.errors import Exit, UsageError
from harness.host import machine
from harness.plain_text import printable
from harness.plan import plan as plans
from harness.plan import rounds as planning
from harness.plan.config import Settings
from harness.plan.discovery import beside_core, scan, select
from harness.plan.hosts import Postgres
from harness.plan.plan import Plan
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import store
from harness.report import terminal
from harness.report.wording import counted
from harness.run import modes, progress, rounds, workflow
from harness.run.preparation import Selected, choose_work, make_plan
from harness.run.workflow import RunOutcome
from harness.runtime import upstream
from harness.runtime.techempower import is_upstream
from harness.units import format_seconds


def run(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Carry out one parsed command line; returns the exit code."""
    if options.new:
        return VERBS["new"].load()([])
    chosen = settings(options, argv)
    if chosen.resume is not None:
        folder = (
            newest_interrupted(chosen.results) if chosen.resume == NEWEST else store.find(chosen.results, chosen.resume)
        )
        chosen = resumed(replace(chosen, resume=str(folder)), store.read_whole(folder).info)
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


def newest_interrupted(results: Path) -> Path:
    """The newest run that was interrupted or killed, and can go on. Raises UsageError where there is none."""
    for folder in reversed(store.runs(results)):
        info = store.read(folder).info
        ended = info.status == "interrupted" or (info.status == "running" and not store.is_locked(folder))
        if ended and is_run(info.command):
            return folder
    raise UsageError(f"--resume: no run in {results} was interrupted; name one that failed: --resume RUN")


def _benchmark(chosen: Settings) -> int:
    if company := other_runs.at_work(chosen.results):
        print(f"tfb: {printable(other_runs.warning(company))}", file=sys.stderr)
    with other_runs.resumable(chosen.results, chosen.resume):
        outcome = workflow.benchmark(chosen, progress.Progress(progress.display(quiet=chosen.quiet or chosen.json)))
    return told(outcome.exit_code, lambda: _show(chosen, outcome))


def _show(chosen: Settings, outcome: RunOutcome) -> None:
    """What a run came to."""
    if chosen.json:
        print(outcome.ranking.recorded())
        return
    console = terminal.console()
    terminal.show(outcome.records.info, outcome.ranking, console)
    if outcome.records.info.outlook:
        console.print(f"\nMore time: {outcome.records.info.outlook}", highlight=False)
    folder = chosen.results / outcome.records.info.run_id
    elsewhere = other_runs.where(chosen.results)
    console.print(
        f"\nFiles: {shown(folder)}/\nAgain: ./tfb report {folder.name}{elsewhere}\n"
        f"In a browser: ./tfb dashboard{elsewhere}",
        highlight=False,
        soft_wrap=True,
    )


def shown(folder: Path) -> str:
    """A path as it can be used from here: relative where it lies below this folder."""
    whole = folder.resolve()
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else str(whole)


def _say_what_else(chosen: Settings) -> None:
    """Name the implementations beside the core, once, where a person reads."""
    found = scan(*chosen.frameworks)
    others = beside_core(found.implementations, chosen.selection)
    if chosen.quiet or chosen.json:
        return
    with contextlib.suppress(UsageError):  # of a name that is not known: what selects says it, with more
        folders = tuple(f"{i.folder}/" for i in select(found.implementations, chosen.selection))
        for warning in found.warnings:
            if warning.startswith(folders):
                print(f"tfb: warning: {warning}", file=sys.stderr)
    if others:
        names = printable(", ".join(others))
        print(f"tfb: also here, beside the core: {names} (--test all, or by name)", file=sys.stderr)
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
    console = SafeConsole()
    if chosen.profile.rounds:
        _show_rounds(chosen, selected, plan, console)
        return Exit.OK
    console.print(
        f"Profile {chosen.profile.name}: {chosen.profile.description}\n"
        f"{counted(len(selected.candidates), 'implementation')}, {plan.cells} cells, at least {plan.minimum_blocks} "
        f"and at most {len(plan.blocks)} replicates each, seed {plan.seed}\n"
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


def _show_rounds(chosen: Settings, selected: Selected, plan: Plan, console: SafeConsole) -> None:
    """Who is alive with whom, and what the time is expected to hold."""
    rules = chosen.profile.rounds
    assert rules is not None  # noqa: S101 - the caller looked
    sizes = rounds.known_sizes(chosen.results)
    room = rules.memory_share * machine.free_memory()
    together = (
        chosen.server_port is None
        and not isinstance(chosen.hosts.database, Postgres)
        and chosen.network_mode != "bridge"
    )
    together = together and not any(is_upstream(i) for i in selected.implementations)
    groups = planning.groups(plan.blocks[0], sizes, room, plan.seed, side_by_side=together)
    setup = {p.implementation: plans.setup_seconds(p, chosen.profile) for p in plan.blocks[0]}
    overhead = planning.WINDOW_OVERHEAD_SECONDS
    shape = planning.shape(
        rules,
        total_seconds=rules.time_seconds,
        seconds=rules.time_seconds - sum(setup.values()),
        setup_seconds=setup,
        headline_seconds=sum(len(p.test_types) for p in plan.blocks[0]) * (rules.headline_seconds + overhead),
        other_seconds=sum(len(planning.other_cells(p)) for p in plan.blocks[0]) * (rules.other_seconds + overhead),
        seed=plan.seed,
    )
    replaced = sum(map(len, shape.replaced))
    console.print(
        f"Profile {chosen.profile.name}: {chosen.profile.description}\n"
        f"{counted(len(selected.candidates), 'implementation')}, {plan.cells} cells, seed {plan.seed}\n"
        f"{format_seconds(rules.time_seconds)} in all, builds apart (--time); about {shape.rounds} rounds, in which "
        f"{replaced} processes are replaced; planned again when the first are warm\n"
        f"Memory: {room / 2**20:,.0f} MiB for servers ({rules.memory_share:.0%} of what is free); servers not measured "
        f"before are taken for {planning.UNKNOWN_BYTES[True] / 2**20:,.0f} (JIT) or "
        f"{planning.UNKNOWN_BYTES[False] / 2**20:,.0f} MiB\n"
        f"Ports: {'free ones' if chosen.server_port is None else chosen.server_port}; PostgreSQL: "
        + ("a database for each server, as many as its connections allow" if together else "one server at a time"),
        highlight=False,
    )
    for number, group in enumerate(groups, 1):
        names = "  ".join(
            f"{p.implementation} ({sizes[p.implementation] / 2**20:,.0f} MiB)"
            if p.implementation in sizes
            else p.implementation
            for p in group
        )
        console.print(f"  together {number}: {names}", highlight=False)
    for name, levels in plan.blocks[0][0].test_types.items():
        first = planning.headline(levels)
        words = Text("  ").join(Text(level.label, "bold" if level == first else "") for level in levels)
        console.print(Text.assemble(f"  {name:<13}", words))
    for problem in selected.problems:
        console.print(f"! {problem}", style="red")


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
