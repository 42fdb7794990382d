"""Runs a load on a process and collects evidence from the responses."""

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.experiment.generators import RESPONSES_FILE, LoadGenerator, LoadRun
from harness.experiment.generators.registry import witness
from harness.experiment.observe import Observation, ObservedLoad, observe
from harness.experiment.process_lifecycle import RunningProcess
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_context import MultiMachineRuntime
from harness.experiment.steps import Cell, Measure, Process, Warm
from harness.host import ownership
from harness.host.clock import CLOCK_JUMP_SECONDS, MAX_CLOCK_JUMPS, Clock, wall_clock_offset
from harness.plan.profile import Profile
from harness.plan.requests import PreparedRequest
from harness.plan.testtypes.registry import supported_by_wrk
from harness.records.loads import ClosedLoop, Scenario
from harness.records.trial_record import TrialEvidence
from harness.runtime import Runtime, endpoint_of
from harness.verify.checks.registry import draw_requests
from harness.verify.trial import TrialContext
from harness.verify.verifier import Verifier


@dataclass(frozen=True, kw_only=True)
class MeasuredLoad:
    """A finished load: its measurements, and the evidence from sampled responses."""

    generator: LoadGenerator
    threads: int  # number of generator threads
    observation: Observation
    evidence: TrialEvidence | None


@dataclass(kw_only=True)
class LoadExecutor:
    """An executor that puts warm-up loads and measured loads on running processes."""

    seed: int
    profile: Profile
    clock: Clock
    runtime: Runtime
    verifier: Verifier
    generators: Mapping[str, LoadGenerator]
    generator_cpus: int  # number of CPUs that the generator may use
    running: Mapping[Process, RunningProcess]
    progress: ProgressTracker
    _loads: int = field(default=0, init=False)

    def warm(self, running: RunningProcess, step: Warm) -> Observation:
        """Run a warm-up load."""
        self.progress.load(step.cell, "warm-up")
        with ownership.make_scratch_folder("tfb-load-") as folder:
            run = self._make_run(running, step.cell, step.seconds, seed=self._loads + 1)
            return self._observe(running, step.cell, self._choose_generator(step.cell), run, folder)

    def measure(self, running: RunningProcess, step: Measure) -> MeasuredLoad:
        """Run a load and check a sample of the responses. Repeat the load if the system clock was set meanwhile."""
        chosen = self._choose_generator(step.cell)
        generator = self._witness(step.cell, chosen) if step.purpose == "witness" else chosen
        self.progress.load(step.cell, "measure")
        for repetitions_left in reversed(range(1 + MAX_CLOCK_JUMPS)):
            offset = wall_clock_offset(self.clock)
            measured_load = self._run_with_evidence(running, step, generator)
            if abs(wall_clock_offset(self.clock) - offset) < CLOCK_JUMP_SECONDS:
                break
            consequence = "the load is repeated" if repetitions_left else "the result is used anyway"
            self.progress.note(f"the machine's clock was set during a load: {consequence}")
        return measured_load

    def idle_processes(self, running: RunningProcess) -> list[RunningProcess]:
        """Return the other running processes, which should be idle while ``running`` is under load."""
        return [other for other in self.running.values() if other is not running]

    def _choose_generator(self, cell: Cell) -> LoadGenerator:
        """Return the profile's generator if it supports the load, otherwise loadgen."""
        return self.generators[self.profile.generator if supported_by_wrk(cell.test_type, cell.load) else "loadgen"]

    def _witness(self, cell: Cell, chosen: LoadGenerator) -> LoadGenerator:
        """Return the load generator that independently repeats a measurement by ``chosen``."""
        return self.generators[witness(chosen.name, cell.test_type)]

    def _run_with_evidence(self, running: RunningProcess, step: Measure, generator: LoadGenerator) -> MeasuredLoad:
        """Run a load once and check a sample of the responses."""
        cell = step.cell
        process, load = cell.process, cell.load
        rng = random.Random(
            f"{self.seed} {process.implementation} {process.number} {cell.test_type} {load.label} {self._loads}"
        )
        self._loads += 1
        verification = self.verifier.verify_trial(
            TrialContext(
                server=running.server,
                test_type=running.implementation.test_types[cell.test_type],
                load=load,
                database=running.database.address,
                seconds=step.seconds,
                rate=running.rates.get((cell.test_type, load)),
                seed=rng.randrange(1 << 31),
            )
        )
        with ownership.make_scratch_folder("tfb-load-") as folder:
            with verification:
                # Do not record responses on other machines, because this machine could not read the files.
                sampling = None if isinstance(self.runtime, MultiMachineRuntime) else verification.sampling
                seed, requests = rng.randrange(1 << 31), verification.requests
                run = self._make_run(running, cell, step.seconds, seed=seed, requests=requests)
                run = replace(run, sampling=sampling)
                observation = self._observe(running, cell, generator, run, folder)
            result, responses = observation.result, folder / RESPONSES_FILE
            failed = result.errors.status
            evidence = verification.judge(
                good=result.account.successes if result.account else result.requests - failed,
                failed=failed,
                counts=result.account,
                responses_file=responses if responses.is_file() else None,
            )
        return MeasuredLoad(generator=generator, threads=run.threads, observation=observation, evidence=evidence)

    def _make_run(
        self,
        running: RunningProcess,
        cell: Cell,
        seconds: float,
        *,
        seed: int,
        requests: Sequence[PreparedRequest] | None = None,
    ) -> LoadRun:
        """Return the parameters for running a cell's load, without recording responses.

        If ``requests`` is None, draw the requests with the seed.
        """
        kind, url = running.implementation.test_types[cell.test_type], running.implementation.urls[cell.test_type]
        load, endpoint, profile = cell.load, endpoint_of(running.server, kind), self.profile
        scenario = isinstance(load, Scenario)
        return LoadRun(
            url=endpoint.url("/" if scenario else kind.request_target(url, load)),
            host=endpoint.authority,
            unix=endpoint.unix.checked_path() if endpoint.unix else "",
            accept=kind.accept,
            protocol=kind.protocol,
            tls_fixed=kind.tls,
            load=load,
            seconds=seconds,
            threads=max(1, min(load.connections, self.generator_cpus)),
            seed=seed,
            requests=draw_requests(running.server, kind, seed) if requests is None else requests,
            use_cases=kind.use_cases,
            late_after=(profile.orders if scenario else profile.open_loop).goal.seconds,
            lag_share=profile.open_loop.lag_share,
        )

    def _observe(
        self, running: RunningProcess, cell: Cell, generator: LoadGenerator, run: LoadRun, folder: Path
    ) -> Observation:
        """Run a load while observing the server under load, the database and all idle servers."""
        sizes: Sequence[float] = running.response_bytes(cell) or ()
        endpoint = endpoint_of(running.server, running.implementation.test_types[cell.test_type])
        observed = ObservedLoad(
            server=running.server,
            metered_port=0 if isinstance(cell.load, ClosedLoop) and cell.load.close_after else endpoint.metered_port,
            database=running.database,
            generator=generator,
            run=run,
            folder=folder,
            response_bytes=statistics.fmean(sizes) if sizes else None,
            idle_meters=[other.server.program for other in self.idle_processes(running)],
        )
        return observe(self.runtime, self.clock, observed, self.progress.second)
