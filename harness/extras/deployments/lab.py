"""``./tfb run … --lab FILE``: the same run on each of several deployments, and afterwards one run of all of them.

Each deployment carries out the command line by itself: here, over ssh, or as one job of Slurm. What has not ended is
gone on with by ``--resume``.
"""

import getpass
import shlex
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import ConfigError, Exit, StoreError, TfbError, UsageError
from harness.experiment import workflow
from harness.extras.deployments.machine import configuration
from harness.host import interruption, process
from harness.host.process import LOOK_SECONDS, Child, running
from harness.paths import REPOSITORY
from harness.plan.config import Settings
from harness.records import bounded, store
from harness.records.models import ImplementationInfo, MachineSet, ProcessRecord, RunInfo, RunRecords, Trial, Verdict
from harness.records.reader import RunReader
from harness.records.store import RunStore

END_SECONDS = 60.0  # that a run which is asked to end takes at most
OWN = {"--lab": 1, "--resume": 1, "--results": 1, "--slurm": 0, "--dry-run": 0}  # flags that are not passed on; values
# Host keys are checked as the user's ssh configuration says; nobody is there to type a password; a machine that has
# been silent for 15 s is gone.
SSH = (
    *("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
)
# A job that Slurm starts again finds what it had measured, and goes on.
SCRIPT = """cd {directory} && set -- {place}/*/run.json && exec </dev/null && if [ -e "$1" ]
then exec ./tfb run --resume "${{1%/run.json}}" --results {place} --quiet; else exec ./tfb {words}; fi"""


class Deployment(BaseModel):
    """Where its run is driven from, and the flags that name its machines."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    login: str | None = None  # ssh name of the machine that drives it (Slurm: its node name); None: this machine
    flags: tuple[str, ...] = ()  # of the run on it, such as --server-host app


class Lab(BaseModel):
    """All deployments (``lab.toml``, shown in docs/machines.md)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {key}: {first['msg']}; docs/machines.md shows a lab.toml") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error


def command(chosen: Settings, words: Sequence[str], path: Path, *, slurm: bool) -> int:
    """Carry out a run on every deployment of the lab; the exit code is 1 when one has not measured all of it."""
    lab = load(path)
    if chosen.mode != "benchmark" or chosen.resume == "":
        raise UsageError("--lab goes together with a run, and with --resume FOLDER that names what goes on")
    if slurm and (absent := [each.name for each in lab.deployment if each.login is None]):
        raise UsageError(f"--slurm: each deployment of the lab names its node as login, and {absent[0]} does not")
    folder = Path(chosen.resume or chosen.results / f"{time.strftime('%Y%m%d-%H%M%S')}-lab").resolve()
    if chosen.resume and not folder.is_dir():
        raise UsageError(f"--resume {chosen.resume}: there is no such folder; name that of the lab, results/…-lab")
    drivers = {each: _driver(lab, each, words, folder, slurm=slurm) for each in lab.deployment}
    if chosen.dry_run:
        for each, driver in drivers.items():
            print(f"{each.name}: {shlex.join(driver)}")
        return workflow.dry_run(chosen)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror}") from error
    left = {each: driver for each, driver in drivers.items() if not _complete(_run(folder / each.name))}
    try:
        _carry_out(lab, left, folder, slurm=slurm)
    except KeyboardInterrupt:
        _say(f"go on with the same command and --resume {folder}")
        raise
    finally:
        if slurm:  # nothing where all is done, everything where the user has interrupted
            process.run(["scancel", f"--name={folder.name}", f"--user={getpass.getuser()}"], seconds=END_SECONDS)
    found = {each.name: run for each in lab.deployment if (run := _run(folder / each.name))}
    if found:
        _write(merge(found, folder.name), folder)
        print(f"{len(found)} of {len(drivers)} deployments are one run: ./tfb report {folder}")
    if missing := [each.name for each in lab.deployment if not _complete(found.get(each.name))]:
        _say(f"not complete: {', '.join(missing)}; go on with the same command and --resume {folder}")
    return Exit.FAILED if missing else Exit.OK


def _driver(lab: Lab, deployment: Deployment, words: Sequence[str], folder: Path, *, slurm: bool) -> Sequence[str]:
    """The command line that has the deployment carry out the run, or go on with it."""
    elsewhere = deployment.login and not slurm
    place = _place(folder, deployment) if elsewhere else str(folder / deployment.name)
    run = (*_passed_on(words), *deployment.flags, "--results", place, "--quiet")
    directory = lab.directory if elsewhere else str(REPOSITORY)
    script = SCRIPT.format(directory=shlex.quote(directory), place=shlex.quote(place), words=shlex.join(run))
    if not deployment.login:
        return ["sh", "-c", script]
    if not slurm:
        # A terminal there: its end tells the run that this one has ended.
        return [*SSH, *configuration(), "-tt", deployment.login, shlex.join(["sh", "-c", script])]
    # A whole node; put back into Slurm's queue when the node fails. sbatch has the site's rest from SBATCH_* variables.
    job = ["sbatch", "--wait", "--requeue", "--exclusive", "--nodes=1", f"--nodelist={deployment.login}"]
    job += ["--open-mode=append", f"--job-name={folder.name}", f"--output={folder}/{deployment.name}.log"]
    return [*job, f"--wrap={script}"]


