"""``./tfb compare --base main`` in the folder of a service: measures two versions side by side."""

import math
import os
import shutil
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
from harness.host import accounts, ownership
from harness.plain_text import inert_lines
from harness.plan import service
from harness.plan.discovery import Implementation
from harness.plan.profile import Profile
from harness.plan.run_settings import Settings
from harness.plan.testtypes import declared_test_types as declared_kinds
from harness.records.loads import ClosedLoop
from harness.records.run_records import RunRecords
from harness.records.verdicts import Verdict
from harness.report.tables import format_count

PROFILE = "gate"
WORKING_TREE = "the working tree"
EXIT_CODES = {"failed": Exit.FAILED, "slower": Exit.FAILED, "cannot tell": Exit.CANNOT_TELL}
# Seconds that a process of each side takes with up to three requests. True: with a just-in-time compiler.
PROCESS_SECONDS = {False: 60.0, True: 100.0}
MIN_PROCESSES, DEFAULT_PROCESSES = 2, 5
SUPPORTED_FLAGS = {  # flags of a run that also apply to services
    *("profile", "duration", "time", "processes", "seed", "cpuset_cpus", "yes", "no_install"),
    *("results", "results_name", "results_environment", "quiet", "json"),
    *("allow", "test_container_memory", "test_container_pids"),
}


class SideError(TfbError):
    """A side that was not built or never responded. The verdict is "failed" for head, "cannot tell" for base."""

    def __init__(self, side: str, action: str, reason: str) -> None:
        super().__init__(f"{HEAD if side == HEAD else BASE} could not be {action}: {reason}")
        self.verdict: Verdict = "failed" if side == HEAD else "cannot tell"


@dataclass(frozen=True, kw_only=True)
class PreparedComparison:
    """The sides of a comparison, ready to be measured."""

    declared: DeclaredRequests
    services: Services  # side -> service and folder, in build order: head is last
    implementations: tuple[Implementation, ...]
    isolation: Isolation
    notes: tuple[str, ...]


def compare(
    folder: Path, base: str, head: str | None, flags: RunFlags, threshold: float, outputs: VerdictOutputs
) -> int:
    """Measure both versions, print the verdict, and return the exit code.

    Args:
        folder: Folder of the service.
        base: Target of base, in the syntax of ``sides.copy_side``.
        head: Target of head; None: the working tree.
        flags: Flags of the run.
        threshold: Relative difference up to which a request counts as unchanged.
        outputs: Further outputs for the verdict.
    """
    command = ("compare", "--base", base, *(("--head", head) if head else ()))
    _require_writable(outputs)
    defaults = RunFlags()
    for name in (field.name for field in fields(flags) if field.name not in SUPPORTED_FLAGS):
        if getattr(flags, name) != getattr(defaults, name):
            raise UsageError(f"--{name.replace('_', '-')} does not apply to services: leave it out")
    parse_allow(flags.allow)
    consents, flags = flags.allow, replace(flags, profile=flags.profile or PROFILE, runtime="local", allow=())
    chosen = replace(
        resolve_settings(Invocation(mode="benchmark", test=(), flags=flags, command=command)), container_allow=consents
    )
    with ExitStack() as stack:
        place = stack.enter_context(ownership.make_scratch_folder("gate"))
        accounts.share_folder(place, listed=False)  # builds and servers run under separate accounts
        if os.geteuid() != 0:  # sides of an ordinary user may write to the temporary folder, but not to this folder
            stack.enter_context(ownership.scratch_within(place))
        session = prepare(folder, base, head, place, chosen.seed)
        privileges = (f"containers had additional privileges: --allow {consent}" for consent in consents)
        declared, notes = session.declared, [*session.notes, *privileges]
        load = (ClosedLoop(connections=declared.base.service.connections),)
        if not flags.processes:
            chosen = replace(chosen, profile=fit_processes_to_time(chosen.profile, declared.base, notes))
        chosen = replace(
            chosen,
            services=session.implementations,
            cells={each.name: dict.fromkeys(each.requests, load) for each in session.implementations},
            results=Path(flags.results) if flags.results else place / "results",
        )
        chosen = replace(chosen, consent=resolve_consent(chosen))
        session.isolation.closed = (folder.resolve(), Path(chosen.results).resolve())
        began = time.time()
        try:
            records = _measured(chosen, session)
        except (SideError, TamperedError) as error:
            is_failure = error.verdict == "failed" if isinstance(error, SideError) else error.by_head
            verdict: Verdict = "failed" if is_failure else "cannot tell"
            failure = GateResult(
                base=base,
                head=head or WORKING_TREE,
                threshold=threshold,
                verdict=verdict,
                requests=(RequestVerdict(request=ALL, verdict=verdict, reason=str(error)),),
                minutes=(time.time() - began) / 60,
                started_at=began,
                notes=(*notes, *(() if flags.results else ("--results DIR keeps the logs",))),
            )
            return publish_result(failure, outputs)
        weights = {request.name: request.weight for request in declared.base.request}
        running = [service.url for service, _ in (session.services[BASE], session.services[HEAD]) if service.url]
        all_notes = list(dict.fromkeys([*notes, *filter(None, [session.isolation.note])]))
        compared = without_added_requests(records, declared)
        judged = judge(
            compared,
            ComparedVersions(
                base=base,
                head=head or WORKING_TREE,
                threshold=threshold,
                notes=all_notes,
                weights=weights,
                running=len(running),
            ),
        )
        result = discard_disturbed(judged, compared)
    return publish_result(apply_declarations(result, records, declared), outputs)


