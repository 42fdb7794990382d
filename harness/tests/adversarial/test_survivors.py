"""Attack: a server's processes try to keep running after tfb has exited."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from harness.host import leftovers, ownership, spawn
from harness.paths import REPOSITORY
from harness.tests.host.test_leftovers import dead

ORDINARY = 60570  # a UID without an account
GONE_SECONDS = 15.0
LISTED_SECONDS = 4.0  # longer than the three seconds between two scans of the guardian
# A minimal harness that starts a server as a run does, and then waits.
HARNESS = """
import sys, time
from contextlib import ExitStack
from pathlib import Path
from harness.host import accounts, process
with ExitStack() as stack:
    pool = accounts.server_accounts(None)
    account = stack.enter_context(pool.account("server")) if pool else None
    options = process.ProcessOptions(env={"PATH": "/usr/bin:/bin"}, account=account, isolated=True)
    process.Child(sys.argv[1:], options)
    print("started", flush=True)
    sys.stdin.readline()
    process.stop_all()
"""
NOTE = "open(sys.argv[1] + '/' + str(os.getpid()), 'w').close()"  # Python code that records the PID of its process
SLEEPER = f"import os, sys, time; {NOTE}; time.sleep(600)"
WITHOUT_ENVIRONMENT = f"os.execve(sys.executable, [sys.executable, '-c', {SLEEPER!r}, sys.argv[1]], {{}})"
DAEMON = f"""
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 1000)
        {WITHOUT_ENVIRONMENT}
    os._exit(0)
os.wait()
{NOTE}
time.sleep(600)
"""
NAMED = f"""
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, b"postgres", 0, 0, 0)
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # adopts its own orphans
if os.fork() == 0:
    os.setsid()
    {WITHOUT_ENVIRONMENT}
{NOTE}
time.sleep(600)
"""
HANDS_ON = """
import os, sys, time
os.setsid() if os.getpid() != os.getsid(0) else None
until = time.monotonic() + 600
while time.monotonic() < until:
    if os.fork():
        os._exit(0)
    open(sys.argv[1] + '/last', 'w').write(str(os.getpid()))
    time.sleep(0.02)
"""
# A Perl program whose title overwrites the arguments and the environment in memory.
TITLE = """
open(my $f, '>', "$ARGV[0]/$$"); close $f; $0 = 'x' x 20000; sleep 600
"""
SERVERS = {
    "without-environment": [sys.executable, "-c", f"import os, sys; {WITHOUT_ENVIRONMENT}"],
    "daemon": [sys.executable, "-c", DAEMON],
    "another-name": [sys.executable, "-c", NAMED],
    "hands-on": [sys.executable, "-c", HANDS_ON],
    "long-title": ["perl", "-e", TITLE],
}


@dataclass(kw_only=True)
class SurvivorScene:
    """The folder for temporary files, and the folder in which a server's processes record their PIDs."""

    temporary: Path
    noted: Path
    user: tuple[str, ...]  # command prefix that switches to the user that runs tfb

    def start(self, name: str) -> "subprocess.Popen[bytes]":
        """Start the minimal harness with a server and wait until the server runs."""
        harness = subprocess.Popen(
            [*self.user, sys.executable, "-c", HARNESS, *SERVERS[name], str(self.noted)],
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        assert harness.stdout.readline() == b"started\n"
        wait_until(lambda: bool(self.processes()))
        time.sleep(0.5)
        assert self.lives()
        return harness

    def lives(self) -> bool:
        """Return whether a server process exists within two seconds, because a killed process may start another."""
        return wait_until(lambda: bool(self.processes()), 2.0)

    def ends(self) -> bool:
        """Return whether all server processes exit and start no others."""
        return wait_until(lambda: not self.processes()) and not self.lives()

    def environment(self) -> dict[str, str]:
        state = str(self.temporary / "state")
        return {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(self.temporary), "TFB_STATE": state}

    def processes(self) -> set[int]:
        """Return the recorded processes that are alive."""
        pids = {int(path.name) for path in self.noted.iterdir() if path.name.isdecimal()}
        last = self.noted / "last"
        if last.exists() and (text := last.read_text()):
            pids.add(int(text))
        return {pid for pid in pids if alive(pid)}

    def clean(self) -> None:
        """Run ``./tfb clean`` as the user that runs tfb."""
        command = [*self.user, sys.executable, "-m", "harness", "clean", "--leftovers", "--yes"]
        subprocess.run(command, env=self.environment(), check=True, capture_output=True, timeout=120)


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = GONE_SECONDS) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def guardian_of(harness: "subprocess.Popen[bytes]") -> int:
    (found,) = (each for each in psutil.Process(harness.pid).children() if "guardian.py" in " ".join(each.cmdline()))
    return found.pid


