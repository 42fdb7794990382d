"""The record of a run, run.json, and of the machines that the run used."""

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from harness.records.loads import Load
from harness.records.record import SCHEMA_VERSION, EpochSeconds, Int64, Record


class Machine(Record):
    """A machine's properties, and a grade for its suitability for measurements."""

    hostname: str  # machine name
    os: str  # operating system name and version
    kernel: str  # kernel version
    cpu_model: str  # CPU model
    cpus_online: Int64  # number of online CPUs
    cpus_usable: tuple[Int64, ...]  # ids of the CPUs that tfb may use
    memory_bytes: Int64  # memory size, or the control group's limit if it is lower
    governor: str | None = None  # CPU frequency governor; None if unknown
    turbo: bool | None = None  # whether turbo is enabled; None if unknown
    smt: bool | None = None  # whether simultaneous multithreading is enabled; None if unknown
    virtualised: str | None = None  # product name of the hypervisor; None if the machine is not virtual
    nofile_soft: Int64 | None = None  # soft limit on open files; None if unlimited
    nofile_hard: Int64 | None = None  # hard limit on open files; None if unlimited
    load_average: float | None = None  # load average over one minute; None if unknown
    # Percentage of time during which at least one task waited for a CPU (PSI "some avg10"); None if unknown.
    pressure_cpu: Annotated[float | None, Field(alias="pressure_cpu_percent")] = None
    steal_share: float | None = None  # share of CPU time that the hypervisor withholds, 0 to 1; None if unknown
    cpu_quota: float | None = None  # number of CPUs that the container's quota allows; None if there is no quota
    grade: str = ""  # grade from "A" (idle, fixed clock) to "D" (shared and busy)
    concerns: tuple[str, ...] = ()  # likely sources of noise, which determine the grade


class NoiseFloor(Record):
    """The difference between two copies of the same implementation, as measured by ``compare --copy``.

    The noise floor depends on the machine and the profile. Comparisons report no differences below the noise floor.
    """

    implementation: str  # implementation that was measured twice
    profile: str  # profile name
    measured_at: EpochSeconds  # measurement time, in seconds since 1970
    pairs: Int64  # number of process pairs, each with one process of each copy
    # Noise floor of throughput as a relative difference, for example 0.03.
    throughput: Annotated[float, Field(alias="throughput_relative")]
    # Noise floor of CPU per request as a relative difference.
    cpu_per_request: Annotated[float, Field(alias="cpu_per_request_relative")]


class MachineSet(Record):
    """A deployment or part that contributed processes to a merged run, and the server's machine."""

    name: str  # name of the deployment or part
    machine: Machine  # server's machine
    runs: tuple[str, ...] = ()  # ids of this deployment's or part's runs
    processes: tuple[Int64, ...] = ()  # numbers that the contributed processes have in the merged run


class Part(Record):
    """A part of a selection of implementations. All parts share the baseline, but no other implementation."""

    number: Int64  # part number, from 1; 0 for a run that joins all parts
    count: Int64  # number of parts
    selection: tuple[str, ...]  # names of the implementations in all parts


class RoleMachine(Record):
    """A machine and its role in a run on several machines."""

    role: str  # machine role: "server", "database", "client 1", ...
    name: str  # machine name
    address: str  # address at which the other machines reach this machine
    engine: str  # container engine version
    machine: Machine  # the machine's properties


class MachineLink(Record):
    """The network link between two machines, measured over TCP before the run."""

    of: str  # first machine's name
    to: str  # second machine's name
    round_trip: Annotated[float, Field(alias="round_trip_seconds")]  # median round-trip time
    throughput: Annotated[float, Field(alias="bytes_per_second")]  # throughput from ``of`` to ``to``


class BuildRecord(Record):
    """The result of building an implementation."""

    status: Literal["ok", "failed", "skipped"]  # whether the build succeeded, failed or was skipped
    reason: str = ""  # why the build failed or was skipped
    duration: Annotated[float | None, Field(alias="duration_seconds")] = None  # build duration
    log: str | None = None  # path of the build log, relative to the run's folder
    commands: tuple[str, ...] = ()  # build command lines
    tools: dict[str, str] = Field(default_factory=dict)  # tool -> version and path: {"java": "25.0.3 (/path)"}
    image: str | None = None  # tag of the implementation's image; None if the run did not use Docker
    image_digest: str | None = None  # image id
    image_bytes: Int64 | None = None  # image size
    stand_ins: tuple[str, ...] = ()  # base images that tfb replaced with Debian and a toolchain


