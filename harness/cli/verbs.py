"""The command line's verbs and argument parser.

The parameters of a verb's function define its flags (cyclopts). The function returns an exit code. tfb imports a
verb's module only if the verb is called. ``run``, ``verify``, ``debug`` and a command line without a verb return an
``Invocation`` instead of an exit code.
"""

import platform
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Group, Parameter

from harness import plugins
from harness.cli.flags import COMMON, CommonFlags, RunFlags, Strings, VerifyFlags, complete_names
from harness.errors import Exit, UsageError
from harness.host import interruption
from harness.paths import PROGRAM, REPOSITORY
from harness.plan.suggestions import suggest
from harness.plugins import Verb

GROUPS = ("measure", "results", "this machine", "contribute")
RUN_VERBS = ("run", "verify", "debug")
OWN_VERBS: dict[str, Verb] = {
    "run": Verb(target="", help="build, verify, measure and rank implementations", group="measure"),
    "verify": Verb(target="", help="check responses thoroughly, without load", group="measure"),
    "debug": Verb(target="", help="start an implementation and wait for Ctrl-C", group="measure"),
    "list": Verb(target="harness.cli.listing:command", help="list implementations", group="measure"),
    "report": Verb(target="harness.cli.reporting:report", help="print a run's results as text, Markdown, JSON or HTML"),
    "compare": Verb(target="harness.cli.compare:command", help="compare two runs, or two versions of a service"),
    "dashboard": Verb(target="harness.cli.reporting:dashboard", help="show results and live runs in a browser"),
    "doctor": Verb(
        target="harness.cli.doctor:doctor",
        help="show detected tools, machine facts and noise sources",
        group="this machine",
    ),
    "clean": Verb(
        target="harness.cli.doctor:clean",
        help="remove images, cached dependencies, and leftovers from killed runs",
        group="this machine",
    ),
    "new": Verb(target="harness.cli.new:command", help="create an implementation's folder", group="contribute"),
    "check": Verb(target="harness.cli.check:command", help="lint and test this project", group="contribute"),
}
VERBS = {**OWN_VERBS, **plugins.verbs(reserved=OWN_VERBS)}
OVERVIEW = """\
Builds, verifies, measures and ranks implementations of web frameworks.

  ./tfb run                            the core implementations, 12 minutes
  ./tfb run express axum --type db     two implementations, one test type
  ./tfb verify my-framework --watch    check responses again after each change
  ./tfb dashboard                      show the results in a browser

{verbs}

Help for a verb: ./tfb VERB --help; see also docs/cli.md
TechEmpower's flags need no verb: ./tfb --mode verify --test express
Shell completion: ./tfb --completion bash|zsh|fish
Exit codes: 0 everything measured and verified, 1 failure or out of time,
            2 invalid arguments, 3 missing tool or other requirement,
            4 no verdict is possible, 130 interrupted
"""
COMPLETING = "__complete"  # hidden verb that the shell's completion function calls
# TechEmpower's flags that tfb does not support, with advice on alternatives.
REPLACED = {
    "--clean": "use ./tfb clean to remove images, and delete folders in results/ by hand",
    "--audit": "use ./tfb list to find broken configurations, and ./tfb verify NAME to check responses",
    "--parse": "use `./tfb report RUN --format techempower` to write a run's results.json again",
    "--results-upload-uri": "use ./tfb report --site DIR for static pages, or --format techempower for results.json",
    "--extra-docker-runtime-args": "use --cpuset-cpus, --test-container-memory and --network-mode",
}
# Flags that do something else instead of starting a run. tfb refuses to resume a recorded command that contains one.
IMMEDIATE_FLAGS = frozenset({"--new", "--list-tests", "--list-tag", "--completion", "--help", "-h", "--version"})
# (mode, flag) pairs: each flag works only in the given mode.
MODE_FLAGS = (
    *(("benchmark", flag) for flag in ("dry_run", "resume", "profiler")),
    *(("verify", flag) for flag in ("watch", "format", "strict")),
)
ImplementationNames = Annotated[
    str,
    Parameter(
        group=COMMON,
        help='implementations, or "run" for the core implementations (default of ./tfb run), or "all"',
        completer=complete_names,
    ),
]


# ---- run, verify, debug and TechEmpower's flags ----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """A parsed command line of ``run``, ``verify`` or ``debug``."""

    mode: Literal["benchmark", "verify", "debug"]
    test: Strings  # implementation names
    flags: CommonFlags
    command: tuple[str, ...] = ()  # the unparsed arguments, which are recorded with the run


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _TechEmpowerFlags(RunFlags, VerifyFlags):
    """Flags of a command line without a verb."""

    mode: Annotated[Literal["benchmark", "verify", "debug"], Parameter(alias="-m")] = "benchmark"
    test: Strings = ()
    list_tests: bool = False
    list_tag: str | None = None
    new: bool = False
    completion: Literal["bash", "zsh", "fish"] | None = None


def run(*names: ImplementationNames, flags: RunFlags = RunFlags()) -> Invocation:  # noqa: B008 - frozen
    """Build, verify, measure and rank implementations.

    For example:
      ./tfb run                          the core implementations, twelve minutes
      ./tfb run express axum --type db   two implementations, one test type
    """
    return Invocation(mode="benchmark", test=names, flags=flags)


