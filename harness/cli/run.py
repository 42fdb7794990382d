"""What was asked for, as a run's settings: flags over the profile over defaults; and what is done with them."""

import json
import random
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.consent import ask_confirmation, resolve_consent
from harness.cli.flags import MachineFlags, RunFlags, VerifyFlags, frameworks_folders, parse_levels, results_folder
from harness.cli.verbs import Invocation, is_run
from harness.cli.verbs import parse_recorded as asked_by
from harness.errors import Exit, StoreError, UsageError
from harness.experiment import origin
from harness.host import interruption, machine
from harness.paths import PROGRAM, RESULTS
from harness.plain_text import json_text, printable
from harness.plan import hosts
from harness.plan import profile as profiles
from harness.plan.config import DEFAULT_PROFILE, Settings, parse_cpus, parse_goal
from harness.plan.discovery import Selection, scan, select
from harness.plan.hosts import Hosts
from harness.plan.profile import Profile
from harness.plan.suggestions import suggest
from harness.plan.testtypes.registry import TEST_TYPES
from harness.plugins import Hook
from harness.provisioning import advice
from harness.records import store
from harness.records.reader import RunReader
from harness.records.run_info import RunInfo
from harness.runtime import upstream
from harness.runtime.techempower_container import parse_allow

if TYPE_CHECKING:
    from harness.experiment.workflow import Dependencies, RunOutcome

# Flags that --resume goes together with.
WITH_RESUME = frozenset(
    {"resume", "accept_command", "results", "quiet", "json", "yes", "no_install", "dry_run", "mode", "test"}
)
PROFILE: Hook[Callable[[Settings], Mapping[str, object]]] = Hook(name="profile", purpose="--profiler")
MOST_SHOWN = 4000  # characters of a recorded command that somebody is asked to read


def execute(asked: Invocation, arguments: Sequence[str]) -> int:
    """Carry out one parsed command line; returns the exit code."""
    chosen = resolve_settings(asked, arguments)
    if chosen.resume is not None:
        folder = store.find(chosen.results, chosen.resume) if chosen.resume else find_interrupted(chosen.results)
        info = store.info(folder)
        own = origin.is_own(folder, info)
        if not own:
            _require_accepted(info, accepted=getattr(asked.flags, "accept_command", False))
        chosen = resume_settings(replace(chosen, resume=str(folder)), asked, info)
        if own:
            origin.require_same_places(folder, info, chosen)
    _say_what_else(chosen)
    if not chosen.dry_run:
        chosen = replace(chosen, consent=resolve_consent(chosen))
    with interruption.held_while_loading():
        from harness.experiment import modes, workflow
    if chosen.dry_run:
        return workflow.dry_run(chosen)
    if getattr(asked.flags, "profiler", False):
        figures = PROFILE.load()(chosen)
        print(json.dumps(figures) if chosen.json else "\n".join(f"{key:<24}{value}" for key, value in figures.items()))
        return Exit.OK
    match chosen.mode:
        case "verify":
            return modes.verify(chosen)
        case "debug":
            return modes.debug(chosen)
        case "benchmark":
            return _benchmark(chosen)


def _require_accepted(info: RunInfo, *, accepted: bool) -> None:
    """Raise UsageError unless somebody has read and accepted the command that another machine or user recorded."""
    if accepted:
        return
    command = shlex.join((PROGRAM, *info.command)).encode("ascii", "backslashreplace").decode("ascii")
    shown = printable(command.replace("\n", "\\n").replace("\t", "\\t"))
    told = (
        f"run {info.run_id} was not started by this user on this machine. To resume it executes its recorded command:"
    )
    if len(shown) > MOST_SHOWN:
        raise UsageError(f"{told}\n  {shown[:MOST_SHOWN]} ...\nIt is too long to be read here: start a new run")
    answer = ask_confirmation(f"{told}\n  {shown}\nExecute it?")
    if not answer:
        why = "" if answer is None else "; it was not accepted"
        raise UsageError(
            f"{told}\n  {shown}\nNothing was executed{why}. Read the command; to execute it add --accept-command, or "
            "start a new run"
        )


def find_interrupted(results: Path) -> Path:
    """Return the newest run that was interrupted or killed, or lost a machine or its disk. Raises UsageError."""
    for folder in reversed(store.runs(results)):
        try:
            info = RunReader(folder).info
        except StoreError:  # another one may go on
            continue
        ended = info.status == "interrupted" or (info.status == "running" and not store.is_locked(folder))
        if ended and is_run(info.command):
            return folder
    raise UsageError(f"--resume: no run in {results} was interrupted; name one that failed: --resume RUN")


