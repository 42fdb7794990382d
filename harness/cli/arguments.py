"""The flags of a run: TechEmpower's own with their meaning, and ours. Loads what they mean only when they are read."""

from __future__ import annotations

import argparse
import random
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import DESCRIPTIONS, REPLACED, FullHelp, Lines, Replaced, ShortHelp, Version
from harness.cli.parsing import Parser as Parser  # the verbs take it from here
from harness.cli.parsing import duration, levels, port, replicates, seconds, seed
from harness.errors import UsageError
from harness.paths import FRAMEWORKS, PROFILES, RESULTS

if TYPE_CHECKING:  # what a quick start does without
    from harness.request.config import Settings
    from harness.request.hosts import Hosts
    from harness.request.profile import Profile
    from harness.results.records import RunInfo

# Verbs that are a run, or a part of one, with names instead of --test; what each does is its mode.
MODES = {"run": "benchmark", "verify": "verify", "debug": "debug"}
NEWEST = ""  # of --resume: the newest run that was interrupted
WITH_RESUME = frozenset({"resume", "results", "quiet", "json", "yes", "no_install", "dry_run", "test", "names", "mode"})


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The options of one command line: TechEmpower's flags, or a verb of MODES with names."""
    options: argparse.Namespace
    if words and words[0] in MODES:
        options = parser(words[0]).parse_intermixed_args(list(words[1:]))
        options.test = options.names or ["run"]
    else:
        options = parser().parse_args(list(words))
    return options


def parser(verb: str = "") -> Parser:
    """The parser of ``./tfb --test …``, or of a verb of MODES, whose other flags have their defaults."""
    p = Parser(
        prog=f"./tfb {verb}".strip(),
        usage=f"./tfb {verb} {'NAME' if verb == 'debug' else '[NAME …]'} [flags]"
        if verb
        else "./tfb [--test NAME …] [flags]",
        description=DESCRIPTIONS[verb],
        formatter_class=Lines,
        allow_abbrev=False,
        add_help=False,
    )
    _what(p, verb)
    if verb in ("", "run"):
        _how(p)
    _where(p)
    _out(p, verb)
    if verb:
        p.set_defaults(**{a.dest: a.default for a in parser()._actions if a.dest not in {b.dest for b in p._actions}})
        p.set_defaults(mode=MODES[verb])
    return p


def _what(p: Parser, verb: str) -> None:
    what = p.add_argument_group("what")
    if verb:
        what.add_argument(
            "names", nargs="*", default=[], metavar="NAME", help="implementations; default: core ones; all"
        )
    else:
        _techempower(what)
    what.add_argument("--test-dir", nargs="+", default=[], metavar="DIR", help="folders: Java, Java/vertx-web")
    what.add_argument("--test-lang", nargs="+", default=[], metavar="LANG", help="languages: folders of frameworks/")
    what.add_argument("--tag", nargs="+", default=[], help="with one of these tags")
    what.add_argument("--exclude", nargs="+", default=[], metavar="NAME", help="exclude these")
    what.add_argument(
        "--type",
        nargs="+",
        default=[],
        metavar="TYPE",
        help="json db fortune …, or all; default: the profile's",
    )
    what.add_argument(
        "--frameworks", nargs="+", default=[], metavar="DIR", help="other folders of implementations, TechEmpower's too"
    )
    what.add_argument(
        "--rules",
        choices=("techempower", "tfb"),
        metavar="RULES",
        help="of verification: techempower tfb; by the folder",
    )


def _techempower(what: argparse._ArgumentGroup) -> None:
    """The flags that verbs stand for."""
    what.add_argument(
        "-m", "--mode", choices=("benchmark", "verify", "debug"), default="benchmark", help="default benchmark"
    )
    what.add_argument(
        "--test", nargs="+", default=[], metavar="NAME", help="implementations; run: the core ones, all: all"
    )
    what.add_argument("--list-tests", action="store_true", help="list the implementations and exit")
    what.add_argument("--list-tag", metavar="TAG", help="list the implementations with this tag and exit")
    what.add_argument("--new", action="store_true", help="the same as ./tfb new")
    for flag in REPLACED:
        what.add_argument(flag, action=Replaced, nargs="*", help=argparse.SUPPRESS)


