"""The verbs beside a run: name, one line of help, and the module that is loaded only when it is called."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

Command = Callable[[Sequence[str]], int]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb of ``./tfb VERB``; its module has a function ``main(argv) -> exit code``."""

    module: str
    help: str

    def load(self) -> Command:
        """Import the module and return its ``main``."""
        command: Command = import_module(self.module).main
        return command


VERBS: dict[str, Verb] = {
    "report": Verb(
        module="harness.cli.report", help="print the ranking of a run again, as text, Markdown, CSV, JSON, HTML"
    ),
    "compare": Verb(module="harness.cli.compare", help="compare two runs, or two commits of this repository"),
    "shard": Verb(module="harness.cli.shard", help="spread a long run over many sets of machines, in whole blocks"),
    "unit": Verb(module="harness.cli.unit", help="run one block of such a queue; the queue's engine calls it"),
    "merge": Verb(module="harness.cli.merge", help="rank several runs, of one set of machines or of many, as one"),
    "dashboard": Verb(module="harness.cli.dashboard", help="serve the results to a browser, live while a run goes on"),
    "site": Verb(module="harness.cli.site", help="publish runs together, as a round, in static pages"),
    "doctor": Verb(module="harness.cli.doctor", help="show tools, machine facts and what would disturb a measurement"),
    "calibrate": Verb(
        module="harness.cli.calibrate", help="measure one implementation against itself: the noise floor"
    ),
    "new": Verb(module="harness.cli.new", help="make the folder of a new implementation, with code that passes"),
    "clean": Verb(module="harness.cli.clean", help="remove the images that runs have left"),
    "check": Verb(module="harness.cli.check", help="the project's own lint, types and tests"),
}
