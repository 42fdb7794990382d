"""Builds a trial's record from a load, and applies the validity checks."""

from dataclasses import dataclass, field

from harness.experiment.generators import LoadResult
from harness.experiment.load_executor import MeasuredLoad
from harness.experiment.process_lifecycle import RunningProcess
from harness.experiment.steps import Cell, Measure
from harness.experiment.validity import ValidityContext, check_validity
from harness.plan.profile import Profile
from harness.records.run_info import RunInfo
from harness.records.trial_record import Trial


@dataclass(kw_only=True)
class TrialBuilder:
    """A builder that makes trials from measured loads and applies the validity checks."""

    info: RunInfo
    profile: Profile
    server_cpus: int  # number of CPUs that the server may use
    # cell -> latest trial with the purpose "measure". A witness trial of the same cell is compared with this trial.
    _previous: dict[Cell, Trial] = field(default_factory=dict, init=False)

    def build(self, running: RunningProcess, step: Measure, measured: MeasuredLoad) -> Trial:
        """Return a load's trial, with the outcome of each validity check."""
        trial = self._make_trial(step, measured)
        context = ValidityContext(
            open_loop=self.profile.open_loop,
            server_cpus=self.server_cpus,
            response_bytes=running.response_bytes(step.cell),
            may_close=running.implementation.is_service,
            compared=self._previous.get(step.cell) if step.purpose == "witness" else None,
        )
        checked = trial.model_copy(update={"validity": check_validity(trial, context)})
        if step.purpose == "measure":
            self._previous = {step.cell: checked}
        return checked

    def _make_trial(self, step: Measure, measured_load: MeasuredLoad) -> Trial:
        """Return a load's trial, without validity checks."""
        cell, process = step.cell, step.cell.process
        observation, result = measured_load.observation, measured_load.observation.result
        throughput, cpu = throughput_and_cpu(result, observation.server.cpu_seconds)
        name = f"{process.implementation}/{cell.test_type}/{cell.load.label.replace(' ', '-').replace('/', 'ps')}"
        suffix = "" if step.purpose == "measure" else f".{step.purpose}"
        return Trial(
            id=f"{name}/p{process.number}.{step.round}{suffix}",
            implementation=process.implementation,
            test_type=cell.test_type,
            load=cell.load,
            process=process.number,
            round=step.round,
            purpose=step.purpose,
            share=step.share,
            warm_up=step.warm_up,
            steady=step.steady,
            asked_duration=step.seconds,
            generator=measured_load.generator.name,
            generator_cpu_seconds=result.cpu_seconds,
            generator_threads=measured_load.threads,
            evidence=measured_load.evidence,
            throughput=throughput,
            cpu_per_request=cpu,
            link_share=self._link_share(result),
            started_at=observation.started_at,
            command=observation.command,
            server=observation.server,
            database_cpu_seconds=observation.database_cpu_seconds,
            windows=observation.windows,
            connections=observation.connections,
            steal_share=observation.steal_share,
            restarted=observation.restarted,
            responses_per_request=observation.responses_per_request,
            idle_cpu_share=observation.idle_cpu_share,
            clients=observation.clients,
            duration=result.duration,
            requests=result.requests,
            bytes=result.bytes,
            errors=result.errors,
            latency=result.latency,
            service=result.service,
            due=result.due,
            answered=result.answered,
            unfinished=result.unfinished,
            late=result.late,
            lag_p99=result.lag_p99,
            sent_late=result.sent_late,
            arrivals=result.arrivals,
            tls_sessions=result.tls_sessions,
            peer_settings=result.peer_settings,
        )

    def _link_share(self, result: LoadResult) -> float | None:
        """Return the fraction of the network link's capacity that the load used, or None on a single machine.

        The capacity is the throughput of the fastest measured link from the server to a client, in bytes per second.
        """
        throughputs = [link.throughput for link in self.info.links if link.of == self.info.machines[0].name]
        capacity = max(throughputs, default=0.0)
        return result.bytes / result.duration / capacity if capacity > 0 and result.duration > 0 else None


def throughput_and_cpu(result: LoadResult, cpu_seconds: float) -> tuple[float, float | None]:
    """Return requests per second, and the server's CPU seconds per request (None without requests).

    In scenarios, arrivals count as requests. Responses that arrive after the end of the load count towards CPU time per
    request, but not towards throughput.
    """
    if result.arrivals is not None:
        due = result.arrivals.due
        return result.arrivals.done / result.duration, cpu_seconds / due if due else None
    responses = result.account.received if result.account else result.requests
    successes = result.requests - result.errors.status if result.in_time is None else result.in_time
    return successes / result.duration, cpu_seconds / responses if responses else None
