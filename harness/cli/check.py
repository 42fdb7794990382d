"""``./tfb check``: the project's own lint, types and tests; what .ci/run calls."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cli.arguments import Parser
from harness.errors import Exit
from harness.paths import REPOSITORY

WEB = REPOSITORY / "harness" / "dashboard" / "web"
BUILD_PAGE = "from harness.dashboard.build import ensure_built; print(ensure_built().name)"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One command of the check; ``real`` ones start servers, containers or a browser."""

    name: str
    command: tuple[str, ...]
    cwd: Path = REPOSITORY
    real: bool = False


def stages(*, fast: bool, arguments: Sequence[str]) -> tuple[Stage, ...]:
    """All stages in their order; the fast check leaves the real ones out."""
    python = (sys.executable, "-m")
    marks = ("-m", "not e2e and not docker") if fast else ()
    found = (
        Stage(name="lint", command=(*python, "ruff", "check", ".")),
        Stage(name="format", command=(*python, "ruff", "format", "--check", ".")),
        Stage(name="types", command=(*python, "mypy")),
        Stage(name="tools", command=(*python, "harness.host.provision"), real=True),
        Stage(name="page", command=(sys.executable, "-c", BUILD_PAGE)),
        Stage(name="page format", command=("npm", "run", "--silent", "format:check"), cwd=WEB),
        Stage(name="page lint", command=("npm", "run", "--silent", "lint"), cwd=WEB),
        Stage(name="page tests", command=("npm", "run", "--silent", "test"), cwd=WEB),
        Stage(name="page in a browser", command=("npm", "run", "--silent", "e2e"), cwd=WEB, real=True),
        Stage(name="tests", command=(*python, "pytest", "-ra", *marks, *arguments)),
    )
    return tuple(stage for stage in found if not (fast and stage.real))


def main(argv: Sequence[str]) -> int:
    """Run every stage, all of them even when one fails; exit code 1 when one did."""
    p = Parser(prog="./tfb check", description="Lint, types and tests of the project itself.")
    p.add_argument("--fast", action="store_true", help="leave out what starts real servers, containers or a browser")
    p.add_argument("arguments", nargs="*", help="arguments for pytest, after --")
    options = p.parse_args(list(argv))
    failed = [stage.name for stage in stages(fast=options.fast, arguments=options.arguments) if not passes(stage)]
    if failed:
        print(f"tfb check: failed: {', '.join(failed)}", file=sys.stderr)
    return Exit.FAILED if failed else Exit.OK


def passes(stage: Stage) -> bool:
    """Run one stage with its output on the terminal."""
    print(f"== {stage.name}", flush=True)
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TFB_PYTHON": sys.executable}
    try:
        with subprocess.Popen(stage.command, cwd=stage.cwd, env=environment) as child:
            try:
                status = child.wait()
            except BaseException:
                child.terminate()
                child.wait()  # tests stop the servers that they started; the context manager alone waits for 0.25 s
                raise
    except FileNotFoundError:
        print(f"{stage.command[0]} is not on this machine: ./tfb doctor", file=sys.stderr)
        status = 127
    took = time.monotonic() - began
    print(f"== {stage.name}: {'failed' if status else 'ok'} in {took:.0f} s", flush=True)
    return status == 0