def _how(p: Parser) -> None:
    how = p.add_argument_group("how")
    how.add_argument(
        "--profile",
        metavar="PROFILE",
        help=f"{' '.join(sorted(p.stem for p in PROFILES.glob('*.toml')))}; or a file",
    )
    how.add_argument("--duration", type=seconds, metavar="S", help="seconds a level")
    how.add_argument(
        "--time",
        type=duration,
        metavar="TIME",
        help="what measuring may take: 90s, 10m, 1h (quick)",
    )
    for flag, of in (
        ("--concurrency-levels", "connections of json, db and fortune"),
        ("--pipeline-concurrency-levels", "connections of plaintext"),
        ("--query-levels", "queries a request of query and update"),
        ("--cached-query-levels", "queries a request of cached-query"),
        ("--order-factors", "factors of the order service's arrivals"),
    ):
        how.add_argument(flag, nargs="+", type=levels, metavar="N", help=f"{of}; also start:step:end")
    how.add_argument(
        "--generator",
        choices=("wrk", "loadgen"),
        default="wrk",
        help="of closed loops; loadgen, the project's own, tells unaltered service times",
    )
    how.add_argument(
        "--latency-goal", metavar="GOAL", help="of --profile latency: what its capacity must hold; default p99=10ms"
    )
    how.add_argument("--replicates", type=replicates, metavar="N", help="exactly N, without early stopping")
    how.add_argument(
        "--order", choices=("blocks", "duet"), default="blocks", help="duet: pairs at the same time, for order"
    )
    how.add_argument("--seed", type=seed, help="of the random order; default: a new one, recorded")
    how.add_argument("--reverse-order", action="store_true", help="by name from the end instead of random order")
    how.add_argument("--reference", metavar="NAME", help="implementation that scores are relative to")
    how.add_argument(
        "--resume",
        nargs="?",
        const=NEWEST,
        metavar="RUN",
        help="go on with a run (the newest interrupted)",
    )
    how.add_argument("--dry-run", action="store_true", help="print the plan and how long it takes")


def _where(p: Parser) -> None:
    where = p.add_argument_group("where")
    where.add_argument(
        "--runtime",
        choices=("auto", "docker", "local"),
        metavar="WHERE",
        default="auto",
        help="auto docker local; auto: Docker where it answers",
    )
    hosts_of_run(where)
    where.add_argument("--network-mode", choices=("host", "bridge"), help="of the containers; default host on Linux")
    where.add_argument("--cpuset-cpus", metavar="CPUS", help="CPUs of the server, such as 0-3")
    where.add_argument(
        "--test-container-memory", metavar="SIZE", help="memory limit of the server's container: 2g, 512m"
    )
    where.add_argument("--server-port", type=port, metavar="PORT", help="fixed port; default: a free one")
    where.add_argument(
        "--server-user", metavar="NAME", help="local runtime, as root: the account of builds and servers; default: root"
    )
    p.add_argument(
        "--allow",
        nargs="+",
        default=[],
        metavar="NAME=WHAT",
        help="of its container: io_uring, sysctl, rtprio, privileged",
    )
    where.add_argument("--force-rm", action="store_true", help="remove the images that this run built")
    where.add_argument("--yes", action="store_true", help="install missing packages without asking")
    where.add_argument("--no-install", action="store_true", help="never install packages")


