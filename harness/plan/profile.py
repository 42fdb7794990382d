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
MAX_LEVEL = 1_000_000  # connections, or queries per request
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
        raise ValueError(f"unknown design {name!r}: use {', '.join(known)}")
    return name


class LoadLevels(ConfigSection):
    """The loads of test types: numbers of connections or numbers of queries."""

    concurrency: tuple[ConnectionCount, ...] = LEVELS  # connections for json, db and fortune
    pipeline_concurrency: tuple[ConnectionCount, ...] = LEVELS  # connections for plaintext
    query: tuple[Queries, ...] = LEVELS  # queries per request for query and update
    cached_query: tuple[Queries, ...] = LEVELS  # queries per request for cached-query
    query_concurrency: ConnectionCount  # connections of test types whose loads differ in the number of queries


class WarmUpLimits(ConfigSection):
    """Limits of the warm-up. ``harness.experiment.warm_up`` documents the rule that ends it."""

    # Windows per span. The warm-up compares the latest span with the span before it.
    span: int = Field(default=7, ge=1, le=1000)
    cap_seconds: Seconds = 20.0  # maximum warm-up
    jit_cap_seconds: Seconds = 60.0  # maximum warm-up for implementations with a JIT compiler


class ProcessLimits(ConfigSection):
    """Number of fresh processes for each implementation, and the rule for stopping early."""

    minimum: PositiveCount = 2  # number of processes before the stopping rule applies
    maximum: PositiveCount = 2  # number of processes after which a run always stops
    looks: tuple[PositiveCount, ...] = ()  # apply the stopping rule after these numbers of processes
    # Stop when the relative half-width of the interval is at most this value.
    half_width: float = Field(default=0.025, gt=0, lt=10)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Raise ValueError if the minimum exceeds the maximum."""
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class InterleavedSettings(ConfigSection):
    """Settings of the design "interleaved", in which each round visits every cell once in random order."""

    # Time limit for all measurements. Builds do not count.
    time_seconds: Annotated[float, Field(gt=0, le=30 * 86_400)] | None = None
    rounds: PositiveCount | None = None  # rounds per process; None for as many as fit into the time limit
    every_load: bool = False  # whether each round visits all loads; otherwise, rounds repeat only the headline load
    witness: bool = True  # in the first process, repeat headline loads with the other load generator


class OpenLoopSettings(ConfigSection):
    """Settings for rate-based loads: open loops and scenarios."""

    goal: LatencyGoal = LatencyGoal()  # latency that a rate must meet
    search_loads: int = Field(default=0, ge=0, le=1000)  # maximum number of loads in the capacity search; 0 for none
    rate_tolerance: Fraction = 0.01  # share of due requests that may lack a timely response
    lag_share: float = Field(default=0.2, ge=0, le=100)  # maximum ratio of send lag p99 to latency p99


class RateLoads(ConfigSection):
    """Loads at fixed rates in the design "search"."""

    shares: tuple[Annotated[float, Field(gt=0, le=2)], ...] = ()  # shares of the process's closed-loop throughput
    # Rates in requests/s for all implementations. Rates above 95 % of an implementation's throughput are skipped.
    common: tuple[Rate, ...] = ()
    seconds: TrialSeconds = 1.0  # per load


class ScenarioLoads(ConfigSection):
    """Loads of scenarios, in which customers arrive and each carries out a use case."""

    # Factors by which the use cases' arrival rates are multiplied. The warm-up uses the middle factor.
    factors: tuple[Annotated[float, Field(gt=0, le=1e6)], ...] = Field((8.0,), min_length=1, max_length=MAX_LOADS)
    seconds: TrialSeconds = 4.0  # per load
    # Goal for the ranked operation's latency, measured from the time at which a request is due.
    goal: LatencyGoal = LatencyGoal(percentile=99.0, seconds=0.1)


class Profile(ConfigSection):
    """A measurement profile."""

    name: ProfileText  # name for `--profile`
    description: ProfileText  # sentence that the plan and the web page show
    # Name of the design, which determines the order of measurements: a design in docs/method.md, such as interleaved.
    design: Annotated[str, AfterValidator(_require_design)] = "interleaved"
    generator: Literal["loadgen", "wrk"] = "loadgen"  # load generator of closed loops
    duration_seconds: TrialSeconds  # length of a trial; wrk rounds it up to whole seconds
    test_types: tuple[str, ...] = ()  # test types to measure without --type; empty for all
    ranked: bool = True  # whether runs are ranked; if false, the profile only tests that everything works
    levels: LoadLevels  # numbers of connections and queries for closed loops
    warm_up: WarmUpLimits = WarmUpLimits()  # limits of the warm-up
    processes: ProcessLimits = ProcessLimits()  # number of processes for each implementation
    interleaved: InterleavedSettings = InterleavedSettings()  # settings of the design "interleaved"
    open_loop: OpenLoopSettings = OpenLoopSettings()  # settings of all loads at a rate
    rates: RateLoads = RateLoads()  # rates of the design "search"
    orders: ScenarioLoads = ScenarioLoads()  # loads of test types with use cases, for example order
    reference: str | None = None  # baseline for scores, if this implementation is selected


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
    """Read a TOML file and validate it as a model. Raises ConfigError, which names the file and the key.

    ``missing_message`` is the message if the file is missing. ``defaults`` are values for missing keys.
    """
    with name_file_in_errors(path, model.model_json_schema, missing_message):
        return model.model_validate({**defaults, **safe_read.read_toml_document(path)})
