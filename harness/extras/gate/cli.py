"""The command ``./tfb compare --base``, which measures two versions of a service side by side.

A comparison has three sides: base, a control copy of base, and head. A session builds and measures all sides, and
returns a verdict on head. With ``--confirm``, a second session follows if head is slower.
"""

import math
import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path

from harness import redaction
from harness.cli.consent import resolve_consent
from harness.cli.flags import RunFlags
from harness.cli.output import VerdictOutputs, write_file
from harness.cli.run import run_benchmark
from harness.cli.settings import resolve_settings
from harness.cli.verbs import Invocation
from harness.errors import ChangedRecordsError, Exit, TfbError, UsageError
from harness.experiment.selection import JIT_PLATFORMS
from harness.extras.gate import history, sides
from harness.extras.gate import report as report
from harness.extras.gate.budgets import apply_budgets, thresholds
from harness.extras.gate.build_caches import BuildCaches
from harness.extras.gate.collisions import CollisionError, require_no_collision
from harness.extras.gate.container_sides import parse_allow
from harness.extras.gate.declared import (
    DeclaredRequests,
    apply_declarations,
    compare_declarations,
    without_added_requests,
)
from harness.extras.gate.interference import discard_disturbed
from harness.extras.gate.isolation import IsolatedRuntime, Isolation, TamperedError
from harness.extras.gate.judge import ALL, ComparedVersions, GateResult, RequestVerdict, judge
from harness.extras.gate.page import format_page
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.extras.gate.runtime import Services, choose_services
from harness.extras.gate.socket_folders import socket_folders
from harness.host import accounts, ownership
from harness.plain_text import inert_lines, printable
from harness.plan import service
from harness.plan.implementation import Implementation
from harness.plan.profile import Profile
from harness.plan.run_settings import Settings
from harness.plan.testtypes import declared_test_types as declared_kinds
from harness.records import store
from harness.records.loads import ClosedLoop
from harness.records.run_records import RunRecords
from harness.records.verdicts import Verdict, worst
from harness.records.verification_record import Outcome
from harness.report.tables import format_count, format_ratio
from harness.report.terminal import make_console


def confirm(first: GateResult, second: GateResult) -> GateResult:
    """Return the first session's result, but with verdicts that combine both sessions."""
    again = {one.request: one for one in second.requests}
    requests = tuple(_agreed(one, again.get(one.request)) for one in first.requests)
    notes = tuple(
        f"{one.request}: slower in both sessions: {format_ratio(one.ratio)}, {format_ratio(again[one.request].ratio)}"
        for one in requests
        if one.verdict == "slower"
    )
    known = {one.request for one in requests}
    requests += tuple(one for one in second.requests if one.request not in known and one.verdict == "failed")
    return first.model_copy(
        update={
            "requests": requests,
            "verdict": worst(one.verdict for one in requests),
            "minutes": first.minutes + second.minutes,
            "notes": tuple(dict.fromkeys((*first.notes, *second.notes, *notes))),
            "interrupted": second.interrupted,
        }
    )


def _agreed(first: RequestVerdict, second: RequestVerdict | None) -> RequestVerdict:
    """Return a request's combined verdict.

    The verdict is "failed" if the request failed in either session. It is "cannot tell" if only one session found
    "slower". Otherwise, it is the verdict of the first session.
    """
    second_verdict = second.verdict if second else "not measured"
    if second and second_verdict == "failed":
        return second
    if (first.verdict == "slower") == (second_verdict == "slower") or first.verdict in ("failed", "cannot tell"):
        return first
    reason = f"the sessions disagree: {first.verdict} in the first session, {second_verdict} in the second"
    return first.model_copy(update={"verdict": "cannot tell", "reason": reason, "minutes_more": None})


PROFILE = "gate"
WORKING_TREE = "the working tree"
KEEP_LOGS = "use --results DIR to keep the logs and measurements"
EXIT_CODES = {"failed": Exit.FAILED, "slower": Exit.FAILED, "cannot tell": Exit.CANNOT_TELL}
# Seconds needed to measure one process per side, if tfb.toml declares at most three requests. Key: whether the
# services' language has a just-in-time compiler.
PROCESS_SECONDS = {False: 60.0, True: 100.0}
MIN_PROCESSES, DEFAULT_PROCESSES = 2, 5
MIN_BUDGET_PROCESSES = 4  # with two processes, intervals are too wide to show that a cost exceeds a budget
SUPPORTED_FLAGS = {  # flags of ``run`` that ``compare --base`` also accepts
    *("profile", "duration", "time", "processes", "seed", "cpuset_cpus", "yes", "no_install"),
    *("results", "results_name", "results_environment", "quiet", "json"),
    *("allow", "test_container_memory", "test_container_pids"),
}


