"""Measurement profiles: the files in config/profiles/. Flags take precedence over profiles."""

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
    """Base class for the parts of configuration files: frozen, with an error for unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


MAX_LOADS = 1000  # per sweep
ConnectionCount = Annotated[int, Field(ge=1, le=1_000_000)]
Queries = Annotated[
    int, Field(ge=1, le=1_000_000)
]  # per request; servers limit them to 500, and a load may exceed that
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
    """The loads of the sweeps."""

    concurrency: tuple[ConnectionCount, ...] = LEVELS
    pipeline_concurrency: tuple[ConnectionCount, ...] = LEVELS
    query: tuple[Queries, ...] = LEVELS
    cached_query: tuple[Queries, ...] = LEVELS
    query_concurrency: ConnectionCount  # connections of the test types that sweep the number of queries


class WarmUpLimits(ConfigSection):
    """Limits of the warm-up; ``harness.experiment.warm_up`` documents the rule."""

    span: int = Field(default=7, ge=1, le=1000)  # number of windows that are compared with as many earlier windows
    cap_seconds: Seconds = 20.0
    jit_cap_seconds: Seconds = 60.0  # for implementations with a just-in-time compiler


class ProcessLimits(ConfigSection):
    """Number of fresh processes of each implementation, and the rule for stopping early."""

    minimum: PositiveCount = 2
    maximum: PositiveCount = 2
    looks: tuple[PositiveCount, ...] = ()  # numbers of processes at which to check the stopping rule; empty: never
    half_width: float = Field(default=0.025, gt=0, lt=10)  # stop at a smaller relative half-width of the interval

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Raise ValueError if the minimum exceeds the maximum."""
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class InterleavedSettings(ConfigSection):
    """Settings of the design "interleaved", in which each round visits every cell once in random order."""

    time_seconds: Annotated[float, Field(gt=0, le=30 * 86_400)] | None = (
        None  # of the whole measurement, without builds
    )
    rounds: PositiveCount | None = None  # per process; None: as many as fit into the time
    every_load: bool = False  # visit all loads in each round; False: visit only the headline load again
    witness: bool = True  # repeat headline cells of first processes with the other load generator


class OpenLoopSettings(ConfigSection):
    """Settings of loads at a rate: open loops and scenarios."""

    goal: LatencyGoal = LatencyGoal()
    search_loads: int = Field(default=0, ge=0, le=1000)  # number of loads in the search for the capacity; 0: no search
    rate_tolerance: Fraction = 0.01  # allowed share of due requests without a timely response
    lag_share: float = Field(default=0.2, ge=0, le=100)  # limit of send lag p99 / latency p99


class RateLoads(ConfigSection):
    """Loads at fixed rates in the design "search"."""

    shares: tuple[Annotated[float, Field(gt=0, le=2)], ...] = ()  # of the process's closed-loop throughput
    common: tuple[Rate, ...] = ()  # requests/s for all implementations; skipped above 95 % of the throughput
    seconds: TrialSeconds = 1.0  # per load


class OrderLoads(ConfigSection):
    """Loads of the order service."""

    factors: tuple[Annotated[float, Field(gt=0, le=1e6)], ...] = Field((8.0,), min_length=1, max_length=MAX_LOADS)
    # multiples of 445 arrivals and 1,000 requests per minute; the middle factor is used for the warm-up
    seconds: TrialSeconds = 4.0  # per load
    goal: LatencyGoal = LatencyGoal(percentile=99.0, seconds=0.1)  # for "create order", from the due time


class Profile(ConfigSection):
    """A measurement profile."""

    name: ProfileText
    description: ProfileText
    design: Annotated[str, AfterValidator(_require_design)] = "interleaved"  # a key of harness.experiment.designs
    generator: Literal["loadgen", "wrk"] = "loadgen"
    duration_seconds: TrialSeconds  # per trial; wrk rounds to whole seconds
    test_types: tuple[str, ...] = ()  # used without --type; empty: all test types
    ranked: bool = True  # False: the profile only tests that everything works
    levels: LoadLevels
    warm_up: WarmUpLimits = WarmUpLimits()
    processes: ProcessLimits = ProcessLimits()
    interleaved: InterleavedSettings = InterleavedSettings()
    open_loop: OpenLoopSettings = OpenLoopSettings()
    rates: RateLoads = RateLoads()
    orders: OrderLoads = OrderLoads()  # for --type order
    reference: str | None = None  # baseline of scores if it is selected


def profile_names() -> tuple[str, ...]:
    """Return the names of all profiles in order."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.toml")))


def load_profile(name: str) -> Profile:
    """Return the profile with a name, or from the path of a TOML file. Raises ConfigError."""
    path = Path(name) if name.endswith(".toml") else PROFILES / f"{name}.toml"
    absent = f"no profile {name!r}: use {', '.join(profile_names())}, or a path that ends in .toml"
    return read_toml(path, Profile, absent, name=path.stem)


Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path, model: type[Model], absent: str = "", **defaults: object) -> Model:
    """Read a TOML file as a model.

    Args:
        path: The file.
        model: Class of the result.
        absent: Error message for a missing file.
        defaults: Values of keys that the file lacks.

    Raises:
        ConfigError: The file is missing or invalid; the message names the file and the key.
    """
    with name_file_in_errors(path, model.model_json_schema, absent):
        return model.model_validate({**defaults, **safe_read.read_toml_document(path)})
