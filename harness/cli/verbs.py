"""The verbs beside a run: name, one line of help, and the module that is loaded only when it is called."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

Command = Callable[[Sequence[str]], int]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb of ``./tfb VERB``; its module has a function ``main(argv) -> exit code``.

    Where it also has ``arguments() -> Parser``, the shell completes the verb's flags.
    """

    module: str
    help: str
    group: str = "more"
    function: str = "main"

    def load(self) -> Command:
        """Import the module and return its ``main``."""
        command: Command = getattr(import_module(self.module), self.function)
        return command


GROUPS = ("measure", "look", "this machine", "contribute")  # in this order; another one follows them

VERBS: dict[str, Verb] = {
    "run": Verb(
        module="harness.cli.subcommands",
        function="run",
        help="build, verify, measure, rank: [NAME …]",
        group="measure",
    ),
    "verify": Verb(
        module="harness.cli.subcommands",
        function="verify",
        help="check answers thoroughly, without load: [NAME …]",
        group="measure",
    ),
    "debug": Verb(
        module="harness.cli.subcommands",
        function="debug",
        help="start one with its database, and stay: NAME",
        group="measure",
    ),
    "claims": Verb(
        module="harness.cli.claims", help="what talks claim: list, run (measure and judge), report", group="measure"
    ),
    "shard": Verb(module="harness.cli.shard", help="spread a long run over many sets of machines", group="measure"),
    "unit": Verb(module="harness.cli.unit", help="one block of such a queue, called by its engine", group="measure"),
    "list": Verb(module="harness.cli.listing", help="list implementations", group="measure"),
    "report": Verb(
        module="harness.cli.report",
        help="print the ranking of a run again, as text, Markdown, CSV, HTML",
        group="look",
    ),
    "compare": Verb(
        module="harness.cli.compare", help="compare two runs, or two commits of this repository", group="look"
    ),
    "merge": Verb(module="harness.cli.merge", help="rank several runs, of one set or of many, as one", group="look"),
    "dashboard": Verb(
        module="harness.cli.dashboard", help="serve the results to a browser, live while a run goes on", group="look"
    ),
    "site": Verb(module="harness.cli.site", help="publish runs together, as a round, in static pages", group="look"),
    "doctor": Verb(
        module="harness.cli.doctor",
        help="show tools, machine facts and what would disturb a measurement",
        group="this machine",
    ),
    "calibrate": Verb(
        module="harness.cli.calibrate",
        help="measure one implementation against itself: the noise floor",
        group="this machine",
    ),
    "stand-ins": Verb(
        module="harness.cli.stand_ins", help="base images of Debian packages, without a registry", group="this machine"
    ),
    "profile": Verb(module="harness.cli.profiling", help="a flame graph of one under load", group="measure"),
    "clean": Verb(module="harness.cli.clean", help="remove what runs have left, and images", group="this machine"),
    "completion": Verb(
        module="harness.cli.completion", help="print the completion for bash, zsh or fish", group="this machine"
    ),
    "new": Verb(
        module="harness.cli.new",
        help="make the folder of a new implementation, with code that passes",
        group="contribute",
    ),
    "import": Verb(
        module="harness.cli.importing", help="copy a folder of another tree, and say what differs", group="contribute"
    ),
    "docs": Verb(
        module="harness.cli.docs", help="the documentation as a site with search, without a network", group="contribute"
    ),
    "check": Verb(module="harness.cli.check", help="the project's own lint, types and tests", group="contribute"),
}