class SideError(TfbError):
    """A failed build or measurement of a side. The verdict is "failed" for head, otherwise "cannot tell"."""

    def __init__(self, side: str, action: str, reason: str) -> None:
        super().__init__(f"{HEAD if side == HEAD else BASE} could not be {action}: {reason}")
        self.verdict: Verdict = "failed" if side == HEAD else "cannot tell"


@dataclass(frozen=True, kw_only=True)
class PreparedComparison:
    """The copied sides of a comparison and the requests to measure."""

    declared: DeclaredRequests
    services: Services  # side -> service and folder, in build order: head is last
    implementations: tuple[Implementation, ...]
    isolation: Isolation
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AskedComparison:
    """The arguments of a comparison: the service, the two versions, and the threshold."""

    folder: Path
    base: str  # a target, such as a revision or dir:PATH; see ``sides``
    head: str | None  # None: the working tree
    threshold: float


def compare(
    folder: Path, base: str, head: str | None, flags: RunFlags, threshold: float, outputs: VerdictOutputs
) -> int:
    """Measure both versions, print the verdict, and return the exit code.

    ``base`` and ``head`` are targets, as described in ``sides``. If ``head`` is None, measure the working tree.
    """
    command = ("compare", "--base", base, *(("--head", head) if head else ()))
    _require_writable(outputs)
    defaults = RunFlags()
    for name in (field.name for field in fields(flags) if field.name not in SUPPORTED_FLAGS):
        if getattr(flags, name) != getattr(defaults, name):
            raise UsageError(f"--{name.replace('_', '-')} does not apply to services: remove it")
    parse_allow(flags.allow)
    consents, flags = flags.allow, replace(flags, profile=flags.profile or PROFILE, runtime="local", allow=())
    settings = replace(
        resolve_settings(Invocation(mode="benchmark", test=(), flags=flags, command=command)), container_allow=consents
    )
    asked = AskedComparison(folder=folder, base=base, head=head, threshold=threshold)
    result = run_session(asked, settings, flags)
    if outputs.confirm and result.verdict == "slower" and not result.interrupted:
        print("tfb: head is slower; measuring both versions again because of --confirm", file=sys.stderr)
        result = confirm(result, run_session(asked, replace(settings, seed=settings.seed + 1), flags))
    return publish_result(result, outputs)


