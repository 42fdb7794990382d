"""A Docker engine of the suite's own whose disk can be made full: its data root is a tmpfs, shrunk to what it holds.

It has a socket, a data root and a containerd of its own, so that the machine's engine and who uses it are not harmed.
Its images come from the machine's engine; those of the run itself (database, generators) are not built again: a client
first on PATH answers as a build that finds everything in its cache.
"""

import atexit
import ipaddress
import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil

from harness.faults.promises import CannotBeProducedError
from harness.faults.scene import Scene
from harness.host import process
from harness.runtime import compose
from harness.runtime.docker import BASE, DATABASE_IMAGE, LOADGEN_IMAGE, WRK_IMAGE

DATA_ROOT_SIZE = "4g"  # of memory at most: the images take half a gigabyte
UP_SECONDS, DOWN_SECONDS = 60.0, 30.0
IMAGES = (BASE, DATABASE_IMAGE, WRK_IMAGE, LOADGEN_IMAGE)
BUILT = (compose.DATABASE, compose.WRK, compose.LOADGEN)
FILLER = "filler"
# Networks for examples and trials (RFC 5737, RFC 2544): a machine may have one of them all the same.
NETWORKS = ("198.51.100.0/30", "203.0.113.0/30", "198.18.0.0/30", "192.0.2.0/30")

_running: list["OwnEngine"] = []


def free_network() -> ipaddress.IPv4Network:
    """One for the bridge that overlaps none of this machine's: another's gateway would be taken for the bridge."""
    ours = [
        ipaddress.ip_network(f"{address.address}/{address.netmask}", strict=False)
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family == socket.AF_INET and address.netmask
    ]
    for network in map(ipaddress.IPv4Network, NETWORKS):
        if not any(network.overlaps(known) for known in ours):
            return network
    raise CannotBeProducedError(f"every one of the networks {', '.join(NETWORKS)} is in use here")


class OwnEngine:
    """The engine while it runs."""

    def __init__(self) -> None:
        if os.geteuid() != 0 or (dockerd := shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin")) is None:
            raise CannotBeProducedError("an engine of one's own needs root and dockerd")
        self._stack = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="faults-engine-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.root = self.folder / "root"
        self.address = f"unix://{self.folder}/socket"
        try:
            self._start(dockerd)
        except BaseException:
            self.close()
            raise

    def _start(self, dockerd: str) -> None:
        self.root.mkdir()
        made = self._mount("-t", "tmpfs", "-o", f"size={DATA_ROOT_SIZE}", "tmpfs", str(self.root))
        if made.returncode != 0:
            raise CannotBeProducedError(f"no file system can be mounted here: {made.stderr.strip()}")
        for mount in (self.root, self.folder / "exec" / "netns" / "default"):  # the second is dockerd's own
            self._stack.callback(subprocess.run, ["umount", "--lazy", str(mount)], check=False, capture_output=True)
        words = [dockerd, "--host", self.address, "--data-root", str(self.root), "--exec-root", f"{self.folder}/exec"]
        words += ["--pidfile", f"{self.folder}/pid", f"--cgroup-parent=/{self.folder.name}"]
        words += [f"--bridge={self._bridge()}", "--iptables=false", "--ip6tables=false"]
        with (self.folder / "log").open("wb") as log:
            self._stack.enter_context(process.running(process.Child(words, stdout=log), grace=DOWN_SECONDS))
        until = time.monotonic() + UP_SECONDS
        while not self.docker("version", "--format", "{{.Server.Version}}"):
            if time.monotonic() > until:
                raise CannotBeProducedError(f"no engine comes up here: {process.tail(self.folder / 'log', 3)}")
            time.sleep(0.1)
        images = subprocess.Popen([compose.client() or "docker", "save", *IMAGES], stdout=subprocess.PIPE)
        loaded = subprocess.run(
            [*self._client, "load", "--quiet"], stdin=images.stdout, check=False, stdout=subprocess.DEVNULL
        )
        if images.wait() or loaded.returncode:
            raise CannotBeProducedError(f"the machine's engine lacks one of {', '.join(IMAGES)}: a run makes them")

    def _bridge(self) -> str:
        """A bridge of its own, gone with it: an engine that is told to have none removes docker0, another's."""
        name = f"tfb{os.getpid()}"
        made = subprocess.run(["ip", "link", "add", "name", name, "type", "bridge"], check=False, capture_output=True)
        if made.returncode != 0:
            raise CannotBeProducedError(f"no bridge can be made here: {made.stderr.decode(errors='replace').strip()}")
        self._stack.callback(subprocess.run, ["ip", "link", "delete", name], check=False, capture_output=True)
        network = free_network()
        subprocess.run(["ip", "address", "add", f"{network[1]}/{network.prefixlen}", "dev", name], check=True)
        return name

    @property
    def _client(self) -> list[str]:
        return [compose.client() or "docker", "--host", self.address]

    @staticmethod
    def _mount(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["mount", *words], check=False, capture_output=True, text=True)

    def docker(self, *words: str) -> str:
        """What a docker command prints."""
        command = [*self._client, *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120).stdout.strip()

    def used_by(self, place: Scene) -> None:
        """The scene's commands find this engine."""
        folder = place.root / "bin"
        folder.mkdir()
        built = " | ".join(f'*" build {service} "*' for service in BUILT)
        client = f'#!/bin/sh\ncase " $* " in {built}) exit 0 ;; esac\nexec {compose.client()} "$@"\n'
        (folder / "docker").write_text(client, encoding="utf-8")
        (folder / "docker").chmod(0o755)
        place.runtime = "docker"
        place.environment |= {"DOCKER_HOST": self.address, "PATH": f"{folder}:{os.environ['PATH']}"}

    def limit(self, room: int) -> None:
        """Leave so many bytes of room on the disk."""
        disk = os.statvfs(self.root)
        size = (disk.f_blocks - disk.f_bfree) * disk.f_frsize + room
        if (done := self._mount("-o", f"remount,size={size}", str(self.root))).returncode != 0:
            raise CannotBeProducedError(f"the disk cannot be made smaller: {done.stderr.strip()}")

    def fill(self) -> None:
        """Leave no room at all."""
        self.limit(1 << 20)
        with (self.root / FILLER).open("ab", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                return

    def make_room(self) -> None:
        """As at the beginning."""
        (self.root / FILLER).unlink(missing_ok=True)
        self._mount("-o", f"remount,size={DATA_ROOT_SIZE}", str(self.root))

    def close(self) -> None:
        """End it with all that runs on it, and forget its disk."""
        for identity in self.docker("ps", "--all", "--quiet").split() if (self.folder / "pid").exists() else ():
            self.docker("rm", "--force", identity)
        self._stack.close()


def own_engine() -> OwnEngine:
    """The one of this process, with room on its disk; started when it is first asked for, ended with the process."""
    if not _running:
        _running.append(OwnEngine())
        atexit.register(_running[0].close)
    _running[0].make_room()
    return _running[0]
