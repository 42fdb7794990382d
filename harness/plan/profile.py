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
    """Base class for sections of configuration files. Instances are frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


MAX_LOADS = 1000  # maximum number of loads per sweep
MAX_LEVEL = 1_000_000  # maximum number of connections, or of queries per request
ConnectionCount = Annotated[int, Field(ge=1, le=MAX_LEVEL)]
Queries = Annotated[int, Field(ge=1, le=MAX_LEVEL)]  # per request; may exceed the servers' limit of 500
PositiveCount = Annotated[int, Field(ge=1, le=10_000)]
Seconds = Annotated[float, Field(ge=0, le=30 * 86_400)]
TrialSeconds = Annotated[float, Field(ge=1, le=30 * 86_400)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(gt=0, le=1e9)]
ProfileText = Annotated[str, Field(max_length=1000), AfterValidator(require_printable)]
LEVELS = Field(min_length=1, max_length=MAX_LOADS)


CORE_DESIGNS = ("interleaved", "search", "techempower")


def _require_design(name: str) -> str:
    known = (*CORE_DESIGNS, *Extensions[object]("designs").names())
    if name not in known:
        raise ValueError(f"unknown design {name!r}: use one of {', '.join(known)}")
    return name


class LoadLevels(ConfigSection):
    """Numbers of connections and queries in closed loops. Each number in a list is a separate load."""

    concurrency: tuple[ConnectionCount, ...] = LEVELS  # numbers of connections for json, db and fortune
    pipeline_concurrency: tuple[ConnectionCount, ...] = LEVELS  # numbers of connections for plaintext (pipelined)
    query: tuple[Queries, ...] = LEVELS  # numbers of queries per request for query and update
    cached_query: tuple[Queries, ...] = LEVELS  # numbers of queries per request for cached-query
    query_concurrency: ConnectionCount  # number of connections for query, update and cached-query


class WarmUpLimits(ConfigSection):
    """Limits on a warm-up. ``harness.experiment.warm_up`` defines when a server is warm."""

    # Length of a span, in windows of about one second. A server is warm when CPU time per request no longer declines
    # between consecutive spans.
    span: int = Field(default=7, ge=1, le=1000)
    cap_seconds: Seconds = 20.0  # maximum warm-up duration in seconds for implementations without a JIT compiler
    jit_cap_seconds: Seconds = 60.0  # maximum warm-up duration in seconds for implementations with a JIT compiler


class ProcessLimits(ConfigSection):
    """Number of processes per implementation, and the rule for stopping early."""

    minimum: PositiveCount = 2  # processes per implementation to measure before the stopping rule applies
    maximum: PositiveCount = 2  # maximum number of processes per implementation
    looks: tuple[PositiveCount, ...] = ()  # process counts at which to apply the stopping rule
    # A comparison is precise enough if the relative half-width of its interval is at most this value. A run stops early
    # when every comparison is decided or precise enough.
    half_width: float = Field(default=0.025, gt=0, lt=10)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Raise ValueError if the minimum exceeds the maximum."""
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class InterleavedSettings(ConfigSection):
    """Settings of the design "interleaved", in which each round visits every cell once in random order."""

    # Time limit for all measurements, in seconds, excluding builds; None for no limit.
    time_seconds: Annotated[float, Field(gt=0, le=30 * 86_400)] | None = None
    rounds: PositiveCount | None = None  # rounds per process; None for as many as fit into the time limit
    # Whether each round visits all loads. If false, rounds repeat only the headline load of each test type.
    every_load: bool = False
    # Whether, in the first process of each implementation, a second load generator repeats the headline loads.
    witness: bool = True


class OpenLoopSettings(ConfigSection):
    """Settings for rate-based loads: open loops and scenarios."""

    goal: LatencyGoal = LatencyGoal()  # latency goal; the capacity is the highest rate that meets the goal
    # Maximum number of loads that the capacity search tries per test type and process. With 0, there is no search.
    search_loads: int = Field(default=0, ge=0, le=1000)
    # Maximum fraction of due requests without a response at the end of a valid open-loop trial. In addition, the
    # validity check allows a plausible number of requests in flight.
    rate_tolerance: Fraction = 0.01
    # Maximum ratio of the load generator's p99 send delay to p99 latency, for the validity check `generator-lag`.
    lag_share: float = Field(default=0.2, ge=0, le=100)


