"""Runs the project's load generator, toolset/loadgen: builds the command line and converts the output to records."""

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
    LoadResult,
    LoadRun,
    headers,
)
from harness.experiment.generators.loadgen_output import (
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
from harness.units import NS
from harness.verify.checks.evidence import RequestCounts
from harness.verify.wire import TIMEOUT_SECONDS

PLAN_FILE = "plan.json"  # file in the load's folder with a scenario's use cases
REQUESTS_FILE = "requests.jsonl"  # file in the load's folder with the requests to send
REALTIME, ORDINARY = ("--rr", "1"), ("--other", "0")  # chrt options: lowest real-time priority; normal priority
# In an open loop, generator threads wake 50 µs early and spin, so that they send each request on time. They spin for at
# most a tenth of the time, because real-time threads that never sleep would deprive the server of CPU time.
SPIN_MICROS, SPIN_SHARE = 50.0, 0.1
PERCENTILES = ("50", "75", "90", "95", "99", "99.9", "99.99")


@dataclass(frozen=True, kw_only=True)
class Loadgen:
    """The load generator ``toolset/loadgen``, which supports closed loops, open loops and scenarios."""

    binary: str = "loadgen"
    chrt: str | None = None  # path of chrt, which sets the generator's priority; None to keep the normal priority
    name: Literal["loadgen"] = "loadgen"
    waits_for_go: bool = True

    @classmethod
    def of(cls, runtime: Runtime) -> Self:
        """Build the generator if necessary, and return it.

        In the local runtime, the generator shares CPUs with the server and therefore uses real-time priority for open
        loops and scenarios, if permitted. Raises EnvironmentLacksError if this machine cannot build it, or BuildError
        if the build fails.
        """
        chrt = shutil.which("chrt") if runtime.name == "local" else None
        if chrt and process.run([chrt, *REALTIME, "true"], seconds=10).status != 0:
            chrt = None  # real-time priority is not permitted
        return cls(binary=runtime.own_generator(), chrt=chrt)

    @property
    def program(self) -> str:
        """The program to start: chrt if it is used, otherwise the generator."""
        return self.chrt or self.binary

    def arguments(self, run: LoadRun, folder: Path) -> Sequence[str]:
        """Write the generator's input files and return the arguments. The seed determines the order of the headers."""
        load, url = run.load, run.url
        lines = [] if run.requests else list(headers(run))
        if run.protocol != "http1":
            lines = lines[:-1]  # omit the Connection header, which belongs to HTTP/1.1
        random.Random(run.seed).shuffle(lines)
        arguments = [word for header in lines for word in ("--header", header)]
        arguments += ["--connections", str(load.connections), "--threads", str(run.threads)]
        arguments += ["--duration", f"{run.seconds:g}", "--timeout", str(TIMEOUT_SECONDS), "--seed", str(run.seed)]
        # After a closed loop, wait for outstanding responses until the requests time out.
        drain = TIMEOUT_SECONDS if isinstance(load, ClosedLoop) else DRAIN_SECONDS
        arguments += ["--drain-seconds", f"{drain:g}"]
        if isinstance(load, Scenario):
            (folder / PLAN_FILE).write_text(json.dumps(plan(run.use_cases, load.factor)), encoding="utf-8")
            arguments += ["--scenario", str(folder / PLAN_FILE)]
            arguments += ["--responses", str(folder / RESPONSES_FILE)] if run.sampling else []
        else:
            if isinstance(load, OpenLoop):
                spin = min(SPIN_MICROS, SPIN_SHARE * 1e6 * run.threads / load.rate)
                arguments += ["--rate", f"{load.rate:g}", "--spin", f"{spin:.3g}"]
            else:
                arguments += ["--depth", str(load.depth)]
                arguments += ["--close-after", str(load.close_after)] if load.close_after else []
            if run.sampling and run.protocol != "websocket":  # loadgen itself checks every WebSocket echo
                arguments += [
                    "--responses",
                    str(folder / RESPONSES_FILE),
                    "--sample-share",
                    f"{run.sampling.share:.6g}",
                ]
                arguments += [
                    "--sample-limit",
                    str(run.sampling.max_responses),
                    "--sample-bytes",
                    str(run.sampling.max_bytes),
                ]
        if run.requests:
            requests = "".join(_request_line(each, run.host) for each in run.requests)
            (folder / REQUESTS_FILE).write_text(requests, encoding="utf-8")
            arguments += ["--requests", str(folder / REQUESTS_FILE)]
        if run.requests or isinstance(load, Scenario):
            parts = urlsplit(url)
            url = f"{parts.scheme}://{parts.netloc}"
        arguments += ["--protocol", run.protocol] if run.protocol != "http1" else []
        arguments += ["--tls-fixed"] if run.tls_fixed else []
        arguments += ["--unix", run.unix] if run.unix else []
        priority = ORDINARY if isinstance(load, ClosedLoop) else REALTIME
        return [*((*priority, self.binary) if self.chrt else ()), *arguments, url]

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
    """Format a request as a line of the generator's requests file."""
    line = {
        "head": request.head(host).decode(),
        "body_base64": base64.b64encode(request.body).decode(),
        "status": request.expect.status,
        "weight": 1.0,
    }
    return f"{json.dumps(line)}\n"


def _load_result(run: LoadRun, total: Total) -> LoadResult:
    """Convert a generator's totals to the recorded result."""
    unanswered = total.unfinished + total.unsent
    closed = total.loop == "closed"
    pipelined = total.depth > 1 and total.protocol == "http1"
    result = LoadResult(
        duration=total.seconds,
        requests=total.in_time["received"],
        in_time=total.in_time["successes"],
        bytes=total.in_time["bytes_in"],
        errors=total.errors.errors(unanswered),
        latency=_latency(total.service if closed and not pipelined else total.latency, closed=closed),
        cpu_seconds=total.cpu_seconds,
        wait_seconds=total.run_queue_wait_seconds,
        account=_request_account(total),
        tls_sessions=total.tls_sessions or None,
        peer_settings=total.peer_settings,
    )
    if closed:
        return result
    lag, latency, late_count, sent_late = total.lag, total.latency, None, None
    if run.late_after is not None:
        late_count = total.due - total.successes + (latency.later_than(run.late_after) if latency else 0)
    if lag and latency:  # same limit as in the validity check "generator-lag"
        sent_late = lag.later_than(max(run.lag_share * latency.percentiles_ns["99"] * NS, MIN_LAG_SECONDS))
    return result.model_copy(
        update={
            "service": _latency(total.service, closed=True),
            "due": total.due,
            "answered": total.successes,
            "unfinished": unanswered,
            "late": late_count,
            "lag_p99": lag.percentiles_ns["99"] * NS if lag else None,
            "sent_late": sent_late,
            "arrivals": _arrivals(run, total) if total.loop == "scenario" else None,
        }
    )


def _latency(times: Times | None, *, closed: bool) -> Latency | None:
    """Convert a time distribution to the recorded latency. Return None if there is no distribution."""
    if times is None:
        return None
    bins: Counter[float] = Counter()
    for value, count in times.distribution_ns:
        seconds = value * NS
        # Three significant digits keep the lines of trials.jsonl short.
        digits = 2 - math.floor(math.log10(seconds)) if value > 0 else 0
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
    """Return the counts of all requests.

    If the drain was at least as long as the timeout, all unfinished requests have timed out. They then count only as
    timeouts.
    """
    return RequestCounts(
        sent=total.sent,
        received=total.received,
        successes=total.successes,
        failed=total.received - total.successes,
        unsolicited=total.unsolicited_responses,
        unsolicited_bytes=total.unsolicited_bytes,
        unfinished=0 if total.drain_seconds >= TIMEOUT_SECONDS else total.unfinished,
        hung_connections=total.connections_hung,
        closed_connections=total.connections_closed_by_peer,
        interrupted=total.errors.closed + total.errors.write,
        malformed=total.errors.framing + total.errors.dropped + total.errors.reset + total.errors.mismatch,
        statuses=total.statuses,
        all_recorded=total.sampled == total.received,
        tls_sessions=total.tls_sessions,
    )


def _arrivals(run: LoadRun, total: Total) -> Arrivals:
    """Return a scenario's arrivals. Raises LoadError unless every due arrival and request has exactly one outcome."""
    cases = total.use_cases
    counts = [(case.due, case.done + case.failed + case.unfinished) for case in cases]
    counts += [(each.due, each.answered + each.errors.errors(each.unfinished).total) for each in total.operations]
    if any(due != ended for due, ended in counts):
        raise LoadError(
            f"loadgen's counts for {run.url} are inconsistent: each (due, ended) pair must contain equal numbers: "
            f"{counts}"
        )
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
