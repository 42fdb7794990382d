"""The measurement profiles of config/*.toml: how long, how often, by which rules. Flags win over them."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import ConfigError
from harness.paths import PROFILES
from harness.plain_text import require_printable
from harness.records import bounded
from harness.records.models import LatencyGoal


class Section(BaseModel):
    """Base of all sections: frozen, and an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True
    )  # built when first used


FILE_BYTES = 1 << 20
MOST_LEVELS = 1000  # of one sweep
Connections = Annotated[int, Field(ge=1, le=1_000_000)]
Queries = Annotated[int, Field(ge=1, le=1_000_000)]  # a request; servers cap them at 500, and a level may ask for more
Factor = Annotated[float, Field(gt=0, le=1e6)]
Replicates = Annotated[int, Field(ge=1, le=10_000)]
MOST_SECONDS = 30 * 86_400
Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS)]
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(max_length=1000), AfterValidator(require_printable)]
Sweep = Field(min_length=1, max_length=MOST_LEVELS)


class Levels(Section):
    """The levels of the sweeps."""

    concurrency: tuple[Connections, ...] = Sweep
    pipeline_concurrency: tuple[Connections, ...] = Sweep
    query: tuple[Queries, ...] = Sweep
    cached_query: tuple[Queries, ...] = Sweep
    query_concurrency: Connections  # connections of the tests that sweep the query count
    pipeline_depth: int = Field(default=16, ge=1, le=1024)


class WarmUpRule(Section):
    """When a server counts as warm: by rule (``steady``) or by TechEmpower's fixed times (``fixed``).

    Steady (research: CPU per request settles later than throughput): the median CPU per request of the last ``span``
    windows is within ``tolerance`` of that of the ``span`` windows before, ``times`` looks in a row, and
    ``minimum_requests`` have passed or ``patience_seconds`` have.
    """

    kind: Literal["steady", "fixed"] = "steady"
    primer_seconds: Seconds = 1.0  # a few connections first, as TechEmpower does
    fixed_seconds: Seconds = 15.0  # kind = "fixed"
    fixed_concurrency: Connections | None = (
        None  # TechEmpower warms with its highest level; None: the level measured first
    )
    pause_seconds: Seconds = 0.0  # after primer and warm-up
    minimum_seconds: Seconds = 3.0
    cap_seconds: Seconds = 20.0
    jit_cap_seconds: Seconds = 60.0  # cap for the languages and platforms in jit_platforms
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
    span: int = Field(default=5, ge=1, le=1000)
    tolerance: float = Field(default=0.05, gt=0, le=10)
    times: int = Field(default=3, ge=1, le=1000)
    minimum_requests: int = Field(default=200_000, ge=0, le=10**12)
    patience_seconds: Seconds = 20.0


