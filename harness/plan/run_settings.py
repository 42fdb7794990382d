"""The settings of a run after flags, profile and defaults have been combined."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.errors import UsageError
from harness.paths import FRAMEWORKS, RESULTS
from harness.plan.discovery import Selection
from harness.plan.hosts import ExistingDatabase, Hosts
from harness.plan.implementation import Implementation, Rules
from harness.plan.profile import Profile
from harness.plan.requests import UNITS
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import Load
from harness.records.measurements import LatencyGoal

DEFAULT_PROFILE = "quick"
LATENCY_GOAL = re.compile(r"p(?P<percentile>\d{1,2}(?:\.\d+)?)=(?P<time>\d+(?:\.\d+)?)(?P<unit>us|ms|s)")
Mode = Literal["benchmark", "verify", "debug"]
RuntimeName = Literal["auto", "docker", "local"]
Consent = Literal["ask", "yes", "no"]  # the command line resolves "ask" before a run starts


@dataclass(frozen=True, kw_only=True)
class ControlCopy:
    """A second copy of each selected implementation, named ``name + suffix`` and measured in the same rounds."""

    suffix: str
    frameworks: tuple[Path, ...]  # the original folders (A/A comparison), or folders at a different commit


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a run. Flags override the profile, which overrides the defaults."""

    command: tuple[str, ...]
    mode: Mode = "benchmark"
    selection: Selection = field(default_factory=Selection)
    test_types: tuple[str, ...] = tuple(TEST_TYPES)
    profile: Profile
    runtime: RuntimeName = "auto"
    seed: int
    results_name: str
    results_environment: str
    results: Path = RESULTS
    frameworks: tuple[Path, ...] = (FRAMEWORKS,)
    rules: Rules | None = None  # None if the implementation's folder determines the rules
    hosts: Hosts = field(default_factory=Hosts)
    network_mode: Literal["host", "bridge"] | None = None
    cpuset_cpus: str | None = None
    container_memory: str | None = None
    container_pids: int | None = None  # maximum number of processes and threads in the server's container
    container_allow: tuple[str, ...] = ()  # keys to permit in a service's compose file: SERVICE=KEY,...
    server_port: int | None = None
    allow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # implementation -> container privileges
    force_rm: bool = False
    reverse_order: bool = False
    quiet: bool = False
    json: bool = False
    verdict_format: Literal["text", "github", "junit", "json"] = "text"  # output format for verification
    watch: bool = False  # whether to verify again whenever a file changes
    strict: bool = False  # whether verification also checks the requirements for pull requests, such as a README
    dry_run: bool = False
    resume: str | None = None
    consent: Consent = "ask"
    control_copy: ControlCopy | None = None
    part: tuple[int, int] | None = None  # (number, count) of the part to measure
    services: tuple[Implementation, ...] = ()  # service versions to measure instead of selected implementations
    # Implementation -> test type -> loads to measure. None: measure all cells.
    cells: Mapping[str, Mapping[str, tuple[Load, ...]]] | None = None
    claims: tuple[str, ...] = ()  # names of the claims that the run tests, recorded in run.json

    @property
    def starts_database(self) -> bool:
        """True if the run starts a PostgreSQL server."""
        needed = not self.services or any(service.entry.database == "postgres" for service in self.services)
        return needed and not isinstance(self.hosts.database, ExistingDatabase)

    @property
    def requirements(self) -> Mapping[str, Any]:
        """Keyword arguments for ``tool_requirements``."""
        loads = self.mode == "benchmark"
        return {
            "own_database": self.starts_database,
            "wrk": not self.services,
            "loads": loads,
            "witnesses": loads and self.profile.has_witnesses,
        }


def parse_latency_goal(text: str) -> LatencyGoal:
    """Parse a latency goal, for example ``p99=10ms``, ``p99.9=500us`` or ``p50=1s``. Raises UsageError."""
    if match := LATENCY_GOAL.fullmatch(text.strip().lower()):
        percentile, seconds = float(match["percentile"]), float(match["time"]) * UNITS[match["unit"]]
        if 50 <= percentile < 100 and seconds > 0:
            return LatencyGoal(percentile=percentile, seconds=seconds)
    raise UsageError(
        f"--latency-goal: {text!r} is not a goal such as p99=10ms. "
        "Use a percentile from 50 to below 100, and a time in us, ms or s"
    )


def parse_cpus(text: str | None, usable: tuple[int, ...]) -> tuple[int, ...] | None:
    """Parse a CPU list such as ``0-3,8``, or return None if it is empty. Raises UsageError for unusable CPUs."""
    if not text:
        return None
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers = [int(word) for word in (first, last or first) if word.isdecimal() and len(word) < 6]
        if len(numbers) != 2 or numbers[1] < numbers[0]:
            raise UsageError(f"--cpuset-cpus: {text[:80]!r} is not a CPU list such as 0-3,8")
        cpus.update(range(numbers[0], numbers[1] + 1))
    if absent := cpus - set(usable):
        allowed = ",".join(map(str, usable))
        raise UsageError(f"--cpuset-cpus: CPU {min(absent)} is not available to this process; use {allowed}")
    return tuple(sorted(cpus))


def split_cpus(text: str | None, usable: tuple[int, ...]) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return (CPUs of the server, CPUs of the database and load generator). None means all usable CPUs."""
    server = parse_cpus(text, usable)
    remaining = tuple(cpu for cpu in usable if server and cpu not in server)
    return server, remaining or None
