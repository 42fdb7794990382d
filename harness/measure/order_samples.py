"""A load of the order service as a sample of its level, so that it is ranked and compared like any other. Pure."""

from harness.measure.loadgen.wrk import merged_latency
from harness.measure.testbed import Target
from harness.plan.orders import CREATE
from harness.records.models import Level, Sample, ServerUse
from harness.records.orders import OrderSample

NOTHING_SEEN = ServerUse(cpu_seconds=0.0, rss_peak=None, rss_mean=None, wait_share=None, throttled_seconds=None)


def as_sample(load: OrderSample, level: Level, target: Target) -> Sample:
    """Throughput in arrivals that went to their end, CPU seconds per arrival, the latency of "create order"."""
    creates = [one.latency for one in load.operations if one.operation == CREATE and one.latency]
    return Sample(
        id=f"{load.id}/{level.label}",
        implementation=load.implementation,
        test_type=target.test_type.name,
        level=level,
        block=load.block,
        process=load.process,
        started_at=load.started_at,
        command=load.command,
        duration=load.duration,
        asked_duration=load.duration,
        requests=load.done,
        bytes=load.bytes,
        errors=load.errors,
        throughput=load.done / load.duration,
        cpu_per_request=load.cpu_per_arrival,
        latency=merged_latency(creates, len(creates)) if creates else None,
        server=load.server or NOTHING_SEEN,
        generator_cpu_seconds=load.generator_cpu_seconds,
        generator_threads=load.generator_threads,
        database_cpu_seconds=load.database_cpu_seconds,
        gates=load.gates,
        steal_share=load.steal_share,
        restarted=load.restarted,
    )
