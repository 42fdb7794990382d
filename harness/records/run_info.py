"""The record of a run, run.json, and of the machines that the run used."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.loads import Load
from harness.records.record import SCHEMA_VERSION, EpochSeconds, Int64, Record


class Machine(Record):
    """Facts about a machine, and a grade of its suitability for measurements."""

    hostname: str
    os: str
    kernel: str
    cpu_model: str
    cpus_online: Int64
    cpus_usable: tuple[Int64, ...]
    memory_bytes: Int64
    governor: str | None = None
    turbo: bool | None = None
    smt: bool | None = None
    virtualised: str | None = None
    nofile_soft: Int64 | None = None
    nofile_hard: Int64 | None = None
    load_average: float | None = None
    pressure_cpu: Annotated[float | None, Field(alias="pressure_cpu_percent")] = None  # PSI "some avg10", percent
    steal_share: float | None = None  # share of CPU time that the hypervisor withholds, 0 to 1
    cpu_quota: float | None = None  # number of CPUs that the container's quota allows
    grade: str = ""  # from "A" (idle, fixed clock) to "D" (shared and busy)
    concerns: tuple[str, ...] = ()  # likely sources of noise, which determine the grade


class NoiseFloor(Record):
    """The difference that ``compare --copy`` measured between two copies of an implementation.

    The noise floor depends on the machine and the profile. Comparisons do not report differences below it.
    """

    implementation: str
    profile: str
    measured_at: EpochSeconds
    pairs: Int64  # number of pairs of processes
    throughput: Annotated[float, Field(alias="throughput_relative")]  # relative difference, for example 0.03
    cpu_per_request: Annotated[float, Field(alias="cpu_per_request_relative")]


class MachineSet(Record):
    """The machines (server, database, clients) of a deployment that contributed processes to a merged run."""

    name: str
    machine: Machine  # the server
    runs: tuple[str, ...] = ()  # ids of the deployment's runs
    processes: tuple[Int64, ...] = ()  # numbers of the deployment's processes in the merged run


class Part(Record):
    """A part of a selection. All parts contain the baseline, and every other implementation is in exactly one part."""

    number: Int64  # from 1; 0 for a run that joins all parts
    count: Int64  # number of parts
    selection: tuple[str, ...]  # names of the implementations in all parts


class RoleMachine(Record):
    """A machine and its role in a run on several machines."""

    role: str  # "server", "database", "client 1", ...
    name: str
    address: str  # address at which the other machines reach this machine
    engine: str  # version of the container engine
    machine: Machine


class MachineLink(Record):
    """The network link between two machines, measured over TCP before the run."""

    of: str  # name of the first machine
    to: str  # name of the second machine
    round_trip: Annotated[float, Field(alias="round_trip_seconds")]  # median
    throughput: Annotated[float, Field(alias="bytes_per_second")]  # from ``of`` to ``to``


class BuildRecord(Record):
    """The build of an implementation."""

    status: Literal["ok", "failed", "skipped"]
    reason: str = ""
    duration: Annotated[float | None, Field(alias="duration_seconds")] = None
    log: str | None = None  # path relative to the run's folder
    commands: tuple[str, ...] = ()
    tools: dict[str, str] = Field(default_factory=dict)  # versions and paths: {"java": "25.0.3 (/path)"}
    image: str | None = None
    image_digest: str | None = None
    image_bytes: Int64 | None = None
    stand_ins: tuple[str, ...] = ()  # base images that tfb replaced with Debian and a toolchain


class ImplementationInfo(Record):
    """An implementation as described by benchmark_config.json, and its build."""

    name: str
    framework: str
    project: str = ""  # framework of the configuration file; the entry's ``framework`` may differ
    language: str
    folder: str  # path relative to the repository, for example frameworks/Java/resteasy
    display_name: str
    approach: str = ""
    classification: str = ""
    platform: str = ""
    webserver: str = ""
    database: str = ""
    orm: str = ""
    os: str = ""
    database_os: str = ""
    flavor: str = ""
    notes: str = ""
    versus: str = ""
    tags: tuple[str, ...] = ()
    maintainers: tuple[str, ...] = ()
    test_types: tuple[str, ...] = ()
    digest: str = ""  # hash of the configuration; resuming a run requires the same hash
    rules: str = "tfb"  # rule set for verification: tfb or techempower
    allowed: tuple[str, ...] = ()  # additional privileges of the implementation's container
    build: BuildRecord | None = None


# complete: every cell was measured. incomplete: nothing failed, but there was no time to measure every cell.
# failed: some cells could not be measured. interrupted: --resume can continue the run.
RunStatus = Literal["running", "complete", "incomplete", "failed", "interrupted"]


class RunInfo(Record):
    """Settings, machine, implementations and status of a run."""

    schema_version: Int64 = Field(default=SCHEMA_VERSION, ge=SCHEMA_VERSION, le=SCHEMA_VERSION)
    run_id: str
    name: str
    environment: str
    status: RunStatus
    started_at: EpochSeconds
    completed_at: EpochSeconds | None = None
    command: tuple[str, ...]
    profile: str
    runtime: str
    design: str = "interleaved"  # order and number of measurements; see docs/method.md
    generator: str = "loadgen"
    seed: Int64
    settings: dict[str, object]  # all resolved settings
    reference: str | None = None  # baseline of the overall score
    machine: Machine
    tools: dict[str, str]  # versions of wrk, postgres, docker, python, tfb, ...
    revision: str | None = None  # git commit
    dirty: bool | None = None
    implementations: tuple[ImplementationInfo, ...]
    loads: dict[str, tuple[Load, ...]]  # test type -> planned loads
    # Implementation -> test type -> loads, if the run measures only some cells; empty if it measures all cells.
    cells: dict[str, dict[str, tuple[Load, ...]]] = Field(default_factory=dict)
    processes_expected: Int64  # minimum number of processes per implementation
    processes_maximum: Int64  # maximum number of processes per implementation
    noise_floor: NoiseFloor | None = None
    problems: tuple[str, ...] = ()
    sets: tuple[MachineSet, ...] = ()  # machines of a run that was merged from several runs
    part: Part | None = None  # None if the run measures the whole selection
    left_out: tuple[str, ...] = ()  # sentences that describe data which was removed before publication
    machines: tuple[RoleMachine, ...] = ()  # all machines of a run on several machines; ``machine`` is the server's
    links: tuple[MachineLink, ...] = ()  # network links between ``machines``

    @property
    def network_path(self) -> str:
        """The path of a request from the load generator to the server: loopback, Docker bridge or network."""
        if self.machines:
            return "network"
        return {"host": "loopback", "bridge": "Docker bridge"}.get(f"{self.settings.get('network')}", "unknown")

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions, by name, that two runs must share so that they can be compared."""
        cpus = self.settings.get("cpuset_cpus") or f"all {len(self.machine.cpus_usable)}"
        return {"network path": self.network_path, "runtime": self.runtime, "server CPUs": f"{cpus}"}
