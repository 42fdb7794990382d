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
Count = Annotated[int, Field(ge=1, le=10_000)]
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
    "wrong-answers",
    "witness",
    "achieved-rate",
    "unfinished",
    "generator-lag",
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
    throttled_share: Share = 0.01
    steal_share: Share = 0.02
    little_tolerance: float = Field(default=0.10, ge=0)  # |N - X R| / N
    delayed_ack_tolerance: float = Field(default=0.15, ge=0)  # around c / 0.04 s, with idle CPU
    delayed_ack_idle: float = Field(default=0.5, ge=0)  # server CPU below this share of its CPUs
    idle_cpu_share: float = Field(
        default=0.005, ge=0
    )  # of one CPU, used by servers that are up beside the measured one
    ceiling_share: float = Field(default=0.01, ge=0)  # several implementations within this of the generator's ceiling
    witness_sigmas: float = Field(default=4.0, gt=0)  # that the two generators' CPU per request may differ by
    failing: tuple[GateName, ...] = (
        "errors",
        "connections",
        "response-size",
        "unasked",
        "overrun",
        "restarted",
        "wrong-answers",
        "achieved-rate",
        "unfinished",
        "generator-lag",
    )  # not ranked


class Processes(Section):
    """How many fresh processes of each implementation, and when to stop."""

    minimum: Count = 2
    maximum: Count = 2
    looks: tuple[Count, ...] = ()  # numbers of processes at which the stopping rule looks; empty: no early stop
    confidence: float = Field(default=0.95, gt=0, lt=1)
    half_width: float = Field(default=0.025, gt=0, lt=10)  # stop when the relative half-width of the interval is below

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """The least is not more than the most."""
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class Interleaved(Section):
    """Servers are up side by side; every round visits each cell once, in random order."""

    time_seconds: float | None = Field(default=None, gt=0, le=MOST_SECONDS)  # of all measuring, builds apart; None: any
    rounds: Count | None = None  # of each process; None: as many as the time has room for
    resident: Count | None = None  # servers that are up together; None: as many as the memory holds, 1: one at a time
    other_seconds: float = Field(le=MOST_SECONDS, default=1.0, ge=1)  # of a trial beside the headline load
    every_load: bool = False  # every round visits all loads; else those beside the headline one are visited once
    warm_share: float = Field(default=0.4, gt=0, lt=1)  # of the time of a process that its warm-up may take at most
    burst_seconds: float = Field(le=MOST_SECONDS, default=2.0, ge=1)  # of load in a warm-up, before another's turn
    memory_share: float = Field(default=0.7, gt=0, le=1)  # of the free memory that servers may take together
    witness: bool = True  # one trial of each headline cell, in its first process, by the other generator
    witness_seconds: float = Field(le=MOST_SECONDS, default=1.0, ge=1)


class OpenLoop(Section):
    """What holds for every load at a rate: of an open loop and of a scenario."""

    goal: LatencyGoal = LatencyGoal()
    confidence: float = Field(default=0.95, gt=0, lt=1)  # of the binomial interval that decides one load
    bracket: float = Field(default=0.05, gt=0, le=10)  # the search ends when its two rates are this close, relative
    search_loads: int = Field(default=0, ge=0, le=1000)  # of the search for the capacity at the goal; 0: no search
    drain_seconds: Seconds = 2.0  # to wait for answers after a load
    rate_tolerance: Share = 0.01  # responses in time against requests due
    lag_share: float = Field(default=0.2, ge=0, le=100)  # send lag p99 / latency p99: more, and it was the generator
    least_lag_seconds: Seconds = 100e-6  # below this a lag does not count, whatever its share
    unfinished_share: Share = 0.0  # of the requests due
    realtime: bool = True  # real-time priority of the generator, where allowed (local runtime, as root)


class Rates(Section):
    """Loads at given rates in the design ``search``."""

    shares: tuple[Annotated[float, Field(gt=0, le=2)], ...] = (0.10, 0.25, 0.50, 0.70, 0.80, 0.90, 0.95)
    # of the process's closed-loop throughput
    common: tuple[Annotated[float, Field(gt=0, le=1e9)], ...] = ()  # requests/s for all; left out above 95 % of it
    seconds: float = Field(le=MOST_SECONDS, default=1.5, ge=1)  # of one load


class Orders(Section):
    """Loads of the order service: arrivals of its use cases."""

    factors: tuple[Factor, ...] = Field(default=(8.0,), min_length=1, max_length=MOST_LEVELS)
    # of 445 arrivals and 1,000 requests a minute; the first is warmed at and ranked by
    connections: Connections = 64  # at most, that the requests go over
    seconds: float = Field(le=MOST_SECONDS, default=4.0, ge=1)  # of one load
    goal: LatencyGoal = LatencyGoal(percentile=99.0, seconds=0.1)  # of "create order", from the due time


class Profile(Section):
    """One file of config/profiles."""

    name: Text
    description: Text
    design: Literal["interleaved", "search", "techempower", "gate"] = "interleaved"
    generator: Literal["loadgen", "wrk"] = "loadgen"
    duration_seconds: float = Field(le=MOST_SECONDS, ge=1)  # of a trial; wrk counts in whole seconds
    pause_seconds: Seconds = 0.0  # between loads, of the design techempower
    test_types: tuple[str, ...] = ()  # without --type; empty: all that there are
    ranked: bool = True  # False: it checks that things run, and its figures rank nothing
    levels: Levels
    warm_up: WarmUpRule = WarmUpRule()
    gates: GateThresholds = GateThresholds()
    processes: Processes = Processes()
    interleaved: Interleaved = Interleaved()
    open_loop: OpenLoop = OpenLoop()
    rates: Rates = Rates()
    orders: Orders = Orders()  # of --type order
    reference: str | None = None  # implementation that scores are relative to, where it is selected
    server_cpus: str | None = None  # cpuset of the server, e.g. "0-3"; None: all that the run may use
    other_cpus: str | None = None  # cpuset of database and generator
    runtime: Literal["auto", "docker", "local"] = "auto"


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