def _benchmark(chosen: Settings) -> int:
    if others := active_runs(chosen.results):
        told = "each takes CPU time from the other, and neither's figures count; Ctrl-C here and wait for its end"
        print(f"tfb: warning: still under way: {printable(', '.join(others))}: {told}", file=sys.stderr)
    outcome = run_benchmark(chosen)
    _show(chosen, outcome)
    return outcome.exit_code


def run_benchmark(chosen: Settings, needs: "Dependencies | None" = None) -> "RunOutcome":
    """Carry out a run, shown as it goes on; an interruption comes between two of its steps, and says how to go on."""
    from harness.experiment import progress, workflow

    shown = progress.ProgressTracker(progress.make_display(quiet=chosen.quiet or chosen.json))
    try:
        with interruption.deferred():
            return workflow.benchmark(chosen, shown, needs)
    except KeyboardInterrupt:
        if not (is_run(chosen.command) and shown.store and shown.store.begun):
            raise
        named = f"{shown.store.run_id}{_elsewhere(chosen.results)}"
        raise KeyboardInterrupt(
            "interrupted; everything started is stopped, what was measured is kept\n"
            f"Go on: ./tfb run --resume {named}\nWhat it has so far: ./tfb report {named}"
        ) from None


def active_runs(results: Path) -> tuple[str, ...]:
    """The runs of these results that another process carries out now: they are among the newest."""
    return tuple(folder.name for folder in store.runs(results)[-20:] if store.is_locked(folder))


def _elsewhere(results: Path) -> str:
    """`` --results DIR`` where these are not the project's own."""
    return "" if results.resolve() == RESULTS.resolve() else f" --results {shlex.quote(str(results))}"


def _show(chosen: Settings, outcome: "RunOutcome") -> None:
    """Print the ranking, a verdict on each implementation, and where the files are."""
    from harness.dashboard.build import is_built
    from harness.report import terminal

    if chosen.json:
        print(json_text(outcome.ranking.recorded()))
        return
    console = terminal.make_console()
    terminal.print_ranking(outcome.records.info, outcome.ranking, console)
    terminal.print_verdicts(outcome.verdicts, console)
    run_id, elsewhere = outcome.records.info.run_id, _elsewhere(chosen.results)
    console.print(
        f"\nFiles: {chosen.results / run_id}/\nAgain: {PROGRAM} report {run_id}{elsewhere}\n"
        f"In a browser: {PROGRAM} dashboard{elsewhere}"
        + ("" if is_built() else " (it builds its page first, once: one to two minutes)"),
        soft_wrap=True,
    )


def _say_what_else(chosen: Settings) -> None:
    """Name what was set aside, and what is skipped or left out, where a person reads."""
    from harness.experiment.preparation import can_reach_upstream

    if chosen.quiet or chosen.json:
        return
    found = scan(*chosen.frameworks)
    selected = select(found, chosen.selection)
    folders = tuple(f"{i.folder}/" for i in selected)
    notes = [f"warning: {warning}" for warning in found.warnings if warning.startswith(folders)]
    containers = ", ".join(i.name for i in selected if not i.local)
    if containers and chosen.runtime != "docker":
        notes.append(f'need Docker, having no "local" block, and are skipped where no engine answers: {containers}')
    offered = {name for i in selected for name in i.urls}
    left_out = [name for name in chosen.test_types if name in offered and TEST_TYPES[name].calls_upstream]
    if left_out and not can_reach_upstream(selected, chosen):
        cargo = f"cargo builds its upstream: {advice.describe_missing('cargo', '>=1.85')}"
        why = "a bridge or another machine hides its upstream" if upstream.available() else cargo
        notes.append(f"left out: {', '.join(left_out)} ({why})")
    for note in notes:
        print(f"tfb: {printable(note)}", file=sys.stderr)


# ---- what was asked for ----------------------------------------------------------------------------------------------


def resolve_settings(asked: Invocation, command: Sequence[str]) -> Settings:
    """Flags over profile over defaults; raises UsageError."""
    flags = asked.flags
    run = flags if isinstance(flags, RunFlags) else RunFlags()
    verify = flags if isinstance(flags, VerifyFlags) else VerifyFlags()
    profile = _profile(run, flags.type)
    parse_cpus(flags.cpuset_cpus, machine.usable_cpus())
    return Settings(
        command=tuple(command),
        mode=asked.mode,
        selection=Selection(
            test=asked.test,
            test_dir=flags.test_dir,
            test_lang=flags.test_lang,
            tag=flags.tag,
            exclude=flags.exclude,
        ),
        test_types=_types(flags.type, profile, every=asked.mode != "benchmark"),
        profile=profile,
        runtime=flags.runtime,
        seed=run.seed if run.seed is not None else random.SystemRandom().randrange(1 << 31),
        results_name=time.strftime(flags.results_name, time.localtime()),
        results_environment=flags.results_environment,
        results=results_folder(flags.results),
        frameworks=frameworks_folders(flags.frameworks),
        rules=flags.rules,
        hosts=resolve_hosts(flags),
        network_mode=flags.network_mode,
        cpuset_cpus=flags.cpuset_cpus,
        container_memory=flags.test_container_memory,
        container_pids=flags.test_container_pids,
        server_port=flags.server_port,
        allow=parse_allow(flags.allow),
        force_rm=flags.force_rm,
        reverse_order=run.reverse_order,
        quiet=flags.quiet,
        json=flags.json,
        verdict_format="json" if flags.json else verify.format,
        watch=verify.watch,
        strict=verify.strict,
        dry_run=run.dry_run,
        resume=None if not run.resume else "" if run.resume is True else run.resume,
        consent="no" if flags.no_install else "yes" if flags.yes else "ask",
    )


