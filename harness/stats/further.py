"""All metrics that can be ranked, by name: what each process of a cell showed, and which end of it is better.

Beside throughput and CPU per request: response time of the closed loop (at one connection it is what a lone client
waits), memory, throughput per memory, threads, and the time to the first answer. A value is the median over a process's
attempts that count, or the geometric mean of its windows where it was measured in turns.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from harness.records.models import Latency, LatencyBasis, Load, ReplicateRecord, Sample
from harness.stats.closed_loop import WRK, latency_of
from harness.stats.metric import MetricRows
from harness.stats.values import MEGABYTE, attempt, choose, geometric_mean

Cell = tuple[str, Load]  # test type, level


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One quantity: of a sample, of its latency that is shown, or (``of_process``) of a process as a whole."""

    name: str
    title: str
    unit: str
    higher: bool  # is better
    read: Callable[[Sample], float | None] = lambda _: None
    of_latency: Callable[[Latency], float | None] | None = None
    of_process: Callable[[ReplicateRecord], float | None] | None = None

    def value(self, sample: Sample, basis: LatencyBasis) -> float | None:
        """What a sample shows; its latency is that on this basis."""
        if self.of_latency is None:
            return self.read(sample)
        latency = latency_of(sample, basis)
        return self.of_latency(latency) if latency else None


def response_time(latency: Latency) -> float | None:
    """Seconds, the mean of the closed loop."""
    return latency.mean


def _percentile(point: str) -> Callable[[Latency], float | None]:
    return lambda latency: latency.percentiles.get(point)


def throughput_per_memory(sample: Sample) -> float | None:
    """Requests per second and megabyte of resident memory at its peak."""
    peak = sample.server.rss_peak
    return sample.throughput / (peak / MEGABYTE) if peak else None


METRICS: dict[str, Metric] = {
    each.name: each
    for each in (
        Metric(name="throughput", title="req/s", unit="req/s", higher=True, read=lambda s: s.throughput),
        Metric(name="cpu-per-request", title="CPU/req", unit="s", higher=False, read=lambda s: s.cpu_per_request),
        Metric(name="response-time", title="response time, mean", unit="s", higher=False, of_latency=response_time),
        Metric(
            name="response-time-p50",
            title="response time, median",
            unit="s",
            higher=False,
            of_latency=_percentile("50"),
        ),
        Metric(
            name="response-time-p99", title="response time, p99", unit="s", higher=False, of_latency=_percentile("99")
        ),
        Metric(name="memory", title="memory", unit="B", higher=False, read=lambda s: s.server.rss_peak),
        Metric(
            name="throughput-per-memory",
            title="req/s/MB",
            unit="req/s/MB",
            higher=True,
            read=throughput_per_memory,
        ),
        Metric(name="threads", title="threads", unit="", higher=False, read=lambda s: s.server.threads_peak),
        Metric(
            name="first-answer",
            title="first answer",
            unit="s",
            higher=False,
            of_process=lambda process: process.first_answer,
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class Values:
    """One metric of one cell by process; ``windows`` by (process, round) where it was measured in turns."""

    processes: Mapping[int, float]
    windows: Mapping[tuple[int, int], float]


NOTHING = Values(processes={}, windows={})


def of_cell(
    metric: Metric, samples: Sequence[Sample], replicates: Sequence[ReplicateRecord], basis: LatencyBasis = WRK
) -> Values:
    """The values of a cell, from its own samples and the records of its implementation's processes.

    ``basis`` of a latency is that of all cells it is compared with: ``closed_loop.basis_to_compare``.
    """
    if metric.of_process is not None:
        known = {record.process: metric.of_process(record) for record in replicates if record.status != "interrupted"}
        return Values(processes={key: value for key, value in sorted(known.items()) if value}, windows={})
    groups: defaultdict[tuple[int, int | None], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.duet_partner is None:
            groups[sample.block, sample.round].append(sample)
    processes: dict[int, float] = {}
    windows: dict[tuple[int, int], float] = {}
    for (block, number), members in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or 0)):
        attempts = [attempt(sample) for sample in members]
        chosen = {id(one) for one in choose(attempts)}
        read = [metric.value(sample, basis) for sample, one in zip(members, attempts, strict=True) if id(one) in chosen]
        kept = [value for value in read if value]
        if kept and number is None:
            processes[block] = median(kept)
        elif kept and number is not None:
            windows[block, number] = median(kept)
    for block in dict.fromkeys(block for block, _ in windows):
        processes[block] = geometric_mean([value for (of, _), value in windows.items() if of == block])
    return Values(processes=processes, windows=windows)


def rows(values: Mapping[str, Values]) -> MetricRows:
    """Rows to be compared, of those that have any value."""
    kept = {name: found for name, found in values.items() if found.processes}
    return MetricRows(
        values={name: found.processes for name, found in kept.items()},
        windows={name: found.windows for name, found in kept.items()},
    )
