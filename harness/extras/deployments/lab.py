"""``./tfb run … --lab FILE``: the same run on each of several deployments, and afterwards one run of all of them.

Each deployment carries out the command line by itself, here or over ssh. What has not ended is gone on with by
``--resume``.
"""

import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from harness.errors import ConfigError, Exit, StoreError, TfbError, UsageError
from harness.experiment import workflow
from harness.extras.deployments.machine import configuration
from harness.host import interruption, process
from harness.host.process import LOOK_SECONDS, Child, running
from harness.paths import REPOSITORY
from harness.plan.config import Settings
from harness.plan.profile import Section
from harness.plan.words import explain
from harness.records import bounded, store
from harness.records.models import ImplementationInfo, MachineSet, RunInfo, RunRecords
from harness.records.reader import RunReader
from harness.records.store import RunStore

END_SECONDS = 60.0  # that a run which is asked to end takes at most
# Host keys are checked as the user's ssh configuration says; nobody is there to type a password; a machine that has
# been silent for 15 s is gone.
SSH = (
    *("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
)
# What has begun there goes on.
SCRIPT = """cd {directory} && set -- {place}/*/run.json && exec </dev/null && if [ -e "$1" ]
then exec ./tfb run --resume "${{1%/run.json}}" --results {place} --quiet; else exec ./tfb {words}; fi"""


class Deployment(Section):
    """Where its run is driven from, and the flags that name its machines."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    login: str | None = None  # ssh name of the machine that drives it; None: this machine
    flags: tuple[str, ...] = ()  # of the run on it, such as --server-host app


class Lab(Section):
    """All deployments (``lab.toml``, shown in docs/machines.md)."""

    deployment: tuple[Deployment, ...] = Field(min_length=1)
    directory: str = "tfb"  # of the checkout on every login, below the home folder unless absolute

    @model_validator(mode="after")
    def _unique(self) -> "Lab":
        for key in ("name", "login"):
            values = [value for each in self.deployment if (value := getattr(each, key))]
            if twice := {value for value in values if values.count(value) > 1}:
                raise ValueError(f"two deployments have the {key} {min(twice)!r}: each drives its own machines")
        return self


def load(path: Path) -> Lab:
    """Read a lab; raises ConfigError that names file, key and what is allowed."""
    try:
        return Lab.model_validate(bounded.toml(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; docs/machines.md shows a lab.toml") from error
    except ValidationError as error:
        why = "; ".join(explain(error, Lab))
        raise ConfigError(f"{path}: {why}; docs/machines.md shows a lab.toml") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error


def command(chosen: Settings, words: Sequence[str], path: Path) -> int:
    """Carry out a run on every deployment of the lab; the exit code is 1 when one has not measured all of it."""
    lab = load(path)
    if chosen.mode != "benchmark" or chosen.resume == "":
        raise UsageError("--lab goes together with a run, and with --resume FOLDER that names what goes on")
    folder = Path(chosen.resume or chosen.results / f"{time.strftime('%Y%m%d-%H%M%S')}-lab").resolve()
    if chosen.resume and not folder.is_dir():
        raise UsageError(f"--resume {chosen.resume}: there is no such folder; name that of the lab, results/…-lab")
    drivers = {each: _driver(lab, each, words, folder) for each in lab.deployment}
    if chosen.dry_run:
        for each, driver in drivers.items():
            print(f"{each.name}: {shlex.join(driver)}")
        return workflow.dry_run(chosen)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror}") from error
    try:
        _carry_out(lab, {each: drivers[each] for each in drivers if not _complete(_run(folder / each.name))}, folder)
    except KeyboardInterrupt:
        _say(f"go on with the same command and --resume {folder}")
        raise
    found = {each.name: run for each in lab.deployment if (run := _run(folder / each.name))}
    if found:
        records = merge(found, folder.name)
        written = RunStore(folder, started_at=records.info.started_at)
        for name in ("trials", "processes", "verdicts"):
            written.write_text(f"{name}.jsonl", "\n".join(each.recorded() for each in getattr(records, name)))
        written.write_info(records.info)
        print(f"{len(found)} of {len(drivers)} deployments are one run: ./tfb report {folder}")
    if missing := [each.name for each in lab.deployment if not _complete(found.get(each.name))]:
        _say(f"not complete: {', '.join(missing)}; go on with the same command and --resume {folder}")
    return Exit.FAILED if missing else Exit.OK


def _driver(lab: Lab, deployment: Deployment, words: Sequence[str], folder: Path) -> Sequence[str]:
    """The command line that has the deployment carry out the run, or go on with it."""
    place = _place(folder, deployment)
    run = (*_passed_on(words), *deployment.flags, "--results", place, "--quiet")
    directory = lab.directory if deployment.login else str(REPOSITORY)
    script = SCRIPT.format(directory=shlex.quote(directory), place=shlex.quote(place), words=shlex.join(run))
    shell = ["sh", "-c", script]
    # A terminal there: its end tells the run that this one has ended.
    return [*SSH, *configuration(), "-tt", deployment.login, shlex.join(shell)] if deployment.login else shell


def _place(folder: Path, deployment: Deployment) -> str:
    """Where its results are: of a login below the checkout there."""
    return f"results/{folder.name}/{deployment.name}" if deployment.login else str(folder / deployment.name)


def _passed_on(words: Sequence[str]) -> Iterator[str]:
    """The command line without the flags that are the lab's."""
    left = iter(words)
    for word in left:
        if word in ("--lab", "--resume", "--results"):
            next(left, None)
        elif not word.startswith(("--lab=", "--resume=", "--results=")) and word != "--dry-run":
            yield word


def _carry_out(lab: Lab, drivers: Mapping[Deployment, Sequence[str]], folder: Path) -> None:
    """All at once, until the last one has ended; what each has measured is then in ``folder``."""
    with ExitStack() as stack:
        at_work: dict[Deployment, Child] = {}
        for deployment, driver in drivers.items():
            log = stack.enter_context((folder / f"{deployment.name}.log").open("ab"))
            child = Child(driver, cwd=folder, stdout=log)
            at_work[deployment] = stack.enter_context(running(child, grace=END_SECONDS, first=signal.SIGINT))
            _say(f"{deployment.name} began; its output: {log.name}")
        while at_work:
            for deployment, child in list(at_work.items()):
                if (status := child.wait(LOOK_SECONDS)) is not None:
                    del at_work[deployment]
                    why = f": {process.tail(folder / f'{deployment.name}.log', 1)}" if status else ""
                    _say(f"{deployment.name} ended: {process.describe_status(status)}{why}")
                    if deployment.login:
                        _bring_back(lab, deployment, folder)
            interruption.check()


def _bring_back(lab: Lab, deployment: Deployment, folder: Path) -> None:
    """What was measured there, by an archive over the same ssh."""
    there = shlex.quote(f"{lab.directory}/{_place(folder, deployment)}")
    read = [*SSH, *configuration(), str(deployment.login), f"tar -C {there} -cf - ."]
    here = folder / deployment.name
    here.mkdir(exist_ok=True)
    try:
        done = process.run(["sh", "-c", f"{shlex.join(read)} | tar -C {shlex.quote(str(here))} -xf -"], seconds=600)
        why = done.stdout.strip()[-300:] or "no word" if done.status else ""
    except process.CommandTimeoutError as error:
        why = str(error)
    if why:
        _say(f"{deployment.name}: its results were not brought back: {why}")


def _run(results: Path) -> Path | None:
    """The run of a deployment."""
    return next(iter(reversed(store.runs(results))), None)


def _complete(run: Path | None) -> bool:
    """Whether all of it is measured."""
    try:
        return run is not None and RunReader(run).info.status == "complete"
    except TfbError:
        return False


def _say(text: str) -> None:
    print(f"tfb: {text}", file=sys.stderr, flush=True)


# ---- one run of several ----------------------------------------------------------------------------------------------


def merge(runs: Mapping[str, Path], run_id: str) -> RunRecords:
    """One run of the run of each deployment. Raises UsageError for runs that cannot be one, and StoreError."""
    found = dict(zip(runs, store.numbered([store.read(folder) for folder in runs.values()]), strict=True))
    first = next(iter(found.values())).info
    deployments: list[MachineSet] = []
    problems: list[str] = []
    implementations: dict[str, ImplementationInfo] = {}
    for name, records in found.items():
        info = records.info
        _require_alike(first, info, name)
        numbers = sorted(store.numbers(records))
        deployments.append(MachineSet(name=name, machine=info.machine, runs=(info.run_id,), processes=tuple(numbers)))
        problems += [f"{name}: {each}" for each in dict.fromkeys((*info.problems, *records.problems))]
        if info.status not in ("complete", "failed"):
            problems.append(f"{name}: the run is {info.status}; what it has measured counts")
        for each in info.implementations:  # as it was built, if any deployment built it
            known = implementations.get(each.name)
            if known is None or not (known.build and known.build.status == "ok"):
                implementations[each.name] = each
    most = 1 + max((number for each in deployments for number in each.processes), default=-1)
    profile = _profile(first)
    rules = profile.get("processes")
    number = {**(rules if isinstance(rules, dict) else {}), "minimum": most, "maximum": most, "looks": ()}
    info = first.model_copy(
        update={
            "run_id": run_id,
            "name": f"{len(found)} deployments",
            "status": "complete",
            "started_at": min(records.info.started_at for records in found.values()),
            "completed_at": max(records.info.completed_at or 0.0 for records in found.values()) or None,
            "command": ("lab", *found),
            "settings": {**first.settings, "profile": {**profile, "processes": number}},
            "implementations": tuple(implementations.values()),
            "processes_expected": most,
            "processes_maximum": most,
            "noise_floor": None,
            "problems": tuple(problems),
            "sets": tuple(deployments),
        }
    )
    return store.joined(found.values(), info)


def _profile(info: RunInfo) -> dict[str, object]:
    found = info.settings.get("profile")
    return found if isinstance(found, dict) else {}


def _require_alike(first: RunInfo, other: RunInfo, name: str) -> None:
    """Raise UsageError when figures of the two are not of one thing."""
    here, there = _profile(first), _profile(other)
    if differing := [key for key in here if here[key] != there.get(key)]:
        raise UsageError(f"{name} was measured by another profile ({differing[0]} differs): repeat it with these flags")
    if first.reference != other.reference:
        raise UsageError(f"{name} has another reference, {other.reference} instead of {first.reference}")
    if (first.revision, bool(first.dirty)) != (other.revision, bool(other.dirty)):
        one, others = (
            f"{(each.revision or 'no commit')[:12]}{', changed' if each.dirty else ''}" for each in (other, first)
        )
        raise UsageError(f"{name} was measured at {one}, others at {others}: bring checkouts to one commit")
