"""Attack: head writes to files of base, tfb or the user when all sides run under the user's own account."""

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli.scans import NOT_JUDGED
from harness.extras.gate import enclosures
from harness.host import process
from harness.host.process import Account
from harness.paths import REPOSITORY
from harness.records.remove_tree import remove_tree_if_possible
from harness.tests.doubles.repositories import give, let_others_enter

# A script for an ordinary user. It creates the sides' folders in {place} and executes {attack} as head.
PROGRAM = """
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from harness.extras.gate.isolation import Isolation
from harness.extras.gate.paired import HEAD, SIDES
from harness.host import process
place = Path({place!r})
roots = {{side: place / side for side in SIDES}}
for root in roots.values():
    root.mkdir()
    (root / "server.py").write_text("base")
made = Isolation(roots=roots, homes=place / "homes", protected=(Path({results!r}),))
made.prepare(separate=False)
if not {enclosed}:
    made.enclosed = {{}}
elif made.note:
    print("SKIP", made.note)
    sys.exit()
done = process.run(
    ["sh", "-c", {attack!r}], seconds=20, cwd=roots[HEAD], account=made.account(HEAD),
    env={{"PATH": "/usr/bin:/bin", "HOME": {home!r}, **made.environment(HEAD)}},
)
print(done.stdout)
"""


class UserFolders:
    """An ordinary user's home and results folders, and the regression gate's scratch folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.place, self.results = folder / "tfb-scratch-gate-x", folder / "results"
        for each in (self.home, self.place, self.results, folder / "state"):
            each.mkdir()
        (self.home / ".npmrc").write_text("own\n")
        let_others_enter(folder)
        self.account: Account | None = None
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            give(folder, nobody.pw_uid)
            # The Python interpreter may be in a folder that only root can enter.
            rights = ("dac_read_search",)
            self.account = Account(name="nobody", uid=nobody.pw_uid, gid=nobody.pw_gid, rights=rights)

    def run(self, attack: str, *, enclosed: bool = True) -> str:
        """Run shell commands with the permissions of head's processes and return their output."""
        words = {"place": str(self.place), "results": str(self.results), "home": str(self.home)}
        program = self.folder / "program.py"
        program.write_text(PROGRAM.format(attack=attack, enclosed=enclosed, **words))
        env = {"PYTHONPATH": str(REPOSITORY), "HOME": str(self.home), "TFB_STATE": str(self.folder / "state")}
        env |= {"PATH": "/usr/bin:/bin", "TMPDIR": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-P", str(program)]
        completed = process.run(command, seconds=60, env=env, cwd=self.home, account=self.account)
        if "SKIP" in completed.stdout:
            pytest.skip(f"{NOT_JUDGED}{completed.stdout.strip()}")
        assert completed.status == 0, completed.stdout
        return completed.stdout


@pytest.fixture
def place() -> Iterator[UserFolders]:
    """Yield folders that other accounts can enter, unlike pytest's private temporary folders."""
    # /dev/shm, where ``./tfb check`` puts temporary files, is unsuitable: each side has a private /dev/shm.
    folder = Path(tempfile.mkdtemp(prefix="tfb-enclosures-", dir="/tmp"))
    try:
        yield UserFolders(folder)
    finally:
        remove_tree_if_possible(folder)


@pytest.mark.parametrize(
    "target",
    [
        *("../base/server.py", "../base-copy/new.py", "../layers/base/changes/.npmrc", "../new", "{results}/x"),
        *("{folder}/state/loadgen", "{repository}/harness/new.py", "/proc/$TFB/root{place}/base/server.py"),
    ],
)
def test_sides_write_only_to_their_own_folders(target: str, place: UserFolders) -> None:
    words = {"results": place.results, "folder": place.folder, "repository": REPOSITORY, "place": place.place}
    found = "TFB=$(ps -o ppid= -p $(ps -o ppid= -p $$) | tr -d ' ')"
    said = place.run(f"{found}; echo slow >> {target.format(**words)} && echo WROTE; echo own > own && cat own")
    assert "WROTE" not in said
    assert said.strip().endswith("own")
    assert (place.place / "base" / "server.py").read_text() == "base"


def test_writes_to_the_home_stay_private(place: UserFolders) -> None:
    said = place.run("echo slow > ~/.npmrc && mkdir -p ~/.local/lib && touch ~/.local/lib/x && cat ~/.npmrc")
    assert said.strip() == "slow"
    assert [path.name for path in place.home.iterdir()] == [".npmrc"]
    assert (place.home / ".npmrc").read_text() == "own\n"


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_a_side_cannot_undo_its_enclosure(place: UserFolders) -> None:
    attack = "mount -o remount,rw,bind {0} || umount {0}; echo slow >> ../base/server.py && echo WROTE"
    for prefix in ("", "unshare --user --map-root-user --mount "):
        assert "WROTE" not in place.run(f"{prefix}sh -c '{attack.format(place.place)}'; true")
        shutil.rmtree(place.place)
        place.place.mkdir()
        if place.account:
            give(place.place, place.account.uid)
    assert not (place.place / "base").exists()


@pytest.mark.parametrize("enclosed", [True, False])
def test_a_build_neither_reads_nor_signals_other_processes(place: UserFolders, *, enclosed: bool) -> None:
    output = place.run(
        "TFB=$(ps -o ppid= -p $(ps -o ppid= -p $$) | tr -d ' '); "
        "cat /proc/$TFB/environ | grep -q TFB_STATE && echo READ; "
        "kill -0 $TFB && echo SIGNALLED; grep NoNewPrivs /proc/self/status",
        enclosed=enclosed,
    )
    assert "READ" not in output
    assert "SIGNALLED" not in output
    assert output.split()[-2:] == ["NoNewPrivs:", "1"]


def test_each_side_has_a_private_temporary_folder(place: UserFolders) -> None:
    output = place.run(
        "echo x > $TMPDIR/x && echo $TMPDIR; echo x > /tmp/tfb-adversarial-$$ && rm /tmp/tfb-adversarial-$$"
    )
    assert output.strip() == str(place.place / "layers" / "head" / "tmp")


def test_a_side_has_shared_memory_of_its_own(place: UserFolders) -> None:
    name = f"tfb-adversarial-{os.getpid()}"
    memory = Path("/dev/shm", name)  # noqa: S108 - it is about this folder
    memory.write_text("of another program")
    try:
        memory.chmod(0o666)
        output = place.run(
            f"cat /dev/shm/{name}; echo own > /dev/shm/{name} && cat /dev/shm/{name}; ipcs -m | grep -c ^0x"
        )
        assert memory.read_text() == "of another program"
    finally:
        memory.unlink()
    assert output.split()[-2:] == ["own", "0"]


def test_sockets_that_start_programs_elsewhere_are_hidden(place: UserFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = [path for path in map(Path, enclosures.SOCKETS) if path.exists()]
    if not sockets:
        pytest.skip("this machine has no container engine")
    said = place.run(f"stat -c %F {sockets[0].resolve()}")
    assert said.strip() == "character special file"
