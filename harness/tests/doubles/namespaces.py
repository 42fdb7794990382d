"""Simulated machines: namespaces with an sshd and a Docker engine each. They require root, sshd and Docker.

Each machine is a process tree with its own mount, host-name, process and network namespaces. A tmpfs on /run lets
default paths work as on real hosts. A bridge in another network namespace connects the machines. Tests run on the
"laptop", which is only a network namespace and builds images with this machine's engine.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.cli.scans import NOT_JUDGED
from harness.errors import StartError
from harness.host import process
from harness.paths import REPOSITORY

NAMES = ("app", "db", "c1", "c2")
UP_SECONDS = 60.0
NODE = """set -e
hostname {name}
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd
if [ -n "{disk}" ] || [ "$(stat -f -c %T {folder})" = overlayfs ]; then  # engines cannot store layers on an overlay
  mount -t tmpfs -o size={disk} tmpfs {folder}/{name}/docker 2>/dev/null || mount -t tmpfs tmpfs {folder}/{name}/docker
fi
mount --bind {folder}/{name}/docker /var/lib/docker
mkdir -p /var/lib/containerd && mount --bind {folder}/{name}/containerd /var/lib/containerd
/usr/sbin/sshd -f {folder}/{name}/sshd -E {folder}/{name}/sshd.log
exec /usr/sbin/dockerd --bridge=none --iptables=false --ip6tables=false --cgroup-parent=/tfb-{tag}-{name} \\
    --host unix:///run/docker.sock
"""


def obstacle() -> str | None:
    """Return why the machines cannot be created here, or None if they can.

    Missing privileges do not fail ``./tfb check``, because installing a package would not help.
    """
    if os.geteuid() != 0:
        return f"{NOT_JUDGED}machines made of namespaces need root"
    for program in ("/usr/sbin/sshd", "/usr/sbin/dockerd", "ip", "nsenter", "unshare", "ssh-keygen"):
        if shutil.which(program) is None:
            return f"{program} is missing: apt-get install openssh-server iproute2 util-linux, and a Docker engine"
    made = subprocess.run(["ip", "netns", "add", "tfb-probe"], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", "tfb-probe"], capture_output=True, check=False)
    return None if made.returncode == 0 else f"{NOT_JUDGED}no network namespace can be made here"


@dataclass(kw_only=True)
class Lab:
    """The simulated machines by name. The names are hosts in the ssh configuration."""

    folder: Path
    tag: str
    stack: ExitStack  # stops all processes on exit
    nodes: dict[str, process.Child] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for commands on the laptop."""
        return {**os.environ, "TFB_SSH_CONFIG": str(self.folder / "ssh"), "PYTHONPATH": str(REPOSITORY)}

    def namespace(self, name: str) -> str:
        """Return the name of a machine's network namespace."""
        return f"tfb-{self.tag}-{name}"

    def laptop(self, *arguments: str) -> list[str]:
        """Return a command that runs ``arguments`` on the laptop."""
        return ["nsenter", f"--net=/run/netns/{self.namespace('laptop')}", *arguments]

    def tfb(self, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
        """Run ./tfb on the laptop."""
        words = self.laptop(sys.executable, "-m", "harness", *arguments)
        return subprocess.run(
            words, cwd=REPOSITORY, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False
        )

    def docker(self, name: str, *arguments: str) -> str:
        """Return the output of docker on a machine's engine, or "" if the machine is down."""
        if (pid := self.inner(name)) is None:
            return ""
        words = ["nsenter", f"--mount=/proc/{pid}/ns/mnt", "docker", *arguments]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()

    def inner(self, name: str) -> int | None:
        """Return the PID on the host of a machine's init process, or None if the process does not exist yet."""
        pid = self.nodes[name].pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def start(self, name: str) -> None:
        """Start a machine. Its disk keeps its contents across restarts."""
        words = ["nsenter", f"--net=/run/netns/{self.namespace(name)}", "unshare", "--mount", "--uts", "--ipc"]
        words += ["--pid", "--fork", "--mount-proc", "--kill-child", "sh", str(self.folder / name / "start")]
        with (self.folder / name / "log").open("ab") as log:
            child = process.Child(words, stdout=log)
        self.nodes[name] = child
        self.stack.enter_context(process.running(child, grace=0.1))  # a namespace's init process ignores SIGTERM

    def kill(self, name: str) -> None:
        """Kill all processes of a machine. Unlike after a power failure, the kernel closes all connections."""
        inner = self.inner(name)
        self.nodes[name].kill()
        if inner is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(inner, signal.SIGKILL)
        self.nodes[name].wait(UP_SECONDS)

    def hang(self, name: str) -> None:
        """Suspend a machine's engine. Connections stay open and containers keep running."""
        self._signal_engine(name, signal.SIGSTOP)

    def wake(self, name: str) -> None:
        """Resume a suspended engine."""
        self._signal_engine(name, signal.SIGCONT)

    def _signal_engine(self, name: str, number: signal.Signals) -> None:
        inner = self.inner(name)
        if inner is None:
            raise StartError(f"{name} is not up")
        os.kill(inner, number)  # a machine's init process is its engine

    def await_up(self, *names: str) -> None:
        """Wait until these machines' engines respond."""
        until = time.monotonic() + UP_SECONDS
        for name in names:
            log = self.folder / name / "log"
            while not self.docker(name, "version", "--format", "{{.Server.Version}}"):
                if self.nodes[name].poll() is not None or time.monotonic() > until:
                    raise StartError(f"{name}: its engine is not up: {log.read_text()[-2000:]}")
                time.sleep(0.1)

    def link(self, name: str, state: str) -> None:
        """Set a machine's network link "up" or "down"."""
        _ip("link", "set", f"{name}{self.tag}", state, namespace=self.namespace("hub"))


@contextmanager
def machines(names: Sequence[str] = NAMES, *, disk: str = "", tag: str = "") -> Iterator[Lab]:
    """Run the machines, and remove them when the context exits.

    ``disk`` is the size of each engine's disk, in the syntax of mount. By default, engines share this machine's disk.
    """
    folder = Path(tempfile.mkdtemp(prefix="tfb-lab-"))
    with ExitStack() as stack:
        lab = Lab(folder=folder, tag=tag or f"{os.getpid() % 100000:05d}", stack=stack)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(_remove_groups, lab.tag)
        for kind in ("host", "user", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / kind)], check=True)
        _network(lab, names, stack)
        _configure(lab, names, disk)
        for name in names:
            lab.start(name)
        lab.await_up(*names)
        yield lab


