"""The measurement profiles of config/*.toml: how long, how often, by which rules. Flags win over them."""

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import ConfigError
from harness.paths import PROFILES
from harness.results.records import LatencyGoal


class Section(BaseModel):
    """Base of all sections: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)  # built when first used


class Levels(Section):
    """The levels of the sweeps."""

    concurrency: tuple[int, ...] = Field(min_length=1)
    pipeline_concurrency: tuple[int, ...] = Field(min_length=1)
    query: tuple[int, ...] = Field(min_length=1)
    cached_query: tuple[int, ...] = Field(min_length=1)
    query_concurrency: int  # connections of the tests that sweep the query count
    pipeline_depth: int = 16


class WarmUpRule(Section):
    """When a server counts as warm: by rule (``steady``) or by TechEmpower's fixed times (``fixed``).

    Steady (research: CPU per request settles later than throughput): the median CPU per request of the last ``span``
    windows is within ``tolerance`` of that of the ``span`` windows before, ``times`` looks in a row, and
    ``minimum_requests`` have passed or ``patience_seconds`` have.
    """

    kind: Literal["steady", "fixed"] = "steady"
    primer_seconds: float = 1.0  # a few connections first, as TechEmpower does
    fixed_seconds: float = 15.0  # kind = "fixed"
    fixed_concurrency: int | None = None  # TechEmpower warms with its highest level; None: the level measured first
    pause_seconds: float = 0.0  # after primer and warm-up
    minimum_seconds: float = 3.0
    cap_seconds: float = 20.0
    jit_cap_seconds: float = 60.0  # cap for the languages and platforms in jit_platforms
    jit_platforms: tuple[str, ...] = (  # whole words of language, platform, web server or framework
        "jvm",
        "graal",
        "graalvm",
        "es4x",
        "vert.x",
        "undertow",
        "java",
        "kotlin",
        "scala",
        "clojure",
        "groovy",
    )
    span: int = 5
    tolerance: float = 0.05
    times: int = 3
    minimum_requests: int = 200_000
    patience_seconds: float = 20.0


GateName = Literal[
    "errors",
    "connections",
    "response-size",
    "unasked",
    "overrun",
    "restarted",
    "generator-bound",
    "contended",
    "throttled",
    "steal",
    "littles-law",
    "delayed-ack",
    "idle-servers",
    "probe",
]


class GateThresholds(Section):
    """What a sample may show and still be ranked; docs/method.md has the reasons."""

    overrun_seconds: float = 0.5
    overrun_share: float = 0.05
    response_size_tolerance: float = 0.02  # around the verified size
    unasked_tolerance: float = 0.05  # responses beyond one a request
    generator_busy: float = 0.85  # of one core for each generator thread
    wait_share: float = 0.05  # run-queue wait of the server: "contended"
    wait_share_fails: bool = False  # False: contended samples are repeated, then ranked with the word; True: kept out
    throttled_share: float = 0.01
    steal_share: float = 0.02
    little_tolerance: float = 0.10  # |N - X R| / N
    delayed_ack_tolerance: float = 0.15  # around c / 0.04 s, with idle CPU
    delayed_ack_idle: float = 0.5  # server CPU below this share of its CPUs
    idle_cpu_share: float = 0.005  # of one CPU, used by servers that are up beside the measured one
    ceiling_share: float = 0.01  # several implementations within this of the generator's ceiling
    failing: tuple[GateName, ...] = (
        "errors",
        "connections",
        "response-size",
        "unasked",
        "overrun",
        "restarted",
    )  # not ranked
    repeats: int = 1  # attempts beyond the first for a contended sample
    repeat_budget_share: float = 0.15  # of the run's planned measuring time


class Replication(Section):
    """How many replicates, and when to stop."""

    minimum: int = 3
    maximum: int = 3
    looks: tuple[int, ...] = ()  # replicate counts at which the stopping rule looks; empty: no early stop
    confidence: float = 0.95
    half_width: float = 0.025  # stop when the relative half-width of the interval is below


class Rounds(Section):
    """Servers stay alive side by side and are measured in short windows in turns, within a time."""

    time_seconds: float = Field(default=600.0, gt=0)  # from the first start of a server to the end; builds apart
    processes: int = Field(default=2, ge=1)  # most fresh processes of an implementation
    headline_seconds: float = Field(default=2.0, ge=1)  # of a window at the level that the headline table shows
    other_seconds: float = Field(default=1.0, ge=1)  # of a window at the other levels
    measured_share: float = Field(default=0.5, gt=0, lt=1)  # of the time that windows take at least; the rest is setup
    memory_share: float = Field(default=0.7, gt=0, le=1)  # of the free memory that servers may take together
    idle_cpu_share: float = 0.005  # of one CPU: a server that uses more while it should be idle is run alone


class Duets(Section):
    """Simultaneous measurements of neighbours (``--order duet``)."""

    starts: int = Field(default=6, ge=4)  # fresh starts of both servers: the unit, as pairs of one start share its luck
    pairs: int = Field(default=6, ge=2)  # in each start, slots swapped: cheap, and most of the noise is between them
    seconds: float = 2.0  # of one measurement: what disturbs one disturbs the other, so short ones suffice


class LatencyRules(Section):
    """Loads at given rates after the closed loop, and the search for the capacity at a latency goal."""

    goal: LatencyGoal = LatencyGoal()
    shares: tuple[float, ...] = (0.10, 0.25, 0.50, 0.70, 0.80, 0.90, 0.95)  # of the process's closed-loop throughput
    common_rates: tuple[float, ...] = ()  # requests/s, the same for all; those above 95 % of a capacity are left out
    time_seconds: float = Field(default=1140.0, gt=0)  # of all measuring; searches are cut short to keep it
    seconds: float = Field(default=1.5, ge=1)  # of one load
    drain_seconds: float = Field(default=2.0, ge=0)  # to wait for answers after a load
    search_loads: int = Field(default=5, ge=0)  # beyond those at shares
    bracket: float = Field(default=0.05, gt=0)  # the search ends when its two rates are this close, relative
    confidence: float = Field(default=0.95, gt=0, lt=1)  # of the binomial interval that decides one load
    rate_tolerance: float = 0.01  # responses in time against requests due
    lag_share: float = 0.2  # send lag p99 / latency p99: more, and the generator was measured
    least_lag_seconds: float = 100e-6  # below this a lag does not count, whatever its share
    unfinished_share: float = 0.0  # of the requests due
    spin_microseconds: float = 0.0  # the generator's --spin
    realtime: bool = True  # real-time priority of the generator, where allowed (local runtime, as root)
    machine_rate: float = 1000.0  # requests/s on the null server, for the machine's own wake-up


class Profile(Section):
    """One file of config/profiles."""

    name: str
    description: str
    duration_seconds: float = Field(ge=1)  # wrk counts in whole seconds; a fraction is rounded up
    pause_seconds: float = 0.0  # between levels
    test_types: tuple[str, ...] = ()  # without --type; empty: all that there are
    levels: Levels
    warm_up: WarmUpRule = WarmUpRule()
    gates: GateThresholds = GateThresholds()
    replication: Replication = Replication()
    rounds: Rounds | None = None  # None: a fresh process for each replicate, one server at a time
    latency: LatencyRules | None = None  # None: closed loop only
    duets: Duets = Duets()
    reference: str | None = None  # implementation that scores are relative to, where it is selected
    server_cpus: str | None = None  # cpuset of the server, e.g. "0-3"; None: all that the run may use
    other_cpus: str | None = None  # cpuset of database and generator
    runtime: Literal["auto", "docker", "local"] = "auto"


def names() -> tuple[str, ...]:
    """All profiles, by name."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.toml")))


def load(name: str) -> Profile:
    """The profile of this name, or of a path to a TOML file of one's own."""
    path = Path(name) if name.endswith(".toml") else PROFILES / f"{name}.toml"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        return Profile.model_validate({"name": path.stem, **values})
    except FileNotFoundError as error:
        raise ConfigError(
            f"no profile {name!r}: there are {', '.join(names())}, or give a path ending in .toml"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {key}: {first['msg']}") from error