def run_session(comparison: AskedComparison, settings: Settings, flags: RunFlags) -> GateResult:
    """Build, measure and judge both versions."""
    with ExitStack() as stack:
        scratch = stack.enter_context(ownership.make_scratch_folder("gate"))
        # If tfb runs as root, builds and servers run under other accounts, which need access to this folder.
        accounts.share_folder(scratch, list_content=False)
        if os.geteuid() != 0:  # the sides have tfb's uid, so keep tfb's temporary files out of their reach
            stack.enter_context(ownership.scratch_within(scratch))
        session = prepare(comparison.folder, comparison.base, comparison.head, scratch, settings.seed)
        privileges = (
            f"containers ran with additional privileges: --allow {consent}" for consent in settings.container_allow
        )
        declared, notes = session.declared, [*session.notes, *privileges]
        load = (ClosedLoop(connections=declared.base.service.connections),)
        if not flags.processes:
            settings = replace(settings, profile=fit_processes_to_time(settings.profile, declared.base, notes))
        settings = replace(
            settings,
            services=session.implementations,
            cells={each.name: dict.fromkeys(each.requests, load) for each in session.implementations},
            results=Path(flags.results) if flags.results else scratch / "results",
        )
        settings = replace(settings, consent=resolve_consent(settings))
        session.isolation.protected = (comparison.folder.resolve(), Path(settings.results).resolve())
        started_at = time.time()
        labels = (printable(comparison.base), printable(comparison.head or WORKING_TREE))
        try:
            records = _measured(settings, session)
        except (SideError, TamperedError, CollisionError) as error:
            is_failure = isinstance(error, SideError) and error.verdict == "failed"
            is_failure |= isinstance(error, TamperedError) and error.by_head
            verdict: Verdict = "failed" if is_failure else "cannot tell"
            return GateResult(
                base=labels[0],
                head=labels[1],
                threshold=comparison.threshold,
                verdict=verdict,
                requests=(RequestVerdict(request=ALL, verdict=verdict, reason=str(error)),),
                minutes=(time.time() - started_at) / 60,
                started_at=started_at,
                notes=(*notes, *(() if flags.results else (KEEP_LOGS,))),
            )
        interrupted = records.info.status == "interrupted"
        if interrupted:
            kept = f"the records are in {Path(flags.results) / records.info.run_id}" if flags.results else KEEP_LOGS
            notes.append(f"interrupted: the verdict covers only the measurements so far; {kept}")
        running = [service.url for service, _ in (session.services[BASE], session.services[HEAD]) if service.url]
        compared = without_added_requests(records, declared)
        judged = judge(
            compared,
            ComparedVersions(
                base=labels[0],
                head=labels[1],
                threshold=comparison.threshold,
                notes=list(dict.fromkeys([*notes, *session.isolation.notes])),
                weights={request.name: request.weight for request in declared.base.request},
                running=len(running),
                thresholds=dict(thresholds(declared.base.request)),
            ),
        )
        judged = apply_budgets(discard_disturbed(judged, compared), compared, declared.base.request)
        result = apply_declarations(judged, records, declared)
        return result.model_copy(update={"interrupted": interrupted})


def prepare(folder: Path, base: str, head: str | None, scratch: Path, seed: int) -> PreparedComparison:
    """Copy the sides to ``scratch`` and read the declared requests, without executing code from either version."""
    notes: list[str] = []
    of_head = sides.copy_side(folder, head, scratch / HEAD, notes)
    of_base = sides.copy_side(folder, base, scratch / BASE, notes, of_head.file)
    notes += sides.divergence_notes(folder, base, head)
    declared = compare_declarations(of_base.file, of_head.file, targets=(base, head), borrowed=of_base.borrowed)
    shutil.copytree(scratch / BASE, scratch / COPY, symlinks=True)
    copy = scratch / COPY / of_base.folder.relative_to(scratch / BASE)
    kinds = declared_kinds(declared.base.request, of_base.folder, seed, root=of_base.root)
    extra = declared_kinds(declared.verified_on_head, of_head.folder, seed, root=of_head.root)
    started = {
        BASE: (declared.base, of_base.folder),
        COPY: (declared.base, copy),
        HEAD: (declared.head, of_head.folder),
    }
    services = {name: (file.service, where) for name, (file, where) in started.items()}
    roots = {name: scratch / name for name in started}
    return PreparedComparison(
        declared=declared,
        services=services,
        implementations=tuple(
            service.service_implementation(
                file.model_copy(update={"request": declared.base.request}),
                where,
                name,
                seed,
                where,
                {**kinds, **extra} if name == HEAD else kinds,
            )
            for name, (file, where) in started.items()
        ),
        isolation=Isolation(
            roots=roots,
            homes=scratch / "homes",
            sockets=socket_folders(services, scratch / "sockets"),
            caches=BuildCaches(services=services, roots=roots, origin=folder),
        ),
        notes=(*notes, *declared.notes),
    )


def fit_processes_to_time(profile: Profile, file: service.ServiceFile, notes: list[str]) -> Profile:
    """Return the profile with as many processes as the time permits, but at least the minimum.

    If the time is too short for the minimum, append a note to ``notes``.
    """
    compiled = bool(JIT_PLATFORMS.search(file.service.language.lower()))
    process_seconds = PROCESS_SECONDS[compiled] * max(1.0, len(file.request) / 3)
    seconds = profile.interleaved.time_seconds or process_seconds * DEFAULT_PROCESSES
    has_budget = any(request.budget_p99 or request.budget_cpu for request in file.request)
    minimum = MIN_BUDGET_PROCESSES if has_budget else MIN_PROCESSES
    if seconds < minimum * process_seconds:
        work = format_count(len(file.request), "request") + (" and a just-in-time compiler" if compiled else "")
        minutes = math.ceil(minimum * process_seconds / 60)
        notes.append(f"the time is too short for {work}: use --time {minutes}m or more")
    count = max(minimum, round(seconds / process_seconds))
    rules = profile.processes.model_copy(update={"minimum": count, "maximum": count})
    return profile.model_copy(update={"processes": rules})


