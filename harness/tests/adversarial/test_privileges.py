"""Attack: a service runs code before tfb drops privileges, or it interferes with other servers."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.host import accounts, child_setup, process
from harness.host.process import Child, ProcessOptions, running
from harness.paths import REPOSITORY
from harness.runtime.local import LocalRuntime
from harness.tests.doubles.implementations import implementation
from harness.tests.host.test_leftovers import dead
from harness.tests.scene import script

as_root = pytest.mark.skipif(
    os.geteuid() != 0 or bool(accounts.account_obstacle()), reason="becoming an account needs root"
)
HELPERS = ("setpriv", "taskset", "env", "sh", "nproc", "git", "python3", "chrt", "initdb", "postgres", "sudo")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a service folder that all accounts can enter. Its programs record the UID under which they run."""
    place = Path(tempfile.mkdtemp(prefix="tfb-privileges-"))
    place.chmod(0o755)
    (place / "noted").mkdir(mode=0o777)
    (place / "noted").chmod(0o777)
    for name in HELPERS:
        script(place / "bin" / name, f'echo "{name} $(/usr/bin/id -u)" >> {place}/noted/helpers')
    script(place / "bin" / "server", "/usr/bin/id -u; /bin/grep Cap /proc/self/status")
    yield place
    shutil.rmtree(place)


@as_root
@pytest.mark.parametrize("path", ["./bin", "bin", "{folder}/bin", "./bin:/usr/bin:/bin", "bin::"])
def test_no_helper_comes_from_a_service_s_path(path: str, folder: Path) -> None:
    env = {"PATH": path.format(folder=folder), "HOME": str(folder)}
    with accounts.server_accounts(80).account("one") as account, (folder / "out").open("wb") as out:
        options = ProcessOptions(cwd=folder, env=env, account=account, cpus=[0], isolated=True)
        child = Child(["server"], options, stdout=out)
        with running(child):
            assert child.wait(20) == 0
    assert not (folder / "noted" / "helpers").exists()
    said = (folder / "out").read_text().splitlines()
    assert said[0] == str(account.uid)
    assert said[-5:-1] == [f"Cap{kind}:\t0000000000000404" for kind in ("Inh", "Prm", "Eff", "Bnd")]


@as_root
def test_empty_path_entries_run_unprivileged(folder: Path) -> None:
    shutil.copy(folder / "bin" / "server", folder / "server")
    with accounts.server_accounts(None).account("one") as account, (folder / "out").open("wb") as out:
        child = Child(["server"], ProcessOptions(cwd=folder, env={"PATH": ""}, account=account), stdout=out)
        with running(child):
            assert child.wait(20) == 0
    assert (folder / "out").read_text().splitlines()[0] == str(account.uid)


@as_root
@pytest.mark.parametrize("variable", ["LD_PRELOAD", "LD_AUDIT"])
def test_a_service_s_library_is_loaded_without_privileges(variable: str, folder: Path) -> None:
    """The library records the effective UID of every process that loads it."""
    source = folder / "spy.c"
    source.write_text(
        "#include <stdio.h>\n#include <unistd.h>\n"
        "unsigned la_version(unsigned v) { return v; }\n"
        "__attribute__((constructor)) static void note(void) {\n"
        f'  FILE *f = fopen("{folder}/noted/library", "a");\n'
        '  if (f) { fprintf(f, "%d\\n", geteuid()); fclose(f); }\n}\n'
    )
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "spy.so", source], check=True)
    with accounts.server_accounts(None).account("one") as account:
        completed = process.run(["true"], seconds=20, cwd=folder, env={variable: f"{folder}/spy.so"}, account=account)
    assert completed.status == 0
    assert set((folder / "noted" / "library").read_text().split()) == {str(account.uid)}


