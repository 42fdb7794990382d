"""Two versions of a service side by side: ``./tfb compare --base main`` where a tfb.toml is."""

import math
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

from harness import redaction
from harness.cli.consent import settled
from harness.cli.flags import RunFlags
from harness.cli.output import put
from harness.cli.run import measured, settings
from harness.cli.verbs import Asked
from harness.errors import Exit, TfbError, UsageError
from harness.experiment.preparation import JIT_PLATFORMS
from harness.extras.gate import history, sides
from harness.extras.gate import words as report
from harness.extras.gate.contained import parse_allow
from harness.extras.gate.judge import ALL, GateResult, RequestVerdict, Verdict, judge
from harness.extras.gate.page import page
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.extras.gate.runtime import Services, choose_services
from harness.host import accounts, ownership
from harness.plan import service
from harness.plan.config import Settings
from harness.plan.profile import Profile
from harness.records.models import Closed, RunRecords
from harness.report.tables import counted

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


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the verdict goes beside the terminal."""

    json: bool = False
    markdown: bool = False
    history: str | None = None
    html: str | None = None
    strict: bool = False


class SideError(TfbError):
    """A side could not be built, or never answered: of head that is a failure, of base nothing can be told."""

    def __init__(self, side: str, done: str, reason: str) -> None:
        super().__init__(f"{HEAD if side == HEAD else BASE} could not be {done}: {reason}")
        self.verdict: Verdict = "failed" if side == HEAD else "cannot tell"


def compare(folder: Path, base: str, head: str | None, flags: RunFlags, fail_over: float, outputs: Outputs) -> int:
    """Measure both and print the verdict; ``base`` and ``head`` are what ``sides`` can tell."""
    words = ("compare", "--base", base, *(("--head", head) if head else ()))
    _require_places(outputs)
    usual = RunFlags()
    for name in (field.name for field in fields(flags) if field.name not in COUNTING):
        if getattr(flags, name) != getattr(usual, name):
            raise UsageError(f"--{name.replace('_', '-')} says nothing of a service's sides: leave it out")
    parse_allow(flags.allow)
    consents, flags = flags.allow, replace(flags, profile=flags.profile or PROFILE, runtime="local", allow=())
    chosen = replace(settings(Asked(mode="benchmark", test=(), flags=flags), words), container_allow=consents)
    with ownership.scratch("gate") as place:
        accounts.share(place)  # servers have accounts of their own
        notes = [f"containers had more rights than usual: --allow {consent}" for consent in consents]
        of_head = sides.side(folder, head, place / "head", notes)
        file = of_head.file  # head's says what is asked of both
        of_base = sides.side(folder, base, place / "base", notes, file)
        notes += sides.apart(folder, base, head)
        if other := [request.name for request in of_base.file.request if request not in file.request]:
            notes.append(
                f"head's {service.FILE} has another {', '.join(other)} than base's, or none: it says what is asked"
            )
        started = of_base.file.model_copy(update={"request": file.request})
        shutil.copytree(place / "base", place / "base-copy", symlinks=True)
        twin = place / "base-copy" / of_base.folder.relative_to(place / "base")
        folders = {BASE: (started, of_base.folder), HEAD: (file, of_head.folder), COPY: (started, twin)}
        asked = of_head.folder  # where what requests read lies, for all
        services = tuple(service.side(own, of, name, chosen.seed, asked) for name, (own, of) in folders.items())
        load = (Closed(connections=file.service.connections),)
        if not flags.processes:
            chosen = replace(chosen, profile=in_time(chosen.profile, file, notes))
        chosen = replace(
            chosen,
            services=services,
            cells={each.name: dict.fromkeys(each.requests, load) for each in services},
            results=Path(flags.results) if flags.results else place / "results",
        )
        chosen = replace(chosen, consent=settled(chosen))
        began = time.time()
        try:
            records = _measured(chosen, {name: (own.service, where) for name, (own, where) in folders.items()})
        except SideError as error:
            nothing = GateResult(
                base=base,
                head=head or WORKING_TREE,
                fail_over=fail_over,
                verdict=error.verdict,
                requests=(RequestVerdict(request=ALL, verdict=error.verdict, reason=str(error)),),
                minutes=(time.time() - began) / 60,
                started_at=began,
                notes=(*notes, *(() if flags.results else ("--results DIR keeps the logs",))),
            )
            return show(nothing, outputs)
        weights = {request.name: request.weight for request in file.request}
        said, running = list(dict.fromkeys(notes)), [started.service.url, file.service.url]
        number = len(running) - running.count(None)
        result = judge(records, fail_over, base, head or WORKING_TREE, said, weights, number)
    return show(result, outputs)


def in_time(profile: Profile, file: service.ServiceFile, notes: list[str]) -> Profile:
    """With as many processes as the time is worth: each has to start, and is measured in rounds once it is warm."""
    compiled = bool(JIT_PLATFORMS.search(file.service.language.lower()))
    each = PROCESS_SECONDS[compiled] * max(1.0, len(file.request) / 3)
    seconds = profile.interleaved.time_seconds or each * USUAL_PROCESSES
    if seconds < LEAST_PROCESSES * each:
        what = counted(len(file.request), "request") + (" and a just-in-time compiler" if compiled else "")
        least = math.ceil(LEAST_PROCESSES * each / 60)
        notes.append(f"the time is short for {what}: give it --time {least}m or more")
    count = max(LEAST_PROCESSES, round(seconds / each))
    rules = profile.processes.model_copy(update={"minimum": count, "maximum": count})
    return profile.model_copy(update={"processes": rules})


def _measured(chosen: Settings, services: Services) -> RunRecords:
    from harness.experiment.workflow import Dependencies

    with ExitStack() as stack:
        records = measured(chosen, Dependencies(choose_runtime=partial(choose_services, services, stack))).records
    for implementation in records.info.implementations:
        if (build := implementation.build) and build.status != "ok":
            raise SideError(implementation.name, "built", build.reason)
    loaded = {trial.implementation for trial in records.trials}
    for side in (BASE, HEAD):  # where both fail, nothing can be told of head
        for one in records.processes:
            if one.status == "failed" and one.implementation == side and side not in loaded:
                raise SideError(side, "measured", one.reason)
    return records


def _require_places(outputs: Outputs) -> None:
    """Raise UsageError now, and not after minutes of measuring, where a verdict could not be put."""
    for flag, name in (("--history", outputs.history), ("--html", outputs.html)):
        if name and not (folder := Path(name).absolute().parent).is_dir():
            raise UsageError(f"{flag} {name}: there is no folder {folder}: make it, or name another file")
    if outputs.history and Path(outputs.history).exists():
        history.read(Path(outputs.history))


def show(result: GateResult, outputs: Outputs) -> int:
    """Print the verdict, then put it where it is to be kept: a full disk loses no answer."""
    result = GateResult.model_validate_json(redaction.redacted_json(result.model_dump_json()))
    as_text = report.markdown if outputs.markdown else report.text
    print(result.model_dump_json() if outputs.json else as_text(result), flush=True)
    if outputs.history:
        kept = Path(outputs.history)
        before = kept.read_text(encoding="utf-8") if kept.is_file() else ""
        put(kept, f"{before}{result.model_dump_json()}\n")
        if not (outputs.json or outputs.markdown):
            print("\n".join(history.lines(history.read(kept))))
    if outputs.html:
        put(Path(outputs.html), page(result))
    code = EXIT.get(result.verdict, Exit.OK)
    return Exit.FAILED if outputs.strict and code is Exit.CANNOT_TELL else code
