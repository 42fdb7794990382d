"""Hands a queue's units to its deployments, one at a time each: here, over ssh, or by Slurm.

A unit that fails goes back into the queue, for whoever is free; a deployment that vanishes is asked no more.
"""

import shlex
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import EnvironmentLacksError, TfbError
from harness.extras.deployments import slurm
from harness.extras.deployments.machine import configuration
from harness.extras.deployments.units import Deployment, Queue, Unit
from harness.host import process
from harness.paths import REPOSITORY

# Host keys are checked as the user's ssh configuration says; nobody is there to type a password; a machine that has
# been silent for 15 s is gone, and its unit goes to another one.
SSH = (
    *("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
)
NO_ANSWER = 255  # of ssh itself
QUEUE, UNITS, DONE = "queue.json", "units", "done"
BUILD_SECONDS = 3600.0  # images are built in the first unit on a deployment
COPY_SECONDS = 300.0
LOOK_SECONDS = 0.2
LONGEST = 4  # times the expected length: beyond it a unit hangs
Say = Callable[[str], None]


def is_done(folder: Path, unit: str) -> bool:
    """Whether the unit has been measured to its end."""
    return (folder / UNITS / unit / DONE).exists()


def carry_out(queue: Queue, folder: Path, say: Say) -> None:
    """Run every unit that is not done yet; which those are is seen by ``is_done``, before and after."""
    units = [unit for unit in queue.units if not is_done(folder, unit.id)]
    if units and queue.slurm:
        slurm.carry_out(queue, folder, units, _limit(units), say)
    elif units:
        _Spread(queue, folder, units, say).run()


def _limit(units: Sequence[Unit]) -> float:
    """Seconds after which a unit of these hangs."""
    return max(unit.seconds for unit in units) * LONGEST + BUILD_SECONDS


class _Spread:
    """A thread for each deployment, all of which take from one list."""

    def __init__(self, queue: Queue, folder: Path, units: Sequence[Unit], say: Say) -> None:
        self._queue, self._folder, self._say = queue, folder.resolve(), say
        self._left = list(units)
        self._tries: Counter[str] = Counter()
        self._at_work = 0
        self._changed = threading.Condition()
        self._limit = _limit(units)

    def run(self) -> None:
        """Until all is done, or nobody is left to do it."""
        threads = [threading.Thread(target=self._drive, args=(each,), daemon=True) for each in self._queue.lab.sets]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            threads[0].join(LOOK_SECONDS)
            time.sleep(0.0 if threads[0].is_alive() else LOOK_SECONDS)

    def _drive(self, deployment: Deployment) -> None:
        try:
            there = _There(self._queue, self._folder, deployment)
            there.prepare()
            while unit := self._take():
                status = NO_ANSWER
                try:
                    status = there.measure(unit, self._limit)
                finally:
                    self._give_back(unit, deployment, status)
                if status == NO_ANSWER:
                    raise EnvironmentLacksError(f"ssh {deployment.login} answers no more")
        except TfbError as error:
            self._say(f"set {deployment.name}: {error}; its units go to the others")

    def _take(self) -> Unit | None:
        with self._changed:
            while not self._left and self._at_work:  # what others are at may come back
                self._changed.wait()
            if not self._left:
                return None
            self._at_work += 1
            return self._left.pop(0)

    def _give_back(self, unit: Unit, deployment: Deployment, status: int) -> None:
        with self._changed:
            self._at_work -= 1
            self._tries[unit.id] += 1
            done = is_done(self._folder, unit.id)
            self._say(f"unit {unit.id} on {deployment.name}: {'measured' if done else process.describe_status(status)}")
            if not done and self._tries[unit.id] <= self._queue.retries:
                self._left.append(unit)
            self._changed.notify_all()


class _There:
    """Where a deployment's units are driven from: this machine, or one that ssh reaches."""

    def __init__(self, queue: Queue, folder: Path, deployment: Deployment) -> None:
        self._folder, self._deployment = folder, deployment
        self._ssh = [*SSH, *configuration(), deployment.login] if deployment.login else []
        self._place = f"{queue.lab.directory}/results/{folder.name}" if deployment.login else str(folder)
        self._tfb = f"{queue.lab.directory}/tfb" if deployment.login else str(REPOSITORY / "tfb")

    def prepare(self) -> None:
        """Bring the queue's file there. Raises EnvironmentLacksError where nobody answers."""
        if self._ssh:
            place = shlex.quote(self._place)
            copy = f"mkdir -p {place}/{UNITS} && cat > {place}/{QUEUE}"
            with (self._folder / QUEUE).open("rb") as queue, tempfile.TemporaryFile() as said:
                child = process.Child([*map(str, self._ssh), copy], stdin=queue.fileno(), stdout=said)
                with process.running(child):
                    if child.wait(COPY_SECONDS) == 0:
                        return
                said.seek(0)
                text = said.read().decode(errors="replace").strip()[-200:]
            raise EnvironmentLacksError(f"ssh {self._deployment.login} does not answer ({text or 'no word'})")

    def measure(self, unit: Unit, seconds: float) -> int:
        """Its exit status; what it has measured is then in this machine's folder."""
        words = [self._tfb, "shard", "--resume", self._place, "--unit", unit.id, "--on", self._deployment.name]
        command = [*map(str, self._ssh), shlex.join(words)] if self._ssh else words
        log = self._folder / f"{unit.id}-{self._deployment.name}.log"
        try:
            done = process.run(command, seconds=seconds, log=log)
        except process.CommandTimeoutError:
            return 1
        if done.status == 0 and self._ssh:
            return self._bring_back(unit)
        return done.status

    def _bring_back(self, unit: Unit) -> int:
        """By an archive, whose last file says that the unit is done."""
        place = shlex.quote(f"{self._place}/{UNITS}")
        with tempfile.TemporaryFile() as archive:
            child = process.Child([*map(str, self._ssh), f"tar -C {place} -cf - {unit.id}"], stdout=archive, stderr=2)
            with process.running(child):
                status = child.wait(COPY_SECONDS)
            if status == 0:
                archive.seek(0)
                (self._folder / UNITS).mkdir(exist_ok=True)
                unpacked = process.Child(["tar", "-C", str(self._folder / UNITS), "-xf", "-"], stdin=archive.fileno())
                with process.running(unpacked):
                    status = unpacked.wait(COPY_SECONDS)
        if status != 0:
            shutil.rmtree(self._folder / UNITS / unit.id, ignore_errors=True)
        return 1 if status is None else status