@as_root
def test_service_variables_reach_no_program_of_root(folder: Path) -> None:
    """The service sets PATH, a library search path and shell start-up files."""
    env = {
        "PATH": "./bin",
        "LD_LIBRARY_PATH": ".",
        "BASH_ENV": f"{folder}/rc",
        "ENV": f"{folder}/rc",
        "PYTHONPATH": ".",
    }
    (folder / "rc").write_text(f"echo rc $(/usr/bin/id -u) >> {folder}/noted/helpers\n")
    known = implementation(local={"run": [sys.executable, "-c", "import time; time.sleep(60)"], "env": env})
    object.__setattr__(known, "folder", folder)
    runtime = LocalRuntime(work=folder, pool=accounts.server_accounts(None), server_cpus=[0])
    with runtime.pool.account(known.name) as account:
        completed = process.run(["server"], seconds=20, cwd=folder, env=env, account=account)
    assert completed.stdout.splitlines()[0] == str(account.uid)
    noted = folder / "noted" / "helpers"
    assert not noted.exists() or " 0\n" not in noted.read_text()


@as_root
def test_servers_of_one_run_have_different_uids() -> None:
    pool = accounts.server_accounts(None)
    with pool.account("one") as one, pool.account("two") as two, pool.account("one") as second:
        assert len({one.uid, two.uid, second.uid, accounts.server_group()}) == 4
    with pool.account("one") as again:
        assert again == one  # a server keeps its UID, because that UID owns the files of its earlier processes


