"""Connects to the machines of a run. A connection forwards the Docker engine's socket and detects a lost machine."""

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

OPEN_SECONDS = 20.0  # time limit for connecting to an engine
CALL_SECONDS = 10.0  # time limit for a docker command
SETTLE_SECONDS = 1.0  # maximum wait for the ssh session to exit after a forwarded stream has closed
# Use the user's known host keys, never prompt, and end the session if the machine is silent for four seconds.
SSH = (
    *("ssh", "-nNT", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-o", "ConnectTimeout=5"),
    *("-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=2", "-o", "ControlPath=none"),
)
SOCKET = "/run/docker.sock"
VERSION = ("version", "--format", "{{.Server.Version}}")


@dataclass(kw_only=True)
class ConnectedMachine:
    """A machine, with a connection to the Docker engine."""

    name: str
    address: str  # address at which the other machines reach this machine
    engine: Sequence[str]  # docker arguments that select the machine's engine
    link: process.Child | None = None  # ssh process that forwards the engine's socket
    log: Path | None = None
    lost: str | None = None  # why the machine is lost; None while it is reachable

    def lose(self, how: str) -> MachineLostError:
        """Mark the machine as lost and return the error. Later calls then fail at once instead of waiting."""
        self.lost = how
        return MachineLostError(how)

    def require_reachable(self, settle: float = 0.0) -> None:
        """Raise MachineLostError if the machine is lost, or if the ssh session ends within ``settle`` seconds."""
        if self.link is not None and self.link.wait(settle) is not None:
            output = process.tail(self.log, 3).strip() if self.log else ""
            raise self.lose(f"the machine {self.name} is lost: the ssh session ended ({output or 'without a message'})")
        if self.lost is not None:
            raise MachineLostError(self.lost)

    def require_response(self) -> None:
        """Send a request to the engine. Raises MachineLostError if there is no response."""
        self.require_reachable()
        done = self.docker(*VERSION)
        if done.status != 0:
            raise self.lose(f"the engine of the machine {self.name} does not respond: {done.stdout.strip()[-200:]}")

    def docker(self, *arguments: str, seconds: float = CALL_SECONDS) -> process.CompletedCommand:
        """Run a docker command on the machine's engine. Raises MachineLostError if the engine does not respond."""
        if self.lost is not None:
            raise MachineLostError(self.lost)
        try:
            completed = docker(*arguments, seconds=seconds, at=self.engine)
        except process.CommandTimeoutError as error:
            self.require_reachable()
            raise self.lose(f"the engine of the machine {self.name} has not responded for {seconds:.0f} s") from error
        if completed.status != 0:
            self.require_reachable(SETTLE_SECONDS)
        return completed

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a long-running docker command on the machine's engine."""
        return ["docker", *self.engine, *arguments]

    def end(self, child: process.Child) -> None:
        """Stop a long-running docker command, unless it exits within a second."""
        if self.lost is None:
            child.wait(1.0)
        # If the engine is lost, the docker client may never exit, so do not wait long.
        child.stop(grace=0.1 if self.lost else process.STOP_SECONDS)

    def send(self, image: str) -> None:
        """Send a local image to the machine, unless the engine there already has the same image."""
        here, there = (inspect("image", image, engine) for engine in ((), self.engine))
        if here and there and there["Id"] == here["Id"]:
            return
        load = f"{shlex.join(['docker', 'save', image])} | {shlex.join(self.command('load', '--quiet'))}"
        done = process.run(["sh", "-c", load], seconds=900, env=client_environment())
        if done.status != 0:
            self.require_reachable()
            output = done.stdout.strip()[-300:] or "no response"
            raise EnvironmentLacksError(f"cannot send the image {image} to {self.name}: {output}")
        logger.info("sent %s to %s", image, self.name)


@contextmanager
def reached(host: Host, folder: Path, *, needs_address: bool = True) -> Iterator[ConnectedMachine]:
    """Connect to a machine, forward the engine's socket, and yield the machine.

    If other machines must reach the machine (``needs_address``), a host given as a Docker context must include an
    address. Raises UsageError if the address is missing, EnvironmentLacksError with a remedy if the machine cannot be
    used, or MachineLostError if the engine does not respond.
    """
    if host.reached_by == "context":
        if host.address is None and needs_address:
            raise UsageError(f"{host.text}: other machines need an address for this host: write {host.text}=ADDRESS")
        machine = ConnectedMachine(name=host.text, address=host.address or "", engine=("--context", host.name))
        machine.require_response()
        yield machine
        return
    log = folder / f"ssh-{re.sub(r'[^A-Za-z0-9.-]', '-', host.name)}.log"
    with ownership.make_scratch_folder("ssh") as scratch:
        path = scratch / "d.sock"  # a short name, because socket paths are limited to 107 bytes
        port = ("-p", str(host.port)) if host.port else ()
        command = [*SSH, *configuration(), *port, "-L", f"{path}:{SOCKET}", host.name]
        with safe_write.append(log, private=True) as output:
            link = process.Child(command, stdout=output)
        with process.running(link):
            _await_engine(host.text, link, path, log)
            address = host.address or _address(host)
            yield ConnectedMachine(name=host.text, address=address, engine=("-H", f"unix://{path}"), link=link, log=log)


def configuration() -> Sequence[str]:
    """Return the ssh arguments that select the file in TFB_SSH_CONFIG, or no arguments if the variable is unset."""
    path = os.environ.get("TFB_SSH_CONFIG")
    return ("-F", str(Path(path).absolute())) if path else ()


def _address(host: Host) -> str:
    """Return the host name that the ssh configuration defines for ``host.name``."""
    done = process.run(["ssh", "-G", *configuration(), host.name], seconds=CALL_SECONDS)
    match = re.search(r"^hostname (\S+)$", done.stdout, re.MULTILINE)
    return match[1] if match else host.name.rpartition("@")[2]


def _await_engine(name: str, link: process.Child, path: Path, log: Path) -> None:
    """Wait until the engine responds through the forwarded socket. Raises EnvironmentLacksError if it does not."""
    deadline = time.monotonic() + OPEN_SECONDS
    while time.monotonic() < deadline and link.wait(0.02) is None:
        if path.exists():
            completed = docker(*VERSION, seconds=OPEN_SECONDS, at=("-H", f"unix://{path}"))
            if completed.status == 0:
                return
            raise EnvironmentLacksError(
                f"{name} is reachable over ssh, but no Docker engine responds on {SOCKET} "
                f"({completed.stdout.strip()[-200:]}): start the engine, add the user to the docker group, or set "
                "AllowStreamLocalForwarding yes in sshd_config"
            )
    output = process.tail(log, 4).strip()
    raise EnvironmentLacksError(
        f"{name} cannot be reached over ssh ({output or 'no response'}). Check the host name and accept the host key; "
        f"test with: ssh -o BatchMode=yes {name}"
    )
