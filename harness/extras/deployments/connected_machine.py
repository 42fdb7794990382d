"""Connections to the machines of a run, which forward the sockets of Docker engines and detect lost machines."""

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
from harness.runtime.compose import client_environment, docker, inspect

logger = logging.getLogger("tfb.machines")

OPEN_SECONDS = 20.0
CALL_SECONDS = 10.0
SETTLE_SECONDS = 1.0  # a forwarded stream may end slightly before the ssh session
LOST_GRACE_SECONDS = 0.1  # time in which docker clients of a lost engine may exit
# Use the host keys of the user's ssh configuration, never prompt, and end the session after four silent seconds.
SSH = (
    *("ssh", "-nNT", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-o", "ConnectTimeout=5"),
    *("-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=2", "-o", "ControlPath=none"),
)
SOCKET = "/run/docker.sock"
VERSION = ("version", "--format", "{{.Server.Version}}")


@dataclass(kw_only=True)
class ConnectedMachine:
    """A machine whose Docker engine is connected."""

    name: str
    address: str  # address at which the other machines reach it
    at: Sequence[str]  # arguments of docker that select the engine
    link: process.Child | None = None  # ssh process that forwards the socket of the engine
    log: Path | None = None
    lost: str | None = None  # reason, if the machine has been lost

    def lose(self, how: str) -> MachineLostError:
        """Mark the machine as lost, and return the error. Later calls then fail at once instead of waiting."""
        self.lost = how
        return MachineLostError(how)

    def require_reachable(self, settle: float = 0.0) -> None:
        """Raise MachineLostError if the machine is lost, or if the ssh session ends within ``settle`` seconds."""
        if self.link is not None and self.link.wait(settle) is not None:
            said = process.tail(self.log, 3).strip() if self.log else ""
            raise self.lose(f"the machine {self.name} is lost: the ssh session ended ({said or 'without a message'})")
        if self.lost is not None:
            raise MachineLostError(self.lost)

    def require_response(self) -> None:
        """Send a request to the engine. Raises MachineLostError if there is no response."""
        self.require_reachable()
        done = self.docker(*VERSION)
        if done.status != 0:
            raise self.lose(f"the engine of the machine {self.name} does not respond: {done.stdout.strip()[-200:]}")

    def docker(self, *arguments: str, seconds: float = CALL_SECONDS) -> process.CompletedCommand:
        """Run a docker command on the engine of the machine. Raises MachineLostError if the engine does not respond."""
        if self.lost is not None:
            raise MachineLostError(self.lost)
        try:
            done = docker(*arguments, seconds=seconds, at=self.at)
        except process.CommandTimeoutError as error:
            self.require_reachable()
            raise self.lose(f"the engine of the machine {self.name} has not responded for {seconds:.0f} s") from error
        if done.status != 0:
            self.require_reachable(SETTLE_SECONDS)
        return done

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a long-running docker command on the engine of the machine."""
        return ["docker", *self.at, *arguments]

    def end(self, child: process.Child) -> None:
        """Stop a long-running docker command. Before that, give the command a second to end."""
        if self.lost is None:
            child.wait(1.0)
        child.stop(grace=LOST_GRACE_SECONDS if self.lost else process.STOP_SECONDS)

    def send(self, image: str) -> None:
        """Send a local image to the machine, unless the engine there already has the same image."""
        here, there = (inspect("image", image, at) for at in ((), self.at))
        if here and there and there["Id"] == here["Id"]:
            return
        load = f"{shlex.join(['docker', 'save', image])} | {shlex.join(self.command('load', '--quiet'))}"
        done = process.run(["sh", "-c", load], seconds=900, env=client_environment())
        if done.status != 0:
            self.require_reachable()
            said = done.stdout.strip()[-300:] or "no response"
            raise EnvironmentLacksError(f"the image {image} could not be sent to {self.name}: {said}")
        logger.info("sent %s to %s", image, self.name)


@contextmanager
def reached(host: Host, folder: Path, *, addressed: bool = True) -> Iterator[ConnectedMachine]:
    """Connect to a machine, and yield it while its socket is forwarded.

    Args:
        host: The machine.
        folder: Folder for the log of ssh.
        addressed: Whether other machines connect to it, so that it needs an address.

    Raises:
        EnvironmentLacksError: The machine cannot be reached. The message contains a remedy.
        MachineLostError: The engine does not respond.
        UsageError: The address is missing.
    """
    if host.reached_by == "context":
        if host.address is None and addressed:
            raise UsageError(f"{host.text}: other machines need an address for this machine: {host.text}=ADDRESS")
        machine = ConnectedMachine(name=host.text, address=host.address or "", at=("--context", host.name))
        machine.require_response()
        yield machine
        return
    log = folder / f"ssh-{re.sub(r'[^A-Za-z0-9.-]', '-', host.name)}.log"
    with ownership.make_scratch_folder("ssh") as scratch:
        path = scratch / "d.sock"  # short, because the path of a socket has at most 107 bytes
        port = ("-p", str(host.port)) if host.port else ()
        command = [*SSH, *configuration(), *port, "-L", f"{path}:{SOCKET}", host.name]
        with safe_write.append(log, private=True) as output:
            link = process.Child(command, stdout=output)
        with process.running(link):
            _await_engine(host.text, link, path, log)
            address = host.address or _address(host)
            yield ConnectedMachine(name=host.text, address=address, at=("-H", f"unix://{path}"), link=link, log=log)


def configuration() -> Sequence[str]:
    """Return ssh's arguments for the configuration file in TFB_SSH_CONFIG, or no arguments without the variable."""
    other = os.environ.get("TFB_SSH_CONFIG")
    return ("-F", str(Path(other).absolute())) if other else ()


def _address(host: Host) -> str:
    """Return the host name in ssh's configuration."""
    done = process.run(["ssh", "-G", *configuration(), host.name], seconds=CALL_SECONDS)
    found = re.search(r"^hostname (\S+)$", done.stdout, re.MULTILINE)
    return found[1] if found else host.name.rpartition("@")[2]


def _await_engine(name: str, link: process.Child, path: Path, log: Path) -> None:
    """Wait until the engine responds through the socket, which exists as soon as ssh has logged in.

    Raises EnvironmentLacksError.
    """
    until = time.monotonic() + OPEN_SECONDS
    while time.monotonic() < until and link.wait(0.02) is None:
        if path.exists():
            done = docker(*VERSION, seconds=OPEN_SECONDS, at=("-H", f"unix://{path}"))
            if done.status == 0:
                return
            raise EnvironmentLacksError(
                f"{name} is reached, but no Docker engine responds at {SOCKET} on it "
                f"({done.stdout.strip()[-200:]}): start the engine, add the user to the group docker, or set "
                "AllowStreamLocalForwarding yes in sshd_config"
            )
    said = process.tail(log, 4).strip()
    raise EnvironmentLacksError(
        f"{name} cannot be reached over ssh ({said or 'no response'}). Check the host name and accept the host key; "
        f"test with: ssh -o BatchMode=yes {name}"
    )
