"""Simulated runs as records, so that the whole ranking can be asked: figures of worlds, or any given."""

from collections.abc import Mapping, Sequence

import numpy as np

from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop, Load
from harness.records.machine_record import Machine
from harness.records.measurements import ErrorCounts, ServerUsage
from harness.records.run_info import ImplementationInfo, RunInfo
from harness.records.trial_record import Trial, TrialEvidence, ValidityCheck
from harness.studies.simulated_runs import Logs

LOAD = ClosedLoop(connections=64)
MACHINE = Machine(
    hostname="simulated", os="", kernel="", cpu_model="", cpus_online=2, cpus_usable=(0, 1), memory_bytes=1
)


def trial(
    implementation: str, throughput: float, process: int = 0, round_: int = 0, *, test_type: str = "json",
    load: Load = LOAD, cpu: float | None = None, validity: tuple[ValidityCheck, ...] = (),
) -> Trial:  # fmt: skip
    """One second at this throughput; CPU per request is that of a saturated core unless given."""
    return Trial(
        id=f"{implementation}-{test_type}-{load.label}-{process}.{round_}",
        implementation=implementation, test_type=test_type, load=load, process=process, round=round_,
        started_at=float(process), duration=1.0, asked_duration=1.0,
        requests=round(throughput), bytes=round(throughput) * 150, errors=ErrorCounts(),
        throughput=throughput, cpu_per_request=1 / throughput if cpu is None and throughput else cpu, latency=None,
        server=ServerUsage(cpu_seconds=1.0, rss_peak=5e7, wait_share=0.01, throttled_seconds=0.0),
        generator_cpu_seconds=0.3, generator_threads=1,
        evidence=TrialEvidence(judged=10, received=round(throughput)), validity=validity,
    )  # fmt: skip


def trials(tables: Mapping[tuple[str, Load], Logs], names: Sequence[str]) -> list[Trial]:
    """Tables of log figures (servers x processes x rounds) as records."""
    return [
        trial(names[i], 1000.0 * float(np.exp(logs[i, process, turn])), process, turn, test_type=kind, load=load)
        for (kind, load), logs in tables.items()
        for i, process, turn in zip(*np.nonzero(~np.isnan(logs)), strict=True)
    ]


def run_info(
    names: Sequence[str], rules: ProcessLimits, *, reference: str | None = None,
    loads: Mapping[str, tuple[Load, ...]] | None = None,
) -> RunInfo:  # fmt: skip
    """A completed run over these implementations with these rules."""
    planned = dict(loads or {"json": (LOAD,)})
    implementations = tuple(
        ImplementationInfo(
            name=name, framework=name, language="", folder="", display_name=name, test_types=tuple(planned)
        )
        for name in names
    )
    return RunInfo(
        run_id="simulated", name="simulated", environment="simulated", status="complete", started_at=0.0, command=(),
        profile="simulated", runtime="local", seed=0, settings={"profile": {"processes": rules.model_dump()}},
        reference=reference, machine=MACHINE, tools={}, implementations=implementations, loads=planned,
        processes_expected=rules.minimum, processes_maximum=rules.maximum,
    )  # fmt: skip
