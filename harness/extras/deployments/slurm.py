"""A queue as Slurm's job arrays of whole nodes, and what is asked of the site before they are submitted."""

import getpass
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EnvironmentLacksError, UsageError
from harness.extras.deployments.units import Lab, Queue, Unit
from harness.host import process
from harness.paths import REPOSITORY

LONGEST_WAIT = 3600.0  # between two looks at a job array
ASK_SECONDS = 60.0  # that Slurm's controller has for an answer
SCRIPT = """#!/bin/sh
unit=$(printf %04d "$((SLURM_ARRAY_TASK_ID + $1))")
{tfb} shard --resume {queue} --unit "$unit" --on "$SLURMD_NODENAME"
status=$?
if [ "$status" -ne 0 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {retries} ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""


@dataclass(frozen=True, kw_only=True)
class Site:
    """What Slurm says of itself."""

    nodes: tuple[str, ...]  # of the partition
    array_size: int  # MaxArraySize: an array's greatest index is one less


@dataclass(frozen=True, kw_only=True)
class Array:
    """Units of one job array: their numbers less ``first`` are its indices."""

    first: int
    units: tuple[Unit, ...]


def nodes(lab: Lab) -> frozenset[str]:
    """The node of each set; raises UsageError when one has none."""
    if absent := [machines.name for machines in lab.sets if machines.login is None]:
        raise UsageError(f"--slurm: each set of the lab names its node as login, and {', '.join(absent)} does not")
    return frozenset(machines.login for machines in lab.sets if machines.login)


def site(lab: Lab) -> Site:
    """Ask the controller. Raises EnvironmentLacksError when it is silent, UsageError for a node that is not there."""
    size = re.search(r"^MaxArraySize\s*=\s*(\d+)", _ask("scontrol", "show", "config"), re.MULTILINE)
    found = _ask("sinfo", "--noheader", "--Node", "--format=%N %P").splitlines()
    pairs = [(line[0], line[1]) for line in map(str.split, found) if len(line) == 2]
    here = tuple(
        name for name, part in pairs if (part.rstrip("*") == lab.partition if lab.partition else part.endswith("*"))
    )
    which = f"partition {lab.partition!r}" if lab.partition else "the default partition"
    if unknown := sorted(nodes(lab) - set(here)):
        raise UsageError(
            f"--slurm: {which} has no node {', '.join(unknown)} (sinfo shows {', '.join(here) or 'none'}); "
            "the lab's login is the node's name, partition its partition"
        )
    return Site(nodes=here, array_size=int(size[1]) if size else 1001)


def arrays(units: Sequence[Unit], site: Site) -> Iterator[Array]:
    """The units in arrays that the site takes, in their order."""
    rest = list(units)
    while rest:
        first = int(rest[0].id)
        fit = [unit for unit in rest if int(unit.id) - first < site.array_size]
        yield Array(first=first, units=tuple(fit))
        rest = rest[len(fit) :]


def sbatch(queue: Queue, folder: Path, array: Array, site: Site, *, seconds: float) -> Sequence[str]:
    """The command line that submits an array and waits for it; the script's own argument follows it.

    A task takes a whole node of the lab, no other one of the partition, and goes back into the queue when its node
    fails. The file system is one that all nodes share.
    """
    indices = ",".join(str(int(unit.id) - array.first) for unit in array.units)
    command = ["sbatch", "--parsable", "--wait", "--requeue", "--exclusive", "--nodes=1", "--open-mode=append"]
    command += [f"--array={indices}%{len(queue.lab.sets)}", f"--time={int(seconds) // 60 + 1}"]
    command += [
        f"--job-name={name(queue)}",
        f"--chdir={folder.parent.resolve()}",
        f"--output={folder.name}/slurm-%A_%a.log",
    ]
    command += [f"--partition={queue.lab.partition}"] if queue.lab.partition else []
    others = sorted(set(site.nodes) - nodes(queue.lab))
    return [*command, *([f"--exclude={','.join(others)}"] if others else [])]


def script(queue: Queue, folder: Path) -> str:
    """What a task does: its one argument is its array's ``first``. A unit that fails is tried again."""
    tfb = shlex.quote(str(REPOSITORY / "tfb"))
    return SCRIPT.format(tfb=tfb, queue=shlex.quote(str(folder.resolve())), retries=queue.retries)


def carry_out(queue: Queue, folder: Path, units: Sequence[Unit], seconds: float, say: Callable[[str], None]) -> None:
    """One array after the other; what still stands in Slurm's queue at the end, however it comes, is taken back."""
    found = site(queue.lab)
    path = folder / "slurm.sh"
    path.write_text(script(queue, folder), encoding="utf-8")
    path.chmod(0o755)
    try:
        for array in arrays(units, found):
            command = [*sbatch(queue, folder, array, found, seconds=seconds), str(path), str(array.first)]
            say(f"{shlex.join(command)}\nits tasks: squeue --name={name(queue)}; their output: {folder}/slurm-*.log")
            child = process.Child(command, cwd=folder.parent, stdout=2, stderr=2)
            with process.running(child):
                while child.wait(LONGEST_WAIT) is None:
                    continue
    finally:  # nothing where all is done, everything where the user has interrupted
        process.run(["scancel", f"--name={name(queue)}", f"--user={getpass.getuser()}"], seconds=ASK_SECONDS)


def name(queue: Queue) -> str:
    """Of the queue's jobs."""
    return f"tfb-{queue.id}"


def _ask(*command: str) -> str:
    if shutil.which(command[0]) is None:
        raise EnvironmentLacksError(f"{command[0]} is not on this machine: apt-get install slurm-wlm")
    done = process.run(command, seconds=ASK_SECONDS)
    if done.status != 0:
        said = (done.stdout.strip().splitlines() or ["nothing"])[-1]
        raise EnvironmentLacksError(f"{shlex.join(command)}: Slurm's controller does not answer: {said}")
    return done.stdout
