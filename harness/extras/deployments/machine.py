"""One machine of a run: its Docker engine behind one forwarded socket, and whether it still answers."""

import logging
import os
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EnvironmentLacksError, MachineLostError, UsageError
from harness.host import ownership, process
from harness.plan.hosts import Host
from harness.records import safe_write
from harness.runtime.compose import docker, inspect

logger = logging.getLogger("tfb.machines")

OPEN_SECONDS = 20.0
CALL_SECONDS = 10.0
SETTLE_SECONDS = 1.0  # what goes through an ssh session may end a moment before the session itself
LOST_GRACE_SECONDS = 0.1  # for a client of an engine that is lost: it has nobody to ask
# Host keys as the user's ssh configuration says; no question is asked; silence of four seconds is the end.
SSH = (
    *("ssh", "-nNT", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-o", "ConnectTimeout=5"),
    *("-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=2", "-o", "ControlPath=none"),
)
SOCKET = "/run/docker.sock"
VERSION = ("version", "--format", "{{.Server.Version}}")


@dataclass(kw_only=True)
class Machine:
    """Reached; ``at`` are docker's arguments for its engine."""

    name: str
    address: str  # that the other machines use
    at: Sequence[str]
    link: process.Child | None = None  # the ssh that forwards the engine's socket
    log: Path | None = None
    lost: str | None = None  # how, from the moment at which it was noticed

    def lose(self, how: str) -> MachineLostError:
        """From now on nothing is asked of it: an engine that hangs holds up every question."""
        self.lost = how
        return MachineLostError(how)

    def require_reachable(self, settle: float = 0.0) -> None:
        """Raises MachineLostError when it is lost, or its ssh session has ended, or ends within ``settle`` seconds."""
        if self.link is not None and self.link.wait(settle) is not None:
            said = process.tail(self.log, 3).strip() if self.log else ""
            raise self.lose(f"the machine {self.name} is lost: its ssh session ended ({said or 'without a word'})")
        if self.lost is not None:
            raise MachineLostError(self.lost)

    def require_answer(self) -> None:
        """Ask it now; raises MachineLostError."""
        self.require_reachable()
        done = self.docker(*VERSION)
        if done.status != 0:
            raise self.lose(f"the engine of the machine {self.name} does not answer: {done.stdout.strip()[-200:]}")

    def docker(self, *arguments: str, seconds: float = CALL_SECONDS) -> process.Completed:
        """A docker command there; raises MachineLostError when the machine answers no more."""
        if self.lost is not None:
            raise MachineLostError(self.lost)
        try:
            done = docker(*arguments, seconds=seconds, at=self.at)
        except process.CommandTimeoutError as error:
            self.require_reachable()
            raise self.lose(f"the engine of the machine {self.name} has not answered for {seconds:.0f} s") from error
        if done.status != 0:
            self.require_reachable(SETTLE_SECONDS)
        return done

    def command(self, *arguments: str) -> list[str]:
        """The command line of a docker command there, for one that runs for long."""
        return ["docker", *self.at, *arguments]

    def end(self, child: process.Child) -> None:
        """Stop such a command, which may be about to end by itself."""
        if self.lost is None:
            child.wait(1.0)
        child.stop(grace=LOST_GRACE_SECONDS if self.lost else process.STOP_SECONDS)

    def send(self, image: str) -> None:
        """Bring an image of this machine's engine there where its id differs."""
        here, there = (inspect("image", image, at) for at in ((), self.at))
        if here and there and there["Id"] == here["Id"]:
            return
        load = f"{shlex.join(['docker', 'save', image])} | {shlex.join(self.command('load', '--quiet'))}"
        done = process.run(["sh", "-c", load], seconds=900)
        if done.status != 0:
            self.require_reachable()
            said = done.stdout.strip()[-300:] or "no answer"
            raise EnvironmentLacksError(f"the image {image} could not be sent to {self.name}: {said}")
        logger.info("sent %s to %s", image, self.name)


@contextmanager
def reached(host: Host, folder: Path, *, addressed: bool = True) -> Iterator[Machine]:
    """The machine, for as long as its socket is forwarded; ``addressed``: other machines have to reach it, too.

    Raises EnvironmentLacksError that says how to mend it, MachineLostError, and UsageError.
    """
    if host.by == "context":
        if host.address is None and addressed:
            raise UsageError(f"{host.text}: say at which address the other machines reach it: {host.text}=ADDRESS")
        machine = Machine(name=host.text, address=host.address or "", at=("--context", host.name))
        machine.require_answer()
        yield machine
        return
    log = folder / f"ssh-{re.sub(r'[^A-Za-z0-9.-]', '-', host.name)}.log"
    with ownership.scratch("ssh") as scratch:
        path = scratch / "d.sock"  # short: the path of a socket has 107 bytes at most
        port = ("-p", str(host.port)) if host.port else ()
        command = [*SSH, *configuration(), *port, "-L", f"{path}:{SOCKET}", host.name]
        with safe_write.append(log) as output:
            link = process.Child(command, stdout=output)
        with process.running(link):
            _await_engine(host.text, link, path, log)
            address = host.address or _address(host)
            yield Machine(name=host.text, address=address, at=("-H", f"unix://{path}"), link=link, log=log)


def configuration() -> Sequence[str]:
    """Another ssh configuration than the user's own, where TFB_SSH_CONFIG names one."""
    other = os.environ.get("TFB_SSH_CONFIG")
    return ("-F", str(Path(other).absolute())) if other else ()


def _address(host: Host) -> str:
    """The host name that ssh's configuration gives this name."""
    done = process.run(["ssh", "-G", *configuration(), host.name], seconds=CALL_SECONDS)
    found = re.search(r"^hostname (\S+)$", done.stdout, re.MULTILINE)
    return found[1] if found else host.name.rpartition("@")[2]


def _await_engine(name: str, link: process.Child, path: Path, log: Path) -> None:
    """Until the engine answers through the socket, which is there as soon as ssh has logged in.

    Raises EnvironmentLacksError.
    """
    until = time.monotonic() + OPEN_SECONDS
    while time.monotonic() < until and link.wait(0.02) is None:
        if path.exists():
            done = docker(*VERSION, seconds=OPEN_SECONDS, at=("-H", f"unix://{path}"))
            if done.status == 0:
                return
            raise EnvironmentLacksError(
                f"{name} is reached, but no Docker engine answers at {SOCKET} there "
                f"({done.stdout.strip()[-200:]}): start it, add the user to the group docker, or allow "
                "AllowStreamLocalForwarding in its sshd_config"
            )
    said = process.tail(log, 4).strip()
    raise EnvironmentLacksError(
        f"{name} cannot be reached over ssh ({said or 'no answer'}); the name is known and the host key accepted? "
        f"try: ssh -o BatchMode=yes {name}"
    )