class ImplementationInfo(Record):
    """An implementation as described by benchmark_config.json, and the result of the build."""

    name: str  # implementation name
    framework: str  # framework name in results
    project: str = ""  # top-level ``framework`` in benchmark_config.json; ``framework`` in ``tests`` may differ
    language: str  # programming language
    folder: str  # path relative to the repository, for example frameworks/Java/resteasy
    display_name: str  # name in TechEmpower's results
    approach: str = ""  # style of the code, as in benchmark_config.json
    classification: str = ""  # scope of the framework, as in benchmark_config.json
    platform: str = ""  # platform on which the framework runs
    webserver: str = ""  # web server in front of the framework
    http_server: str = ""  # program or library that parses HTTP
    concurrency: str = ""  # concurrency model, for example event loops or virtual threads
    database_driver: str = ""  # library that speaks the database protocol
    json_library: str = ""  # library that serialises JSON
    template_engine: str = ""  # engine that renders the fortunes page
    database: str = ""  # database that the implementation uses
    orm: str = ""  # how the implementation accesses the database
    os: str = ""  # server's operating system
    database_os: str = ""  # database's operating system
    flavor: str = ""  # variant of the language
    notes: str = ""  # remarks from benchmark_config.json
    versus: str = ""  # name of an implementation to compare this one with
    tags: tuple[str, ...] = ()  # tags from benchmark_config.json
    maintainers: tuple[str, ...] = ()  # maintainers' GitHub accounts
    test_types: tuple[str, ...] = ()  # supported test types
    digest: str = ""  # configuration hash; resuming a run requires the same hash
    rules: str = "tfb"  # rule set for verification: tfb or techempower
    allowed: tuple[str, ...] = ()  # privileges that the user granted with --allow
    build: BuildRecord | None = None  # build result; None if the implementation has not been built


# complete: every cell was measured. incomplete: no cell failed, but there was no time to measure every cell.
# failed: some cells could not be measured. interrupted: --resume can continue the run.
RunStatus = Literal["running", "complete", "incomplete", "failed", "interrupted"]


def _require_finite(value: dict[str, object], info: ValidationInfo) -> dict[str, object]:
    """Raise ValueError if JSON contains a number that Python reads as infinity or NaN, for example 1e999."""
    if info.mode == "json":
        json.dumps(value, allow_nan=False)
    return value


class RunInfo(Record):
    """Settings, machine, implementations and status of a run."""

    # Version of the record format.
    schema_version: Int64 = Field(default=SCHEMA_VERSION, ge=SCHEMA_VERSION, le=SCHEMA_VERSION)
    run_id: str  # run id, which is also the name of the run's folder
    name: str  # run title
    environment: str  # machine description (`--results-environment`)
    # State of the run: running, complete (every cell was measured), incomplete (time ran out before every cell was
    # measured), failed (some cells could not be measured) or interrupted (`--resume` can continue the run).
    status: RunStatus
    started_at: EpochSeconds  # start time of the run, in seconds since 1970
    completed_at: EpochSeconds | None = None  # end time of the run, in seconds since 1970; None until the run ends
    command: tuple[str, ...]  # command line that started the run
    profile: str  # profile name
    runtime: str  # server runtime: local or docker
    design: str = "interleaved"  # design that determines the order and number of measurements; see docs/method.md
    generator: str = "loadgen"  # load generator for closed loops
    seed: Int64  # seed of all random choices, such as the order of measurement
    # All settings, after flags, profile and defaults were combined.
    settings: Annotated[dict[str, object], AfterValidator(_require_finite)]
    reference: str | None = None  # name of the baseline, to which ratios and scores refer
    machine: Machine  # server's machine
    tools: dict[str, str]  # versions of programs such as wrk, postgres, docker and python
    revision: str | None = None  # git commit of tfb; None if unknown
    dirty: bool | None = None  # whether the working tree of tfb differed from the commit; None if unknown
    implementations: tuple[ImplementationInfo, ...]  # selected implementations
    loads: dict[str, tuple[Load, ...]]  # test type -> planned loads
    # Implementation -> test type -> selected loads; empty if the run measures all cells.
    cells: dict[str, dict[str, tuple[Load, ...]]] = Field(default_factory=dict)
    processes_expected: Int64  # minimum number of processes per implementation
    processes_maximum: Int64  # maximum number of processes per implementation
    noise_floor: NoiseFloor | None = None  # latest noise floor of the same machine and profile; None if not measured
    problems: tuple[str, ...] = ()  # messages about broken configuration files, and about failures during the run
    sets: tuple[MachineSet, ...] = ()  # deployments or parts of a merged run; empty for other runs
    # The part of the selection that this run measures; None if it measures the whole selection.
    part: Part | None = None
    left_out: tuple[str, ...] = ()  # sentences that describe data removed before publication
    machines: tuple[RoleMachine, ...] = ()  # machines of a multi-machine run; ``machine`` is the server's
    links: tuple[MachineLink, ...] = ()  # network links between ``machines``

    @property
    def network_path(self) -> str:
        """How requests reach the server from the load generator: loopback, Docker bridge or network."""
        if self.machines:
            return "network"
        return {"host": "loopback", "bridge": "Docker bridge"}.get(f"{self.settings.get('network')}", "unknown")

    @property
    def conditions(self) -> dict[str, str]:
        """Conditions that must be equal if two runs are compared: name of the condition -> value."""
        cpus = self.settings.get("cpuset_cpus") or f"all {len(self.machine.cpus_usable)}"
        return {"network path": self.network_path, "runtime": self.runtime, "server CPUs": f"{cpus}"}