def verify(*names: ImplementationNames, flags: VerifyFlags = VerifyFlags()) -> Invocation:  # noqa: B008 - frozen
    """Check the responses of implementations thoroughly, without load.

    For example:
      ./tfb verify my-framework --watch          again whenever a file changes
      ./tfb verify my-framework --format junit   results as JUnit XML
    """
    return Invocation(mode="verify", test=names, flags=flags)


def debug(*names: ImplementationNames, flags: CommonFlags = CommonFlags()) -> Invocation:  # noqa: B008 - frozen
    """Start an implementation and a database, print addresses and the log, and wait for Ctrl-C."""
    return Invocation(mode="debug", test=names, flags=flags)


def run_without_verb(*, flags: _TechEmpowerFlags = _TechEmpowerFlags()) -> Invocation | int:
    """Handle TechEmpower's command line, which has flags but no verb. Return the exit code or an invocation."""
    if flags.completion:  # the printed function completes both ./tfb and a tfb on PATH
        print(application().generate_completion(prog_name="tfb", shell=flags.completion))
        return Exit.OK
    if flags.new or flags.list_tests or flags.list_tag is not None:
        with interruption.held_while_loading():
            module = import_module("harness.cli.new" if flags.new else "harness.cli.listing")
        code: int = module.command() if flags.new else module.list_tests(flags, flags.list_tag)
        return code
    for mode, flag in MODE_FLAGS:
        if mode != flags.mode and getattr(flags, flag) != getattr(_TechEmpowerFlags, flag):
            raise UsageError(f"--{flag.replace('_', '-')} works only with --mode {mode}, not with --mode {flags.mode}")
    return Invocation(mode=flags.mode, test=flags.test, flags=flags)


# ---- parser ----------------------------------------------------------------------------------------------------------


def version() -> str:
    """Return tfb's and Python's versions, such as ``tfb 1.0.0, Python 3.12.1``."""
    number = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return f"tfb {number}, Python {platform.python_version()}"


def overview() -> str:
    """Return the text of ``./tfb --help``, with every verb."""
    lines = []
    for group in dict.fromkeys((*GROUPS, *(verb.group for verb in VERBS.values()))):
        lines += [f"{group}:", *(f"  {name:<11}{verb.help}" for name, verb in VERBS.items() if verb.group == group)]
    return OVERVIEW.format(verbs="\n".join(lines)).replace("./tfb", PROGRAM)


def application() -> App:
    """Return the parser for all verbs, without importing the verbs' modules."""
    app = App(
        name=PROGRAM,
        version=version,
        result_action="return_value",
        default_parameter=Parameter(negative=(), show_default=False, consume_multiple=1),
        help_format="plaintext",
        group_parameters=Group("flags", sort_key=0),
    )
    app.default(run_without_verb)
    for function in (run, verify, debug):
        app.command(function, name=function.__name__)
    for name, verb in VERBS.items():
        if name not in RUN_VERBS:
            app.command(verb.target, name=name)
    return app


def dispatch(arguments: Sequence[str]) -> Invocation | int:
    """Parse a command line. Return the verb's exit code, or the invocation for ``run``, ``verify`` and ``debug``.

    Raises UsageError if a verb, flag or value is unknown or invalid.
    """
    verb = arguments[0] if arguments else "--help"
    if verb in ("--help", "-h"):
        print(overview(), end="")
        return Exit.OK
    if not verb.startswith("-") and verb not in (*VERBS, COMPLETING):
        raise UsageError(f"unknown verb {verb!r}; {suggest(verb, VERBS)}\nSee ./tfb --help")
    for argument in arguments:
        if (flag := argument.partition("=")[0]) in REPLACED:
            raise UsageError(f"{flag} is a TechEmpower flag that tfb does not support: {REPLACED[flag]}")
        if flag == "--test" and verb in RUN_VERBS:
            raise UsageError(f"remove --test: write `./tfb {verb} NAME`")
    return _parse(arguments)


def _parse(arguments: Sequence[str]) -> Invocation | int:
    verb = arguments[0] if arguments and arguments[0] in VERBS else ""
    if verb and verb not in RUN_VERBS:
        with interruption.held_while_loading():
            import_module(VERBS[verb].target.partition(":")[0])
    try:
        result: Invocation | int | None = application()(list(arguments), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        error.verbose = False
        raise UsageError(f"{error}\nSee ./tfb {verb}{' ' * bool(verb)}--help") from error
    if isinstance(result, Invocation):
        return replace(result, command=tuple(arguments))
    return Exit.OK if result is None else result


def parse_recorded(command: Sequence[str]) -> Invocation:
    """Parse a run's recorded command. Raises UsageError if the command does not start a run."""
    if is_run(command) and not {argument.partition("=")[0] for argument in command} & IMMEDIATE_FLAGS:
        invocation = _parse(command)
        if isinstance(invocation, Invocation):
            return invocation
    raise UsageError(f"was started by {command[0]:.80} and cannot be resumed: start it again")


def is_run(command: Sequence[str]) -> bool:
    """Return whether a recorded command is ``run`` or has no verb. Comparisons and calibrations cannot be resumed."""
    return not command or command[0].startswith("-") or command[0] == "run"
