"""The settings of a run: flags over profile over defaults, parsed once into frozen values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.errors import UsageError
from harness.paths import FRAMEWORKS, RESULTS
from harness.plan.discovery import Implementation, Rules, Selection
from harness.plan.hosts import ExistingDatabase, Hosts
from harness.plan.profile import Profile
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import Load
from harness.records.measurements import LatencyGoal

DEFAULT_PROFILE = "quick"
GOAL = re.compile(r"p(?P<percentile>\d{1,2}(?:\.\d+)?)=(?P<time>\d+(?:\.\d+)?)(?P<unit>us|ms|s)")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
Mode = Literal["benchmark", "verify", "debug"]
RuntimeName = Literal["auto", "docker", "local"]
Consent = Literal["ask", "yes", "no"]  # "ask" ends at the command line: below it nothing asks


@dataclass(frozen=True, kw_only=True)
class ControlCopy:
    """A second copy of every selected implementation, measured in the same blocks under ``name + suffix``."""

    suffix: str
    frameworks: tuple[Path, ...]  # where the copies come from: the same folder (A/A) or another commit's


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that a run was asked for."""

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
    rules: Rules | None = None  # None: by the folder that an implementation stands in
    hosts: Hosts = field(default_factory=Hosts)
    network_mode: Literal["host", "bridge"] | None = None
    cpuset_cpus: str | None = None
    container_memory: str | None = None
    container_pids: int | None = None  # most processes and threads in the server's container
    container_allow: tuple[str, ...] = ()  # SERVICE=KEY,… of a compose file, in a comparison of a service
    server_port: int | None = None
    allow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # name -> privileges of its container
    force_rm: bool = False
    reverse_order: bool = False
    quiet: bool = False
    json: bool = False
    verdict_format: Literal["text", "github", "junit", "json"] = "text"  # of what verification finds
    watch: bool = False  # verify again whenever a file changes
    strict: bool = False  # verification fails what a pull request needs, such as a README
    dry_run: bool = False
    resume: str | None = None
    consent: Consent = "ask"
    control_copy: ControlCopy | None = None
    services: tuple[Implementation, ...] = ()  # sides of a service that are measured instead of what folders hold
    # Implementation -> test type -> levels: these cells alone, instead of all levels of all test types.
    cells: Mapping[str, Mapping[str, tuple[Load, ...]]] | None = None
    claims: tuple[str, ...] = ()  # that the run is made for, recorded with it

    @property
    def starts_database(self) -> bool:
        """Whether the run starts a PostgreSQL."""
        needed = not self.services or any(service.entry.database == "postgres" for service in self.services)
        return needed and not isinstance(self.hosts.database, ExistingDatabase)

    @property
    def requirements(self) -> Mapping[str, bool]:
        """What the harness itself needs on this machine."""
        return {"own_database": self.starts_database, "wrk": not self.services, "loads": self.mode == "benchmark"}


def parse_latency_goal(text: str) -> LatencyGoal:
    """``p99=10ms``, ``p99.9=500us``, ``p50=1s``; raises UsageError that says what is wrong."""
    if found := GOAL.fullmatch(text.strip().lower()):
        percentile, seconds = float(found["percentile"]), float(found["time"]) * UNITS[found["unit"]]
        if 50 <= percentile < 100 and seconds > 0:
            return LatencyGoal(percentile=percentile, seconds=seconds)
    raise UsageError(f"--latency-goal: {text!r} is not a goal such as p99=10ms: p50 to below p100, in us, ms or s")


def parse_cpus(text: str | None, usable: tuple[int, ...]) -> tuple[int, ...] | None:
    """CPUs of a list such as ``0-3,8``; raises UsageError for one that this process may not use."""
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
        raise UsageError(f"--cpuset-cpus: CPU {min(absent)} is not among those that may be used here ({allowed})")
    return tuple(sorted(cpus))


def split_cpus(text: str | None, usable: tuple[int, ...]) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """CPUs of the server, as ``--cpuset-cpus`` says, and those that are left for database and generator.

    None: all that may be used. Where nothing is left they share the server's.
    """
    server = parse_cpus(text, usable)
    left = tuple(cpu for cpu in usable if server and cpu not in server)
    return server, left or None
