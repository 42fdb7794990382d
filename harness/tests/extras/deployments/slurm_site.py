"""A Slurm of the test's own: munged, slurmctld and nodes that are process trees with namespaces of their own."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.cli.check import NOT_JUDGED
from harness.experiment.heartbeat import beats
from harness.host import process
from harness.runtime.database.embedded import free_port

UP_SECONDS = 120.0
PARTITION = "lab"
CONFIGURATION = """ClusterName=tfb
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
StateSaveLocation={folder}/state
SlurmUser=root
SlurmdUser=root
SlurmdPidFile={folder}/%n/pid
SlurmdSpoolDir={folder}/%n
SlurmdLogFile={folder}/%n.log
SlurmdTimeout=10
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
MailProg=/bin/true
ReturnToService=2
KillWait=5
MaxArraySize={array_size}
{nodes}
PartitionName={partition} Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def obstacle() -> str | None:
    """Why there can be no Slurm here, in a word; None where there can."""
    if os.geteuid() != 0:
        return f"{NOT_JUDGED}nodes of a Slurm made of namespaces need root"
    for program in ("munged", "slurmctld", "slurmd", "sbatch", "unshare"):
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
            return f"{program} is not here: apt-get install slurm-wlm munge util-linux"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], check=False)
    return None if tried.returncode == 0 else f"{NOT_JUDGED}no process namespace can be made here"


@dataclass(kw_only=True)
class SlurmSite:
    """One that runs; SLURM_CONF in ``environment`` leads its commands to it."""

    folder: Path
    stack: ExitStack
    nodes: dict[str, process.Child] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What its commands need."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def ask(self, *words: str) -> str:
        """What one of its commands prints; nothing where the controller does not answer."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False).stdout.strip()

    def start(self, name: str) -> None:
        """Switch a node on; the shell collects what its daemon leaves."""
        words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c"]
        with (self.folder / f"{name}.out").open("ab") as log:
            child = process.Child(
                [*words, f"slurmd -D -N {name}; exit"], env={**os.environ, **self.environment}, stdout=log
            )
        self.nodes[name] = child
        self.stack.enter_context(process.running(child, grace=0.1))

    def kill(self, name: str) -> None:
        """End a node with all that runs on it, as when its power fails."""
        self.nodes[name].kill()
        self.nodes[name].wait(UP_SECONDS)

    def running_on(self, name: str) -> str:
        """The job that a node has."""
        return self.ask("squeue", "--noheader", "--states=R", f"--nodelist={name}", "--format=%A")

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """What Slurm has put back into its queue begins at once, not after its two minutes."""

        def hurry(_seconds: float) -> None:
            for job in self.ask("squeue", "--noheader", "--array", "--states=PD", "--format=%A %r").splitlines():
                if job.split()[-1] == "BeginTime":
                    self.ask("scontrol", "update", f"JobId={job.split()[0]}", "StartTime=now")

        with beats(hurry, every=0.5):
            yield

    def await_idle(self, names: Sequence[str]) -> None:
        """Until these nodes take jobs."""
        until = time.monotonic() + UP_SECONDS
        while set(self.ask("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N").split()) != set(names):
            logs = "".join(path.read_text()[-1000:] for path in self.folder.glob("*.log"))
            assert time.monotonic() < until, f"Slurm's nodes are not up: {logs}"
            time.sleep(0.1)


@contextmanager
def slurm_site(names: Sequence[str], *, array_size: int = 1001) -> Iterator[SlurmSite]:
    """Up until the end of the block; ``array_size`` is its MaxArraySize."""
    folder = Path(tempfile.mkdtemp(prefix="tfb-slurm-"))  # a short path: it holds a socket
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for name in ("state", *names):
            (folder / name).mkdir()
        host = socket.gethostname().split(".")[0]
        lines = [f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=1" for name in names]
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=host, port=free_port(), folder=folder, array_size=array_size, nodes="\n".join(lines),
                names=",".join(names), partition=PARTITION,
            )
        )  # fmt: skip
        site = SlurmSite(folder=folder, stack=stack)
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o600)
        files = [f"--{kind}={folder}/{file}" for kind, file in MUNGED.items()]
        _daemon(site, "munged", "--foreground", "--force", *files)
        until = time.monotonic() + UP_SECONDS
        while not (folder / "munge.socket").exists():
            assert time.monotonic() < until, (folder / "munged.out").read_text()
            time.sleep(0.05)
        _daemon(site, "slurmctld", "-D", "-c")
        for name in names:
            site.start(name)
        site.await_idle(names)
        try:
            yield site
        finally:
            with suppress(OSError):
                site.ask("scancel", f"--partition={PARTITION}", "--signal=KILL")


MUNGED = {
    "key-file": "key", "socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log", "seed-file": "seed",
}  # fmt: skip


def _daemon(site: SlurmSite, *words: str) -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    with (site.folder / f"{words[0]}.out").open("wb") as log:
        child = process.Child(words, env={**os.environ, "PATH": path, **site.environment}, stdout=log)
    site.stack.enter_context(process.running(child, first=signal.SIGTERM))
