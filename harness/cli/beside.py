"""Stages of ``./tfb check`` side by side: the longest at once, the others in their order beside it."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

from harness.cli.stages import Stage
from harness.host import interruption

LOOK_SECONDS = 0.05  # between two looks at what has ended
NOT_FOUND = 127  # the exit status of a program that is not there, as a shell has it

Start = Callable[[Stage, IO[bytes]], "subprocess.Popen[bytes]"]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A stage that ran beside others."""

    stage: Stage
    status: int | None  # None: it was interrupted
    seconds: float
    output: bytes  # all that it wrote to both streams


@dataclass(frozen=True, kw_only=True)
class _Running:
    stage: Stage
    child: "subprocess.Popen[bytes]"
    output: IO[bytes]
    began: float

    def ended(self, status: int | None) -> Ended:
        self.output.seek(0)
        return Ended(stage=self.stage, status=status, seconds=time.monotonic() - self.began, output=self.output.read())


def side_by_side(stages: Sequence[Stage], start: Start, told: Callable[[Ended], None], *, others: int) -> None:
    """Run all; ``told`` hears of each when it has ended. A long stage begins at once, of the others so many at a time.

    A stage begins when the one that it comes ``after`` has ended, however that ended. An interruption ends them all,
    and is raised when they have: what each wrote so far is told with the status None.
    """
    waiting, running = list(stages), list[_Running]()
    with ExitStack() as stack:
        try:
            while waiting or running:
                for stage in _ready(waiting, running, others):
                    waiting.remove(stage)
                    output = stack.enter_context(tempfile.TemporaryFile(prefix="tfb-stage-"))
                    try:
                        with interruption.held():
                            child = start(stage, output)
                            running.append(_Running(stage=stage, child=child, output=output, began=time.monotonic()))
                    except FileNotFoundError:
                        said = f"{stage.command[0]} is not on this machine: ./tfb doctor\n".encode()
                        told(Ended(stage=stage, status=NOT_FOUND, seconds=0.0, output=said))
                for one in [one for one in running if one.child.poll() is not None]:
                    running.remove(one)
                    told(one.ended(one.child.returncode))
                time.sleep(LOOK_SECONDS)
        except BaseException:
            for one in running:
                one.child.terminate()
            for one in running:
                one.child.wait()  # tests stop the servers that they started
                told(one.ended(None))
            raise


def _ready(waiting: Sequence[Stage], running: Sequence[_Running], others: int) -> list[Stage]:
    """The stages that may begin now, in their order."""
    unfinished = {stage.name for stage in waiting} | {one.stage.name for one in running}
    free = others - sum(not one.stage.long for one in running)
    found: list[Stage] = []
    for stage in waiting:
        if stage.after in unfinished:
            continue
        if stage.long:
            found.append(stage)
        elif free > 0:
            found.append(stage)
            free -= 1
    return found
