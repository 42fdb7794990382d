"""Fixtures and hooks for all tests: a shared PostgreSQL server, and skips for missing tools and extras."""

import gc
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from harness.cli.check import END_VARIABLE
from harness.cli.scans import NOT_JUDGED
from harness.host import interruption
from harness.paths import REPOSITORY
from harness.provisioning import requirements, toolchain
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.runtime.database.embedded import EmbeddedDatabase, embedded_database
from harness.tests.distribution import Grouped
from harness.tests.scene import Scene, new_scene

OUT_OF_TIME = f"{NOT_JUDGED}the check's time was over: run the tests with pytest, which has no limit"
EXTRAS = REPOSITORY / "harness" / "extras"
REMOVABLE = re.compile(r"harness(\.tests)?\.extras\.")


def pytest_configure() -> None:
    """Handle only the first interrupt, so that fixtures can stop their servers.

    Ctrl-C in a terminal also reaches ``./tfb check``, which then sends SIGTERM. A second interrupt would cut the
    clean-up short. A shell that starts the tests in the background makes them ignore interrupts, but tests send
    interrupts to programs.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    interruption.install_handlers(ask=lambda: None, kill=lambda: None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Run all tests of a group in the same process, so that they share servers and other expensive fixtures.

    pytest-xdist 3.8 has a mark for this purpose, but it does not work with pytest 9.2.
    """
    return Grouped(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Skip tests that need a missing engine, tool or extra. Where possible, the reason names a remedy."""
    lacks_engine = any(item.get_closest_marker("docker") for item in items) and not requirements.engine_responds()
    for item in items:
        removed = [
            mark.args[0]
            for mark in item.iter_markers("needs_extra")
            if not (EXTRAS / mark.args[0] / "__init__.py").exists()
        ]
        if removed:
            item.add_marker(pytest.mark.skip(reason=f"harness/extras/{removed[0]} has been removed"))
        if lacks_engine and item.get_closest_marker("docker"):
            item.add_marker(pytest.mark.skip(reason=f"no container engine responds: {requirements.ENGINE_REMEDY}"))
        for mark in item.iter_markers("needs"):
            kind, condition = mark.args
            if toolchain.find_tool(kind, condition) is None:
                item.add_marker(pytest.mark.skip(reason=f"{kind} {condition} is missing"))


def pytest_runtest_setup() -> None:
    """Skip tests that would start after the check's time is up."""
    if time.time() > float(os.environ.get(END_VARIABLE) or "inf"):
        pytest.skip(OUT_OF_TIME)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exempt imported modules and collected tests from garbage collection, because they live as long as the process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip modules that import a removed extra."""
    report = yield
    error = report.call.excinfo.value if report.failed and report.call and report.call.excinfo else None
    while error and not isinstance(error, ModuleNotFoundError):
        error = error.__cause__
    if error and REMOVABLE.match(error.name or ""):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"Skipped: {error.name} has been removed")
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report skipped tests and their reasons to ``./tfb check``."""
    target = os.environ.get("TFB_SKIPPED")
    if target is None:
        return
    skipped: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[report.nodeid.partition("::")[0], reason.removeprefix("Skipped: ")] += 1
    with Path(target).open("a", encoding="utf-8") as file:
        for (name, reason), count in skipped.items():
            file.write(json.dumps([f"{name} ({count} tests)", reason]) + "\n")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedDatabase]:
    """Start the PostgreSQL server that all tests share. It counts statements."""
    tool = toolchain.find_tool("postgres")
    if tool is None:
        pytest.skip("no PostgreSQL server on this machine")
    with embedded_database(tool, tmp_path_factory.mktemp("database") / "log") as running:
        with connect(running.address, admin=True) as admin:
            admin.execute("ALTER SYSTEM SET compute_query_id = on")
            admin.execute("SELECT pg_reload_conf()")
        yield running


@pytest.fixture(scope="module")
def database(postgres: EmbeddedDatabase) -> DatabaseAddress:
    """Restore the seeded tables and return the PostgreSQL server's address."""
    postgres.restore()
    return postgres.address


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Yield a temporary folder in which a test runs the real command line."""
    with new_scene() as created:
        yield created
