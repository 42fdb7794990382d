"""What a run, a verification or a look at one server does, once it is known what was asked for."""

import contextlib
import importlib
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness import extras
from harness.cli.consent import settled
from harness.cli.settings import resumed, settings
from harness.cli.verbs import Asked, is_run
from harness.errors import Exit, UsageError
from harness.host import interruption
from harness.paths import RESULTS
from harness.plain_text import printable
from harness.plan.config import Settings
from harness.plan.discovery import scan, select
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import store
from harness.runtime import upstream

if TYPE_CHECKING:
    from harness.experiment.workflow import RunOutcome


def execute(asked: Asked, arguments: Sequence[str]) -> int:
    """Carry out one parsed command line; returns the exit code."""
    chosen = settings(asked, arguments)
    if chosen.resume is not None:
        folder = store.find(chosen.results, chosen.resume) if chosen.resume else newest_interrupted(chosen.results)
        chosen = resumed(replace(chosen, resume=str(folder)), asked, store.read_whole(folder).info)
    _say_what_else(chosen)
    if not chosen.dry_run:
        chosen = settled(chosen)
    with interruption.held():
        from harness.experiment import modes, workflow
    if chosen.dry_run:
        return workflow.dry_run(chosen)
    if getattr(asked.flags, "profiler", False):
        return _profile(chosen)
    match chosen.mode:
        case "verify":
            return modes.verify(chosen)
        case "debug":
            return modes.debug(chosen)
        case "benchmark":
            return _benchmark(chosen)


def _profile(chosen: Settings) -> int:
    """A flame graph, and what the load measured meanwhile."""
    figures = importlib.import_module(extras.MODES["profile"]).profile(chosen)
    print(json.dumps(figures) if chosen.json else "\n".join(f"{key:<24}{value}" for key, value in figures.items()))
    return Exit.OK


def newest_interrupted(results: Path) -> Path:
    """The newest run that was interrupted or killed, and can go on. Raises UsageError where there is none."""
    for folder in reversed(store.runs(results)):
        info = store.read(folder).info
        ended = info.status == "interrupted" or (info.status == "running" and not store.is_locked(folder))
        if ended and is_run(info.command):
            return folder
    raise UsageError(f"--resume: no run in {results} was interrupted; name one that failed: --resume RUN")


def _benchmark(chosen: Settings) -> int:
    if others := at_work(chosen.results):
        told = "each takes CPU time from the other, and neither's figures count; Ctrl-C here and wait for its end"
        print(f"tfb: warning: still under way: {printable(', '.join(others))}: {told}", file=sys.stderr)
    with resumable(chosen.results, chosen.resume):
        outcome = measured(chosen)
    with contextlib.suppress(BrokenPipeError):  # what is done is done, whether or not its reader stays
        _show(chosen, outcome)
        sys.stdout.flush()
    return outcome.exit_code


def measured(chosen: Settings) -> "RunOutcome":
    """Carry out a run, shown as it goes on; an interruption comes between two of its steps."""
    from harness.experiment import progress, workflow

    with interruption.deferred():
        return workflow.benchmark(chosen, progress.Progress(progress.display(quiet=chosen.quiet or chosen.json)))


def at_work(results: Path) -> tuple[str, ...]:
    """The runs of these results that another process carries out now: they are among the newest."""
    return tuple(folder.name for folder in store.runs(results)[-20:] if store.is_locked(folder))


@contextmanager
def resumable(results: Path, resumed: str | None) -> Iterator[None]:
    """An interruption of the block says how the run that it began, or resumed, is taken up again."""
    before = store.runs(results)
    try:
        yield
    except KeyboardInterrupt:
        begun = [Path(resumed)] if resumed else [folder for folder in store.runs(results) if folder not in before]
        if not begun:
            raise
        named = f"{begun[-1].name}{_elsewhere(results)}"
        raise KeyboardInterrupt(
            "interrupted; everything started is stopped, what was measured is kept\n"
            f"Go on: ./tfb run --resume {named}\nWhat it has so far: ./tfb report {named}"
        ) from None


def _elsewhere(results: Path) -> str:
    """`` --results DIR`` where these are not the project's own."""
    return "" if results.resolve() == RESULTS.resolve() else f" --results {shlex.quote(str(results))}"


def _show(chosen: Settings, outcome: "RunOutcome") -> None:
    """What a run came to."""
    from harness.report import terminal

    if chosen.json:
        print(outcome.ranking.recorded())
        return
    console = terminal.console()
    terminal.show(outcome.records.info, outcome.ranking, console)
    folder = (chosen.results / outcome.records.info.run_id).resolve()
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    elsewhere = _elsewhere(chosen.results)
    console.print(
        f"\nFiles: {shown}/\nAgain: ./tfb report {folder.name}{elsewhere}\nIn a browser: ./tfb dashboard{elsewhere}",
        highlight=False,
        soft_wrap=True,
    )


def _say_what_else(chosen: Settings) -> None:
    """Name what was set aside, and what is skipped or left out, where a person reads."""
    from harness.experiment.preparation import sees_upstream

    if chosen.quiet or chosen.json:
        return
    found = scan(*chosen.frameworks)
    selected = select(found.implementations, chosen.selection)
    folders = tuple(f"{i.folder}/" for i in selected)
    notes = [f"warning: {warning}" for warning in found.warnings if warning.startswith(folders)]
    containers = ", ".join(i.name for i in selected if not i.local)
    if containers and chosen.runtime != "docker":
        notes.append(f'need Docker, having no "local" block, and are skipped where no engine answers: {containers}')
    left_out = [name for name in chosen.test_types if TEST_TYPES[name].calls_upstream]
    if left_out and not sees_upstream(selected, chosen):
        cargo = "cargo builds its upstream: apt-get install cargo"
        why = "a bridge hides its upstream" if upstream.available() else cargo
        notes.append(f"left out: {', '.join(left_out)} ({why})")
    for note in notes:
        print(f"tfb: {printable(note)}", file=sys.stderr)
