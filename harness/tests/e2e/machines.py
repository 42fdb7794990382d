"""Machines made of namespaces, each with an sshd and a Docker engine of its own; root, sshd and Docker are needed.

A bridge in a network namespace joins them. A machine is a process tree with mount, host-name, process and network
namespaces of its own and a tmpfs on /run, so that default paths are as on real hosts. The tests' own side (the laptop)
is a network namespace alone, with this machine's engine, which builds.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.host import process
from harness.paths import REPOSITORY

NAMES = ("app", "db", "c1", "c2")
UP_SECONDS = 30.0
NODE = """set -e
hostname {name}
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd
mount --bind {folder}/{name}/docker /var/lib/docker
mkdir -p /var/lib/containerd && mount --bind {folder}/{name}/containerd /var/lib/containerd
/usr/sbin/sshd -f {folder}/{name}/sshd -E {folder}/{name}/sshd.log
exec /usr/sbin/dockerd --bridge=none --iptables=false --ip6tables=false --cgroup-parent=/tfb-{tag}-{name} \\
    --host unix:///run/docker.sock
"""


def obstacle() -> str | None:
    """Why there can be no such machines here, in a word; None where there can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    for program in ("/usr/sbin/sshd", "/usr/sbin/dockerd", "ip", "nsenter", "unshare", "ssh-keygen"):
        if shutil.which(program) is None:
            return f"{program} is missing: apt-get install openssh-server iproute2 util-linux, and a Docker engine"
    made = subprocess.run(["ip", "netns", "add", "tfb-probe"], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", "tfb-probe"], capture_output=True, check=False)
    return None if made.returncode == 0 else "no network namespace can be made here"


@dataclass(kw_only=True)
class Lab:
    """The machines; names are those of the ssh configuration."""

    folder: Path
    tag: str
    nodes: dict[str, process.Child] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Of the laptop."""
        return {**os.environ, "TFB_SSH_CONFIG": str(self.folder / "ssh"), "PYTHONPATH": str(REPOSITORY)}

    def namespace(self, name: str) -> str:
        """Network namespace of a machine."""
        return f"tfb-{self.tag}-{name}"

    def laptop(self, *arguments: str) -> list[str]:
        """A command on the laptop."""
        return ["nsenter", f"--net=/run/netns/{self.namespace('laptop')}", *arguments]

    def tfb(self, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
        """./tfb on the laptop."""
        words = self.laptop(sys.executable, "-m", "harness", *arguments)
        return subprocess.run(
            words, cwd=REPOSITORY, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False
        )

    def docker(self, name: str, *arguments: str) -> str:
        """What a docker command prints on a machine's own engine; nothing before the machine is up."""
        if (pid := self.inner(name)) is None:
            return ""
        words = ["nsenter", f"--mount=/proc/{pid}/ns/mnt", "docker", *arguments]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()

    def inner(self, name: str) -> int | None:
        """Process id, seen from here, of a machine's first process, the child of unshare; None before there is one."""
        pid = self.nodes[name].pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def link(self, name: str, state: str) -> None:
        """Take a machine's link down, or up again."""
        _ip("link", "set", f"{name}{self.tag}", state, namespace=self.namespace("hub"))


@contextmanager
def machines(names: Sequence[str] = NAMES) -> Iterator[Lab]:
    """Up until the end of the block; everything is taken down again."""
    folder = Path(tempfile.mkdtemp(prefix="tfb-lab-"))
    lab = Lab(folder=folder, tag=f"{os.getpid() % 100000:05d}")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(_remove_groups, lab.tag)
        for kind in ("host", "user", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / kind)], check=True)
        _network(lab, names, stack)
        _configure(lab, names)
        for name in names:
            stack.enter_context(_node(lab, name))
        _await(lab, names)
        yield lab


def _ip(*words: str, namespace: str | None = None) -> None:
    inside = ["-n", namespace] if namespace else []
    done = subprocess.run(["ip", *inside, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


def _network(lab: Lab, names: Sequence[str], stack: ExitStack) -> None:
    hub = lab.namespace("hub")
    for name in ("hub", "laptop", *names):
        _ip("netns", "add", lab.namespace(name))
        stack.callback(_ip, "netns", "delete", lab.namespace(name))
        _ip("link", "set", "lo", "up", namespace=lab.namespace(name))
    _ip("link", "add", "br0", "type", "bridge", namespace=hub)
    _ip("link", "set", "br0", "up", namespace=hub)
    for number, name in enumerate(("laptop", *names), 1):
        own = lab.namespace(name)
        end = f"{name}{lab.tag}"
        _ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", own, namespace=hub)
        _ip("link", "set", end, "master", "br0", "up", namespace=hub)
        _ip("address", "add", f"10.99.0.{number}/24", "dev", "eth0", namespace=own)
        _ip("link", "set", "eth0", "up", namespace=own)


def _configure(lab: Lab, names: Sequence[str]) -> None:
    folder = lab.folder
    key = (folder / "host.pub").read_text()
    blocks = [f"Host {name}\n HostName 10.99.0.{number}\n" for number, name in enumerate(names, 2)]
    common = f"Host *\n User root\n IdentityFile {folder}/user\n IdentitiesOnly yes\n StrictHostKeyChecking yes\n"
    (folder / "ssh").write_text("".join(blocks) + common + f" UserKnownHostsFile {folder}/known\n")
    (folder / "known").write_text("".join(f"10.99.0.{number} {key}" for number, _ in enumerate(names, 2)))
    shutil.copy(folder / "user.pub", folder / "authorized")
    for name in names:
        (folder / name / "docker").mkdir(parents=True)
        (folder / name / "containerd").mkdir()
        (folder / name / "sshd").write_text(
            f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nPidFile none\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        )
        (folder / name / "start").write_text(NODE.format(name=name, folder=folder, tag=lab.tag))


@contextmanager
def _node(lab: Lab, name: str) -> Iterator[None]:
    words = ["nsenter", f"--net=/run/netns/{lab.namespace(name)}", "unshare", "--mount", "--uts", "--ipc", "--pid"]
    words += ["--fork", "--mount-proc", "--kill-child", "sh", str(lab.folder / name / "start")]
    with (lab.folder / name / "log").open("wb") as log:
        child = process.Child(words, stdout=log)
    lab.nodes[name] = child
    with process.running(child, grace=0.1):  # the first process of a namespace hears no SIGTERM
        yield


def _await(lab: Lab, names: Sequence[str]) -> None:
    until = time.monotonic() + UP_SECONDS
    for name in names:
        while not lab.docker(name, "version", "--format", "{{.Server.Version}}"):
            assert lab.nodes[name].poll() is None, (lab.folder / name / "log").read_text()[-2000:]
            assert time.monotonic() < until, (
                f"{name}: its engine is not up; {(lab.folder / name / 'log').read_text()[-2000:]}"
            )
            time.sleep(0.1)


def _remove_groups(tag: str) -> None:
    """Control groups of version 1 that the engines have left, leaves first."""
    for pattern in (f"tfb-{tag}-*", f"*/tfb-{tag}-*"):
        for folder in Path("/sys/fs/cgroup").glob(pattern):
            for each in sorted((folder, *folder.glob("**/")), key=lambda path: -len(path.parts)):
                with contextlib.suppress(OSError):
                    each.rmdir()
