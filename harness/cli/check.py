"""``./tfb check``: the project's own lint, types and tests, and before them what they need of the machine."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from harness.cli import beside
from harness.cli.arguments import Parser
from harness.cli.beside import Ended
from harness.cli.consent import agreed
from harness.cli.stages import CPUS, NOT_JUDGED, Stage, brought, bytecode, lacking, stages, wanted
from harness.errors import Exit
from harness.host import engine, process, provision, toolchain
from harness.host.provision import Need
from harness.paths import REPOSITORY
from harness.plan.config import Consent

AGAIN = 2  # times that the failed tests of real servers are tried again; they pass when they pass each time
MOST_AGAIN = 3  # failed tests: more are no accident
TESTS_FAILED = 1  # pytest's status where all were run and some failed
UNTIL = "TFB_CHECK_UNTIL"  # when tests of other implementations begin no more, in seconds since 1970; unset: never
MINUTES = 55.0  # that they may begin in
STATE = Path(os.environ.get("TFB_STATE") or REPOSITORY / ".tfb")


def arguments() -> Parser:
    """The flags of ``./tfb check``."""
    p = Parser(prog="./tfb check", description="Lint, types and tests of the project itself.")
    p.add_argument("--fast", action="store_true", help="leave out what starts real servers, containers or a browser")
    p.add_argument(
        "--all",
        action="store_true",
        help="all implementations in Docker as well, all tests of several machines, and no limit of time",
    )
    p.add_argument(
        "--within",
        type=float,
        default=MINUTES,
        metavar="MINUTES",
        help=f"verify implementations beside the core ones so long after the start; default: {MINUTES:g}",
    )
    p.add_argument("--yes", action="store_true", help="install what is missing without asking")
    p.add_argument("--no-install", action="store_true", help="never install anything: run what can be run")
    p.add_argument("arguments", nargs="*", help="arguments for pytest, after --")
    return p


def main(argv: Sequence[str]) -> int:
    """Run every stage, all of them even when one fails; exit code 1 when one did, 3 when something could not be run.

    A test that could not judge, since the machine was busy with something else or does not let this user, is named and
    no failure; so is a test of real servers that failed, and then passed each time that it was tried again.
    """
    options = arguments().parse_args(list(argv))
    until = "" if options.all else str(time.time() + 60 * options.within)
    consent: Consent = "no" if options.no_install or options.fast else "yes" if options.yes else "ask"
    needs = wanted(every=not options.fast, fast=options.fast)
    failed: list[str] = []
    not_run: list[tuple[str, str]] = []
    unsteady: list[str] = []
    with facilities(needs, consent), tempfile.TemporaryDirectory(prefix="tfb-check-") as folder:
        skipped = Path(folder) / "skipped.jsonl"
        environment = {"TFB_SKIPPED": str(skipped), "TFB_CHECK": "all" if options.all else "core", UNTIL: until}
        missing = lacking(wanted(every=not options.fast, fast=options.fast))
        ready: list[Stage] = []
        for stage in stages(fast=options.fast, arguments=options.arguments, every=options.all):
            if reasons := [missing[name] for name in stage.needs if name in missing]:
                not_run.append((stage.name, "; ".join(reasons)))
            else:
                ready.append(stage)
        # Whoever gives pytest words of their own wants to watch it.
        together = [stage for stage in ready if stage.beside and not options.arguments]
        failed += run_together(together, environment)
        for stage in ready:
            if stage in together:
                continue
            if stage.tried_again and not options.arguments:
                passed, again = settled(stage, environment, Path(folder))
                failed += [] if passed else [stage.name]
                unsteady += again
            elif not passes(stage, environment):
                failed.append(stage.name)
        not_run += skips(skipped)
    return conclude(failed, not_run, unsteady)


@contextmanager
def facilities(needs: Sequence[Need], consent: Consent) -> Iterator[None]:
    """Bring what is missing, where there is consent and apt; stop in the end what was started."""
    started = False
    try:
        missing = [need for need in needs if need.tool is None]
        bring_engine = consent != "no" and engine.can_be_brought() and not engine.answers()
        if consent != "no" and (missing or bring_engine):
            words = [need.missing for need in missing] + ["a container engine"] * bring_engine
            packages = sorted({p for need in missing for p in toolchain.packages(need.kind, need.condition)})
            commands = [f"apt-get install {' '.join(packages)}"] * bool(packages)
            commands += ["toolset/provision/docker-engine install"] * bring_engine
            if agreed(consent, f"missing: {', '.join(words)}. Run `{'; '.join(commands)}`?"):
                install(missing)
                if bring_engine and passes(Stage(name="packages of a container engine", command=engine.INSTALL)):
                    started = True  # before it runs: an interrupted start is stopped as well
                    passes(Stage(name="container engine", command=engine.START))
                    process.disown()  # asking a tool for its version, later, would end the engine
        yield
    finally:
        if started:
            passes(Stage(name="container engine's end", command=engine.STOP))


def install(missing: Sequence[Need]) -> None:
    """Install packages with apt; what stays missing is named when the stages are."""
    if not missing:
        return
    STATE.mkdir(parents=True, exist_ok=True)
    print("== packages", flush=True)
    for note in provision.install_missing(missing, "yes", STATE / "apt.log"):
        print(note, flush=True)


def passes(stage: Stage, environment: Mapping[str, str] | None = None) -> bool:
    """Run one stage with its output on the terminal; whether it ended well."""
    status = run(stage, environment)
    return status == 0 or status in stage.also_fine


def run(stage: Stage, environment: Mapping[str, str] | None = None) -> int:
    """Its exit status."""
    print(f"== {stage.name}", flush=True)
    began = time.monotonic()
    try:
        with start(stage, environment or {}) as child:
            try:
                status = child.wait()
            except BaseException:
                child.terminate()
                child.wait()  # tests stop the servers that they started; the context manager alone waits for 0.25 s
                raise
    except FileNotFoundError:
        print(f"{stage.command[0]} is not on this machine: ./tfb doctor", file=sys.stderr)
        status = beside.NOT_FOUND
    close(stage, status, time.monotonic() - began)
    return status


def start(stage: Stage, environment: Mapping[str, str], output: IO[bytes] | None = None) -> "subprocess.Popen[bytes]":
    """Start a stage's command, its output on the terminal or in a file."""
    own = {"PYTHONPATH": str(REPOSITORY), "TFB_PYTHON": sys.executable, "TFB_STATE": str(STATE)}
    return subprocess.Popen(
        stage.command,
        cwd=stage.cwd,
        env={**os.environ, **brought(), **bytecode(STATE), **own, **stage.environment, **environment},
        stdin=None if output is None else subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


def close(stage: Stage, status: int | None, seconds: float) -> None:
    """A stage's last line; without a status it was interrupted."""
    fine = status == 0 or status in stage.also_fine
    word = "interrupted" if status is None else "ok" if fine else "failed"
    print(f"== {stage.name}: {word} in {seconds:.0f} s", flush=True)


def run_together(together: Sequence[Stage], environment: Mapping[str, str]) -> list[str]:
    """Run stages side by side, and show the output of each in one piece when it has ended; those that failed."""
    failed: list[str] = []

    def told(ended: Ended) -> None:
        print(f"== {ended.stage.name}", flush=True)
        sys.stdout.write(ended.output.decode(errors="replace"))
        close(ended.stage, ended.status, ended.seconds)
        if ended.status != 0 and ended.status not in ended.stage.also_fine:
            failed.append(ended.stage.name)

    if together:
        names = ", ".join(stage.name for stage in together)
        print(f"== side by side, each shown when it has ended: {names}", flush=True)
        beside.side_by_side(
            together, lambda stage, output: start(stage, environment, output), told, others=max(1, CPUS // 2)
        )
    return [stage.name for stage in together if stage.name in failed]


def settled(stage: Stage, environment: Mapping[str, str], folder: Path) -> tuple[bool, tuple[str, ...]]:
    """Whether a stage of real servers passed, and which of its tests did so only when they were tried again.

    None is tried again where pytest did not come to its end: there are tests that did not run.
    """
    status = run(stage, {**environment, "PYTEST_ADDOPTS": kept_in(stage, folder)})
    if status == 0 or status in stage.also_fine:
        return True, ()
    names = failures(stage, folder)
    few = status == TESTS_FAILED and 0 < len(names) <= MOST_AGAIN
    return (True, names) if few and passes_again(stage, environment, folder) else (False, ())


def passes_again(stage: Stage, environment: Mapping[str, str], folder: Path) -> bool:
    """Try a stage's failed tests again, alone: True when they pass each time."""
    options = f"{kept_in(stage, folder)} --last-failed --last-failed-no-failures=none"
    again = replace(stage, name=f"{stage.name}, failed ones again", also_fine=())
    environment = {**environment, UNTIL: ""}  # a test that failed is not left out for lack of time
    names = kept(stage, folder).read_bytes()
    for _ in range(AGAIN):
        if not passes(again, {**environment, "PYTEST_ADDOPTS": options}):
            return False
        kept(stage, folder).write_bytes(names)  # pytest takes a test that passed off its list
    return True


def failures(stage: Stage, folder: Path) -> tuple[str, ...]:
    """The tests that failed last in a stage, by pytest's names; none where it ran none."""
    try:
        return tuple(json.loads(kept(stage, folder).read_bytes()))
    except OSError:
        return ()


def kept_in(stage: Stage, folder: Path) -> str:
    """pytest's options that keep what failed apart from other stages'."""
    options = os.environ.get("PYTEST_ADDOPTS", "")
    return f"{options} -o cache_dir={shlex.quote(str(folder / stage.name))}".strip()


def kept(stage: Stage, folder: Path) -> Path:
    """pytest's list of what failed."""
    return folder / stage.name / "v" / "cache" / "lastfailed"


def skips(file: Path) -> list[tuple[str, str]]:
    """The tests that pytest skipped, with why; none where it did not come so far."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [(name, reason) for name, reason in map(json.loads, lines)]


def conclude(failed: Sequence[str], not_run: Sequence[tuple[str, str]], unsteady: Sequence[str] = ()) -> Exit:
    """The closing line: what failed, what was not run with what it lacks, and what could not be judged at once."""
    words = [f"failed: {', '.join(failed)}"] if failed else []
    by_reason: dict[str, list[str]] = {}
    for name, reason in not_run:
        by_reason.setdefault(reason, []).append(name)
    missing = [reason for reason in by_reason if not reason.startswith(NOT_JUDGED)]
    words += [f"not run ({reason}): {', '.join(by_reason[reason])}" for reason in missing]
    words = words or ["all passed"]
    words += [f"{reason}: {', '.join(names)}" for reason, names in by_reason.items() if reason not in missing]
    words += [f"failed once and passed {AGAIN} times when tried again: {', '.join(unsteady)}"] if unsteady else []
    wrong = bool(failed or missing)
    print(f"tfb check: {'; '.join(words)}", file=sys.stderr if wrong else sys.stdout, flush=True)
    return Exit.FAILED if failed else Exit.ENVIRONMENT if missing else Exit.OK
