"""The modes beside a measurement: ``verify`` checks and explains, ``debug`` starts one implementation and stays."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
from rich.text import Text

from harness.console import SafeConsole
from harness.errors import Exit, ServerDiedError, TfbError, UsageError
from harness.experiment.preparation import Selected, choose_work
from harness.experiment.progress import beats, still
from harness.experiment.workflow import open_database
from harness.paths import REPOSITORY
from harness.plan.config import Settings
from harness.plan.discovery import CONFIG_FILE, ROUTES, Implementation
from harness.records.models import Load, Outcome, Verdict
from harness.report import terminal
from harness.report.verdicts import FORMATS, REQUIREMENTS, Verified, place
from harness.runtime import Database, Runtime, Server
from harness.runtime.choice import choose
from harness.units import format_seconds, whole_seconds
from harness.verify import verification
from harness.verify.checks import SERVER

# What builds write, beside what begins with a dot.
BUILT = {"node_modules", "target", "dist", "build", "bin", "obj", "__pycache__", "_build", "deps", "vendor"}
STYLES = {Outcome.PASS: "green", Outcome.WARN: "yellow", Outcome.FAIL: "red"}


def verify(settings: Settings) -> int:
    """Verify every selected implementation thoroughly, without any load; exit code 1 when a check fails."""
    selected = choose_work(settings)
    console = terminal.console(sys.stdout if settings.verdict_format == "text" else sys.stderr)
    verdicts: list[Verdict] = []
    problems: list[str] = list(selected.problems)
    for problem in problems:
        console.print(Text(f"! {problem}", "red"))
    with built(settings, selected, console, problems) as (runtime, database, ready, logs):
        for implementation in ready:
            _tell_one(settings, selected, implementation, runtime, database, logs, console, verdicts, problems)
        if settings.watch:
            _watch(settings, runtime, database, logs, console)
    failed = problems or any(verdict.outcome is Outcome.FAIL for verdict in verdicts)
    if write := FORMATS.get(settings.verdict_format):
        folders = {i.name: i.info().folder for i in selected.implementations}
        print(write(Verified(verdicts=verdicts, problems=problems, folders=folders)), end="")
    return Exit.FAILED if failed else Exit.OK


def _tell_one(
    settings: Settings,
    selected: Selected,
    implementation: Implementation,
    runtime: Runtime,
    database: Database,
    logs: Path,
    console: SafeConsole,
    verdicts: list[Verdict],
    problems: list[str],
) -> None:
    """Verify one; what is found is told, and added to ``verdicts`` and ``problems``."""
    began, before = time.monotonic(), len(problems)
    own: list[Verdict] = []
    try:
        with closing(_verify_one(selected, implementation, runtime, database, logs)) as all_found:
            for found in all_found:
                if isinstance(found, Verdict):
                    own.append(found)
                else:
                    problems.append(str(found))
    except (TfbError, psycopg.Error) as error:
        problems.append(str(error) if isinstance(error, TfbError) else f"PostgreSQL: {str(error).strip()}")
    verdicts += own
    if settings.verdict_format == "text":
        for verdict in own:
            show(verdict, console)
    for problem in problems[before:]:
        console.print(Text(f"! {problem}", "red"))
    if settings.verdict_format == "text" and own:
        failed = len(problems) > before or any(v.outcome is Outcome.FAIL for v in own)
        ended = "failed verification" if failed else "verified"
        took = format_seconds(time.monotonic() - began)
        console.print(f"{implementation.name}: {ended}; its start and the checks took {took}")
        if ended == "verified" and implementation.own and (left := _unfinished(implementation)):
            console.print(Text(f"{implementation.name}: still to do: {left}", "dim"))
        console.print()


def _unfinished(implementation: Implementation) -> str:
    """What ``./tfb new`` left to its author: shown once the code passes, with what comes next."""
    left = ["README.md"] if implementation.begun or not (implementation.folder / "README.md").is_file() else []
    left += [f"removing {ROUTES}"] if (implementation.folder / ROUTES).is_file() else []
    if not left:
        return ""
    left += [] if implementation.maintainers else [f"maintainers and what else is yours in {CONFIG_FILE}"]
    return f"{', '.join(left)}; then ./tfb run {implementation.name} NAME beside another one, and CONTRIBUTING.md"


def _watch(settings: Settings, runtime: Runtime, database: Database, logs: Path, console: SafeConsole) -> None:
    """Build and verify again whenever a file of the selection changes, until Ctrl-C."""
    while True:
        folders = {i.folder for i in choose_work(settings).implementations}
        console.print(f"watching {', '.join(sorted(map(str, folders)))}; Ctrl-C ends", style="dim")
        while True:
            files = wait_for_change(folders, time.sleep)
            names = ", ".join(path.name for path in files[:5]) + (" …" if len(files) > 5 else "")
            console.print(f"changed: {names}", style="bold")
            try:
                selected = choose_work(settings)
            except TfbError as error:  # half an edit of a configuration
                console.print(Text(f"! {error}", "red"))
                continue
            break
        for implementation in _build_all(runtime, selected, console, [], logs):
            _tell_one(settings, selected, implementation, runtime, database, logs, console, [], [])


def _sources(folders: Iterable[Path]) -> Mapping[Path, tuple[int, int]]:
    """The sources below the folders as they stand: modification time in nanoseconds, size."""
    found: dict[Path, tuple[int, int]] = {}
    for root, names, inside in (step for folder in folders for step in os.walk(folder)):
        names[:] = [name for name in names if name not in BUILT and not name.startswith(".")]
        for path in (Path(root) / name for name in inside):
            try:
                found[path] = (path.stat().st_mtime_ns, path.stat().st_size)
            except OSError:
                continue  # gone meanwhile, or a link to nowhere
    return found


def wait_for_change(folders: Iterable[Path], sleep: Callable[[float], None]) -> tuple[Path, ...]:
    """The files that are new, gone or different, by path, once some are and nothing more changes for a moment.

    By looking: no package, and no queue of the kernel that overflows.
    """
    watched = tuple(folders)
    before = last = _sources(watched)
    while True:
        sleep(0.5)
        now = _sources(watched)
        if now == last != before:  # an editor, or a checkout, writes several
            return tuple(sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path)))
        last = now


def _verify_one(
    selected: Selected,
    implementation: Implementation,
    runtime: Runtime,
    database: Database,
    logs: Path,
) -> Generator[Verdict | ServerDiedError]:
    """A verdict of HTTP and one of each test type, with the error of each server that died meanwhile.

    A fresh one is started for the test types that are left then, so that one request too much costs one verdict.
    """
    candidate = next(c for c in selected.candidates if c.implementation == implementation.name)
    log = logs / implementation.name / "verify.log"
    left: list[str] = [SERVER, *candidate.test_types]
    while left:
        database.restore()
        with runtime.start(implementation, database.address, log, ready_path=implementation.ready_path) as server:
            try:
                while left:
                    name = left.pop(0)
                    yield _verdict(server, database, name, candidate.test_types.get(name, ()))
                    server.require_alive()
            except ServerDiedError as error:
                yield ServerDiedError(f"while {name} was verified: {error}")


def _verdict(server: Server, database: Database, name: str, levels: Sequence[Load]) -> Verdict:
    """Of one test type, or of HTTP."""
    if name == SERVER:
        return verification.check_connection(server, process=0)
    kind = server.implementation.test_types[name]
    return verification.check(server, kind, database.address, process=0, thorough=True, loads=levels)


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
    selected = choose_work(settings)
    if len(selected.implementations) != 1:
        names = ", ".join(i.name for i in selected.implementations)
        raise UsageError(f"--mode debug starts one implementation, the selection has {names}; name one with --test")
    implementation = selected.implementations[0]
    fixed = replace(settings, server_port=settings.server_port or implementation.entry.port)
    console = SafeConsole()
    problems: list[str] = []
    with built(fixed, selected, console, problems) as (runtime, database, ready, logs):
        if not ready:
            return Exit.FAILED
        log = logs / implementation.name / "debug.log"
        path = implementation.ready_path
        with runtime.start(implementation, database.address, log, ready_path=path) as server:
            address = database.address
            for name, url in implementation.urls.items():
                console.print(f"{name:<13}{server.endpoint.url(url)}", soft_wrap=True)
            console.print(
                f"database     postgresql://{address.user}:{address.password}@{address.host}:{address.port}/{address.name}",
                soft_wrap=True,
            )
            console.print(f"startup time {format_seconds(server.startup_time)}; Ctrl-C stops it\n")
            follow(log, server.require_alive)
    return Exit.OK


def follow(log: Path, require_alive: Callable[[], None]) -> None:
    """Copy the log to stdout until interrupted or the server is gone."""
    with log.open(errors="replace") as file:
        while True:
            if text := file.read():
                sys.stdout.write(text)
                sys.stdout.flush()
                continue
            require_alive()
            time.sleep(0.2)


@contextmanager
def built(
    settings: Settings, selected: Selected, console: SafeConsole, problems: list[str]
) -> Iterator[tuple[Runtime, Database, list[Implementation], Path]]:
    """Build the selection and open the database; logs go to a scratch folder that stays when something failed."""
    logs = Path(tempfile.mkdtemp(prefix="tfb-logs-"))
    before = len(problems)
    keep = False
    try:
        yield from _built(settings, selected, console, problems, logs)
        keep = len(problems) > before
    except TfbError:
        keep = any(logs.rglob("*.log"))  # its message names one
        raise
    finally:
        if not keep:
            shutil.rmtree(logs, ignore_errors=True)


def _built(
    settings: Settings, selected: Selected, console: SafeConsole, problems: list[str], logs: Path
) -> Iterator[tuple[Runtime, Database, list[Implementation], Path]]:
    with _going_on("making the runtime ready"):
        run_id = logs.name.replace("_", "-")
        runtime = choose(settings, selected.implementations, logs, run_id=run_id)
    if settings.runtime == "auto" and not settings.quiet:
        print(f"{runtime.name} runtime (auto; --runtime docker or local chooses)", file=sys.stderr)
    ready = _build_all(runtime, selected, console, problems, logs)
    with ExitStack() as stack:
        with _going_on("starting PostgreSQL"):
            database = stack.enter_context(open_database(settings, runtime))
        yield runtime, database, ready, logs


@contextmanager
def _going_on(what: str) -> Iterator[None]:
    """A line on stderr every five seconds, while something is made that shows nothing itself."""
    console = SafeConsole(stderr=True, highlight=False)
    with beats(lambda seconds: console.print(f"{what}: {whole_seconds(seconds)}", soft_wrap=True)):
        yield


def _build_all(
    runtime: Runtime, selected: Selected, console: SafeConsole, problems: list[str], logs: Path
) -> list[Implementation]:
    """Those that could be built; what a build is at is told on stderr."""
    ready = []
    for implementation in selected.implementations:
        folder = logs / implementation.name
        folder.mkdir(exist_ok=True)
        with _building(implementation.name, folder / "build.log"):
            build = runtime.build(implementation, folder / "build.log")
        if build.status == "ok":
            ready.append(implementation)
            continue
        problems.append(f"{implementation.name} {build.status}: {build.reason}")
        console.print(Text(f"! {problems[-1]}", "red"))
    return ready


@contextmanager
def _building(name: str, log: Path) -> Iterator[None]:
    """On a terminal one line that changes each second, else a line now and then; both on stderr."""
    console = SafeConsole(stderr=True, highlight=False)
    if not console.is_terminal:
        with beats(lambda seconds: console.print(Text(f"building {name}: {still(seconds, log)}"), soft_wrap=True)):
            yield
        return
    with (
        console.status(Text(f"building {name}")) as status,
        beats(lambda seconds: status.update(Text(f"building {name}: {still(seconds, log)}")), every=1.0),
    ):
        yield
