"""The modes beside a measurement: ``verify`` checks and explains, ``debug`` starts one implementation and stays."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psycopg
from rich.text import Text

from harness.console import SafeConsole
from harness.errors import Exit, ServerDiedError, TfbError, UsageError
from harness.experiment.preparation import choose_work
from harness.experiment.progress import beats, still
from harness.experiment.workflow import open_database
from harness.paths import REPOSITORY
from harness.plan.config import Settings
from harness.plan.discovery import Implementation
from harness.plan.plan import Plan
from harness.records.models import Load, Outcome, Verdict
from harness.report import terminal
from harness.report.verdicts import FORMATS, REQUIREMENTS, Verified, place
from harness.runtime import Database, Runtime
from harness.runtime.choice import choose
from harness.units import format_seconds
from harness.verify.checks import SERVER
from harness.verify.verifier import Verifier

# What builds write, beside what begins with a dot.
BUILT = {"node_modules", "target", "dist", "build", "bin", "obj", "__pycache__", "_build", "deps", "vendor"}
STYLES = {Outcome.PASS: "green", Outcome.WARN: "yellow", Outcome.FAIL: "red"}


def verify(settings: Settings) -> int:
    """Verify every selected implementation thoroughly, without any load; exit code 1 when a check fails."""
    plan = choose_work(settings)
    as_text = settings.verdict_format == "text"
    console = terminal.console(sys.stdout if as_text else sys.stderr)
    problems: list[str] = []
    for problem in plan.problems:
        _tell_problem(problem, problems, console)
    with built(settings, plan, console, problems) as (runtime, database, first, logs):
        ready = first
        while True:
            verdicts: list[Verdict] = []
            for implementation in ready:
                began, kinds = time.monotonic(), plan.candidate(implementation.name).test_types
                found, failures = _verdicts(implementation, kinds, runtime, database, logs)
                verdicts += found
                told = [v for v in found if as_text and not (settings.quiet and v.outcome is Outcome.PASS)]
                for verdict in told:
                    show(verdict, console)
                for failure in failures:
                    _tell_problem(failure, problems, console)
                if told:
                    failed = failures or any(verdict.outcome is Outcome.FAIL for verdict in found)
                    ended = "failed verification" if failed else "verified"
                    took = format_seconds(time.monotonic() - began)
                    console.print(f"{implementation.name}: {ended}; its start and the checks took {took}\n")
            if not settings.watch:
                break
            plan = _changed(settings, plan, console)
            ready = _build_all(runtime, plan, console, problems, logs)
    if write := FORMATS.get(settings.verdict_format):
        folders = {i.name: i.info().folder for i in plan.implementations}
        print(write(Verified(verdicts=verdicts, problems=problems, folders=folders)), end="")
    fine = not problems and all(verdict.outcome is not Outcome.FAIL for verdict in verdicts)
    return Exit.OK if fine else Exit.FAILED


def _verdicts(
    implementation: Implementation,
    kinds: Mapping[str, Sequence[Load]],
    runtime: Runtime,
    database: Database,
    logs: Path,
) -> tuple[list[Verdict], list[str]]:
    """A verdict of HTTP and one of each test type, and why there are no others.

    After the end of a server a fresh one is started for the test types that are left, so that one request too much
    costs one verdict.
    """
    verdicts: list[Verdict] = []
    problems: list[str] = []
    left, address = [SERVER, *kinds], database.address
    log, path = logs / implementation.name / "verify.log", implementation.ready_path
    verifier = Verifier()
    try:
        while left:
            database.restore()
            with runtime.start(implementation, address, log, ready_path=path) as server:
                try:
                    while left:
                        name = left.pop(0)
                        if name == SERVER:
                            verdicts.append(verifier.connection(server, process=0, thorough=True))
                        else:
                            kind = implementation.test_types[name]
                            verdicts.append(
                                verifier.check(server, kind, address, process=0, thorough=True, loads=kinds[name])
                            )
                        server.meter.require_alive()
                except ServerDiedError as error:
                    problems.append(f"while {name} was verified: {error}")
    except (TfbError, psycopg.Error) as error:
        problems.append(str(error) if isinstance(error, TfbError) else f"PostgreSQL: {str(error).strip()}")
    return verdicts, problems


def _tell_problem(problem: str, problems: list[str], console: SafeConsole) -> None:
    problems.append(problem)
    console.print(Text(f"! {problem}", "red"))


def _changed(settings: Settings, plan: Plan, console: SafeConsole) -> Plan:
    """The selection once a file of it has changed, until Ctrl-C."""
    while True:
        folders = {i.folder for i in plan.implementations}
        console.print(f"watching {', '.join(sorted(map(str, folders)))}; Ctrl-C ends", style="dim")
        files = wait_for_change(folders, time.sleep)
        names = ", ".join(path.name for path in files[:5]) + (" …" if len(files) > 5 else "")
        console.print(f"changed: {names}", style="bold")
        try:
            return choose_work(settings)
        except TfbError as error:  # half an edit of a configuration
            console.print(Text(f"! {error}", "red"))


def wait_for_change(folders: Iterable[Path], sleep: Callable[[float], None]) -> list[Path]:
    """The files that are new, gone or different, by path, once some are and nothing more changes for a moment.

    By looking: no package, and no queue of the kernel that overflows.
    """

    def look() -> dict[Path, tuple[int, int]]:
        found: dict[Path, tuple[int, int]] = {}
        for root, names, files in (step for folder in folders for step in os.walk(folder)):
            names[:] = [name for name in names if name not in BUILT and not name.startswith(".")]
            for path in (Path(root) / name for name in files):
                with suppress(OSError):  # gone meanwhile, or a link to nowhere
                    found[path] = (path.stat().st_mtime_ns, path.stat().st_size)
        return found

    before = last = look()
    while True:
        sleep(0.5)
        now = look()
        if now == last != before:  # an editor, or a checkout, writes several
            return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
        last = now


def show(verdict: Verdict, console: SafeConsole) -> None:
    """One line for a test type, and for each check that did not pass what was expected and what came."""
    passed = sum(r.outcome is Outcome.PASS for r in verdict.results)
    line = Text.assemble(
        (f"{verdict.outcome.value:<5}", STYLES[verdict.outcome]),
        f" {verdict.implementation} {verdict.test_type}: {passed} of {len(verdict.results)} checks passed",
    )
    console.print(line)
    for result in verdict.results:
        if result.outcome is Outcome.PASS:
            continue
        style = STYLES[result.outcome]
        console.print(Text.assemble("      ", (result.check, style), f" {result.message}"))
        if result.expected is not None:
            console.print(Text(f"        expected  {result.expected}"))
        if result.actual is not None:
            console.print(Text(f"        got       {result.actual}"))
        also = " (fails under --rules tfb; TechEmpower's rules do not ask for it)" if result.waived else ""
        link = f"link {(REPOSITORY / REQUIREMENTS).as_uri()}"
        console.print(Text(f"        rule      {place(result.rule)} {result.rule}{also}", f"dim {link}"))


def debug(settings: Settings) -> int:
    """Start one implementation with its database, print the addresses and its log, stay until Ctrl-C."""
    plan = choose_work(settings)
    if len(plan.implementations) != 1:
        names = ", ".join(i.name for i in plan.implementations)
        raise UsageError(f"debug starts one implementation, the selection has {names}: name one")
    implementation = plan.implementations[0]
    fixed = replace(settings, server_port=settings.server_port or implementation.entry.port)
    console = SafeConsole()
    with built(fixed, plan, console, []) as (runtime, database, ready, logs):
        if not ready:
            return Exit.FAILED
        log, address = logs / implementation.name / "debug.log", database.address
        with runtime.start(implementation, address, log, ready_path=implementation.ready_path) as server:
            for name, url in implementation.urls.items():
                console.print(f"{name:<13}{server.endpoint.url(url)}", soft_wrap=True)
            console.print(
                f"database     postgresql://{address.user}:{address.password}@{address.host}:{address.port}/{address.name}",
                soft_wrap=True,
            )
            console.print(f"startup time {format_seconds(server.startup_time)}; Ctrl-C stops it\n")
            with log.open(errors="replace") as file:
                while True:
                    while text := file.read():
                        sys.stdout.write(text)
                        sys.stdout.flush()
                    server.meter.require_alive()
                    time.sleep(0.2)


@contextmanager
def built(
    settings: Settings, plan: Plan, console: SafeConsole, problems: list[str]
) -> Iterator[tuple[Runtime, Database, list[Implementation], Path]]:
    """Build the selection and open the database; logs go to a scratch folder that stays when something failed."""
    logs = Path(tempfile.mkdtemp(prefix="tfb-logs-"))
    before, keep = len(problems), False
    try:
        with _going_on("making the runtime ready"):
            runtime = choose(settings, plan.implementations, logs, run_id=logs.name.replace("_", "-"))
        if settings.runtime == "auto" and not settings.quiet:
            print(f"{runtime.name} runtime (auto; --runtime docker or local chooses)", file=sys.stderr)
        ready = _build_all(runtime, plan, console, problems, logs)
        with ExitStack() as stack:
            with _going_on("starting PostgreSQL"):
                database = stack.enter_context(open_database(settings, runtime))
            yield runtime, database, ready, logs
        keep = len(problems) > before
    except TfbError:
        keep = any(logs.rglob("*.log"))  # its message names one
        raise
    finally:
        if not keep:
            shutil.rmtree(logs, ignore_errors=True)


def _build_all(
    runtime: Runtime, plan: Plan, console: SafeConsole, problems: list[str], logs: Path
) -> list[Implementation]:
    """Those that could be built; what a build is at is told on stderr."""
    ready = []
    for implementation in plan.implementations:
        log = logs / implementation.name / "build.log"
        log.parent.mkdir(exist_ok=True)
        with _going_on(f"building {implementation.name}", log):
            build = runtime.build(implementation, log)
        if build.status == "ok":
            ready.append(implementation)
        else:
            _tell_problem(f"{implementation.name} {build.status}: {build.reason}", problems, console)
    return ready


@contextmanager
def _going_on(what: str, log: Path | None = None) -> Iterator[None]:
    """A line on stderr every few seconds, on a terminal one that changes, while something shows nothing itself."""
    console = SafeConsole(stderr=True, highlight=False)

    def tell(seconds: float) -> None:
        text = Text(f"{what}: {still(seconds, log)}")
        if console.is_terminal:
            status.update(text)
        else:
            console.print(text, soft_wrap=True)

    with console.status(Text(what)) as status, beats(tell):
        yield
