"""The project's load generator, toolset/loadgen: its arguments, and its result in the form that is recorded."""

import base64
import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from harness.errors import LoadError
from harness.experiment.generators import (
    DRAIN_SECONDS,
    MIN_LAG_SECONDS,
    RESPONSES_FILE,
    TIMEOUT_SECONDS,
    LoadResult,
    LoadRun,
    headers,
)
from harness.experiment.generators.loadgen_output import (
    NS,
    Operation,
    Times,
    Total,
    UseCaseResult,
    merge_totals,
    parse_totals,
)
from harness.host import process
from harness.plan.requests import PreparedRequest
from harness.plan.scenarios import plan
from harness.records.loads import ClosedLoop, OpenLoop, Scenario
from harness.records.measurements import Arrivals, Latency, OperationTimes, UseCaseTimes
from harness.runtime import Runtime
from harness.verify.checks.evidence import RequestCounts

# Files in the load's folder, for a scenario and for the requests of a service.
PLAN_FILE, REQUESTS_FILE = "plan.json", "requests.jsonl"
REALTIME, ORDINARY = ("--rr", "1"), ("--other", "0")  # options of chrt: lowest real-time priority, and normal priority
# Threads of an open loop wake early to send each request on time. They spin for at most a tenth of the time, because
# real-time threads that never sleep would take CPUs from the server.
SPIN_MICROS, SPIN_SHARE = 50.0, 0.1
PERCENTILES = ("50", "75", "90", "95", "99", "99.9", "99.99")
# Decimal digits after the first significant digit, few enough to keep the lines of trials.jsonl short.
HISTOGRAM_DIGITS = 2


@dataclass(frozen=True, kw_only=True)
class Loadgen:
    """``toolset/loadgen``: closed loops, open loops and scenarios, with latency from the intended send time."""

    binary: str = "loadgen"
    chrt: str | None = None  # program that sets the priority that a load needs, and then starts the generator
    name: Literal["loadgen"] = "loadgen"
    waits_for_go: bool = True

    @classmethod
    def of(cls, runtime: Runtime) -> Self:
        """Return the generator, and build it if necessary.

        If the generator shares CPUs with the server, it needs real-time priority. Otherwise the latency would include
        the time during which the generator waits for a CPU.

        Raises:
            EnvironmentLacksError: A program for the build is missing.
            BuildError: The build failed.
        """
        chrt = shutil.which("chrt") if runtime.name == "local" else None
        if chrt and process.run([chrt, *REALTIME, "true"], seconds=10).status != 0:
            chrt = None  # real-time priority is not permitted
        return cls(binary=runtime.own_generator(), chrt=chrt)

    @property
    def program(self) -> str:
        """Return the program to start: chrt if it is used, otherwise the generator."""
        return self.chrt or self.binary

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Return the arguments, and write the generator's input files. The headers have a random order, as with wrk."""
        load, url = run.load, run.url
        lines = [] if run.requests else list(headers(run))
        random.Random(run.seed).shuffle(lines)
        words = [word for header in lines for word in ("--header", header)]
        words += ["--connections", str(load.connections), "--threads", str(run.threads)]
        words += ["--duration", f"{run.seconds:g}", "--timeout", str(TIMEOUT_SECONDS), "--seed", str(run.seed)]
        # A closed loop has few unfinished requests. The generator waits for them as long as for any other request.
        drain = TIMEOUT_SECONDS if isinstance(load, ClosedLoop) else DRAIN_SECONDS
        words += ["--drain-seconds", f"{drain:g}"]
        if isinstance(load, Scenario):
            (folder / PLAN_FILE).write_text(json.dumps(plan(run.use_cases, load.factor)), encoding="utf-8")
            words += ["--scenario", str(folder / PLAN_FILE)]
            words += ["--answers", str(folder / RESPONSES_FILE)] if run.sampling else []
        else:
            if isinstance(load, OpenLoop):
                spin = min(SPIN_MICROS, SPIN_SHARE * 1e6 * run.threads / load.rate)
                words += ["--rate", f"{load.rate:g}", "--spin", f"{spin:.3g}"]
            else:
                words += ["--depth", str(load.depth)]
            if run.sampling:
                words += ["--answers", str(folder / RESPONSES_FILE), "--answers-share", f"{run.sampling.share:.6g}"]
                words += [
                    "--answers-limit",
                    str(run.sampling.max_responses),
                    "--answers-bytes",
                    str(run.sampling.max_bytes),
                ]
        if run.requests:
            requests = "".join(_request_line(each, run.host) for each in run.requests)
            (folder / REQUESTS_FILE).write_text(requests, encoding="utf-8")
            words += ["--requests", str(folder / REQUESTS_FILE)]
        if run.requests or isinstance(load, Scenario):
            parts = urlsplit(url)
            url = f"{parts.scheme}://{parts.netloc}"
        priority = ORDINARY if isinstance(load, ClosedLoop) else REALTIME
        return [*((*priority, self.binary) if self.chrt else ()), *words, url]

    def result(self, run: LoadRun, output: str) -> LoadResult:
        """Return the combined result of all clients. Raises LoadError for invalid output."""
        totals = parse_totals(output, run.url)
        try:
            if len(totals) == 1:
                return _load_result(run, totals[0])
            parts = tuple(_load_result(run, each) for each in totals)
            return _load_result(run, merge_totals(totals)).model_copy(update={"parts": parts})
        except (ArithmeticError, LookupError, ValueError) as error:
            raise LoadError(f"loadgen printed an impossible result for {run.url}: {error}") from error


