"""What was asked for: flags over the profile over defaults, as a run's settings; and those of a run that is resumed."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.arguments import MODES, parse
from harness.errors import UsageError
from harness.paths import FRAMEWORKS, RESULTS

if TYPE_CHECKING:  # what a quick start does without
    from harness.plan.config import Settings
    from harness.plan.hosts import Hosts
    from harness.plan.profile import Profile
    from harness.records.models import RunInfo

# Flags that --resume goes together with.
WITH_RESUME = frozenset({"resume", "results", "quiet", "json", "yes", "no_install", "dry_run", "test", "names", "mode"})


def settings(options: argparse.Namespace, command: Sequence[str]) -> Settings:
    """Flags over profile over defaults; raises UsageError."""
    from harness.host import machine
    from harness.plan.config import Settings, parse_cpus
    from harness.plan.discovery import Selection
    from harness.plan.profile import by_arrivals
    from harness.plan.testtypes.registry import TEST_TYPES
    from harness.runtime.techempower import parse_allow

    moment = time.localtime()
    profile = _profile(options)
    parse_cpus(options.cpuset_cpus, machine.usable_cpus(), "--cpuset-cpus")
    types = _types(options.type or _verified(options.mode), profile)
    if options.mode == "benchmark" and any(TEST_TYPES[name].open_loop for name in types):
        profile = by_arrivals(profile)
    return Settings(
        command=tuple(command),
        mode=options.mode,
        selection=Selection(
            test=tuple(options.test),
            test_dir=tuple(options.test_dir),
            test_lang=tuple(options.test_lang),
            tag=tuple(options.tag),
            exclude=tuple(options.exclude),
        ),
        test_types=types,
        profile=profile,
        runtime=options.runtime,
        order=options.order,
        generator=options.generator,
        seed=options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31),
        reference=options.reference,
        results_name=time.strftime(options.results_name, moment),
        results_environment=options.results_environment,
        results=results_folder(options.results),
        frameworks=frameworks_folders(options.frameworks),
        rules=options.rules,
        hosts=hosts_of(options),
        network_mode=options.network_mode,
        cpuset_cpus=options.cpuset_cpus,
        container_memory=options.test_container_memory,
        server_port=options.server_port,
        server_user=options.server_user,
        allow=parse_allow(options.allow),
        force_rm=options.force_rm,
        reverse_order=options.reverse_order,
        quiet=options.quiet,
        json=options.json,
        verdict_format="json" if options.json else options.format,
        watch=options.watch,
        dry_run=options.dry_run,
        resume=options.resume,
        set_name=options.machine_set,
        consent="no" if options.no_install else "yes" if options.yes else "ask",
    )


def hosts_of(options: argparse.Namespace) -> Hosts:
    """The machines, by the flags or by a layout file."""
    from harness.plan import hosts

    flags = (options.server_host, options.database_host, tuple(options.client_host))
    if options.hosts and any(flags):
        raise UsageError("--hosts names all machines: leave out --server-host, --database-host and --client-host")
    return hosts.layout(options.hosts) if options.hosts else hosts.of_flags(*flags)


def _verified(mode: str) -> tuple[str, ...]:
    """Verification and debugging look at whatever an implementation declares."""
    from harness.plan.testtypes.registry import TEST_TYPES

    return () if mode == "benchmark" else tuple(TEST_TYPES)


def _types(names: Sequence[str], profile: Profile) -> tuple[str, ...]:
    """Those asked for, in the order of a replicate; without a word the profile's."""
    from harness.plan.testtypes.registry import TEST_TYPES
    from harness.plan.words import suggest

    names = names or profile.test_types
    for name in names:
        if name != "all" and name not in TEST_TYPES:
            raise UsageError(f"--type: unknown test type {name!r}; {suggest(name, [*TEST_TYPES, 'all'])}")
    return tuple(
        name
        for name, known in TEST_TYPES.items()
        if name in names or ("all" in names and known.techempower) or (not names and known.scored)
    )


