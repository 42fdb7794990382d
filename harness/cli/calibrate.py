"""``./tfb calibrate``: one implementation against itself, for the noise floor of this machine and profile."""

import time
from collections.abc import Sequence
from dataclasses import replace

from harness.cli.arguments import parser
from harness.cli.settings import settings
from harness.console import SafeConsole
from harness.errors import UsageError
from harness.plan.config import Twins
from harness.records import calibration
from harness.run import progress, workflow
from harness.run.preparation import choose_work
from harness.stats import noise

SUFFIX = "~twin"


def main(argv: Sequence[str]) -> int:
    """Measure the pairs, keep the floor, print it."""
    p = parser()
    p.prog = "./tfb calibrate"
    p.description = "Measure one implementation against itself; later runs on this machine quote the noise floor."
    p.set_defaults(type=["json", "db"])
    options = p.parse_args(list(argv))
    chosen = settings(options, ("calibrate", *argv))
    # Fresh processes, one after another: the floor is between processes, which rounds of one pair do not show.
    chosen = replace(chosen, profile=chosen.profile.model_copy(update={"rounds": None}))
    chosen = replace(chosen, twins=Twins(suffix=SUFFIX, frameworks=chosen.frameworks))
    selected = choose_work(replace(chosen, twins=None)).implementations
    if len(selected) != 1:
        raise UsageError("calibrate takes one implementation: name it with --test")
    name = selected[0].name
    outcome = workflow.benchmark(chosen, progress.Progress(progress.display(quiet=chosen.quiet)))
    try:
        floor = noise.measured(
            outcome.records.samples, (name, name + SUFFIX), profile=chosen.profile.name, measured_at=time.time()
        )
    except ValueError as error:
        raise UsageError(f"{error}: give --replicates 5 or more") from error
    file = calibration.keep(chosen.results, outcome.records.info.machine, floor)
    SafeConsole().print(
        f"Noise floor of this machine with profile {floor.profile} ({floor.pairs} pairs of {name} against itself): "
        f"throughput {floor.throughput:.1%}, CPU per request {floor.cpu_per_request:.1%}\nkept in {file.name}; runs "
        "with this profile quote it, smaller differences are noise"
    )
    return outcome.exit_code
