"""``./tfb check``: the project's own lint, types and tests; what .ci/run calls."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from harness.cli.arguments import Parser
from harness.discovery import REPOSITORY
from harness.errors import Exit


def main(argv: Sequence[str]) -> int:
    """Run every stage, all of them even when one fails; exit code 1 when one did."""
    p = Parser(prog="./tfb check", description="Lint, types and tests of the project itself.")
    p.add_argument("--fast", action="store_true", help="leave out the tests that build and start real servers")
    p.add_argument("arguments", nargs="*", help="arguments for pytest, after --")
    options = p.parse_args(list(argv))
    python = [sys.executable, "-m"]
    tests = [*python, "pytest", "-ra", *(["-m", "not e2e and not docker"] if options.fast else []), *options.arguments]
    stages = (
        ("lint", [*python, "ruff", "check", "."]),
        ("format", [*python, "ruff", "format", "--check", "."]),
        ("types", [*python, "mypy"]),
        ("tests", tests),
    )
    failed = []
    for name, command in stages:
        print(f"== {name}", flush=True)
        began = time.monotonic()
        status = subprocess.run(command, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=False)
        print(f"== {name}: {'failed' if status.returncode else 'ok'} in {time.monotonic() - began:.0f} s", flush=True)
        if status.returncode:
            failed.append(name)
    if failed:
        print(f"tfb check: failed: {', '.join(failed)}", file=sys.stderr)
    return Exit.FAILED if failed else Exit.OK
