"""The modes without measurement: ``verify`` checks implementations, and ``debug`` runs a server until Ctrl-C."""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from rich.text import Text

from harness.console import SafeConsole
from harness.errors import Exit, TfbError, UsageError
from harness.experiment import first_use
from harness.experiment.progress import Display, ProgressTracker
from harness.experiment.selection import make_plan
from harness.experiment.stage_build import build_all
from harness.experiment.stage_measure import open_database
from harness.experiment.stage_prepare import preparing_runtime
from harness.experiment.verifying import Verification
from harness.paths import REPOSITORY
from harness.plan.implementation import Implementation
from harness.plan.plan import Plan
from harness.plan.run_settings import Settings
from harness.records.remove_tree import remove_tree_if_possible
from harness.records.run_info import BuildRecord
from harness.records.store import RunStore
from harness.records.verification_record import Outcome, VerificationRecord
from harness.report import terminal
from harness.report.verification_results import (
    REQUIREMENTS,
    ImplementationVerdict,
    VerificationReport,
    build_verdict,
    count_violations,
    format_test_types,
    group_verdict_causes,
    print_report,
    rule_location,
)
from harness.runtime import Runtime, SharedDatabase
from harness.runtime.choice import choose_runtime
from harness.units import format_seconds
from harness.verify.checks import CONDUCT

# Build output folders, which are not watched for changes. Folders with names that begin with a dot are not watched
# either.
BUILD_OUTPUT = {"node_modules", "target", "dist", "build", "bin", "obj", "__pycache__", "_build", "deps", "vendor"}
LOG_CHUNK = 1 << 20  # maximum number of characters to read from the log and print at once
POLL_SECONDS = 0.5  # interval between two scans for changed files
COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}m")  # colour codes to remove from a printed log
STYLES = {Outcome.PASS: "green", Outcome.WARN: "yellow", Outcome.FAIL: "red"}


def verify(settings: Settings) -> int:
    """Verify every selected implementation without load and return the exit code."""
    plan = make_plan(settings)
    as_text = settings.verdict_format == "text"
    console = terminal.make_console(sys.stdout if as_text else sys.stderr)
    progress = ProgressTracker(Display(quiet=settings.quiet))
    for problem in plan.problems:
        progress.problem(problem)
    with build_servers(settings, plan, progress) as servers:
        while True:
            verdicts: list[VerificationRecord] = []
            verdicts_by_implementation: list[ImplementationVerdict] = []
            for implementation in plan.implementations:
                started_at = time.monotonic()
                records, verdict = _judge(implementation, plan, servers, progress, strict=settings.strict)
                verdicts += records
                verdicts_by_implementation.append(verdict)
                if as_text:
                    _print_result(verdict, records, time.monotonic() - started_at, console, quiet=settings.quiet)
            skipped = [
                ImplementationVerdict(implementation=name, verdict="skipped", reason=reason)
                for name, reason in plan.skipped
            ]
            verdicts_by_implementation += skipped
            for each in skipped if as_text and not settings.quiet else ():
                console.print(Text(each.line))
            if not settings.watch:
                break
            plan = _wait_for_new_plan(settings, plan, progress)
            servers.builds = build_all(servers.runtime, plan, progress, servers.logs)
    if not as_text:
        folders = {i.name: i.info().folder for i in plan.implementations}
        report = VerificationReport(
            verdicts=verdicts, problems=progress.problems, folders=folders, implementations=verdicts_by_implementation
        )
        print_report(settings.verdict_format, report)
    passed = not progress.problems and all(verdict.outcome is not Outcome.FAIL for verdict in verdicts)
    return Exit.OK if passed else Exit.FAILED