@pytest.fixture(params=["root", "ordinary"])
def world(request: pytest.FixtureRequest) -> Iterator[SurvivorScene]:
    ordinary = request.param == "ordinary"
    if os.geteuid() != 0 and not ordinary:
        pytest.skip("needs root")
    place = Path(tempfile.mkdtemp(prefix="tfb-survivors-"))
    place.chmod(0o755)
    user: tuple[str, ...] = ()
    if os.geteuid() == 0 and ordinary:
        rights = "+dac_read_search"  # the Python interpreter may be in a folder that only root can enter
        user = ("setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", f"--inh-caps={rights}")
        user = (*user, f"--ambient-caps={rights}", "--")
    scene = SurvivorScene(temporary=place / "tmp", noted=place / "noted", user=user)
    for folder in (scene.temporary, scene.noted):
        folder.mkdir()
        folder.chmod(0o777)
    yield scene
    for pid in scene.processes():
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(place, ignore_errors=True)


def kill_both(harness: "subprocess.Popen[bytes]") -> None:
    """Kill tfb and its guardian. Stop both first, so that neither notices that the other was killed."""
    pids = (guardian_of(harness), harness.pid)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
    harness.wait()


@pytest.mark.parametrize("name", SERVERS)
def test_killing_tfb_ends_all_server_processes(name: str, world: SurvivorScene) -> None:
    harness = world.start(name)
    harness.kill()
    harness.wait()
    assert world.ends(), world.processes()
    assert wait_until(lambda: not list(world.temporary.glob("tfb-scratch-*")))


# A server that forks endlessly. Only a separate UID allows tfb to kill all of its processes at once.
ENDLESS = "hands-on"


@pytest.mark.parametrize("name", sorted({*SERVERS} - {ENDLESS}))
def test_clean_ends_what_outlived_tfb_and_guardian(name: str, world: SurvivorScene) -> None:
    require_clean_end(name, world)


@pytest.mark.parametrize("world", ["root"], indirect=True)
def test_clean_ends_an_endlessly_forking_process(world: SurvivorScene) -> None:
    require_clean_end(ENDLESS, world)


def require_clean_end(name: str, world: SurvivorScene) -> None:
    """Kill tfb and the guardian. Assert that ``./tfb clean`` then kills the server's processes."""
    harness = world.start(name)
    time.sleep(LISTED_SECONDS)
    kill_both(harness)
    assert world.lives()
    world.clean()
    assert world.ends(), world.processes()
    assert not list(world.temporary.glob("tfb-scratch-*"))


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_killing_the_guardian_leaves_no_servers(name: str, world: SurvivorScene) -> None:
    harness = world.start(name)
    os.kill(guardian_of(harness), signal.SIGKILL)
    time.sleep(0.2)
    assert world.lives()
    harness.communicate(b"\n", timeout=60)
    assert harness.returncode == 0
    assert world.ends(), world.processes()


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away needs root")
def test_another_user_s_list_names_only_own_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attacker's folder lists a root-owned process as a leftover. This process must survive."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as victim:
        forged = tmp_path / f"{ownership.SCRATCH_PREFIX}guardian-forged"
        forged.mkdir()
        (forged / ownership.OWNER_FILE).write_text(dead())
        (forged / spawn.LEDGER_FILE).write_text(f"{victim.pid} {ownership.process_start(victim.pid)}\n")
        for path in (forged, *forged.iterdir()):
            os.chown(path, ORDINARY, ORDINARY)
        assert f"pid {victim.pid}" not in " ".join(map(str, leftovers.local_leftovers()))
        victim.kill()