def resolve_hosts(flags: MachineFlags) -> Hosts:
    """The machines, by the flags or by a layout file."""
    named = (flags.server_host, flags.database_host, flags.client_host)
    if flags.hosts and any(named):
        raise UsageError("--hosts names all machines: leave out --server-host, --database-host and --client-host")
    return hosts.layout(flags.hosts) if flags.hosts else hosts.of_flags(*named)


def _types(names: Sequence[str], profile: Profile, *, every: bool) -> tuple[str, ...]:
    """Those asked for, in the order of a process; without a word the profile's, or ``every`` one that is declared."""
    names = names or (tuple(TEST_TYPES) if every else profile.test_types)
    for name in names:
        if name != "all" and name not in TEST_TYPES:
            raise UsageError(f"--type: unknown test type {name!r}; {suggest(name, [*TEST_TYPES, 'all'])}")
    return tuple(
        name
        for name, known in TEST_TYPES.items()
        if name in names or ("all" in names and known.techempower) or (not names and known.scored)
    )


def _profile(flags: RunFlags, types: Sequence[str]) -> Profile:
    """The profile with what the flags change."""
    profile = profiles.load(flags.profile or DEFAULT_PROFILE)
    sweeps = {
        name: parse_levels(f"--{name.replace('_', '-')}-levels", texts)
        for name in ("concurrency", "pipeline_concurrency", "query", "cached_query")
        if (texts := getattr(flags, f"{name}_levels"))
    }
    orders: dict[str, object] = {}
    values: dict[str, object] = {"levels": profile.levels.model_copy(update=sweeps)}
    if flags.generator:
        values["generator"] = flags.generator
    if flags.order_factors:
        orders["factors"] = tuple(map(float, parse_levels("--order-factors", flags.order_factors)))
    if flags.duration:
        orders["seconds"] = values["duration_seconds"] = float(flags.duration)
    if flags.time:
        values["interleaved"] = profile.interleaved.model_copy(update={"time_seconds": flags.time})
    if flags.processes:
        number = {"minimum": flags.processes, "maximum": flags.processes, "looks": ()}
        values["processes"] = profile.processes.model_copy(update=number)
    if flags.latency_goal:
        goal = parse_goal(flags.latency_goal)
        if any(name in TEST_TYPES and TEST_TYPES[name].open_loop for name in types):
            orders["goal"] = goal
        elif profile.design == "search":
            values["open_loop"] = profile.open_loop.model_copy(update={"goal": goal})
        else:
            raise UsageError(
                f"--latency-goal: profile {profile.name} makes no loads at given rates; "
                "--profile latency and --type order do"
            )
    return profile.model_copy(update={**values, "orders": profile.orders.model_copy(update=orders)})


def resume_settings(current: Settings, now: Invocation, info: RunInfo) -> Settings:
    """The settings of the run to resume: its recorded command, seed and name, and today's display flags."""
    try:
        then = asked_by(info.command)
    except UsageError as error:
        raise UsageError(f"run {info.run_id} {error}") from error
    _require_no_other_flag(now, then)
    return replace(
        resolve_settings(then, info.command),
        seed=info.seed,
        results_name=info.name,
        resume=current.resume,
        results=current.results,
        quiet=current.quiet,
        json=current.json,
        dry_run=current.dry_run,
        consent=current.consent,
    )


def _require_no_other_flag(now: Invocation, then: Invocation) -> None:
    """Raise UsageError for a flag beside --resume that the run was not begun with: it would be ignored, or mixed in."""
    usual = type(now.flags)()
    other = set()
    for name in {field.name for field in fields(usual)} - WITH_RESUME:
        if getattr(now.flags, name) not in (getattr(usual, name), getattr(then.flags, name, None)):
            other.add(name)
    if now.test not in ((), then.test):
        other.add("test")
    if other:
        raise UsageError(
            f"--{min(other).replace('_', '-')} does not go with --resume: the run goes on as it was asked for; start a "
            "new run for something else"
        )
