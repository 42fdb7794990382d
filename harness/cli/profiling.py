"""``./tfb profile NAME --type db``: a flame graph of one implementation under load."""

import json
from collections.abc import Sequence

from harness.cli.arguments import parser
from harness.cli.parsing import seconds
from harness.cli.settings import settings
from harness.errors import Exit, UsageError
from harness.run.profiling import profile

SECONDS = 10.0


def main(argv: Sequence[str]) -> int:
    """Profile; takes the flags of a run."""
    p = parser()
    p.prog = "./tfb profile"
    p.description = (
        "Starts one implementation, loads one test type and samples it by what is there: async-profiler for the JVM, "
        "perf for everything else. Writes results/profiles/…/: flame.svg, stacks.txt (folded), sample.json with what "
        "the load measured meanwhile (a profiled server is a little slower than the others)."
    )
    p.epilog = None
    p.add_argument("name", metavar="NAME", help="the implementation")
    p.add_argument("--seconds", type=seconds, default=SECONDS, metavar="S", help="to look; default 10")
    options = p.parse_args(list(argv))
    if len(options.type) != 1:
        raise UsageError("./tfb profile NAME --type TYPE: one test type")
    options.test = [options.name]
    options.mode = "debug"
    done = profile(settings(options, ("profile", *argv)), options.seconds)
    if options.json:
        print(json.dumps({"folder": str(done.folder), **done.figures}))
        return Exit.OK
    for key, value in done.figures.items():
        print(f"{key:<24}{value}")
    print(f"\n{done.folder / 'flame.svg'}")
    return Exit.OK
