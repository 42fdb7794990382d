"""Simulated servers with known truth: the noise of a benchmark, without the benchmark.

A replicate's logarithm is its server's true one, plus what its process got by luck (log-normal between replicates),
plus what its block shares with all others (drift of the host), plus the mean of windows whose noise is autocorrelated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.plan.profile import Replication
from harness.records.models import Closed, Errors, ImplementationInfo, Load, Machine, RunInfo, Sample, ServerUse
from harness.stats import rules
from harness.stats.model import Ranking
from harness.stats.ranking import rank
from harness.stats.stopping import undecided

Logs = NDArray[np.float64]
LEVEL = Closed(connections=64)
TEST_TYPE = "json"


@dataclass(frozen=True, kw_only=True)
class World:
    """Noise of a machine, as standard deviations of logarithms; by default one with nothing else on it."""

    replicate: float = 0.017  # between fresh processes
    drift: float = 0.0  # step of the random walk from block to block
    block: float = 0.0  # of each block by itself
    window: float = 0.03  # of one second
    correlation: float = 0.74  # of neighbouring windows
    windows: int = 10  # of one sample


QUIET = World()
DRIFTING = World(drift=0.02, block=0.01)
NOISY = World(replicate=0.07, drift=0.02, block=0.05, window=0.3)


def logs(world: World, truth: Sequence[float], blocks: int, runs: int, generator: np.random.Generator) -> Logs:
    """Log throughputs of ``runs`` independent runs: runs x servers x blocks. ``truth`` is relative throughput.

    A server's replicate noise is the world's, times a factor of its own between 1/2 and 2 that is spread evenly over
    the servers: a JVM's processes differ more than an epoll loop's.
    """
    servers = len(truth)
    factors = np.exp2(np.linspace(-1, 1, servers)) if servers > 1 else np.ones(1)
    shape = (runs, servers, blocks)
    lucky = generator.normal(size=shape) * world.replicate * factors[None, :, None]
    walk = np.cumsum(generator.normal(size=(runs, 1, blocks)) * world.drift, axis=2)
    common = generator.normal(size=(runs, 1, blocks)) * world.block
    noise = np.empty((*shape, world.windows))
    noise[..., 0] = generator.normal(size=shape)
    innovation = np.sqrt(1 - world.correlation**2)
    for index in range(1, world.windows):
        noise[..., index] = world.correlation * noise[..., index - 1] + innovation * generator.normal(size=shape)
    windows = np.log(np.exp(world.window * noise).mean(axis=-1))
    return np.asarray(np.log(np.asarray(truth))[None, :, None] + lucky + walk + common + windows)


def samples(throughput: Logs, base: float = 100_000.0) -> list[Sample]:
    """One run's logs (servers x blocks) as records; CPU per request is the inverse of throughput on one core."""
    return [
        sample(f"s{server}", block, base * float(np.exp(throughput[server, block])))
        for block in range(throughput.shape[1])
        for server in range(throughput.shape[0])
    ]


def sample(
    implementation: str, block: int, throughput: float, *, test_type: str = TEST_TYPE, level: Load = LEVEL
) -> Sample:
    """A ten-second sample of this throughput, with a saturated core."""
    return Sample(
        id=f"{implementation}-{test_type}-{level.label}-{block}",
        implementation=implementation,
        test_type=test_type,
        level=level,
        block=block,
        replicate=block,
        started_at=float(block),
        duration=10.0,
        asked_duration=10.0,
        requests=round(throughput * 10),
        bytes=round(throughput * 10) * 150,
        errors=Errors(),
        throughput=throughput,
        cpu_per_request=1 / throughput,
        latency=None,
        server=ServerUse(cpu_seconds=10.0, rss_peak=5e7, rss_mean=5e7, wait_share=0.01, throttled_seconds=0.0),
        generator_cpu_seconds=3.0,
        generator_threads=1,
    )


MACHINE = Machine(
    hostname="simulated", os="", kernel="", cpu_model="", cpus_online=2, cpus_usable=(0, 1), memory_bytes=1
)


def run_info(
    names: Sequence[str],
    replication: Replication,
    *,
    reference: str | None = None,
    levels: dict[str, tuple[Load, ...]] | None = None,
) -> RunInfo:
    """A completed run over these implementations with these rules."""
    planned = levels or {TEST_TYPE: (LEVEL,)}
    return RunInfo(
        run_id="simulated",
        name="simulated",
        environment="simulated",
        status="complete",
        started_at=0.0,
        command=(),
        profile="simulated",
        runtime="local",
        seed=0,
        settings={"replication": replication.model_dump()},
        reference=reference,
        machine=MACHINE,
        tools={},
        implementations=tuple(
            ImplementationInfo(
                name=name,
                framework=name,
                language="",
                folder="",
                display_name=name,
                test_types=tuple(planned),
            )
            for name in names
        ),
        levels=planned,
        blocks_expected=replication.minimum,
        blocks_maximum=replication.maximum,
    )


@dataclass(frozen=True)
class Stopped:
    """A simulated run that the sequential rule ended: its ranking, and how many replicates each server got."""

    ranking: Ranking
    replicates: tuple[int, ...]


def sequential(throughput: Logs, replication: Replication) -> Stopped:
    """Play one run's logs (servers x blocks) block by block through the stopping rule, then rank what was measured."""
    names = [f"s{server}" for server in range(len(throughput))]
    everything = samples(throughput)
    active = [(name, TEST_TYPE) for name in names]
    measured: list[Sample] = []
    looks = rules.looks(replication)
    for block in range(throughput.shape[1]):
        wanted = {name for name, _ in active}
        measured += [s for s in everything if s.block == block and s.implementation in wanted]
        if block + 1 not in looks:
            continue  # between looks nothing can be decided
        open_ones = undecided(measured, [(name, TEST_TYPE) for name in names], replication)
        active = [(each.implementation, each.test_type) for each in open_ones]
        if not active:
            break
    counts = tuple(sum(s.implementation == name for s in measured) for name in names)
    return Stopped(rank(run_info(names, replication, reference="s0"), measured, [], []), counts)
