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
Queries = Annotated[int, Field(ge=1, le=1_000_000)]  # per request; servers limit it to 500, but a load may ask for more
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

    # Windows per group; the latest group is compared with the preceding group.
    span: int = Field(default=7, ge=1, le=1000)
    cap_seconds: Seconds = 20.0
    jit_cap_seconds: Seconds = 60.0  # maximum warm-up of implementations with a JIT compiler


class ProcessLimits(ConfigSection):
    """Number of fresh processes of each implementation, and the rule for stopping early."""

    minimum: PositiveCount = 2
    maximum: PositiveCount = 2
    looks: tuple[PositiveCount, ...] = ()  # numbers of processes after which to check the stopping rule; empty: never
    # Stop when the relative half-width of the interval is smaller.
    half_width: float = Field(default=0.025, gt=0, lt=10)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Raise ValueError if the minimum exceeds the maximum."""
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class InterleavedSettings(ConfigSection):
    """Settings of the design "interleaved", in which each round visits every cell once in random order."""

    time_seconds: Annotated[float, Field(gt=0, le=30 * 86_400)] | None = (
        None  # limit for the whole measurement, without builds
    )
    rounds: PositiveCount | None = None  # per process; None: as many as fit into the time limit
    every_load: bool = False  # True: visit all loads in each round; False: repeat only the headline load
    witness: bool = True  # also measure headline cells of first processes with the other load generator


class OpenLoopSettings(ConfigSection):
    """Settings of loads at a rate: open loops and scenarios."""

    goal: LatencyGoal = LatencyGoal()
    search_loads: int = Field(default=0, ge=0, le=1000)  # maximum number of loads in the capacity search; 0: no search
    rate_tolerance: Fraction = 0.01  # allowed share of due requests without a timely response
    lag_share: float = Field(default=0.2, ge=0, le=100)  # maximum ratio of send lag p99 to latency p99


class RateLoads(ConfigSection):
    """Loads at fixed rates in the design "search"."""

    shares: tuple[Annotated[float, Field(gt=0, le=2)], ...] = ()  # shares of the process's closed-loop throughput
    # requests/s, equal for all implementations; rates above 95 % of the throughput are skipped
    common: tuple[Rate, ...] = ()
    seconds: TrialSeconds = 1.0  # per load


class OrderLoads(ConfigSection):
    """Loads of the order service."""

    factors: tuple[Annotated[float, Field(gt=0, le=1e6)], ...] = Field((8.0,), min_length=1, max_length=MAX_LOADS)
    # Multiples of 445 arrivals (1,000 requests) per minute; the middle factor is used for the warm-up.
    seconds: TrialSeconds = 4.0  # per load
    # Latency goal of "create order"; latency counts from the due time.
    goal: LatencyGoal = LatencyGoal(percentile=99.0, seconds=0.1)


class Profile(ConfigSection):
    """A measurement profile."""

    name: ProfileText
    description: ProfileText
    # A design registered in harness.experiment.designs.
    design: Annotated[str, AfterValidator(_require_design)] = "interleaved"
    generator: Literal["loadgen", "wrk"] = "loadgen"
    duration_seconds: TrialSeconds  # per trial; wrk rounds it to whole seconds
    test_types: tuple[str, ...] = ()  # test types to measure without --type; empty: all
    ranked: bool = True  # False: the profile only tests that everything works
    levels: LoadLevels
    warm_up: WarmUpLimits = WarmUpLimits()
    processes: ProcessLimits = ProcessLimits()
    interleaved: InterleavedSettings = InterleavedSettings()
    open_loop: OpenLoopSettings = OpenLoopSettings()
    rates: RateLoads = RateLoads()
    orders: OrderLoads = OrderLoads()  # loads of --type order
    reference: str | None = None  # baseline of scores, if it is selected


def profile_names() -> tuple[str, ...]:
    """Return the sorted names of all profiles."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.toml")))


def load_profile(name: str) -> Profile:
    """Return a profile by name or by the path of a TOML file. Raises ConfigError."""
    path = Path(name) if name.endswith(".toml") else PROFILES / f"{name}.toml"
    absent = f"no profile {name!r}: use {', '.join(profile_names())}, or a path that ends in .toml"
    return read_toml(path, Profile, absent, name=path.stem)


Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path, model: type[Model], absent: str = "", **defaults: object) -> Model:
    """Read a TOML file, and validate it as a model.

    Args:
        path: The file.
        model: Class of the result.
        absent: Error message if the file is missing.
        defaults: Values for keys that are missing in the file.

    Raises:
        ConfigError: The file is missing or invalid. The message names the file and the key.
    """
    with name_file_in_errors(path, model.model_json_schema, absent):
        return model.model_validate({**defaults, **safe_read.read_toml_document(path)})