def _judge(
    implementation: Implementation, plan: Plan, servers: "BuiltServers", progress: ProgressTracker, *, strict: bool
) -> tuple[list[VerificationRecord], ImplementationVerdict]:
    """Verify an implementation. Return the verdict on each test type, and on the implementation as a whole."""
    name, build = implementation.name, servers.builds[implementation.name]
    if unbuilt := build_verdict(name, build):
        reported = tuple(each for each in progress.problems if each.startswith(f"{name} {build.status}: "))
        return [], replace(unbuilt, problems=reported)
    before = len(progress.problems)
    kinds = plan.candidate(name).test_types
    verdicts = Verification(implementation, kinds, servers, progress, strict=strict).verdicts()
    problems = tuple(progress.problems[before:])
    violations = count_violations(verdicts)
    if not verdicts:
        return [], ImplementationVerdict(
            implementation=name, verdict="not started", reason=problems[0], problems=problems
        )
    if violations or problems:
        return verdicts, replace(
            ImplementationVerdict.failed(name, violations, next(iter(problems), "")), problems=problems
        )
    return verdicts, ImplementationVerdict(implementation=name, verdict="verified")


def _print_result(
    judged: ImplementationVerdict,
    verdicts: Sequence[VerificationRecord],
    seconds: float,
    console: SafeConsole,
    *,
    quiet: bool,
) -> None:
    """Print the verdicts on an implementation. If ``quiet`` is set, omit test types that passed."""
    relevant = [verdict for verdict in verdicts if not (quiet and verdict.outcome is Outcome.PASS)]
    if relevant:
        print_verdicts(relevant, console)
    if not (quiet and judged.verdict == "verified"):
        duration = f"; startup and checks took {format_seconds(seconds)}" if verdicts else ""
        console.print(terminal.format_verdict(judged, console).append(f"{duration}\n"))


def _wait_for_new_plan(settings: Settings, plan: Plan, progress: ProgressTracker) -> Plan:
    """Wait until a file in the selected folders changes, then return the new selection."""
    while True:
        folders = {i.folder for i in plan.implementations}
        progress.note(f"watching {', '.join(sorted(map(str, folders)))}; stop with Ctrl-C")
        files = wait_for_change(folders, time.sleep)
        names = ", ".join(path.name for path in files[:5]) + (" …" if len(files) > 5 else "")
        progress.note(f"changed: {names}")
        try:
            return make_plan(settings)
        except TfbError as error:  # for example, the user has saved a half-edited configuration
            progress.problem(str(error))


def wait_for_change(folders: Iterable[Path], sleep: Callable[[float], None]) -> list[Path]:
    """Wait until files change and then stay unchanged for one scan. Return the changed files.

    Unlike inotify, scanning needs no additional package and has no event queue that could overflow.
    """

    def scan() -> dict[Path, tuple[int, int]]:
        stamps: dict[Path, tuple[int, int]] = {}
        for root, names, files in (step for folder in folders for step in os.walk(folder)):
            names[:] = [name for name in names if name not in BUILD_OUTPUT and not name.startswith(".")]
            for path in (Path(root) / name for name in files):
                with suppress(OSError):  # the file has been deleted, or is a dangling link
                    stamps[path] = (path.stat().st_mtime_ns, path.stat().st_size)
        return stamps

    before = last = scan()
    while True:
        sleep(POLL_SECONDS)
        now = scan()
        if now == last != before:  # wait for a scan without changes, because editors and git write several files
            return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
        last = now


def print_verdicts(verdicts: Sequence[VerificationRecord], console: SafeConsole) -> None:
    """Print a line for each test type, then each violation or warning with the affected test types."""
    for verdict in verdicts:
        passed = sum(r.outcome is Outcome.PASS for r in verdict.results)
        line = Text.assemble(
            (f"{verdict.outcome.value:<5}", STYLES[verdict.outcome]),
            f" {verdict.implementation} {verdict.test_type}: {passed} of {len(verdict.results)} checks passed",
        )
        console.print(line)
    test_types = [verdict.test_type for verdict in verdicts if verdict.test_type != CONDUCT]
    for cause in group_verdict_causes(verdicts):
        result = cause.result
        where = format_test_types(cause, test_types)
        console.print(Text.assemble("      ", (result.check, STYLES[result.outcome]), f" in {where}: {result.message}"))
        if result.expected is not None:
            console.print(Text(f"        expected  {result.expected}"))
        if result.actual is not None:
            console.print(Text(f"        got       {result.actual}"))
        waiver = " (fails under --rules tfb; TechEmpower's rules do not require it)" if result.waived else ""
        link = f"link {(REPOSITORY / REQUIREMENTS).as_uri()}"
        console.print(Text(f"        rule      {rule_location(result.rule)} {result.rule}{waiver}", f"dim {link}"))


