"""Hands a queue's units to GNU parallel (here or over ssh) or to Slurm; both outlive a set that vanishes."""

import os
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from harness.errors import EnvironmentLacksError, UsageError
from harness.host import process
from harness.paths import REPOSITORY
from harness.plan.lab import Lab, MachineSet
from harness.plan.queue import Queue, Unit
from harness.run import slurm

# Host keys are checked as the user's ssh configuration says; nobody is there to type a password; a machine that has
# been silent for 15 s is gone, and its unit goes to another one.
SSH = (
    *("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
)
QUEUE, JOBLOG, UNITS, DONE = "queue.json", "joblog", "units", "done"
BUILD_SECONDS = 3600.0  # images are built in the first unit on a set
ANSWERS = 30.0  # seconds for a login to answer in: its start-up files may take some
LONGEST = 4  # times the expected length: beyond it a unit hangs

Words = Sequence[str]


def parallel(queue: Queue, folder: Path, units: Sequence[Unit], *, again: bool) -> Words:
    """GNU parallel's command line, to be run in the folder that holds the queue's own."""
    limit = _limit(units)
    name = folder.name
    words = [
        *("parallel", "--will-cite", "--plus", "--line-buffer", "--tagstring", "{1}"),
        *("--joblog", f"{name}/{JOBLOG}", "--retries", str(queue.retries + 1), "--timeout", f"{limit:.0f}"),
        *(("--resume-failed",) if again else ()),
    ]
    if queue.engine == "local":
        sets = here(queue.lab)
        words += ["--jobs", str(len(sets))]
        return [
            *words,
            f"{shlex.quote(str(REPOSITORY / 'tfb'))} unit {name}/{QUEUE} {{1}} --slot {{%}}",
            ":::",
            *_ids(units),
        ]
    logins = ",".join(f"1/{machines.login}" for machines in over_ssh(queue.lab))
    words += ["--sshlogin", logins, "--ssh", shlex.join(ssh()), "--workdir", f"{queue.lab.directory}/results"]
    words += ["--basefile", f"{name}/{QUEUE}", "--return", f"{name}/{UNITS}/{{1}}"]
    return [*words, f"../tfb unit {name}/{QUEUE} {{1}} --login {{sshlogin}}", ":::", *_ids(units)]


def ssh() -> Words:
    """The ssh command; TFB_SSH_CONFIG names another configuration file than the user's own."""
    other = os.environ.get("TFB_SSH_CONFIG")
    return (*SSH, "-F", other) if other else SSH


def here(lab: Lab) -> tuple[MachineSet, ...]:
    """The sets that this machine drives; raises UsageError when there are none."""
    found = tuple(machines for machines in lab.sets if machines.login is None)
    if not found:
        raise UsageError("--engine local runs the sets without a login, and the lab has none")
    return found


def over_ssh(lab: Lab) -> tuple[MachineSet, ...]:
    """All sets; raises UsageError when one has no login."""
    if absent := [machines.name for machines in lab.sets if machines.login is None]:
        raise UsageError(f"--engine parallel reaches each set over ssh, and {', '.join(absent)} has no login")
    return lab.sets


def answering(lab: Lab, say: Callable[[str], None]) -> tuple[MachineSet, ...]:
    """The sets that answer over ssh; the others are named. Raises EnvironmentLacksError when none does.

    GNU parallel's own ``--filter-hosts`` reads what the logins print, and ends with status 255 ("You have found a bug")
    when a shell's start-up file prints a line more.
    """
    sets = over_ssh(lab)
    with ExitStack() as stack:
        asked = [process.Child((*ssh(), str(machines.login), "true"), stderr=2) for machines in sets]
        for child in asked:
            stack.enter_context(process.running(child))
        until = time.monotonic() + ANSWERS
        statuses = [child.wait(max(0.1, until - time.monotonic())) for child in asked]
    found = tuple(machines for machines, status in zip(sets, statuses, strict=True) if status == 0)
    for machines in sets:
        if machines not in found:
            say(f"set {machines.name}: ssh {machines.login} does not answer; its units go to the others")
    if not found:
        names = ", ".join(str(machines.login) for machines in sets)
        raise EnvironmentLacksError(
            f"none of the lab's sets answers over ssh ({names}): try ssh -o BatchMode=yes NAME true"
        )
    return found


def require(engine: str) -> None:
    """Raise EnvironmentLacksError when this engine is not on this machine."""
    needed = {
        "slurm": ("sbatch", "slurm-wlm"),
        "parallel": ("parallel", "parallel rsync"),
        "local": ("parallel", "parallel"),
    }
    program, packages = needed[engine]
    if shutil.which(program) is None:
        raise EnvironmentLacksError(f"{program} is not on this machine: apt-get install {packages}")


def carry_out(queue: Queue, folder: Path, *, again: bool, say: Callable[[str], None]) -> int:
    """Run every unit that is not done yet; the engine's exit status. Raises EnvironmentLacksError without it."""
    require(queue.engine)
    units = [unit for unit in queue.units if not is_done(folder, unit.id)]
    if not units:
        return 0
    if queue.engine == "slurm":
        return _by_slurm(queue, folder, units, say)
    chosen = queue.units if again and (folder / JOBLOG).exists() else units
    if queue.engine == "parallel":
        queue = queue.model_copy(update={"lab": queue.lab.model_copy(update={"sets": answering(queue.lab, say)})})
    words = parallel(queue, folder, chosen, again=again)
    say(shlex.join(words))
    return _run(words, folder.parent, {"PARALLEL_SHELL": "/bin/sh"})


def _by_slurm(queue: Queue, folder: Path, units: Sequence[Unit], say: Callable[[str], None]) -> int:
    """One array after the other; what still stands in Slurm's queue at the end, however it comes, is taken back."""
    site = slurm.site(queue.lab)
    path = folder / "slurm.sh"
    path.write_text(slurm.script(queue, f"{folder.name}/{QUEUE}"), encoding="utf-8")
    path.chmod(0o755)
    status = 0
    try:
        for array in slurm.arrays(units, site):
            words = [*slurm.sbatch(queue, folder, array, site, seconds=_limit(units)), str(path), str(array.first)]
            say(shlex.join(words))
            say(f"squeue --name={slurm.name(queue)} shows its tasks; what they say: {folder}/slurm-*.log")
            status = max(status, _run(words, folder.parent, {}))
    finally:
        slurm.cancel(queue)
    return status


def _limit(units: Sequence[Unit]) -> float:
    """Seconds after which a unit of these hangs."""
    return max((unit.seconds for unit in units), default=0.0) * LONGEST + BUILD_SECONDS


def _run(words: Words, folder: Path, more: Mapping[str, str]) -> int:
    child = process.Child(words, cwd=folder, env={**os.environ, **more}, stdout=2, stderr=2)
    with process.running(child):
        while (status := child.wait(3600.0)) is None:
            pass
        return status


def is_done(folder: Path, unit: str) -> bool:
    """Whether the unit has been measured to its end."""
    return (folder / UNITS / unit / DONE).exists()


def _ids(units: Sequence[Unit]) -> list[str]:
    return [unit.id for unit in units]
