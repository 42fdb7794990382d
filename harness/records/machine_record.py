"""Records of the machines that a run used."""

from typing import Annotated

from pydantic import Field

from harness.records.record import EpochSeconds, Int64, Record


class Machine(Record):
    """Facts about a machine, and a grade for likely sources of noise."""

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
    steal_share: float | None = None
    cpu_quota: float | None = None  # number of CPUs that the container's quota allows
    grade: str = ""  # from "A" (idle, fixed clock) to "D" (shared and busy)
    concerns: tuple[str, ...] = ()


class NoiseFloor(Record):
    """The difference between two copies of an implementation on this machine with a profile (``compare --copy``).

    Comparisons report smaller differences as no difference.
    """

    implementation: str
    profile: str
    measured_at: EpochSeconds
    pairs: Int64
    throughput: Annotated[float, Field(alias="throughput_relative")]  # relative difference, for example 0.03
    cpu_per_request: Annotated[float, Field(alias="cpu_per_request_relative")]


class MachineSet(Record):
    """A set of machines (server, database, clients) on which some processes of a merged run were measured."""

    name: str
    machine: Machine  # the server
    runs: tuple[str, ...] = ()  # ids of the runs on these machines
    processes: tuple[Int64, ...] = ()  # process numbers in the merged run


class RoleMachine(Record):
    """A machine and its role in a run on several machines."""

    role: str  # "server", "database", "client 1", ...
    name: str
    address: str  # address that the other machines use
    engine: str  # version of the container engine
    machine: Machine


class MachineLink(Record):
    """The network link between the machines of two roles, measured by TCP before the run."""

    of: str
    to: str
    round_trip: Annotated[float, Field(alias="round_trip_seconds")]  # median
    throughput: Annotated[float, Field(alias="bytes_per_second")]  # in the direction from ``of`` to ``to``
