"""Creates records of runs with simulated or given values for ranking tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop, Load
from harness.records.measurements import ErrorCounts, ServerUsage
from harness.records.run_info import ImplementationInfo, Machine, RunInfo
from harness.records.trial_record import Trial, TrialEvidence
from harness.studies.coverage import Logs

LOAD = ClosedLoop(connections=64)
MACHINE = Machine(
    hostname="simulated", os="", kernel="", cpu_model="", cpus_online=2, cpus_usable=(0, 1), memory_bytes=1
)


def trial(
    implementation: str, throughput: float, process: int = 0, round_: int = 0, *, test_type: str = "json",
    load: Load = LOAD, **changes: Any,
) -> Trial:  # fmt: skip
    """Return a one-second trial. By default, the server uses one full CPU; ``changes`` replaces other fields."""
    measured = Trial(
        id=f"{implementation}-{test_type}-{load.label}-{process}.{round_}",
        implementation=implementation, test_type=test_type, load=load, process=process, round=round_,
        started_at=float(process), duration=1.0, asked_duration=1.0,
        requests=round(throughput), bytes=round(throughput) * 150, errors=ErrorCounts(),
        throughput=throughput, cpu_per_request=1 / throughput if throughput else None, latency=None,
        server=ServerUsage(cpu_seconds=1.0, rss_peak=5e7, wait_share=0.01, throttled_seconds=0.0),
        generator_cpu_seconds=0.3, generator_threads=1,
        evidence=TrialEvidence(judged=10, received=round(throughput)),
    )  # fmt: skip
    return measured.model_copy(update=changes)


def trials(tables: Mapping[tuple[str, Load], Logs], names: Sequence[str]) -> list[Trial]:
    """Return trials for arrays of log(throughput) with shape (servers, processes, rounds). NaN means no trial."""
    return [
        trial(
            names[i], 1000.0 * float(np.exp(logs[i, process, round_])), process, round_, test_type=test_type, load=load
        )
        for (test_type, load), logs in tables.items()
        for i, process, round_ in zip(*np.nonzero(~np.isnan(logs)), strict=True)
    ]


def run_info(
    names: Sequence[str], rules: ProcessLimits, *, reference: str | None = None,
    loads: Mapping[str, tuple[Load, ...]] | None = None,
) -> RunInfo:  # fmt: skip
    """Return the description of a run of the named implementations."""
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
