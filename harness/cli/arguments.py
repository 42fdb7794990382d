"""The flags of a run: TechEmpower's own with their meaning, and ours. Loads what they mean only when they are read."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Sequence

from harness.cli.help import DESCRIPTIONS, REPLACED, FullHelp, Lines, Replaced, ShortHelp, Version
from harness.cli.parsing import Parser as Parser  # the verbs take it from here
from harness.cli.parsing import duration, levels, port, replicates, seconds, seed
from harness.paths import PROFILES

# Verbs that are a run, or a part of one, with names instead of --test; what each does is its mode.
MODES = {"run": "benchmark", "verify": "verify", "debug": "debug"}
NEWEST = ""  # of --resume: the newest run that was interrupted


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
        help="what measuring may take: 90s, 10m, 1h (quick, latency)",
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
        "--server-user",
        metavar="NAME",
        help="local runtime, as root: account of builds and servers; default: no one's for servers, root for builds",
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