def _ip(*words: str, namespace: str | None = None) -> None:
    inside = ["-n", namespace] if namespace else []
    completed = subprocess.run(["ip", *inside, *words], capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        raise StartError(f"ip {' '.join(words)}: {completed.stderr}")


def _network(lab: Lab, names: Sequence[str], stack: ExitStack) -> None:
    hub = lab.namespace("hub")
    for name in ("hub", "laptop", *names):
        _ip("netns", "add", lab.namespace(name))
        stack.callback(_ip, "netns", "delete", lab.namespace(name))
        _ip("link", "set", "lo", "up", namespace=lab.namespace(name))
    _ip("link", "add", "br0", "type", "bridge", namespace=hub)
    _ip("link", "set", "br0", "up", namespace=hub)
    for number, name in enumerate(("laptop", *names), 1):
        namespace = lab.namespace(name)
        end = f"{name}{lab.tag}"
        _ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", namespace, namespace=hub)
        _ip("link", "set", end, "master", "br0", "up", namespace=hub)
        _ip("address", "add", f"10.99.0.{number}/24", "dev", "eth0", namespace=namespace)
        _ip("link", "set", "eth0", "up", namespace=namespace)


def _configure(lab: Lab, names: Sequence[str], disk: str) -> None:
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
        (folder / name / "start").write_text(NODE.format(name=name, folder=folder, tag=lab.tag, disk=disk))


def _remove_groups(tag: str) -> None:
    """Remove control groups (version 1) that the engines left behind, innermost first."""
    for pattern in (f"tfb-{tag}-*", f"*/tfb-{tag}-*"):
        for folder in Path("/sys/fs/cgroup").glob(pattern):
            for each in sorted((folder, *folder.glob("**/")), key=lambda path: -len(path.parts)):
                with contextlib.suppress(OSError):
                    each.rmdir()
