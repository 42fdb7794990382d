"""Two versions of a service side by side: ``./tfb compare --base main`` where a tfb.toml is."""

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
from harness.extras.gate.declared import Declared, declared, measured_of, settle
from harness.extras.gate.interference import undisturbed
from harness.extras.gate.isolation import IsolatedRuntime, Isolation, TamperedError
from harness.extras.gate.judge import ALL, ComparedVersions, GateResult, RequestVerdict, judge
from harness.extras.gate.page import page
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.extras.gate.runtime import Services, choose_services
from harness.host import accounts, ownership
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
EXIT = {"failed": Exit.FAILED, "slower": Exit.FAILED, "cannot tell": Exit.CANNOT_TELL}
# What a process of each side is worth, with three requests or fewer; True: of a just-in-time compiler.
PROCESS_SECONDS = {False: 60.0, True: 100.0}
LEAST_PROCESSES, USUAL_PROCESSES = 2, 5
COUNTING = {  # flags of a run that hold here, too
    *("profile", "duration", "time", "processes", "seed", "cpuset_cpus", "yes", "no_install"),
    *("results", "results_name", "results_environment", "quiet", "json"),
    *("allow", "test_container_memory", "test_container_pids"),
}


class SideError(TfbError):
    """A side could not be built, or never answered: of head that is a failure, of base nothing can be told."""

    def __init__(self, side: str, done: str, reason: str) -> None:
        super().__init__(f"{HEAD if side == HEAD else BASE} could not be {done}: {reason}")
        self.verdict: Verdict = "failed" if side == HEAD else "cannot tell"


@dataclass(frozen=True, kw_only=True)
class PreparedComparison:
    """The sides of a comparison, ready to be measured."""

    asked: Declared
    services: Services  # by side, in the order in which they are built: head comes last
    implementations: tuple[Implementation, ...]
    isolation: Isolation
    notes: tuple[str, ...]


def compare(
    folder: Path, base: str, head: str | None, flags: RunFlags, threshold: float, outputs: VerdictOutputs
) -> int:
    """Measure both and print the verdict; ``base`` and ``head`` are what ``sides`` can tell."""
    words = ("compare", "--base", base, *(("--head", head) if head else ()))
    _require_places(outputs)
    usual = RunFlags()
    for name in (field.name for field in fields(flags) if field.name not in COUNTING):
        if getattr(flags, name) != getattr(usual, name):
            raise UsageError(f"--{name.replace('_', '-')} says nothing of a service's sides: leave it out")
    parse_allow(flags.allow)
    consents, flags = flags.allow, replace(flags, profile=flags.profile or PROFILE, runtime="local", allow=())
    chosen = replace(
        resolve_settings(Invocation(mode="benchmark", test=(), flags=flags, command=words)), container_allow=consents
    )
    with ExitStack() as stack:
        place = stack.enter_context(ownership.make_scratch_folder("gate"))
        accounts.share_folder(place, listed=False)  # builds and servers enter it
        if os.geteuid() != 0:  # sides of an ordinary user can write to the temporary folder, and not to this one
            stack.enter_context(ownership.scratch_within(place))
        session = prepare(folder, base, head, place, chosen.seed)
        rights = (f"containers had more rights than usual: --allow {consent}" for consent in consents)
        asked, notes = session.asked, [*session.notes, *rights]
        load = (ClosedLoop(connections=asked.base.service.connections),)
        if not flags.processes:
            chosen = replace(chosen, profile=in_time(chosen.profile, asked.base, notes))
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
            blamed = error.verdict == "failed" if isinstance(error, SideError) else error.by_head
            verdict: Verdict = "failed" if blamed else "cannot tell"
            nothing = GateResult(
                base=base,
                head=head or WORKING_TREE,
                threshold=threshold,
                verdict=verdict,
                requests=(RequestVerdict(request=ALL, verdict=verdict, reason=str(error)),),
                minutes=(time.time() - began) / 60,
                started_at=began,
                notes=(*notes, *(() if flags.results else ("--results DIR keeps the logs",))),
            )
            return show(nothing, outputs)
        weights = {request.name: request.weight for request in asked.base.request}
        running = [service.url for service, _ in (session.services[BASE], session.services[HEAD]) if service.url]
        told = list(dict.fromkeys([*notes, *filter(None, [session.isolation.note])]))
        compared = measured_of(records, asked)
        judged = judge(
            compared,
            ComparedVersions(
                base=base,
                head=head or WORKING_TREE,
                threshold=threshold,
                notes=told,
                weights=weights,
                running=len(running),
            ),
        )
        result = undisturbed(judged, compared)
    return show(settle(result, records, asked), outputs)


