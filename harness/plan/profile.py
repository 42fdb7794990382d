"""The measurement profiles of config/profiles/: how long, how often, by which rules. Flags win over them."""

from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from harness.paths import PROFILES
from harness.plain_text import require_printable
from harness.plan.suggestions import name_file_in_errors
from harness.plugins import Extensions
from harness.records import safe_read
from harness.records.measurements import LatencyGoal


class ConfigSection(BaseModel):
    """Base of all that a configuration file holds: frozen, and an unknown key is an error; built when first used."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


MAX_LOADS = 1000  # of one sweep
ConnectionCount = Annotated[int, Field(ge=1, le=1_000_000)]
Queries = Annotated[int, Field(ge=1, le=1_000_000)]  # a request; servers cap them at 500, and a level may ask for more
PositiveCount = Annotated[int, Field(ge=1, le=10_000)]
Seconds = Annotated[float, Field(ge=0, le=30 * 86_400)]
TrialSeconds = Annotated[float, Field(ge=1, le=30 * 86_400)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(gt=0, le=1e9)]
ProfileText = Annotated[str, Field(max_length=1000), AfterValidator(require_printable)]
LEVELS = Field(min_length=1, max_length=MAX_LOADS)


CORE_DESIGNS = ("interleaved", "search", "techempower", "gate")


def _require_design(name: str) -> str:
    known = (*CORE_DESIGNS, *Extensions[object]("designs").names())
    if name not in known:
        raise ValueError(f"unknown design {name!r}: use {', '.join(known)}")
    return name


class LoadLevels(ConfigSection):
    """The levels of the sweeps."""

    concurrency: tuple[ConnectionCount, ...] = LEVELS
    pipeline_concurrency: tuple[ConnectionCount, ...] = LEVELS
    query: tuple[Queries, ...] = LEVELS
    cached_query: tuple[Queries, ...] = LEVELS
    query_concurrency: ConnectionCount  # connections of the tests that sweep the query count


class WarmUpLimits(ConfigSection):
    """When a server counts as warm: ``harness.experiment.warm_up`` has the rule and its error rates."""

    span: int = Field(default=7, ge=1, le=1000)  # windows of a second: these are compared with as many before them
    cap_seconds: Seconds = 20.0
    jit_cap_seconds: Seconds = 60.0  # of implementations with a just-in-time compiler


class ProcessLimits(ConfigSection):
    """How many fresh processes of each implementation, and when to stop."""

    minimum: PositiveCount = 2
    maximum: PositiveCount = 2
    looks: tuple[PositiveCount, ...] = ()  # numbers of processes at which the stopping rule looks; empty: no early stop
    half_width: float = Field(default=0.025, gt=0, lt=10)  # stop when the relative half-width of the interval is below

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """The least is not more than the most."""
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class InterleavedSettings(ConfigSection):
    """Servers are up side by side; every round visits each cell once, in random order."""

    time_seconds: Annotated[float, Field(gt=0, le=30 * 86_400)] | None = None  # of all measuring, builds not counted
    rounds: PositiveCount | None = None  # of each process; None: as many as the time has room for
    every_load: bool = False  # every round visits all loads; else those beside the headline one are visited once
    witness: bool = True  # one trial of each headline cell, in its first process, by the other generator


class OpenLoopSettings(ConfigSection):
    """What holds for every load at a rate: of an open loop and of a scenario."""

    goal: LatencyGoal = LatencyGoal()
    search_loads: int = Field(default=0, ge=0, le=1000)  # of the search for the capacity at the goal; 0: no search
    rate_tolerance: Fraction = 0.01  # responses in time against requests due
    lag_share: float = Field(default=0.2, ge=0, le=100)  # send lag p99 / latency p99: more, and it was the generator


class RateLoads(ConfigSection):
    """Loads at given rates in the design ``search``."""

    shares: tuple[Annotated[float, Field(gt=0, le=2)], ...] = ()  # of the process's closed-loop throughput
    common: tuple[Rate, ...] = ()  # requests/s for all; left out above 95 % of it
    seconds: TrialSeconds = 1.0  # of one load


class OrderLoads(ConfigSection):
    """Loads of the order service: arrivals of its use cases."""

    factors: tuple[Annotated[float, Field(gt=0, le=1e6)], ...] = Field((8.0,), min_length=1, max_length=MAX_LOADS)
    # of 445 arrivals and 1,000 requests a minute; each has a table, the middle one is warmed at
    seconds: TrialSeconds = 4.0  # of one load
    goal: LatencyGoal = LatencyGoal(percentile=99.0, seconds=0.1)  # of "create order", from the due time


class Profile(ConfigSection):
    """One file of config/profiles."""

    name: ProfileText
    description: ProfileText
    design: Annotated[str, AfterValidator(_require_design)] = "interleaved"  # a key of harness.experiment.designs
    generator: Literal["loadgen", "wrk"] = "loadgen"
    duration_seconds: TrialSeconds  # of a trial; wrk counts in whole seconds
    test_types: tuple[str, ...] = ()  # without --type; empty: all that there are
    ranked: bool = True  # False: it checks that things run, and its figures rank nothing
    levels: LoadLevels
    warm_up: WarmUpLimits = WarmUpLimits()
    processes: ProcessLimits = ProcessLimits()
    interleaved: InterleavedSettings = InterleavedSettings()
    open_loop: OpenLoopSettings = OpenLoopSettings()
    rates: RateLoads = RateLoads()
    orders: OrderLoads = OrderLoads()  # of --type order
    reference: str | None = None  # implementation that scores are relative to, where it is selected


def profile_names() -> tuple[str, ...]:
    """All profiles, by name."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.toml")))


def load_profile(name: str) -> Profile:
    """The profile of this name, or of a path to a TOML file of one's own."""
    path = Path(name) if name.endswith(".toml") else PROFILES / f"{name}.toml"
    absent = f"no profile {name!r}: there are {', '.join(profile_names())}, or give a path ending in .toml"
    return read_toml(path, Profile, absent, name=path.stem)


Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path, model: type[Model], absent: str = "", **usual: object) -> Model:
    """A file as its model reads it; raises ConfigError that names file and key, ``absent`` where there is no file."""
    with name_file_in_errors(path, model.model_json_schema, absent):
        return model.model_validate({**usual, **safe_read.read_toml_document(path)})
