"""Attack: another account reads tfb's temporary files."""

import os
import tempfile
from pathlib import Path

import pytest

from harness.host import accounts, ownership, process
from harness.host.process import Account
from harness.paths import state_folder

OTHER = Account(name="other", uid=60571, gid=60571)
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or bool(accounts.account_obstacle()), reason="other accounts need root"
)


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")  # noqa: S108 - other accounts may not enter pytest's folder
    os.umask(0o022)


def reads(path: Path, account: Account) -> bool:
    return process.run(["cat", str(path)], seconds=20, account=account).status == 0


def lists(path: Path, account: Account) -> bool:
    return process.run(["ls", str(path)], seconds=20, account=account).status == 0


@pytest.mark.parametrize("kind", ["gate", "base", "output", "home", "postgres", "tfb-load-"])
def test_a_scratch_folder_is_closed_to_other_accounts(kind: str) -> None:
    with ownership.make_scratch_folder(kind) as folder:
        (folder / ".env").write_text("SECRET=1")
        assert not lists(folder, OTHER)
        assert not reads(folder / ".env", OTHER)


def test_a_shared_folder_is_open_to_servers_alone() -> None:
    """The folder contains a comparison's sides.

    Servers have no privileges, so they enter it as members of its group.
    """
    with ownership.make_scratch_folder("gate") as folder, accounts.server_accounts(None).account("one") as server:
        accounts.share_folder(folder)
        (folder / "base").mkdir()
        (folder / "base" / ".env").write_text("SECRET=1")
        plain = Account(name="", uid=server.uid, gid=server.gid)
        assert folder.stat().st_mode & 0o007 == 0
        assert reads(folder / "base" / ".env", plain)
        assert not reads(folder / "base" / ".env", OTHER)
        assert not lists(folder, OTHER)


def test_server_homes_are_private() -> None:
    pool = accounts.server_accounts(None)
    with pool.account("one") as one, pool.account("two") as two, accounts.server_home(one) as variables:
        home = Path(variables["HOME"])
        (home / "note").write_text("x")
        assert reads(home / "note", Account(name="", uid=one.uid, gid=one.gid))
        for stranger in (OTHER, Account(name="", uid=two.uid, gid=two.gid)):
            assert not reads(home / "note", stranger)
            assert not lists(home.parent, stranger)


def test_logs_are_closed_to_other_accounts() -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        log = Path(name) / "log"
        process.run(["echo", "secret"], seconds=20, log=log)
        assert not reads(log, OTHER)


def test_the_folder_of_uids_is_root_s_alone() -> None:
    uid = accounts.allocate_uid()
    (folder,) = (folder for folder in (accounts.LOCK_FOLDER, state_folder() / "uids") if (folder / str(uid)).exists())
    assert not lists(folder, OTHER)
    assert (folder / str(uid)).read_text() == ownership.own_identity()
