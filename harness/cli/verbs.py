"""The verbs: name, one line of help, and the function that is loaded only when it is called.

A verb is a function whose parameters are its flags (cyclopts); it returns an exit code. ``run``, ``verify``, ``debug``
and TechEmpower's flags, which need no verb, return what was ``Invocation`` for instead.
"""

import platform
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Group, Parameter

from harness import plugins
from harness.cli.flags import WHAT, CommonFlags, RunFlags, Strings, VerifyFlags, complete_names
from harness.errors import Exit, UsageError
from harness.host import interruption
from harness.paths import PROGRAM, REPOSITORY
from harness.plan.suggestions import suggest
from harness.plugins import Verb

GROUPS = ("measure", "look", "this machine", "contribute")
ASKED = ("run", "verify", "debug")
VERBS: dict[str, Verb] = {
    "run": Verb(target="", help="build, verify, measure, rank: [NAME …]", group="measure"),
    "verify": Verb(target="", help="check answers thoroughly, without load: [NAME …]", group="measure"),
    "debug": Verb(target="", help="start one with its database, and stay: NAME", group="measure"),
    "list": Verb(target="harness.cli.look:listing", help="list implementations", group="measure"),
    "report": Verb(target="harness.cli.look:report", help="print a run again, as text, Markdown, HTML, a site"),
    "compare": Verb(target="harness.cli.compare:command", help="two runs, or two versions of a service, side by side"),
    "dashboard": Verb(target="harness.cli.look:dashboard", help="serve the results to a browser, live during a run"),
    **plugins.verbs(),
    "doctor": Verb(
        target="harness.cli.doctor:doctor", help="tools, machine facts, what would disturb", group="this machine"
    ),
    "clean": Verb(
        target="harness.cli.doctor:clean", help="remove what runs have left, and images", group="this machine"
    ),
    "new": Verb(target="harness.cli.new:command", help="the folder of a new implementation", group="contribute"),
    "check": Verb(
        target="harness.cli.check:command", help="the project's own lint, types and tests", group="contribute"
    ),
}
OVERVIEW = """\
Builds, verifies, measures and ranks web-framework implementations.

  ./tfb run                            the core implementations: twelve minutes
  ./tfb run express axum --type db     two implementations, one test
  ./tfb verify my-framework --watch    check answers while you write
  ./tfb dashboard                      the results in a browser

{verbs}

TechEmpower's flags do without a verb: ./tfb --mode verify --test express
Tab: ./tfb --completion bash|zsh|fish; flags: ./tfb VERB --help; docs/cli.md
Exit codes: 0 all measured and verified, 1 something failed or time was up,
            2 usage, 3 the machine lacks something, 4 cannot tell,
            130 interrupted
"""
COMPLETING = "__complete"  # asked for by the shell's function
# TechEmpower's flags whose work is done by something else here, with what does it.
REPLACED = {
    "--clean": "./tfb clean removes the images of runs; a run's results are a folder of results/, removed by hand",
    "--audit": "./tfb list names every broken configuration, ./tfb verify NAME checks what an implementation answers",
    "--parse": "./tfb report RUN --format techempower writes the results.json of a run again from its files",
    "--results-upload-uri": "./tfb report --site DIR makes static pages, --format techempower the file",
    "--extra-docker-runtime-args": "--cpuset-cpus, --test-container-memory and --network-mode limit the containers",
}
# Flags that do something at once; a run's recorded command has none of them.
NO_RUN = frozenset({"--new", "--list-tests", "--list-tag", "--completion", "--help", "-h", "--version"})
# Flags that another mode would ignore.
OF_MODE = (
    *(("benchmark", flag) for flag in ("dry_run", "resume", "profiler")),
    *(("verify", flag) for flag in ("watch", "format", "strict")),
)
ImplementationNames = Annotated[
    str, Parameter(group=WHAT, help="implementations; run: the core ones, all: all", completer=complete_names)
]


# ---- what run, verify, debug and TechEmpower's flags ask for ---------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """What a command line asks for, as it was written."""

    mode: Literal["benchmark", "verify", "debug"]
    test: Strings
    flags: CommonFlags


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Alone(RunFlags, VerifyFlags):
    """The flags that verbs stand for."""

    mode: Annotated[Literal["benchmark", "verify", "debug"], Parameter(alias="-m")] = "benchmark"
    test: Strings = ()
    list_tests: bool = False
    list_tag: str | None = None
    new: bool = False
    completion: Literal["bash", "zsh", "fish"] | None = None


def run(*names: ImplementationNames, flags: RunFlags = RunFlags()) -> Invocation:  # noqa: B008 - frozen
    """Build, verify, measure and rank implementations; --dry-run shows the plan."""
    return Invocation(mode="benchmark", test=names, flags=flags)