class RateLoads(ConfigSection):
    """Loads at fixed rates in the design "search"."""

    # Rates as fractions of the process's closed-loop throughput, for example 0.5.
    shares: tuple[Annotated[float, Field(gt=0, le=2)], ...] = ()
    # Rates in requests/s, common to all implementations. tfb skips rates above 95 % of the closed-loop throughput.
    common: tuple[Rate, ...] = ()
    seconds: TrialSeconds = 1.0  # trial duration in seconds


class ScenarioLoads(ConfigSection):
    """Scenario loads, in which customers arrive and each customer carries out a use case."""

    # Load factors, which multiply the use cases' arrival rates. The warm-up uses the middle factor.
    factors: tuple[Annotated[float, Field(gt=0, le=1e6)], ...] = Field((8.0,), min_length=1, max_length=MAX_LOADS)
    seconds: TrialSeconds = 4.0  # trial duration in seconds
    # Latency goal for the ranked operation. Latency is measured from the time when a request is due.
    goal: LatencyGoal = LatencyGoal(percentile=99.0, seconds=0.1)


class Profile(ConfigSection):
    """A measurement profile: the loads of a run, their lengths and their order."""

    name: ProfileText  # name for `--profile`
    description: ProfileText  # sentence shown in the plan and on the web page
    # Name of the design, which determines the order of measurements: interleaved, search, techempower, or the name of a
    # plugin's design.
    design: Annotated[str, AfterValidator(_require_design)] = "interleaved"
    generator: Literal["loadgen", "wrk"] = "loadgen"  # load generator for closed loops
    duration_seconds: TrialSeconds  # trial duration in seconds; rounded up to whole seconds for wrk
    # Test types to measure if --type is not given. If empty, tfb measures the six test types in TechEmpower's score.
    test_types: tuple[str, ...] = ()
    ranked: bool = True  # whether to rank the results; false if the profile only tests that everything works
    levels: LoadLevels  # numbers of connections and queries to use in closed loops
    warm_up: WarmUpLimits = WarmUpLimits()  # limits on the duration of the warm-up
    processes: ProcessLimits = ProcessLimits()  # number of processes to measure for each implementation
    interleaved: InterleavedSettings = InterleavedSettings()  # settings of the design "interleaved"
    open_loop: OpenLoopSettings = OpenLoopSettings()  # settings for loads with a given rate
    rates: RateLoads = RateLoads()  # rates at which the design "search" measures
    orders: ScenarioLoads = ScenarioLoads()  # loads of test types with use cases, such as the test type order
    # Name of the implementation that is the baseline for scores. If it is unset or not selected, tfb chooses the
    # implementation with the most test types.
    reference: str | None = None

    @property
    def has_witnesses(self) -> bool:
        """True if runs repeat headline loads with a second load generator."""
        return self.interleaved.witness and self.design in ("interleaved", "techempower")


def profile_names() -> tuple[str, ...]:
    """Return the sorted names of all profiles."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.toml")))


def load_profile(name: str) -> Profile:
    """Return a profile by name or by the path of a TOML file. Raises ConfigError."""
    path = Path(name) if name.endswith(".toml") else PROFILES / f"{name}.toml"
    absent = f"no profile {name!r}: use {', '.join(profile_names())}, or a path that ends in .toml"
    return read_toml(path, Profile, absent, name=path.stem)


Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path, model: type[Model], missing_message: str = "", **defaults: object) -> Model:
    """Read a TOML file and validate it against a model. Raises a ConfigError that names the file and the key.

    ``missing_message`` is the error message for a missing file. ``defaults`` are values for missing keys.
    """
    with name_file_in_errors(path, model.model_json_schema, missing_message):
        return model.model_validate({**defaults, **safe_read.read_toml_document(path)})