@as_root
def test_two_tfb_processes_never_share_a_uid() -> None:
    code = (
        "import sys; from harness.host import accounts\n"
        "with accounts.server_accounts(None).account('x') as a: print(a.uid, a.gid, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    others = [subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
    numbers = [int(word) for other in others for word in other.stdout.readline().split()]
    for other in others:
        other.communicate()
    assert len(set(numbers)) == 8


@as_root
def test_uids_of_running_processes_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    free = accounts.SERVER_UIDS[-3:]
    monkeypatch.setattr(accounts, "_lock_folder", lambda: tmp_path)
    monkeypatch.setattr(accounts, "SERVER_UIDS", free)
    with subprocess.Popen(["sleep", "60"], user=free[0], group=free[1]) as stranger:
        assert accounts.allocate_uid() == free[2]
        stranger.kill()


def test_uids_of_killed_runs_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    free = accounts.SERVER_UIDS[-2:]
    monkeypatch.setattr(accounts, "SERVER_UIDS", free)
    monkeypatch.setattr(accounts, "_lock_folder", lambda: tmp_path)
    (tmp_path / str(free[0])).write_text(dead(), encoding="ascii")
    (tmp_path / str(free[1])).touch()
    assert accounts.allocate_uid() == free[1]


ATTACK = """
import os, sys
pid = int(sys.argv[1])
kill, environment = lambda: os.kill(pid, 9), lambda: open(f"/proc/{pid}/environ").read()
for act in (kill, environment, lambda: open(f"/proc/{pid}/mem", "rb")):
    try:
        act()
        print("allowed")
    except OSError as error:
        print(type(error).__name__)
"""


def attack(pid: int, account: process.Account | None) -> list[str]:
    """Try to kill a process, read its environment and open its memory. Return the outcome of each attempt."""
    reader, writer = os.pipe()
    env = {"PATH": "/usr/bin:/bin"}
    with os.fdopen(writer, "wb") as out:
        options = ProcessOptions(env=env, account=account, isolated=True)
        child = Child([sys.executable, "-c", ATTACK, str(pid)], options, stdout=out)
    with running(child):
        assert child.wait(20) == 0
    with os.fdopen(reader) as said:
        return said.read().split()


def confined() -> bool:
    """Return whether the kernel can stop a server from signalling the user's other processes."""
    version = child_setup.libc.syscall(child_setup._LANDLOCK_CREATE, None, 0, 1)
    return bool(version >= 6)


@as_root
def test_servers_cannot_kill_or_read_each_other() -> None:
    pool = accounts.server_accounts(None)
    with (
        pool.account("one") as one,
        pool.account("two") as two,
        running(Child(["sleep", "60"], ProcessOptions(env={"SECRET": "x"}, account=one, isolated=True))) as victim,
    ):
        assert attack(victim.pid, two) == ["PermissionError"] * 3
        assert victim.poll() is None


@pytest.mark.skipif(not confined(), reason="Landlock confines signals from Linux 6.12 on")
def test_servers_of_ordinary_users_are_confined() -> None:
    """The servers run under the user's own UID. The unconfined process plays the role of tfb."""
    same = None
    if os.geteuid() == 0:  # root's capabilities would bypass the confinement
        same = process.Account(name="ordinary", uid=60570, gid=60570, rights=(accounts.READ_CAPABILITY,))
    for isolated in (True, False):
        with running(
            Child(["sleep", "60"], ProcessOptions(env={"SECRET": "x"}, account=same, isolated=isolated))
        ) as victim:
            assert attack(victim.pid, same) == ["PermissionError"] * 3
            assert victim.poll() is None


def test_isolated_servers_control_their_own_processes(tmp_path: Path) -> None:
    """The server can signal its workers and move files between folders, and tfb can stop the server."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "file").touch()
    code = (
        "import os, subprocess, time\n"
        "os.rename('a/file', 'b/file'); os.link('b/file', 'a/file')\n"
        "worker = subprocess.Popen(['sleep', '60']); worker.terminate(); print(worker.wait(), flush=True)\n"
        "time.sleep(60)"
    )
    with (tmp_path / "out").open("wb") as out:
        child = Child([sys.executable, "-c", code], ProcessOptions(cwd=tmp_path, isolated=True), stdout=out)
    with running(child):
        until = time.monotonic() + 20
        while not (tmp_path / "out").read_text() and time.monotonic() < until:
            time.sleep(0.02)
    assert (tmp_path / "out").read_text() == "-15\n"
    assert child.poll() == -signal.SIGTERM


def test_a_child_inherits_no_file_but_its_streams() -> None:
    """With a socket to the guardian, a child could start programs as root."""
    with running(Child(["sleep", "60"])), Path(__file__).open() as file:
        os.set_inheritable(file.fileno(), True)
        completed = process.run(["ls", "-l", "/proc/self/fd"], seconds=20)
    listed = re.findall(r" (\d+) -> (\S+)", completed.stdout)
    assert [number for number, target in listed if not target.startswith("/proc/")] == ["0", "1", "2"], completed.stdout


def test_a_machine_without_room_for_processes_is_named() -> None:
    """The guardian must survive a failed fork."""
    code = (
        "import os, resource\nfrom harness.errors import TfbError\nfrom harness.host import process, spawn\n"
        "process.run(['true'], seconds=20)\nlimit = resource.RLIMIT_NPROC\n"
        "old = resource.prlimit(spawn.guardian_pid(), limit)\n"
        "resource.prlimit(spawn.guardian_pid(), limit, (0, old[1]))\n"
        "try: process.run(['true'], seconds=20)\nexcept TfbError as error: print(error)\n"
        "resource.prlimit(spawn.guardian_pid(), limit, old)\nprint(process.run(['true'], seconds=20).status)"
    )
    someone = process.Account(name="", uid=60572, gid=60572, rights=(accounts.READ_CAPABILITY,))
    account = someone if os.geteuid() == 0 else None  # root is exempt from the process limit
    with tempfile.TemporaryDirectory() as place:
        os.chown(place, *((60572, 60572) if account else (-1, -1)))
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY), "TMPDIR": place}
        completed = process.run([sys.executable, "-c", code], seconds=60, env=env, account=account)
    assert completed.stdout.splitlines() == ["cannot run true: Resource temporarily unavailable", "0"]


def test_only_known_capabilities_can_be_kept() -> None:
    assert set(child_setup.CAPABILITIES) == {"dac_read_search", "net_bind_service"}
    assert re.fullmatch(r"[a-z_]+", accounts.READ_CAPABILITY)
