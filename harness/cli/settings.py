"""What was asked for: flags over the profile over defaults, as a run's settings; and those of a run that is resumed."""

import random
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from harness.cli.flags import Machines, RunFlags, VerifyFlags, levels
from harness.cli.verbs import Asked
from harness.cli.verbs import asked as asked_by
from harness.errors import UsageError
from harness.host import machine
from harness.paths import FRAMEWORKS, INSTALLED, RESULTS
from harness.plan import hosts
from harness.plan import profile as profiles
from harness.plan.config import DEFAULT_PROFILE, Settings, parse_cpus, parse_goal
from harness.plan.discovery import CONFIG_FILE, Selection
from harness.plan.hosts import Hosts
from harness.plan.profile import Profile
from harness.plan.testtypes.registry import TEST_TYPES
from harness.plan.words import suggest
from harness.records.models import RunInfo
from harness.runtime.techempower import parse_allow

# Flags that --resume goes together with.
WITH_RESUME = frozenset({"resume", "results", "quiet", "json", "yes", "no_install", "dry_run", "mode", "test"})


def settings(asked: Asked, command: Sequence[str]) -> Settings:
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
        hosts=hosts_of(flags),
        network_mode=flags.network_mode,
        cpuset_cpus=flags.cpuset_cpus,
        container_memory=flags.test_container_memory,
        server_port=flags.server_port,
        allow=parse_allow(flags.allow),
        force_rm=flags.force_rm,
        reverse_order=run.reverse_order,
        quiet=flags.quiet,
        json=flags.json,
        verdict_format="json" if flags.json else verify.format,
        watch=verify.watch,
        dry_run=run.dry_run,
        resume=None if not run.resume else "" if run.resume is True else run.resume,
        consent="no" if flags.no_install else "yes" if flags.yes else "ask",
    )


def hosts_of(flags: Machines) -> Hosts:
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
        name: levels(f"--{name.replace('_', '-')}-levels", texts)
        for name in ("concurrency", "pipeline_concurrency", "query", "cached_query")
        if (texts := getattr(flags, f"{name}_levels"))
    }
    orders: dict[str, object] = {}
    values: dict[str, object] = {"levels": profile.levels.model_copy(update=sweeps)}
    if flags.generator:
        values["generator"] = flags.generator
    if flags.order_factors:
        orders["factors"] = tuple(map(float, levels("--order-factors", flags.order_factors)))
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


def resumed(current: Settings, now: Asked, info: RunInfo) -> Settings:
    """The settings of the run to resume: its recorded command, seed and name, and today's display flags."""
    try:
        then = asked_by(info.command)
    except UsageError as error:
        raise UsageError(f"run {info.run_id} {error}") from error
    _require_no_other_flag(now, then)
    return replace(
        settings(then, info.command),
        seed=info.seed,
        results_name=info.name,
        resume=current.resume,
        results=current.results,
        quiet=current.quiet,
        json=current.json,
        consent=current.consent,
    )


def _require_no_other_flag(now: Asked, then: Asked) -> None:
    """Raise UsageError for a flag beside --resume that the run was not begun with: it would be ignored, or mixed in."""
    usual = type(now.flags)()
    other = set()
    for name in {field.name for field in fields(usual)} - WITH_RESUME:
        if getattr(now.flags, name) not in (getattr(usual, name), getattr(then.flags, name, None)):
            other.add(name)
    if now.test not in ((), ("run",), then.test):
        other.add("test")
    if other:
        raise UsageError(
            f"--{min(other).replace('_', '-')} does not go with --resume: the run goes on as it was asked for; start a "
            "new run for something else"
        )


def frameworks_folders(names: Sequence[str]) -> tuple[Path, ...]:
    """Other folders of implementations, of a checkout its ``frameworks/``; raises UsageError for one that is none."""
    if not names and INSTALLED:  # a wheel brings none
        return ()
    folders = []
    for folder in (Path(name).resolve() for name in names):
        if not folder.is_dir():
            raise UsageError(f"--frameworks: {folder} is not a folder")
        whole = (folder / "frameworks").is_dir() and not any(folder.glob(f"*/*/{CONFIG_FILE}"))
        folders.append(folder / "frameworks" if whole else folder)
    return tuple(dict.fromkeys(folders)) or (FRAMEWORKS,)


def results_folder(text: str | None) -> Path:
    """Another results folder, for the verbs."""
    return Path(text) if text else RESULTS