def _request_line(request: PreparedRequest, host: str) -> str:
    """Return a request as a line of the generator's requests file."""
    line = {
        "head": request.head(host).decode(),
        "body_base64": base64.b64encode(request.body).decode(),
        "status": request.expect.status,
        "weight": 1.0,
    }
    return f"{json.dumps(line)}\n"


def _load_result(run: LoadRun, total: Total) -> LoadResult:
    """Convert a generator's total to the form that is recorded."""
    unanswered = total.unfinished + total.unsent
    closed = total.loop == "closed"
    result = LoadResult(
        duration=total.seconds,
        requests=total.in_time["received"],
        in_time=total.in_time["successes"],
        bytes=total.in_time["bytes_in"],
        errors=total.errors.errors(unanswered),
        latency=_latency(total.service if closed and total.depth == 1 else total.latency, closed=closed),
        cpu_seconds=total.cpu_seconds,
        wait_seconds=total.run_queue_wait_seconds,
        account=_request_account(total),
    )
    if closed:
        return result
    lag, latency, late, sent_late = total.lag, total.latency, None, None
    if run.late_after is not None:
        late = total.due - total.successes + (latency.later_than(run.late_after) if latency else 0)
    if lag and latency:  # count requests that were sent later than the validity check of the lag permits
        sent_late = lag.later_than(max(run.lag_share * latency.percentiles_ns["99"] * NS, MIN_LAG_SECONDS))
    return result.model_copy(
        update={
            "service": _latency(total.service, closed=True),
            "due": total.due,
            "answered": total.successes,
            "unfinished": unanswered,
            "late": late,
            "lag_p99": lag.percentiles_ns["99"] * NS if lag else None,
            "sent_late": sent_late,
            "arrivals": _arrivals(run, total) if total.loop == "scenario" else None,
        }
    )


def _latency(times: Times | None, *, closed: bool) -> Latency | None:
    """Convert a distribution to the form that is recorded, with three significant digits in the histogram."""
    if times is None:
        return None
    bins: Counter[float] = Counter()
    for value, count in times.distribution_ns:
        seconds = value * NS
        digits = HISTOGRAM_DIGITS - math.floor(math.log10(seconds)) if value > 0 else 0
        bins[round(seconds, digits) if value > 0 else 0.0] += count
    return Latency(
        basis="closed-loop, service time" if closed else "open-loop, intended send time",
        mean=times.mean_ns * NS,
        stdev=times.stdev_ns * NS,
        min=times.min_ns * NS,
        max=times.max_ns * NS,
        percentiles={point: times.percentiles_ns[point] * NS for point in PERCENTILES},
        histogram=tuple(sorted(bins.items())),
    )


def _request_account(total: Total) -> RequestCounts:
    """Return the counts of all requests. If the drain is as long as the timeout, no request remains unfinished."""
    return RequestCounts(
        sent=total.sent,
        received=total.received,
        successes=total.successes,
        failed=total.received - total.successes,
        unsolicited=total.unasked_responses,
        unsolicited_bytes=total.unasked_bytes,
        unfinished=0 if total.drain_seconds >= TIMEOUT_SECONDS else total.unfinished,
        hung_connections=total.connections_hung,
        closed_connections=total.connections_closed_by_peer,
        interrupted=total.errors.closed + total.errors.write,
        malformed=total.errors.framing + total.errors.dropped,
        statuses=total.statuses,
        all_recorded=total.sampled == total.received,
    )


def _arrivals(run: LoadRun, total: Total) -> Arrivals:
    """Return the arrivals of a scenario. Raises LoadError if there are more or fewer outcomes than due arrivals."""
    cases = total.use_cases
    counts = [(case.due, case.done + case.failed + case.unfinished) for case in cases]
    counts += [(each.due, each.answered + each.errors.errors(each.unfinished).total) for each in total.operations]
    if any(due != ended for due, ended in counts):
        raise LoadError(f"loadgen's counts for {run.url} are inconsistent: pairs of due and ended are {counts}")
    return Arrivals(
        due=sum(case.due for case in cases),
        done=sum(case.done for case in cases),
        failed=sum(case.failed for case in cases),
        unfinished=sum(case.unfinished for case in cases),
        operations=tuple(_operation_times(each) for each in total.operations),
        use_cases=tuple(_use_case_times(case) for case in cases),
    )


def _operation_times(operation: Operation) -> OperationTimes:
    return OperationTimes(
        use_case=operation.use_case,
        operation=operation.operation,
        due=operation.due,
        answered=operation.answered,
        errors=operation.errors.errors(0),
        latency=_latency(operation.latency, closed=False),
        service=_latency(operation.service, closed=True),
    )


def _use_case_times(case: UseCaseResult) -> UseCaseTimes:
    return UseCaseTimes(
        use_case=case.use_case, due=case.due, done=case.done, latency=_latency(case.latency, closed=False)
    )
