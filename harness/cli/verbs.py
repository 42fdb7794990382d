"""The verbs: name, one line of help, and the module that is loaded only when it is called.

A module declares its verb as a function ``command`` whose parameters are its flags (cyclopts); it returns an exit code.
``run``, ``verify``, ``debug`` and TechEmpower's flags without a verb return what was ``Asked`` for instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from cyclopts import App, CycloptsError, Group, Parameter

from harness import extras
from harness.cli.asked import Asked, debug, flags_alone, require_none_replaced, run, verify
from harness.cli.version import version
from harness.errors import Exit, UsageError
from harness.host import interruption
from harness.plan.words import suggest


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb of ``./tfb VERB``."""

    module: str
    help: str
    group: str = "look"


GROUPS = ("measure", "look", "this machine", "contribute")
VERBS: dict[str, Verb] = {
    "run": Verb(module="harness.cli.asked", help="build, verify, measure, rank: [NAME …]", group="measure"),
    "verify": Verb(
        module="harness.cli.asked", help="check answers thoroughly, without load: [NAME …]", group="measure"
    ),
    "debug": Verb(module="harness.cli.asked", help="start one with its database, and stay: NAME", group="measure"),
    "list": Verb(module="harness.cli.listing", help="list implementations", group="measure"),
    "report": Verb(module="harness.cli.report", help="print a run again, as text, Markdown, CSV, HTML"),
    "compare": Verb(module="harness.cli.compare", help="two runs, or two versions of a service, side by side"),
    "dashboard": Verb(module="harness.cli.dashboard", help="serve the results to a browser, live while a run goes on"),
    **{name: Verb(module=module, help=text) for name, (module, text) in extras.VERBS.items()},
    "doctor": Verb(module="harness.cli.doctor", help="tools, machine facts, what would disturb", group="this machine"),
    "clean": Verb(module="harness.cli.clean", help="remove what runs have left, and images", group="this machine"),
    "completion": Verb(module="harness.cli.completion", help="for bash, zsh or fish", group="this machine"),
    "new": Verb(module="harness.cli.new", help="the folder of a new implementation", group="contribute"),
    "check": Verb(module="harness.cli.check", help="the project's own lint, types and tests", group="contribute"),
}
OVERVIEW = """\
Builds, verifies, measures and ranks web-framework implementations.

  ./tfb run                            the core implementations: twelve minutes
  ./tfb run express axum --type db     two implementations, one test
  ./tfb verify my-framework --watch    check answers while you write
  ./tfb dashboard                      the results in a browser

{verbs}

TechEmpower's flags do without a verb: ./tfb --mode verify --test express
Flags: ./tfb VERB --help; docs/cli.md
Exit codes: 0 all measured and verified, 1 something failed, 2 usage,
            3 the machine lacks something, 4 cannot tell, 130 interrupted
"""
COMPLETING = "__complete"  # asked for by the shell's function
EVERY = Parameter(negative=(), show_default=False, consume_multiple=1)


def overview() -> str:
    """``./tfb --help``: every verb by group, and where the flags are explained."""
    lines = []
    for group in GROUPS:
        lines += [f"{group}:", *(f"  {name:<11}{verb.help}" for name, verb in VERBS.items() if verb.group == group)]
    return OVERVIEW.format(verbs="\n".join(lines))


def application() -> App:
    """All verbs, none of them loaded."""
    app = App(
        name="./tfb",
        version=version,
        result_action="return_value",
        default_parameter=EVERY,
        help_format="plaintext",
        group_parameters=Group("flags", sort_key=0),
    )
    app.default(flags_alone)
    for function in (run, verify, debug):
        app.command(function, name=function.__name__)
    for name, verb in VERBS.items():
        if verb.module != "harness.cli.asked":
            app.command(f"{verb.module}:command", name=name)
    return app


def answered(words: Sequence[str]) -> Asked | int:
    """As ``parsed``; help is printed, and what is no verb or has another name here is told."""
    first = words[0] if words else "--help"
    if first in ("--help", "-h"):
        print(overview(), end="")
        return Exit.OK
    if not first.startswith("-") and first not in (*VERBS, COMPLETING):
        raise UsageError(f"unknown verb {first!r}; {suggest(first, VERBS)}\nSee ./tfb --help")
    require_none_replaced(words)
    return parsed(words)


def parsed(words: Sequence[str]) -> Asked | int:
    """What a command line asks for, or the exit code of a verb that it has carried out; raises UsageError."""
    verb = words[0] if words and words[0] in VERBS else ""
    if verb:
        with interruption.loading():
            import_module(VERBS[verb].module)
    try:
        found: Asked | int | None = application()(list(words), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        error.verbose = False
        raise UsageError(f"{error}\nSee ./tfb {verb}{' ' * bool(verb)}--help") from error
    return Exit.OK if found is None else found


def asked(words: Sequence[str]) -> Asked:
    """What the recorded command of a run asked for; raises UsageError where another verb made it."""
    found = parsed(words) if is_run(words) else None
    if not isinstance(found, Asked):
        raise UsageError(f"was made by {words[0]} and cannot be resumed: start it again")
    return found


def is_run(command: Sequence[str]) -> bool:
    """Whether a recorded command is a run, which can be resumed: not a calibration or a comparison."""
    return not command or command[0].startswith("-") or command[0] == "run"