def prepare(folder: Path, base: str, head: str | None, place: Path, seed: int) -> PreparedComparison:
    """Copy the sides to ``place`` and read their requests, without executing any part of them."""
    notes: list[str] = []
    of_head = sides.copy_side(folder, head, place / HEAD, notes)
    of_base = sides.copy_side(folder, base, place / BASE, notes, of_head.file)
    notes += sides.divergence_notes(folder, base, head)
    declared = compare_declarations(of_base.file, of_head.file, targets=(base, head))
    shutil.copytree(place / BASE, place / COPY, symlinks=True)
    copy = place / COPY / of_base.folder.relative_to(place / BASE)
    kinds = declared_kinds(declared.base.request, of_base.folder, seed, root=of_base.root)
    extra = declared_kinds(declared.added, of_head.folder, seed, root=of_head.root)
    started = {
        BASE: (declared.base, of_base.folder),
        COPY: (declared.base, copy),
        HEAD: (declared.head, of_head.folder),
    }
    return PreparedComparison(
        declared=declared,
        services={name: (file.service, where) for name, (file, where) in started.items()},
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
        isolation=Isolation(roots={name: place / name for name in started}, homes=place / "homes"),
        notes=(*notes, *declared.notes),
    )


def fit_processes_to_time(profile: Profile, file: service.ServiceFile, notes: list[str]) -> Profile:
    """Return the profile with as many processes as the time permits. Add a note if the time is too short."""
    compiled = bool(JIT_PLATFORMS.search(file.service.language.lower()))
    each = PROCESS_SECONDS[compiled] * max(1.0, len(file.request) / 3)
    seconds = profile.interleaved.time_seconds or each * DEFAULT_PROCESSES
    if seconds < MIN_PROCESSES * each:
        work = format_count(len(file.request), "request") + (" and a just-in-time compiler" if compiled else "")
        minutes = math.ceil(MIN_PROCESSES * each / 60)
        notes.append(f"the time is too short for {work}: use --time {minutes}m or more")
    count = max(MIN_PROCESSES, round(seconds / each))
    rules = profile.processes.model_copy(update={"minimum": count, "maximum": count})
    return profile.model_copy(update={"processes": rules})


def _measured(chosen: Settings, session: PreparedComparison) -> RunRecords:
    """Build and measure the sides.

    Raises:
        SideError: A side has no results.
        TamperedError: Files of base were changed.
    """
    from harness.experiment.run_context import Dependencies

    with ExitStack() as stack:

        def choose(
            settings: Settings, implementations: Sequence[Implementation], logs: Path, *, run_id: str
        ) -> IsolatedRuntime:
            runtime = choose_services(session.services, stack, settings, implementations, logs, run_id=run_id)
            return IsolatedRuntime.of(runtime, session.isolation)

        try:
            records = run_benchmark(chosen, Dependencies(choose_runtime=choose)).records
        except ChangedRecordsError as error:
            raise TamperedError(str(error), by_head=False) from error
        session.isolation.require_unchanged()
    for implementation in records.info.implementations:
        if (build := implementation.build) and build.status != "ok":
            raise SideError(implementation.name, "built", build.reason)
    loaded = {trial.implementation for trial in records.trials}
    for side in (BASE, HEAD):  # check base first: if both sides fail, the verdict is "cannot tell"
        for process in records.processes:
            if process.status == "failed" and process.implementation == side and side not in loaded:
                raise SideError(side, "measured", process.reason)
    return records


def _require_writable(outputs: VerdictOutputs) -> None:
    """Raise UsageError for output files that cannot be written, before the measurement begins."""
    for flag, name in (("--history", outputs.history), ("--html", outputs.html)):
        if name and not (folder := Path(name).absolute().parent).is_dir():
            raise UsageError(f"{flag} {name}: there is no folder {folder}: create it, or name a different file")
    if outputs.history and Path(outputs.history).exists():
        history.read_history(Path(outputs.history))


def publish_result(result: GateResult, outputs: VerdictOutputs) -> int:
    """Print the verdict, write the requested output files, and return the exit code."""
    result = GateResult.model_validate_json(redaction.redacted_json(result.model_dump_json()))
    as_text = report.format_markdown if outputs.markdown else report.format_text
    print(report.format_json(result) if outputs.json else as_text(result), flush=True)
    if outputs.history:
        kept = Path(outputs.history)
        before = history.read_text(kept) if kept.is_file() else ""
        write_file(kept, f"{before}{report.format_json(result)}\n")
        if not (outputs.json or outputs.markdown):
            print(inert_lines("\n".join(history.latest_lines(history.read_history(kept)))))
    if outputs.html:
        write_file(Path(outputs.html), format_page(result))
    code = EXIT_CODES.get(result.verdict, Exit.OK)
    return Exit.FAILED if outputs.strict and code is Exit.CANNOT_TELL else code
