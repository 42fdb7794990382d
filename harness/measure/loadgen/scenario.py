"""The project's own generator playing a scenario: use cases of dependent requests, arrivals on time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import LoadError
from harness.measure.loadgen import Load, LoadGenerator, LoadResult, Played
from harness.measure.loadgen.own import NS, TIMEOUT_SECONDS, Distribution, as_latency, later, merge_distributions
from harness.records.models import Errors
from harness.records.orders import ArrivalTimes, OperationTimes

PLAN, ANSWERS = "plan.json", "answers.jsonl"
MAX_BYTES = 16 << 20  # of the results


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class _Operation(_Part):
    use_case: str
    operation: str
    due: int
    answered: int
    unfinished: int
    errors: Errors
    response_time: Distribution | None
    service_time: Distribution | None


class _UseCase(_Part):
    use_case: str
    due: int
    done: int
    failed: int
    unfinished: int
    response_time: Distribution | None


class _InTime(_Part):
    due: int
    answered: int


class _Bytes(_Part):
    received: int
    sent: int


class _Connections(_Part):
    refused: int


class Results(_Part):
    """The document that the generator prints at the end."""

    seconds: float
    arrivals_due: int
    arrivals_done: int
    arrivals_failed: int
    unfinished: int
    in_time: _InTime
    operations: tuple[_Operation, ...]
    use_cases: tuple[_UseCase, ...]
    lag: Distribution | None
    cpu_seconds: float
    bytes: _Bytes
    connections: _Connections


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Arguments and results of one scenario, whose plan and answers are files in ``folder``."""

    folder: Path | None = None
    seed: int = 1
    drain_seconds: float = 2.0
    program: str = "loadgen"  # for the runtime: a name that it knows, or a path
    prefix: tuple[str, ...] = ()  # before the arguments, where ``program`` is one that starts the generator
    waits_for_go: bool = True

    @property
    def timeout_seconds(self) -> float:
        """How long after its time a load may take to end."""
        return TIMEOUT_SECONDS + self.drain_seconds

    def arguments(self, load: Load) -> Sequence[str]:
        """The command line: the load's URL names the server alone, paths are the plan's."""
        folder = self.folder or Path()
        words = ["--scenario", str(folder / PLAN), "--answers", str(folder / ANSWERS), "--wait-for-go"]
        for header in (f"Host: {load.host}", f"Accept: {load.accept}", "Connection: keep-alive"):
            words += ["--header", header]
        words += ["--connections", str(load.connections), "--threads", str(load.threads)]
        words += ["--seconds", f"{load.seconds:g}", "--timeout", str(TIMEOUT_SECONDS), "--seed", str(self.seed)]
        words += ["--drain-seconds", f"{self.drain_seconds:g}"]
        parts = urlsplit(load.url)
        return [*self.prefix, *words, f"{parts.scheme}://{parts.netloc}"]

    def result(self, load: Load, output: str) -> LoadResult:
        """The harness's common figures, and those of arrivals; raises LoadError with what came instead."""
        results = read(output, load.url)
        try:
            return _figures(results)
        except (ArithmeticError, LookupError) as error:
            raise LoadError(f"loadgen printed figures for {load.url} that no load has: {error}") from error


def prepared(kind: Scenario, plan: Mapping[str, object], seed: int, folder: Path) -> LoadGenerator:
    """The generator of one load, with its plan written to the folder."""
    (folder / PLAN).write_text(json.dumps(plan), encoding="utf-8")
    return replace(kind, seed=seed, folder=folder)


def read(output: str, url: str) -> Results:
    """The document among the lines; raises LoadError where it is missing, too long or not as documented."""
    line = next((line for line in output.splitlines() if line.startswith("{") and '"operations"' in line), None)
    if line is None or len(line) > MAX_BYTES:
        raise LoadError(f"loadgen printed no result for {url}: {output.strip()[-500:] or 'nothing at all'}")
    try:
        results = Results.model_validate_json(line)
    except ValidationError as error:
        raise LoadError(f"loadgen printed a line for {url} that is not as documented: {line[:300]}") from error
    if results.seconds <= 0:
        raise LoadError(f"loadgen reports no duration for {url}")
    _reconcile(results, url)
    return results


def _reconcile(results: Results, url: str) -> None:
    """Everything that was due has come to an end that is counted."""
    arrivals = results.arrivals_done + results.arrivals_failed + results.unfinished
    whole = results.arrivals_due == arrivals == sum(case.due for case in results.use_cases)
    if not whole or any(o.due != o.answered + o.errors.total + o.unfinished for o in results.operations):
        raise LoadError(f"loadgen's counts for {url} do not add up: {results.arrivals_due} arrivals, {arrivals} ended")


def _figures(results: Results) -> LoadResult:
    errors = {kind: sum(getattr(one.errors, kind) for one in results.operations) for kind in Errors.model_fields}
    unfinished = sum(one.unfinished for one in results.operations)
    lag = results.lag
    everything = merge_distributions(one.response_time for one in results.operations)
    played = Played(
        due=results.arrivals_due,
        done=results.arrivals_done,
        failed=results.arrivals_failed,
        unfinished=results.unfinished,
        requests_due=results.in_time.due,
        requests_answered=results.in_time.answered,
        requests_unfinished=unfinished,
        refused=results.connections.refused,
        operations=tuple(_operation(one) for one in results.operations),
        use_cases=tuple(
            ArrivalTimes(
                use_case=case.use_case,
                due=case.due,
                done=case.done,
                latency=as_latency(case.response_time) if case.response_time else None,
            )
            for case in results.use_cases
        ),
        latency=as_latency(everything) if everything else None,
        lag_p99=lag.percentiles_ns["99"] * NS if lag else None,
        lag_max=lag.max_ns * NS if lag else None,
        sent_late=lambda seconds: later(lag, seconds),
    )
    return LoadResult(
        duration=results.seconds,
        requests=sum(one.answered + one.errors.status for one in results.operations),
        bytes=results.bytes.received,
        errors=Errors(**{**errors, "connect": played.refused, "timeout": errors["timeout"] + unfinished}),
        latency=played.latency,
        cpu_seconds=results.cpu_seconds,
        played=played,
    )


def _operation(one: _Operation) -> OperationTimes:
    return OperationTimes(
        use_case=one.use_case,
        operation=one.operation,
        due=one.due,
        answered=one.answered,
        errors=one.errors,
        latency=as_latency(one.response_time) if one.response_time else None,
        service=as_latency(one.service_time, "closed-loop, service time") if one.service_time else None,
    )
