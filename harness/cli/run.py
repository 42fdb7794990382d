"""Executes an ``Invocation`` of ``run``, ``verify`` or ``debug``, and returns the exit code."""

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.consent import resolve_consent
from harness.cli.resume import resume_settings
from harness.cli.settings import resolve_settings
from harness.cli.verbs import Invocation, is_run
from harness.errors import Exit
from harness.host import interruption
from harness.paths import PROGRAM, RESULTS
from harness.plain_text import json_text, printable
from harness.plan.discovery import scan_folders, select_implementations
from harness.plan.run_settings import Settings
from harness.plan.testtypes.registry import TEST_TYPES
from harness.plugins import Hook
from harness.provisioning import advice
from harness.records import store
from harness.records.run_folders import list_runs
from harness.runtime import upstream

if TYPE_CHECKING:
    from harness.experiment.run_context import Dependencies
    from harness.experiment.stage_conclude import RunOutcome

PROFILE: Hook[Callable[[Settings], Mapping[str, object]]] = Hook(name="profile", purpose="--profiler")


def execute(invocation: Invocation) -> int:
    """Execute an invocation and return the exit code."""
    settings = resolve_settings(invocation)
    if settings.resume is not None:
        settings = resume_settings(settings, invocation)
    if not (settings.quiet or settings.json):
        for note in _notes(settings):
            print(f"tfb: {printable(note)}", file=sys.stderr)
    if not settings.dry_run:
        settings = replace(settings, consent=resolve_consent(settings))
    with interruption.held_while_loading():
        from harness.experiment import modes
    if settings.dry_run:
        return print_prediction(settings)
    if getattr(invocation.flags, "profiler", False):
        return _profile(settings)
    match settings.mode:
        case "verify":
            return modes.verify(settings)
        case "debug":
            return modes.debug(settings)
        case "benchmark":
            return _benchmark(settings)


def _profile(settings: Settings) -> int:
    figures = PROFILE.load()(settings)
    print(json.dumps(figures) if settings.json else "\n".join(f"{key:<24}{value}" for key, value in figures.items()))
    return Exit.OK


def _benchmark(settings: Settings) -> int:
    outcome = run_benchmark(settings)
    _print_outcome(settings, outcome)
    return outcome.exit_code


def run_benchmark(settings: Settings, dependencies: "Dependencies | None" = None) -> "RunOutcome":
    """Execute a run and show its progress. Tests pass ``dependencies`` that need no real servers."""
    from harness.experiment import progress, workflow

    if others := active_runs(settings.results):
        print(
            f"tfb: warning: other runs are in progress: {printable(', '.join(others))}. Concurrent runs compete for "
            "CPU time, which makes their results invalid. Press Ctrl-C, and wait until the other runs end",
            file=sys.stderr,
        )
    tracker = progress.ProgressTracker(progress.make_display(quiet=settings.quiet or settings.json))
    try:
        with interruption.deferred():
            return workflow.benchmark(settings, tracker, dependencies)
    except KeyboardInterrupt:
        if not (is_run(settings.command) and tracker.store and tracker.store.has_run_info):
            raise
        arguments = f"{tracker.store.run_id}{_results_flag(settings.results)}"
        raise KeyboardInterrupt(
            "interrupted; all started processes have been stopped, and the measurements are kept\n"
            f"Continue: ./tfb run --resume {arguments}\nShow the results so far: ./tfb report {arguments}"
        ) from None


def active_runs(results: Path) -> tuple[str, ...]:
    """Return the ids of recent runs that other tfb processes are still measuring."""
    return tuple(folder.name for folder in list_runs(results)[-20:] if store.is_locked(folder))


def _results_flag(results: Path) -> str:
    """Return the flag ``--results DIR`` with a leading space, or "" for the default folder."""
    return "" if results.resolve() == RESULTS.resolve() else f" --results {shlex.quote(str(results))}"


def _print_outcome(settings: Settings, outcome: "RunOutcome") -> None:
    """Print the ranking, the verdict on each implementation, the summary, and the run's folder."""
    from harness.dashboard.build import is_built
    from harness.report import summary, terminal

    if settings.json:
        print(json_text(outcome.ranking.to_json()))
        return
    console = terminal.make_console()
    terminal.print_ranking(outcome.records.info, outcome.ranking, console)
    terminal.print_verdicts(outcome.verdicts, console)
    texts = summary.summarize_run(outcome.records.info, outcome.ranking)
    terminal.print_summary(texts._replace(improvements=""), console)
    run_id, results_flag = outcome.records.info.run_id, _results_flag(settings.results)
    console.print(
        f"\nFiles: {settings.results / run_id}/ (print again: {PROGRAM} report {run_id}{results_flag})\n"
        f"In a browser: {PROGRAM} dashboard{results_flag}"
        + ("" if is_built() else " (the first start takes one to two minutes to build the page)")
        + (f"\n{texts.improvements}" if texts.improvements else "")
    )


def print_prediction(settings: Settings) -> int:
    """Print the plan and the expected duration without measuring. Return the exit code."""
    with interruption.held_while_loading():
        from harness.experiment.predicted import dry_run
    return dry_run(settings)


def _notes(settings: Settings) -> Iterator[str]:
    """Yield warnings about selected folders, and notes about omitted implementations and test types."""
    from harness.experiment.selection import can_reach_upstream

    scan = scan_folders(*settings.frameworks)
    selected = select_implementations(scan, settings.selection)
    folders = tuple(f"{i.folder}/" for i in selected)
    yield from (f"warning: {warning}" for warning in scan.warnings if warning.startswith(folders))
    containers = ", ".join(i.name for i in selected if not i.local)
    if containers and settings.runtime != "docker":
        yield f'these implementations have no "local" block and run only if a Docker engine responds: {containers}'
    declared = {name for i in selected for name in i.urls}
    omitted = [name for name in settings.test_types if name in declared and TEST_TYPES[name].calls_upstream]
    if omitted and not can_reach_upstream(selected, settings):
        cargo = f"building the upstream service needs cargo: {advice.describe_missing('cargo', '>=1.85')}"
        reason = "a bridge network or remote machine cannot reach the upstream service"
        yield f"test types left out: {', '.join(omitted)} ({reason if upstream.available() else cargo})"
