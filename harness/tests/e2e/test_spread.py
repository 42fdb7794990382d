"""Queues over real ssh and GNU parallel: two sets on this machine behind an sshd of the test's own."""

import getpass
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli import shard
from harness.host import process
from harness.plan import queue as queues
from harness.plan.lab import Lab, MachineSet
from harness.plan.queue import Queue
from harness.run import spread
from harness.runtime.database.embedded import free_port

pytestmark = pytest.mark.e2e

# What a checkout's ./tfb does of `unit QUEUE ID --login NAME`: a run folder, and the word that it is done. The set that
# is to be cut off kills the sshd that serves it in the middle of its first unit.
TFB = """#!/bin/sh
unit=$(dirname "$2")/units/$3
echo "$5 $3" >> "$TFB_TRIED"
if [ -e "$TFB_CUT" ] && [ "${5#1/}" = lab-b ]; then
  session=$$
  while [ "$session" -gt 1 ] && [ "$(cat /proc/$session/comm)" != sshd ]; do
    session=$(awk '{print $4}' /proc/$session/stat)
  done
  [ "$session" -gt 1 ] && kill -9 "$session"
  exit 1
fi
mkdir -p "$unit/run"
echo "{}" > "$unit/run/run.json"
echo run > "$unit/done"
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Two logins that lead to this machine, with a checkout below the test's folder."""
    for program in ("/usr/sbin/sshd", "parallel", "rsync", "ssh-keygen"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here: apt-get install openssh-server parallel rsync")
    checkout = tmp_path / "checkout"
    (checkout / "results").mkdir(parents=True)
    tfb = checkout / "tfb"
    tried, cut = tmp_path / "tried", tmp_path / "cut"
    tfb.write_text(TFB.replace('"$TFB_TRIED"', f'"{tried}"').replace('"$TFB_CUT"', f'"{cut}"'))
    tfb.chmod(0o755)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    # Each login says a line that nobody asked for, as start-up files of shells do.
    talkative = 'command="echo nothing of yours >&2; eval \\"$SSH_ORIGINAL_COMMAND\\""'
    (tmp_path / "authorized").write_text(f"{talkative} {(tmp_path / 'user.pub').read_text()}")
    port = free_port()
    (tmp_path / "sshd").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/authorized\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
    )
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {(tmp_path / 'host.pub').read_text()}")
    (tmp_path / "ssh").write_text(
        f"Host lab-*\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n IdentityFile {tmp_path}/user\n"
        f" IdentitiesOnly yes\n UserKnownHostsFile {tmp_path}/known\n StrictHostKeyChecking yes\n"
    )
    monkeypatch.setenv("TFB_SSH_CONFIG", str(tmp_path / "ssh"))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    daemon = process.Child(["/usr/sbin/sshd", "-D", "-e", "-f", str(tmp_path / "sshd")], stdout=sys.__stderr__.fileno())  # type: ignore[union-attr]
    with process.running(daemon):
        until = time.monotonic() + 5
        while (
            subprocess.run(["ssh-keyscan", "-p", str(port), "127.0.0.1"], capture_output=True, check=False).stdout
            == b""
        ):
            assert time.monotonic() < until, "sshd does not answer"
        yield Lab(
            sets=(MachineSet(name="a", login="lab-a"), MachineSet(name="b", login="lab-b")), directory=str(checkout)
        )


def queued(lab: Lab, folder: Path) -> Queue:
    names = ["ref", *(f"s{i}" for i in range(6))]
    units = queues.plan(names, "ref", dict.fromkeys(names, 1.0), blocks=2, together=2, seed=1)
    queue = Queue(id="q", engine="parallel", command=(), reference="ref", lab=lab, units=units, retries=2)
    shard.write(queue, folder)
    return queue


def tries(tmp_path: Path) -> list[str]:
    return [line.split()[1] for line in (tmp_path / "tried").read_text().splitlines()]


def test_every_unit_is_measured_once_and_its_folder_comes_back(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "here" / "q"
    queue = queued(lab, folder)
    assert spread.carry_out(queue, folder, again=False, say=print) == 0
    assert all(spread.is_done(folder, unit.id) for unit in queue.units)
    assert sorted(tries(tmp_path)) == [unit.id for unit in queue.units]


def test_a_set_that_is_cut_off_loses_no_unit_and_resuming_repeats_none(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "here" / "q"
    queue = queued(lab, folder)
    (tmp_path / "cut").touch()
    spread.carry_out(queue, folder, again=False, say=print)
    done = {unit.id for unit in queue.units if spread.is_done(folder, unit.id)}
    logins = [line.split()[0] for line in (tmp_path / "tried").read_text().splitlines()]
    assert "lab-b" in {login.removeprefix("1/") for login in logins}  # it was tried, and cut off
    (tmp_path / "cut").unlink()
    before = len(tries(tmp_path))
    assert spread.carry_out(queue, folder, again=True, say=print) == 0
    assert all(spread.is_done(folder, unit.id) for unit in queue.units)
    assert not set(tries(tmp_path)[before:]) & done
