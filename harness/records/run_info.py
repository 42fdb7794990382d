"""The record of a run, run.json."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.loads import Load
from harness.records.machine_record import Machine, MachineLink, MachineSet, NoiseFloor, RoleMachine
from harness.records.record import SCHEMA_VERSION, EpochSeconds, Int64, Record


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
    stand_ins: tuple[str, ...] = ()  # base images that were replaced by Debian with a toolchain


class ImplementationInfo(Record):
    """An implementation as described by benchmark_config.json, and its build."""

    name: str
    framework: str
    project: str = ""  # framework of the configuration file; the entry may name a different framework
    language: str
    folder: str  # relative to the repository, for example frameworks/Java/resteasy
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
    rules: str = "tfb"  # rule set of verification: tfb or techempower
    allowed: tuple[str, ...] = ()  # additional privileges of the implementation's container
    build: BuildRecord | None = None


# complete: each cell was measured. incomplete: nothing failed, but the time limit was reached first. failed: some cells
# could not be measured. interrupted: --resume continues the run.
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
    design: str = "interleaved"  # determines order and number of measurements; see docs/method.md
    generator: str = "loadgen"
    seed: Int64
    settings: dict[str, object]  # all resolved settings
    reference: str | None = None  # baseline of the overall score
    machine: Machine
    tools: dict[str, str]  # versions of wrk, postgres, docker, python, the harness, ...
    revision: str | None = None  # git commit
    dirty: bool | None = None
    implementations: tuple[ImplementationInfo, ...]
    loads: dict[str, tuple[Load, ...]]  # test type -> planned loads
    # Implementation -> test type -> loads, if the run measures only some cells. Empty: all cells.
    cells: dict[str, dict[str, tuple[Load, ...]]] = Field(default_factory=dict)
    processes_expected: Int64  # per implementation
    processes_maximum: Int64
    noise_floor: NoiseFloor | None = None
    problems: tuple[str, ...] = ()
    sets: tuple[MachineSet, ...] = ()  # machines of a run that was merged from several deployments
    left_out: tuple[str, ...] = ()  # sentences about data that a published example omits
    machines: tuple[RoleMachine, ...] = ()  # machines of a run on several machines; ``machine`` is the server
    links: tuple[MachineLink, ...] = ()  # network links between ``machines``