def verify(*names: ImplementationNames, flags: VerifyFlags = VerifyFlags()) -> Invocation:  # noqa: B008 - frozen
    """Check every answer thoroughly, without load: what was expected, what came, and the rule that says so."""
    return Invocation(mode="verify", test=names, flags=flags)


def debug(*names: ImplementationNames, flags: CommonFlags = CommonFlags()) -> Invocation:  # noqa: B008 - frozen
    """Start one implementation with its database, print addresses and its log, and stay until Ctrl-C."""
    return Invocation(mode="debug", test=names, flags=flags)


def flags_alone(*, flags: _Alone = _Alone()) -> Invocation | int:
    """TechEmpower's command line; --completion prints the function of a shell, for ./tfb and for tfb on PATH."""
    if flags.completion:
        print(application().generate_completion(prog_name="tfb", shell=flags.completion))
        return Exit.OK
    if flags.new or flags.list_tests or flags.list_tag is not None:
        with interruption.held_while_loading():
            module = import_module("harness.cli.new" if flags.new else "harness.cli.look")
        code: int = module.command() if flags.new else module.list_tests(flags, flags.list_tag)
        return code
    for mode, flag in OF_MODE:
        if mode != flags.mode and getattr(flags, flag) != getattr(_Alone, flag):
            raise UsageError(f"--{flag.replace('_', '-')} does not go with --mode {flags.mode}: it is of {mode}")
    return Invocation(mode=flags.mode, test=flags.test, flags=flags)


# ---- the command line ------------------------------------------------------------------------------------------------


def version() -> str:
    """``tfb 0.1.0, Python 3.12.1``."""
    number = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return f"tfb {number}, Python {platform.python_version()}"


def overview() -> str:
    """``./tfb --help``: every verb by group, and where the flags are explained."""
    lines = []
    for group in GROUPS:
        lines += [f"{group}:", *(f"  {name:<11}{verb.help}" for name, verb in VERBS.items() if verb.group == group)]
    return OVERVIEW.format(verbs="\n".join(lines)).replace("./tfb", PROGRAM)


def application() -> App:
    """All verbs, none of them loaded."""
    app = App(
        name=PROGRAM,
        version=version,
        result_action="return_value",
        default_parameter=Parameter(negative=(), show_default=False, consume_multiple=1),
        help_format="plaintext",
        group_parameters=Group("flags", sort_key=0),
    )
    app.default(flags_alone)
    for function in (run, verify, debug):
        app.command(function, name=function.__name__)
    for name, verb in VERBS.items():
        if name not in ASKED:
            app.command(verb.target, name=name)
    return app


def dispatch(arguments: Sequence[str]) -> Invocation | int:
    """As ``parse``; help is printed, and what is no verb or has another name here is told."""
    first = arguments[0] if arguments else "--help"
    if first in ("--help", "-h"):
        print(overview(), end="")
        return Exit.OK
    if not first.startswith("-") and first not in (*VERBS, COMPLETING):
        raise UsageError(f"unknown verb {first!r}; {suggest(first, VERBS)}\nSee ./tfb --help")
    for argument in arguments:
        if (flag := argument.partition("=")[0]) in REPLACED:
            raise UsageError(f"{flag} is TechEmpower's; here {REPLACED[flag]}")
        if flag == "--test" and first in ASKED:
            raise UsageError(f"names stand alone behind a verb: ./tfb {first} NAME")
    return parse(arguments)


def parse(arguments: Sequence[str]) -> Invocation | int:
    """What a command line asks for, or the exit code of a verb that it has carried out; raises UsageError."""
    verb = arguments[0] if arguments and arguments[0] in VERBS else ""
    if verb and verb not in ASKED:
        with interruption.held_while_loading():
            import_module(VERBS[verb].target.partition(":")[0])
    try:
        found: Invocation | int | None = application()(list(arguments), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        error.verbose = False
        raise UsageError(f"{error}\nSee ./tfb {verb}{' ' * bool(verb)}--help") from error
    return Exit.OK if found is None else found


def parse_recorded(arguments: Sequence[str]) -> Invocation:
    """Return what the recorded command of a run asked for; raises UsageError where it does not ask for a run."""
    found = (
        parse(arguments) if is_run(arguments) and not {each.partition("=")[0] for each in arguments} & NO_RUN else None
    )
    if not isinstance(found, Invocation):
        raise UsageError(f"was made by {arguments[0]:.80} and cannot be resumed: start it again")
    return found


def is_run(command: Sequence[str]) -> bool:
    """Whether a recorded command is a run, which can be resumed: not a calibration or a comparison."""
    return not command or command[0].startswith("-") or command[0] == "run"