GateName = Literal[
    "errors",
    "connections",
    "response-size",
    "unasked",
    "overrun",
    "restarted",
    "generator-bound",
    "clients-apart",
    "client-lag",
    "link",
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

    overrun_seconds: Seconds = 0.5
    overrun_share: float = Field(default=0.05, ge=0)
    response_size_tolerance: float = Field(default=0.02, ge=0)  # around the verified size
    unasked_tolerance: float = Field(default=0.05, ge=0)  # responses beyond one a request
    generator_busy: float = Field(default=0.85, gt=0)  # of one core for each generator thread
    clients_overlap: Share = 0.95  # of a sample's time in which all clients load together, at least
    client_wait_share: Share = 0.10  # of a client's generator's runnable time that it waits for a CPU
    link_share: Share = 0.90  # of what the links between clients and server carry
    wait_share: Share = 0.05  # run-queue wait of the server: "contended"
    wait_share_fails: bool = False  # False: contended samples are repeated, then ranked with the word; True: kept out
    throttled_share: Share = 0.01
    steal_share: Share = 0.02
    little_tolerance: float = Field(default=0.10, ge=0)  # |N - X R| / N
    delayed_ack_tolerance: float = Field(default=0.15, ge=0)  # around c / 0.04 s, with idle CPU
    delayed_ack_idle: float = Field(default=0.5, ge=0)  # server CPU below this share of its CPUs
    idle_cpu_share: float = Field(
        default=0.005, ge=0
    )  # of one CPU, used by servers that are up beside the measured one
    ceiling_share: float = Field(default=0.01, ge=0)  # several implementations within this of the generator's ceiling
    failing: tuple[GateName, ...] = (
        "errors",
        "connections",
        "response-size",
        "unasked",
        "overrun",
        "restarted",
    )  # not ranked
    repeats: int = Field(default=1, ge=0, le=100)  # attempts beyond the first for a contended sample
    repeat_budget_share: float = Field(default=0.15, ge=0, le=10)  # of the run's planned measuring time


class Replication(Section):
    """How many replicates, and when to stop."""

    minimum: Replicates = 3
    maximum: Replicates = 3
    looks: tuple[Replicates, ...] = ()  # replicate counts at which the stopping rule looks; empty: no early stop
    confidence: float = Field(default=0.95, gt=0, lt=1)
    half_width: float = Field(default=0.025, gt=0, lt=10)  # stop when the relative half-width of the interval is below

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """The least is not more than the most."""
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class Rounds(Section):
    """Servers stay alive side by side and are measured in short windows in turns, within a time."""

    time_seconds: float = Field(
        le=MOST_SECONDS, default=600.0, gt=0
    )  # from the first start of a server to the end; builds apart
    processes: int = Field(default=2, ge=1, le=1000)  # most fresh processes of an implementation
    headline_seconds: float = Field(
        le=MOST_SECONDS, default=2.0, ge=1
    )  # of a window at the level that the headline table shows
    other_seconds: float = Field(le=MOST_SECONDS, default=1.0, ge=1)  # of a window at the other levels
    every_level: bool = False  # is measured in every round, as long as the headline level; no cell has more windows
    measured_share: float = Field(default=0.5, gt=0, lt=1)  # of the time that windows take at least; the rest is setup
    warm_share: float = Field(default=0.33, gt=0, lt=1)  # of a group's time that its warm-up may take at most
    burst_seconds: float = Field(le=MOST_SECONDS, default=2.0, ge=1)  # of load in a warm-up, before another's turn
    memory_share: float = Field(default=0.7, gt=0, le=1)  # of the free memory that servers may take together
    idle_cpu_share: float = Field(
        default=0.005, ge=0
    )  # of one CPU: a server that uses more while it should be idle is run alone


class Duets(Section):
    """Simultaneous measurements of neighbours (``--order duet``)."""

    starts: int = Field(
        default=6, ge=4, le=1000
    )  # fresh starts of both servers: the unit, as pairs of one start share its luck
    pairs: int = Field(
        default=6, ge=2, le=1000
    )  # in each start, slots swapped: cheap, and most of the noise is between them
    seconds: float = Field(
        le=MOST_SECONDS, default=2.0, ge=1
    )  # of one measurement: what disturbs one disturbs the other, so short ones suffice


class LatencyRules(Section):
    """Loads at given rates after the closed loop, and the search for the capacity at a latency goal."""

    goal: LatencyGoal = LatencyGoal()
    shares: tuple[Annotated[float, Field(gt=0, le=2)], ...] = (
        0.10,
        0.25,
        0.50,
        0.70,
        0.80,
        0.90,
        0.95,
    )  # of the process's closed-loop throughput
    common_rates: tuple[
        Annotated[float, Field(gt=0, le=1e9)], ...
    ] = ()  # requests/s, the same for all; those above 95 % of a capacity are left out
    time_seconds: float = Field(
        le=MOST_SECONDS, default=1140.0, gt=0
    )  # of all measuring; searches are cut short to keep it
    seconds: float = Field(le=MOST_SECONDS, default=1.5, ge=1)  # of one load
    drain_seconds: Seconds = 2.0  # to wait for answers after a load
    search_loads: int = Field(default=5, ge=0, le=1000)  # beyond those at shares
    bracket: float = Field(default=0.05, gt=0, le=10)  # the search ends when its two rates are this close, relative
    confidence: float = Field(default=0.95, gt=0, lt=1)  # of the binomial interval that decides one load
    rate_tolerance: Share = 0.01  # responses in time against requests due
    lag_share: float = Field(
        default=0.2, ge=0, le=100
    )  # send lag p99 / latency p99: more, and the generator was measured
    least_lag_seconds: Seconds = 100e-6  # below this a lag does not count, whatever its share
    unfinished_share: Share = 0.0  # of the requests due
    spin_microseconds: float = Field(default=0.0, ge=0, le=1e6)  # the generator's --spin
    realtime: bool = True  # real-time priority of the generator, where allowed (local runtime, as root)
    machine_rate: float = Field(
        default=1000.0, gt=0, le=1e9
    )  # requests/s on the null server, for the machine's own wake-up


class OrderRules(Section):
    """Loads of the order service: arrivals of its use cases at factors, and the search for its capacity at a goal."""

    factors: tuple[Factor, ...] = Field(
        default=(1.0, 8.0, 32.0), min_length=1, max_length=MOST_LEVELS
    )  # of 445 arrivals and 1,000 requests a minute
    connections: Connections = 64  # at most, that the requests go over
    seconds: float = Field(le=MOST_SECONDS, default=8.0, ge=1)  # of one load
    warm_up_factor: Factor = 32.0
    warm_up_seconds: Seconds = 10.0  # in all, in loads of ``seconds`` at most
    goal: LatencyGoal = LatencyGoal(percentile=99.0, seconds=0.1)  # of "create order", from the due time
    search_loads: int = Field(default=4, ge=0, le=1000)  # beyond those at factors; 0: no capacity
    bracket: float = Field(default=0.1, gt=0, le=10)  # the search ends when its two factors are this close, relative
    drain_seconds: Seconds = 2.0  # to wait for answers after a load
    replicates: Replicates = 3  # fresh processes, where the profile keeps servers side by side
    at_rates: LatencyRules = LatencyRules()  # of whose gates its loads are judged by; a profile's own [latency] wins


class Profile(Section):
    """One file of config/profiles."""

    name: Text
    description: Text
    duration_seconds: float = Field(le=MOST_SECONDS, ge=1)  # wrk counts in whole seconds; a fraction is rounded up
    pause_seconds: Seconds = 0.0  # between levels
    test_types: tuple[str, ...] = ()  # without --type; empty: all that there are
    audit_share: float = Field(default=0.1, gt=0, le=1)  # of the time planned for measuring, for audits at most
    levels: Levels
    warm_up: WarmUpRule = WarmUpRule()
    gates: GateThresholds = GateThresholds()
    replication: Replication = Replication()
    rounds: Rounds | None = None  # None: a fresh process for each replicate, one server at a time
    latency: LatencyRules | None = None  # None: closed loop only
    orders: OrderRules = OrderRules()  # of --type order
    duets: Duets = Duets()
    reference: str | None = None  # implementation that scores are relative to, where it is selected
    server_cpus: str | None = None  # cpuset of the server, e.g. "0-3"; None: all that the run may use
    other_cpus: str | None = None  # cpuset of database and generator
    runtime: Literal["auto", "docker", "local"] = "auto"


def by_arrivals(profile: Profile) -> Profile:
    """The profile for test types whose load is arrivals: a fresh process for each replicate, one server at a time."""
    orders = profile.orders.model_copy(update={"at_rates": profile.latency or profile.orders.at_rates})
    if profile.rounds is None:
        return profile.model_copy(update={"latency": None, "orders": orders})
    replication = profile.replication.model_copy(
        update={"minimum": orders.replicates, "maximum": orders.replicates, "looks": ()}
    )
    changed = {"rounds": None, "latency": None, "orders": orders, "replication": replication}
    return profile.model_copy(update=changed)


def names() -> tuple[str, ...]:
    """All profiles, by name."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.toml")))


def load(name: str) -> Profile:
    """The profile of this name, or of a path to a TOML file of one's own."""
    if "\0" in name or ("/" in name and not name.endswith(".toml")):
        raise ConfigError(f"no profile {name!r}: a name, or a path ending in .toml")
    path = Path(name) if name.endswith(".toml") else PROFILES / f"{name}.toml"
    try:
        values = tomllib.loads(bounded.read(path, FILE_BYTES).decode("utf-8"))
        return Profile.model_validate({"name": path.stem, **values})
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(
            f"no profile {name!r}: there are {', '.join(names())}, or give a path ending in .toml"
        ) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {key}: {first['msg']} (found {first['input']!r:.80})") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not valid TOML: nested too deep") from error
    except ValueError as error:  # of TOML, and a number of thousands of digits
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