def debug(settings: Settings) -> int:
    """Start an implementation and a database. Print both addresses, then print the server's log until Ctrl-C."""
    plan = make_plan(settings)
    if len(plan.implementations) != 1:
        names = ", ".join(i.name for i in plan.implementations)
        raise UsageError(f"debug starts a single implementation, but {names} are selected. Give a single NAME")
    implementation = plan.implementations[0]
    settings = replace(settings, server_port=settings.server_port or implementation.entry.port)
    console, progress = SafeConsole(), ProgressTracker(Display(quiet=settings.quiet))
    with build_servers(settings, plan, progress) as servers:
        if servers.builds[implementation.name].status != "ok":
            return Exit.FAILED
        log, address = servers.logs.log(implementation.name, "debug"), servers.database.address
        with servers.runtime.start(implementation, address, log, ready_path=implementation.ready_path) as server:
            for name, url in implementation.urls.items():
                console.print(f"{name:<13}{server.endpoint.url(url)}", soft_wrap=True)
            console.print(
                f"database     postgresql://{address.user}:{address.password}@{address.host}:{address.port}/{address.name}",
                soft_wrap=True,
            )
            console.print(f"startup time {format_seconds(server.startup_time)}; stop with Ctrl-C\n")
            with log.open(errors="replace") as file:
                while True:
                    while text := file.read(LOG_CHUNK):
                        sys.stdout.write(COLOURS.sub("", text).replace("\r\n", "\n"))
                        sys.stdout.flush()
                    server.program.require_alive()
                    time.sleep(0.2)


@dataclass(kw_only=True)
class BuiltServers:
    """The built implementations, and the runtime and the database with which they run."""

    runtime: Runtime
    builds: Mapping[str, BuildRecord]
    logs: RunStore
    open_database: Callable[[], SharedDatabase]

    @cached_property
    def database(self) -> SharedDatabase:
        """The database. It starts on first access, so it never starts if all builds fail."""
        return self.open_database()


@contextmanager
def build_servers(settings: Settings, plan: Plan, progress: ProgressTracker) -> Iterator[BuiltServers]:
    """Build the selected implementations and yield them. When the block ends without a problem, remove the logs."""
    logs = RunStore(Path(tempfile.mkdtemp(prefix="tfb-logs-")), started_at=time.time())
    before, keep = len(progress.problems), False
    try:
        first_use_tasks = first_use.find_first_use_tasks(settings, plan)
        with preparing_runtime(first_use_tasks, progress):
            run_id = logs.run_id.replace("_", "-")
            runtime = choose_runtime(settings, plan.implementations, logs.folder / "logs", run_id=run_id)
        if settings.runtime == "auto":
            progress.note(f"{runtime.name} runtime (auto; choose with --runtime docker or --runtime local)")
        first_use.build_upstream(first_use_tasks, progress)
        builds = build_all(runtime, plan, progress, logs)
        with ExitStack() as stack:

            def start_database() -> SharedDatabase:
                with progress.preparing("starting PostgreSQL" if settings.starts_database else "starting"):
                    return stack.enter_context(open_database(settings, runtime))

            yield BuiltServers(runtime=runtime, builds=builds, logs=logs, open_database=start_database)
        keep = len(progress.problems) > before
    except TfbError:
        keep = any(logs.folder.rglob("*.log"))  # keep the logs, because the error message names a log
        raise
    finally:
        if not keep:
            remove_tree_if_possible(logs.folder)