def prepare(folder: Path, base: str, head: str | None, place: Path, seed: int) -> PreparedComparison:
    """Copy the sides into ``place`` and read what is measured of them; nothing of them is executed."""
    notes: list[str] = []
    of_head = sides.side(folder, head, place / HEAD, notes)
    of_base = sides.side(folder, base, place / BASE, notes, of_head.file)
    notes += sides.apart(folder, base, head)
    asked = declared(of_base.file, of_head.file, targets=(base, head))
    shutil.copytree(place / BASE, place / COPY, symlinks=True)
    twin = place / COPY / of_base.folder.relative_to(place / BASE)
    kinds = declared_kinds(asked.base.request, of_base.folder, seed, root=of_base.root)
    extra = declared_kinds(asked.added, of_head.folder, seed, root=of_head.root)
    started = {BASE: (asked.base, of_base.folder), COPY: (asked.base, twin), HEAD: (asked.head, of_head.folder)}
    return PreparedComparison(
        asked=asked,
        services={name: (file.service, where) for name, (file, where) in started.items()},
        implementations=tuple(
            service.service_implementation(
                file.model_copy(update={"request": asked.base.request}),
                where,
                name,
                seed,
                where,
                {**kinds, **extra} if name == HEAD else kinds,
            )
            for name, (file, where) in started.items()
        ),
        isolation=Isolation(roots={name: place / name for name in started}, homes=place / "homes"),
        notes=(*notes, *asked.notes),
    )


def in_time(profile: Profile, file: service.ServiceFile, notes: list[str]) -> Profile:
    """Return the profile with as many processes as the time allows: each starts, warms up and is measured in rounds."""
    compiled = bool(JIT_PLATFORMS.search(file.service.language.lower()))
    each = PROCESS_SECONDS[compiled] * max(1.0, len(file.request) / 3)
    seconds = profile.interleaved.time_seconds or each * USUAL_PROCESSES
    if seconds < LEAST_PROCESSES * each:
        what = format_count(len(file.request), "request") + (" and a just-in-time compiler" if compiled else "")
        least = math.ceil(LEAST_PROCESSES * each / 60)
        notes.append(f"the time is short for {what}: give it --time {least}m or more")
    count = max(LEAST_PROCESSES, round(seconds / each))
    rules = profile.processes.model_copy(update={"minimum": count, "maximum": count})
    return profile.model_copy(update={"processes": rules})


def _measured(chosen: Settings, session: PreparedComparison) -> RunRecords:
    """Build and measure the sides; raise SideError for one without figures, TamperedError where base was changed."""
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
    for side in (BASE, HEAD):  # where both fail, nothing can be told of head
        for one in records.processes:
            if one.status == "failed" and one.implementation == side and side not in loaded:
                raise SideError(side, "measured", one.reason)
    return records


def _require_places(outputs: VerdictOutputs) -> None:
    """Raise UsageError now, and not after minutes of measuring, where a verdict could not be put."""
    for flag, name in (("--history", outputs.history), ("--html", outputs.html)):
        if name and not (folder := Path(name).absolute().parent).is_dir():
            raise UsageError(f"{flag} {name}: there is no folder {folder}: make it, or name another file")
    if outputs.history and Path(outputs.history).exists():
        history.read(Path(outputs.history))


def show(result: GateResult, outputs: VerdictOutputs) -> int:
    """Print the verdict, then put it where it is to be kept: a full disk loses no answer."""
    result = GateResult.model_validate_json(redaction.redacted_json(result.model_dump_json()))
    as_text = report.markdown if outputs.markdown else report.text
    print(report.as_json(result) if outputs.json else as_text(result), flush=True)
    if outputs.history:
        kept = Path(outputs.history)
        before = history.text(kept) if kept.is_file() else ""
        write_file(kept, f"{before}{report.as_json(result)}\n")
        if not (outputs.json or outputs.markdown):
            print(report.safe("\n".join(history.lines(history.read(kept)))))
    if outputs.html:
        write_file(Path(outputs.html), page(result))
    code = EXIT.get(result.verdict, Exit.OK)
    return Exit.FAILED if outputs.strict and code is Exit.CANNOT_TELL else code
