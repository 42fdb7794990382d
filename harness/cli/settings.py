"""Resolves a run's settings. Flags override the profile, which overrides the defaults."""

import random
import time
from collections.abc import Sequence

from harness.cli.flags import MachineFlags, RunFlags, VerifyFlags, frameworks_folders, parse_levels, results_folder
from harness.cli.verbs import Invocation
from harness.errors import UsageError
from harness.host import machine
from harness.plan import hosts
from harness.plan import profile as profiles
from harness.plan.discovery import Selection
from harness.plan.hosts import Hosts
from harness.plan.parts import parse_part
from harness.plan.profile import Profile
from harness.plan.run_settings import DEFAULT_PROFILE, Settings, parse_cpus, parse_latency_goal
from harness.plan.suggestions import suggest
from harness.plan.testtypes.registry import TEST_TYPES
from harness.runtime.privileges import parse_allow

# Fields of a profile's ``levels``; each has a flag --NAME-levels.
LEVEL_FLAGS = ("concurrency", "pipeline_concurrency", "query", "cached_query")


def resolve_settings(invocation: Invocation) -> Settings:
    """Return the settings of an invocation. Raises UsageError for unknown or contradictory values."""
    flags = invocation.flags
    run = flags if isinstance(flags, RunFlags) else RunFlags()
    verify = flags if isinstance(flags, VerifyFlags) else VerifyFlags()
    profile = _resolve_profile(run)
    parse_cpus(flags.cpuset_cpus, machine.usable_cpus())
    return Settings(
        command=invocation.command,
        mode=invocation.mode,
        selection=Selection(
            test=invocation.test,
            test_dir=flags.test_dir,
            test_lang=flags.test_lang,
            tag=flags.tag,
            exclude=flags.exclude,
        ),
        test_types=resolve_test_types(
            flags.type or (profile.test_types if invocation.mode == "benchmark" else tuple(TEST_TYPES))
        ),
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
        part=parse_part(run.part),
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
    """Return the machines that the flags or a file in config/hosts define."""
    names = (flags.server_host, flags.database_host, flags.client_host)
    if flags.hosts and any(names):
        raise UsageError(
            "--hosts already defines all machines: remove --server-host, --database-host and --client-host"
        )
    return hosts.read_layout(flags.hosts) if flags.hosts else hosts.hosts_from_flags(*names)


def resolve_test_types(names: Sequence[str]) -> tuple[str, ...]:
    """Return the selected test types in the order of measurement.

    A name is a test type, a group, or ``all`` for TechEmpower's test types. Without names, select all scored test
    types. Raises UsageError if a name is unknown.
    """
    known = [*TEST_TYPES, "all", *{each.group: None for each in TEST_TYPES.values() if each.group}]
    for name in names:
        if name not in known:
            raise UsageError(f"--type: unknown test type {name!r}; {suggest(name, known)}")
    return tuple(
        name
        for name, test_type in TEST_TYPES.items()
        if {name, test_type.group} & {*names}
        or ("all" in names and test_type.techempower)
        or (not names and test_type.scored)
    )


def _resolve_profile(flags: RunFlags) -> Profile:
    """Return the selected profile, with the flags applied."""
    profile = profiles.load_profile(flags.profile or DEFAULT_PROFILE)
    sweeps = {
        name: parse_levels(f"--{name.replace('_', '-')}-levels", texts)
        for name in LEVEL_FLAGS
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
        count = {"minimum": flags.processes, "maximum": flags.processes, "looks": ()}
        values["processes"] = profile.processes.model_copy(update=count)
    if flags.latency_goal:
        goal = parse_latency_goal(flags.latency_goal)
        if any(name in TEST_TYPES and TEST_TYPES[name].open_loop for name in flags.type):
            orders["goal"] = goal
        elif profile.design == "search":
            values["open_loop"] = profile.open_loop.model_copy(update={"goal": goal})
        else:
            raise UsageError(
                f"--latency-goal: profile {profile.name} does not search for the server's capacity; add --profile "
                "latency or --type order"
            )
    return profile.model_copy(update={**values, "orders": profile.orders.model_copy(update=orders)})
