"""The record of a run as a whole: run.json."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.loads import Load
from harness.records.machine_record import Machine, MachineLink, MachineSet, NoiseFloor, RoleMachine
from harness.records.record import SCHEMA_VERSION, EpochSeconds, Int64, Record


class BuildRecord(Record):
    """How an implementation was built."""

    status: Literal["ok", "failed", "skipped"]
    reason: str = ""
    duration: Annotated[float | None, Field(alias="duration_seconds")] = None
    log: str | None = None  # path relative to the run's folder
    commands: tuple[str, ...] = ()
    tools: dict[str, str] = Field(default_factory=dict)  # "java": "25.0.3 (/path)", as used
    image: str | None = None
    image_digest: str | None = None
    image_bytes: Int64 | None = None
    stand_ins: tuple[str, ...] = ()  # base images that Debian with the toolchain stood in for


class ImplementationInfo(Record):
    """What benchmark_config.json says of an implementation, with how it was built."""

    name: str
    framework: str
    project: str = ""  # the framework that its file is of, whatever the entry calls its own
    language: str
    folder: str  # relative to the repository, e.g. frameworks/Java/resteasy
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
    digest: str = ""  # of what benchmark_config.json says of it: a run is resumed only with the same
    rules: str = "tfb"  # by which it is verified: tfb or techempower
    allowed: tuple[str, ...] = ()  # privileges that it ran with beyond a container's usual ones
    build: BuildRecord | None = None


# complete: every cell was measured. incomplete: nothing failed, but time was up before some cells were tried.
# failed: something else kept cells from being measured. interrupted: --resume continues the run.
RunStatus = Literal["running", "complete", "incomplete", "failed", "interrupted"]


class RunInfo(Record):
    """run.json: what was asked, where, with what, and how it ended."""

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
    design: str = "interleaved"  # in which order and how often cells are measured: docs/method.md
    generator: str = "loadgen"
    seed: Int64
    settings: dict[str, object]  # every resolved setting, for the record
    reference: str | None = None  # implementation that the overall score is relative to
    machine: Machine
    tools: dict[str, str]  # wrk, postgres, docker, python, harness revision ...
    revision: str | None = None  # git commit
    dirty: bool | None = None
    implementations: tuple[ImplementationInfo, ...]
    loads: dict[str, tuple[Load, ...]]  # test type -> planned loads
    # Implementation -> test type -> loads, of a run that measures some cells alone; empty: all of them.
    cells: dict[str, dict[str, tuple[Load, ...]]] = Field(default_factory=dict)
    processes_expected: Int64  # of each implementation
    processes_maximum: Int64
    noise_floor: NoiseFloor | None = None
    problems: tuple[str, ...] = ()
    sets: tuple[MachineSet, ...] = ()  # of a run of several deployments
    left_out: tuple[str, ...] = ()  # sentences: what an example that ships lacks
    machines: tuple[RoleMachine, ...] = ()  # of a run on several; ``machine`` is the server's
    links: tuple[MachineLink, ...] = ()  # between them
