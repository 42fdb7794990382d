"""Records of the machines that a run used."""

from typing import Annotated

from pydantic import Field

from harness.records.record import EpochSeconds, Int64, Record


class Machine(Record):
    """Facts of the machine, and its grade: what would disturb a measurement."""

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
    pressure_cpu: Annotated[float | None, Field(alias="pressure_cpu_percent")] = None  # PSI "some avg10", per cent
    steal_share: float | None = None
    cpu_quota: float | None = None  # CPUs that the container's quota allows
    grade: str = ""  # "A" quiet and fixed-clock .. "D" shared and busy
    concerns: tuple[str, ...] = ()


class NoiseFloor(Record):
    """The A/A difference of this machine and profile (``compare --copy``): no smaller one is called a difference."""

    implementation: str
    profile: str
    measured_at: EpochSeconds
    pairs: Int64
    throughput: Annotated[float, Field(alias="throughput_relative")]  # relative, e.g. 0.03
    cpu_per_request: Annotated[float, Field(alias="cpu_per_request_relative")]


class MachineSet(Record):
    """A set of machines (server, database, clients) that processes of a merged run were measured on."""

    name: str
    machine: Machine  # of the server
    runs: tuple[str, ...] = ()  # ids of its runs
    processes: tuple[Int64, ...] = ()  # of the merged run


class RoleMachine(Record):
    """A machine of a run on several, with what it does there."""

    role: str  # "server", "database", "client 1", ...
    name: str
    address: str  # that the other machines use
    engine: str  # version
    machine: Machine


class MachineLink(Record):
    """Between two roles' machines, measured by TCP before the run."""

    of: str
    to: str
    round_trip: Annotated[float, Field(alias="round_trip_seconds")]  # seconds, median
    throughput: Annotated[float, Field(alias="bytes_per_second")]  # bytes a second, towards ``to``