def _profile(options: argparse.Namespace) -> Profile:
    """The profile with what the flags change."""
    from harness.host import machine
    from harness.plan import profile as profiles
    from harness.plan.config import DEFAULT_PROFILE
    from harness.plan.latency import parse_goal
    from harness.plan.testtypes.registry import TEST_TYPES

    profile = profiles.load(options.profile or DEFAULT_PROFILE)
    flags = {
        "concurrency": options.concurrency_levels,
        "pipeline_concurrency": options.pipeline_concurrency_levels,
        "query": options.query_levels,
        "cached_query": options.cached_query_levels,
    }
    changed = {key: _flat(value) for key, value in flags.items() if value}
    values: dict[str, object] = {"levels": profile.levels.model_copy(update=changed)}
    orders = profile.orders
    if options.order_factors:
        orders = orders.model_copy(update={"factors": tuple(map(float, _flat(options.order_factors)))})
    if options.duration:
        values["duration_seconds"] = options.duration
        orders = orders.model_copy(update={"seconds": options.duration})
        if profile.rounds:
            values["rounds"] = profile.rounds.model_copy(update={"headline_seconds": options.duration})
    if options.time:
        values |= _within(profile, options.time)
    if options.replicates is not None and profile.rounds:
        values["rounds"] = None  # so many fresh processes, one after another, as was asked for
    if options.replicates is not None:
        values["replication"] = profile.replication.model_copy(
            update={"minimum": options.replicates, "maximum": options.replicates, "looks": ()}
        )
    if options.latency_goal is not None:
        goal = {"goal": parse_goal(options.latency_goal)}
        if any(name in TEST_TYPES and TEST_TYPES[name].open_loop for name in options.type):
            orders = orders.model_copy(update=goal)
        elif profile.latency is None:
            raise UsageError(
                f"--latency-goal: profile {profile.name} makes no loads at given rates; "
                "--profile latency and --type order do"
            )
        else:
            latency = profile.latency.model_copy(update={"time_seconds": options.time or profile.latency.time_seconds})
            values["latency"] = latency.model_copy(update=goal)
    values["orders"] = orders
    if options.order == "duet" and not options.cpuset_cpus and not profile.server_cpus:
        values |= _halves(machine.usable_cpus())
    return profile.model_copy(update=values)


def _within(profile: Profile, seconds: float) -> dict[str, object]:
    """The section of a profile that has a time, with this one."""
    if profile.rounds is not None:
        return {"rounds": profile.rounds.model_copy(update={"time_seconds": seconds})}
    if profile.latency is not None:
        return {"latency": profile.latency.model_copy(update={"time_seconds": seconds})}
    raise UsageError(
        f"--time: profile {profile.name} takes its replicates, however long they take; use quick or latency"
    )


def _halves(cpus: Sequence[int]) -> dict[str, object]:
    """One half of the CPUs for the servers of duets, the other for database and generators.

    Two servers and two generators on the same CPUs are in each other's way by chance, and duets would decide nothing.
    """
    if len(cpus) < 2:
        return {}
    middle = len(cpus) // 2
    return {
        "server_cpus": ",".join(map(str, cpus[:middle])),
        "other_cpus": ",".join(map(str, cpus[middle:])),
    }


def _flat(parts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(level for part in parts for level in part))


def resumed(current: Settings, info: RunInfo) -> Settings:
    """The settings of the run to resume: its recorded command, seed and name, and today's display flags."""
    if info.command and not is_run(info.command):
        raise UsageError(f"run {info.run_id} was made by {info.command[0]} and cannot be resumed: start it again")
    _require_no_other_flag(current, info)
    original = settings(parse(info.command), info.command)
    return replace(
        original,
        seed=info.seed,
        results_name=info.name,
        resume=current.resume,
        results=current.results,
        quiet=current.quiet,
        json=current.json,
        consent=current.consent,
    )


def _require_no_other_flag(current: Settings, info: RunInfo) -> None:
    """Raise UsageError for a flag beside --resume that the run was not begun with: it would be ignored, or mixed in."""
    now, usual, then = vars(parse(current.command)), vars(parse(())), vars(parse(info.command))
    asked = {key for key in now if key not in WITH_RESUME and now[key] not in (usual.get(key), then.get(key))}
    if now["test"] not in ([], ["run"], then["test"]):
        asked.add("test")
    if asked:
        raise UsageError(
            f"--{min(asked).replace('_', '-')} does not go with --resume: the run goes on as it was asked for; start a "
            "new run for something else"
        )


def is_run(command: Sequence[str]) -> bool:
    """Whether a recorded command is a run, which can be resumed: not a calibration or a comparison."""
    return not command or command[0].startswith("-") or command[0] in MODES


def frameworks_folders(names: Sequence[str]) -> tuple[Path, ...]:
    """Other folders of implementations; raises UsageError for one that is none, or is a level too high."""
    from harness.plan.discovery import CONFIG_FILE

    folders = tuple(dict.fromkeys(Path(name).resolve() for name in names)) or (FRAMEWORKS,)
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"--frameworks: {folder} is not a folder")
        if (folder / "frameworks").is_dir() and not any(folder.glob(f"*/*/{CONFIG_FILE}")):
            raise UsageError(f"--frameworks: {folder} holds a folder frameworks/: give {folder / 'frameworks'}")
    return folders


def results_folder(text: str | None) -> Path:
    """Another results folder, for the verbs."""
    return Path(text) if text else RESULTS