def _out(p: Parser, verb: str) -> None:
    out = p.add_argument_group("output")
    out.add_argument("--results-name", default="%Y-%m-%d %H:%M:%S", metavar="NAME", help="may hold strftime fields")
    out.add_argument(
        "--results-environment", default=socket.gethostname(), metavar="TEXT", help="default: the host's name"
    )
    out.add_argument(
        "--machine-set", default="", metavar="NAME", help="name of these machines, for ./tfb merge; default: the host's"
    )
    out.add_argument("--results", metavar="DIR", help="another results folder; default: results/")
    out.add_argument("--quiet", action="store_true", help="no progress, problems only")
    out.add_argument("--json", action="store_true", help="machine-readable output on stdout")
    if verb in ("", "verify"):
        formats = ("text", "github", "junit", "json")
        out.add_argument(
            "--format", choices=formats, metavar="FORMAT", default="text", help="of verdicts: text github junit json"
        )
        out.add_argument("--watch", action="store_true", help="verify again whenever a file changes")
    out.add_argument("-h", "--help", action=ShortHelp, help="this help")
    out.add_argument("--help-all", action=FullHelp, help="every flag with its meaning")
    out.add_argument("--version", action=Version, help="version and commit")


def hosts_of_run(where: argparse._ArgumentGroup | Parser) -> None:
    """Add the flags that name the machines of a run."""
    where.add_argument(
        "--server-host",
        metavar="HOST",
        help="machine of the implementations: [user@]name[:port][=address], context:NAME",
    )
    where.add_argument(
        "--database-host", metavar="HOST", help="machine of PostgreSQL, or postgresql://host:port: one that exists"
    )
    where.add_argument(
        "--client-host", metavar="HOST", action="append", default=[], help="machine of wrk; several share each level"
    )
    where.add_argument("--hosts", metavar="NAME", help="these machines from config/hosts/NAME.toml, or a .toml file")


def settings(options: argparse.Namespace, command: Sequence[str]) -> Settings:
    """Flags over profile over defaults; raises UsageError."""
    from harness.host import machine
    from harness.request.config import Settings, parse_cpus
    from harness.request.discovery import Selection
    from harness.request.profile import by_arrivals
    from harness.request.testtypes.registry import TEST_TYPES
    from harness.servers.guest import parse_allow

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
    from harness.request import hosts

    flags = (options.server_host, options.database_host, tuple(options.client_host))
    if options.hosts and any(flags):
        raise UsageError("--hosts names all machines: leave out --server-host, --database-host and --client-host")
    return hosts.layout(options.hosts) if options.hosts else hosts.of_flags(*flags)


def _verified(mode: str) -> tuple[str, ...]:
    """Verification and debugging look at whatever an implementation declares."""
    from harness.request.testtypes.registry import TEST_TYPES

    return () if mode == "benchmark" else tuple(TEST_TYPES)


def _types(names: Sequence[str], profile: Profile) -> tuple[str, ...]:
    """Those asked for, in the order of a replicate; without a word the profile's."""
    from harness.request.testtypes.registry import TEST_TYPES
    from harness.request.words import suggest

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
    from harness.request import profile as profiles
    from harness.request.config import DEFAULT_PROFILE
    from harness.request.latency import parse_goal

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
        if profile.rounds is None:
            raise UsageError(f"--time: profile {profile.name} takes its replicates, however long they take; use quick")
        values["rounds"] = profile.rounds.model_copy(update={"time_seconds": options.time})
    if options.replicates is not None and profile.rounds:
        values["rounds"] = None  # so many fresh processes, one after another, as was asked for
    if options.replicates is not None:
        values["replication"] = profile.replication.model_copy(
            update={"minimum": options.replicates, "maximum": options.replicates, "looks": ()}
        )
    if options.latency_goal is not None:
        goal = {"goal": parse_goal(options.latency_goal)}
        if "order" in options.type:
            orders = orders.model_copy(update=goal)
        elif profile.latency is None:
            raise UsageError(
                f"--latency-goal: profile {profile.name} makes no loads at given rates; "
                "--profile latency and --type order do"
            )
        else:
            values["latency"] = profile.latency.model_copy(update=goal)
    values["orders"] = orders
    if options.order == "duet" and not options.cpuset_cpus and not profile.server_cpus:
        values |= _halves(machine.usable_cpus())
    return profile.model_copy(update=values)


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
    from harness.request.discovery import CONFIG_FILE

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
