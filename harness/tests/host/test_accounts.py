"""Tests for the accounts under which builds and servers run."""

import os
from pathlib import Path

import pytest

from harness.errors import EnvironmentLacksError
from harness.host import accounts, process

as_root = pytest.mark.skipif(
    os.geteuid() != 0 or bool(accounts.account_obstacle()), reason="becoming another account needs root"
)


@pytest.mark.parametrize(
    ("user", "port", "rights"),
    [
        (1000, 80, None),
        (0, None, ("dac_read_search",)),
        (0, 80, ("dac_read_search", "net_bind_service")),
        (0, 8080, ("dac_read_search",)),
    ],
)
def test_accounts_may_bind_low_ports_if_needed(
    user: int, port: int | None, rights: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    pool = accounts.server_accounts(port)
    assert (pool and pool.rights) == rights


@as_root
def test_server_uid_belongs_to_no_account() -> None:
    with accounts.server_accounts(None).account("one") as account:
        assert account.uid in accounts.SERVER_UIDS
        assert account.rights == ("dac_read_search",)


@as_root
def test_server_account_reads_everything_and_writes_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "secret").write_text("read")
    (tmp_path / "secret").chmod(0o600)
    command = ["sh", "-c", "id -u; cat secret; echo x > secret || echo refused"]
    with accounts.server_accounts(None).account("one") as account:
        completed = process.run(command, seconds=20, cwd=tmp_path, account=account)
    assert [line for line in completed.stdout.split("\n") if line][:1] == [str(account.uid)]
    assert "read" in completed.stdout
    assert "refused" in completed.stdout
    assert (tmp_path / "secret").read_text() == "read"


@as_root
def test_missing_program_is_named_for_any_account(tmp_path: Path) -> None:
    (tmp_path / "text").touch()
    account = process.Account(
        name="no one", uid=accounts.SERVER_UIDS[0], gid=accounts.SERVER_UIDS[0], rights=(accounts.READ_CAPABILITY,)
    )
    for program, message in (("target/server", "not found"), ("./text", "cannot run .*: Permission")):
        with pytest.raises(EnvironmentLacksError, match=message):
            process.run([program], seconds=20, cwd=tmp_path, account=account)


def test_server_home_links_to_the_home_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "of root").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    account = process.Account(name="no one", uid=os.getuid(), gid=os.getgid(), rights=(accounts.READ_CAPABILITY,))
    with accounts.server_home(account) as environment:
        home = Path(environment["HOME"])
        assert (home.stat().st_uid, home.stat().st_mode & 0o777) == (os.getuid(), 0o700)
        assert (home / ".m2").readlink() == tmp_path / ".m2"
        assert environment["XDG_CACHE_HOME"] == str(home / ".cache")
        assert list((home / ".cache").iterdir()) == []
    assert not home.parent.exists()
    assert (tmp_path / ".m2").is_dir()