def _measured(chosen: Settings, session: PreparedComparison) -> RunRecords:
    """Build and measure the sides.

    After Ctrl-C, return the measurements so far, with the status "interrupted". If there are none yet, raise
    KeyboardInterrupt. Raises SideError, TamperedError or CollisionError.
    """
    from harness.experiment.run_context import Dependencies

    own_id = ""
    with ExitStack() as stack:

        def choose(
            settings: Settings, implementations: Sequence[Implementation], logs: Path, *, run_id: str
        ) -> IsolatedRuntime:
            nonlocal own_id
            own_id = run_id
            runtime = choose_services(session.services, stack, settings, implementations, logs, run_id=run_id)
            chosen_runtimes.append(IsolatedRuntime.of(runtime, session.isolation))
            return chosen_runtimes[0]

        chosen_runtimes: list[IsolatedRuntime] = []
        try:
            records = run_benchmark(chosen, Dependencies(choose_runtime=choose)).records
        except ChangedRecordsError as error:
            raise TamperedError(str(error), by_head=False) from error
        except KeyboardInterrupt:
            if not own_id:
                raise
            records = store.read_run(Path(chosen.results) / own_id)
            if not records.trials:
                raise
            chosen_runtimes.clear()  # after Ctrl-C, skip the collision check, which would start sides again
        session.isolation.require_unchanged()
        for runtime in chosen_runtimes:
            require_no_collision(
                runtime, runtime.watch, session.implementations, records.processes, runtime.work.parent
            )
    _require_responses(records)
    return records


def _require_responses(records: RunRecords) -> None:
    """Raise SideError for a side that was not built or never responded."""
    for implementation in records.info.implementations:
        if (build := implementation.build) and build.status != "ok":
            raise SideError(implementation.name, "built", build.reason)
    # Skip sides with trials or wrong responses, because the judge reports their problems.
    known = {trial.implementation for trial in records.trials}
    known |= {verdict.implementation for verdict in records.verdicts if verdict.outcome is Outcome.FAIL}
    for side in (BASE, HEAD):  # base first: if both sides fail, the verdict is "cannot tell"
        for process in records.processes:
            if process.status == "failed" and process.implementation == side and side not in known:
                raise SideError(side, "measured", process.reason)


def _require_writable(outputs: VerdictOutputs) -> None:
    """Raise UsageError before the measurements if an output file's folder is missing or the history is invalid."""
    for flag, name in (("--history", outputs.history), ("--html", outputs.html)):
        if name and not (folder := Path(name).absolute().parent).is_dir():
            raise UsageError(f"{flag} {name}: there is no folder {folder}: create it, or choose a different file")
    if outputs.history and Path(outputs.history).exists():
        history.read_history(Path(outputs.history))


def publish_result(result: GateResult, outputs: VerdictOutputs) -> int:
    """Print the verdict, write the requested output files, and return the exit code."""
    result = GateResult.model_validate_json(redaction.redacted_json(result.model_dump_json()))
    if outputs.json or outputs.markdown:
        print(report.format_json(result) if outputs.json else report.format_markdown(result), flush=True)
    else:
        report.print_text(result, make_console())
    if outputs.history and not result.interrupted:
        kept = Path(outputs.history)
        before = history.read_text(kept) if kept.is_file() else ""
        write_file(kept, f"{before}{report.format_json(result)}\n")
        if not (outputs.json or outputs.markdown):
            print(inert_lines("\n".join(history.latest_lines(history.read_history(kept)))))
    if outputs.html:
        write_file(Path(outputs.html), format_page(result))
    return _exit_code(result, outputs)


def _exit_code(result: GateResult, outputs: VerdictOutputs) -> int:
    if result.interrupted:
        return Exit.INTERRUPTED
    if outputs.bisect and result.verdict in ("failed", "cannot tell"):
        return Exit.UNTESTABLE
    code = EXIT_CODES.get(result.verdict, Exit.OK)
    return Exit.FAILED if outputs.strict and code is Exit.CANNOT_TELL else code