def _place(folder: Path, deployment: Deployment) -> str:
    """Its results there, below the checkout."""
    return f"results/{folder.name}/{deployment.name}"


def _passed_on(words: Sequence[str]) -> list[str]:
    """The command line without the flags that are the lab's."""
    kept: list[str] = []
    skip = 0
    for word in words:
        flag, equals, _ = word.partition("=")
        if skip:
            skip -= 1
        elif flag in OWN:
            skip = 0 if equals else OWN[flag]
        else:
            kept.append(word)
    return kept


def _carry_out(lab: Lab, drivers: Mapping[Deployment, Sequence[str]], folder: Path, *, slurm: bool) -> None:
    """All at once, until the last one has ended; what each has measured is then in ``folder``."""
    with ExitStack() as stack:
        at_work: dict[Deployment, Child] = {}
        for deployment, driver in drivers.items():
            log = stack.enter_context((folder / f"{deployment.name}.log").open("ab"))
            child = Child(driver, cwd=folder, stdout=log)
            at_work[deployment] = stack.enter_context(running(child, grace=END_SECONDS, first=signal.SIGINT))
            _say(f"{deployment.name} began; its output: {folder / deployment.name}.log")
        while at_work:
            for deployment, child in list(at_work.items()):
                if (status := child.wait(LOOK_SECONDS)) is not None:
                    del at_work[deployment]
                    why = f": {process.tail(folder / f'{deployment.name}.log', 1)}" if status else ""
                    _say(f"{deployment.name} ended: {process.describe_status(status)}{why}")
                    if deployment.login and not slurm:
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
    except process.CommandTimeoutError as error:
        _say(f"{deployment.name}: {error}")
        return
    if done.status != 0:
        _say(f"{deployment.name}: its results were not brought back: {done.stdout.strip()[-300:] or 'no word'}")


def _run(results: Path) -> Path | None:
    """The run of a deployment."""
    return next(iter(reversed(store.runs(results))), None)


def _complete(run: Path | None) -> bool:
    """Whether all of it is measured."""
    try:
        return run is not None and RunReader(run).info.status == "complete"
    except TfbError:
        return False


def _write(records: RunRecords, folder: Path) -> None:
    """The merged run in the lab's own folder, beside those that it was made of. Raises StoreError."""
    written = RunStore(folder, started_at=records.info.started_at)
    for name in ("trials", "processes", "verdicts"):
        written.write_text(f"{name}.jsonl", "\n".join(each.recorded() for each in getattr(records, name)))
    written.write_info(records.info)


def _say(text: str) -> None:
    print(f"tfb: {text}", file=sys.stderr, flush=True)


# ---- one run of several ----------------------------------------------------------------------------------------------


def merge(runs: Mapping[str, Path], run_id: str) -> RunRecords:
    """Read the run of each deployment and make one of them. Raises UsageError for runs that cannot be one, StoreError.

    All processes of a run move alike: those that stood beside each other still do.
    """
    found = {name: store.read(folder) for name, folder in runs.items()}
    first = next(iter(found.values())).info
    trials: list[Trial] = []
    processes: list[ProcessRecord] = []
    verdicts: list[Verdict] = []
    deployments: list[MachineSet] = []
    problems: list[str] = []
    implementations: dict[str, ImplementationInfo] = {}
    before = 0
    for name, records in found.items():
        info = records.info
        _require_alike(first, info, name)
        trials += [store.after(before, each) for each in records.trials]
        processes += [store.after(before, each).model_copy(update={"log": None}) for each in records.processes]
        verdicts += [store.after(before, each) for each in records.verdicts]
        numbers = sorted(
            {before + one.process for one in records.trials} | {before + one.process for one in records.processes}
        )
        own = MachineSet(name=name, machine=info.machine, runs=(info.run_id,), processes=tuple(numbers))
        deployments.append(own)
        before = max(numbers, default=before - 1) + 1
        problems += [f"{name}: {each}" for each in dict.fromkeys((*info.problems, *records.problems))]
        if info.status not in ("complete", "failed"):
            problems.append(f"{name}: the run is {info.status}; what it has measured counts")
        for each in info.implementations:  # as it was built, if any deployment built it
            known = implementations.get(each.name)
            if known is None or not (known.build and known.build.status == "ok"):
                implementations[each.name] = each
    profile = _profile(first)
    rules = profile.get("processes")
    number = {**(rules if isinstance(rules, dict) else {}), "minimum": before, "maximum": before, "looks": ()}
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
            "processes_expected": before,
            "processes_maximum": before,
            "noise_floor": first.noise_floor if len(found) == 1 else None,
            "problems": tuple(problems),
            "sets": tuple(deployments),
        }
    )
    return RunRecords(info=info, trials=tuple(trials), processes=tuple(processes), verdicts=tuple(verdicts))


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
        revisions = [
            f"{(each.revision or 'no commit')[:12]}{', changed' if each.dirty else ''}" for each in (first, other)
        ]
        raise UsageError(
            f"{name} was measured at {revisions[1]}, others at {revisions[0]}: bring checkouts to one commit"
        )
