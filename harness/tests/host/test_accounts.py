"""As whom builds and servers run: root gives servers an account of no one, and says that builds are root's."""

import os
import pwd
from pathlib import Path

import pytest

from harness.errors import EnvironmentLacksError
from harness.host import accounts, process

as_root = pytest.mark.skipif(
    os.geteuid() != 0 or bool(accounts.obstacle()), reason="becoming another account needs root"
)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(accounts, "obstacle", lambda: "")
    return monkeypatch


def test_root_s_servers_have_a_number_that_no_account_has_and_may_read(root: pytest.MonkeyPatch) -> None:
    account, note = accounts.of_servers(None, None)
    assert account is not None
    assert account.uid in accounts.UIDS
    assert (account.rights, note) == (("dac_read_search",), "")


def test_only_a_port_below_1024_brings_the_right_to_it(root: pytest.MonkeyPatch) -> None:
    low, high = (accounts.of_servers(None, port)[0] for port in (80, 8080))
    assert low is not None
    assert high is not None
    assert (low.rights, high.rights) == (("dac_read_search", "net_bind_service"), ("dac_read_search",))


def test_a_root_without_the_rights_for_it_says_that_servers_run_as_root(root: pytest.MonkeyPatch) -> None:
    root.setattr(accounts, "obstacle", lambda: "setpriv is missing")
    account, note = accounts.of_servers(None, None)
    assert account is None
    assert note.startswith("servers run as root: setpriv is missing; --server-user NAME")


def test_the_old_way_is_asked_for_by_name(root: pytest.MonkeyPatch) -> None:
    assert accounts.of_servers("root", None) == (None, "")


def test_an_ordinary_user_s_servers_and_builds_are_that_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert accounts.of_servers(None, None) == accounts.of_builds(None) == (None, "")


def test_builds_run_as_root_and_it_is_said(root: pytest.MonkeyPatch) -> None:
    assert accounts.of_builds(None)[1].startswith("builds run as root")
    assert accounts.of_builds("root") == (None, "")


@as_root
def test_such_a_server_reads_what_root_may_and_writes_nothing(tmp_path: Path) -> None:
    account, _ = accounts.of_servers(None, None)
    tmp_path.chmod(0o700)
    (tmp_path / "secret").write_text("read")
    (tmp_path / "secret").chmod(0o600)
    command = ["sh", "-c", "id -u; cat secret; echo x > secret || echo refused"]
    done = process.run(command, seconds=20, cwd=tmp_path, account=account)
    assert account is not None
    assert [line for line in done.stdout.split("\n") if line][:1] == [str(account.uid)]
    assert "read" in done.stdout
    assert "refused" in done.stdout
    assert (tmp_path / "secret").read_text() == "read"


@as_root
def test_a_program_that_is_not_there_is_named_under_any_account(tmp_path: Path) -> None:
    account, _ = accounts.of_servers(None, None)
    (tmp_path / "text").touch()
    for program, said in (("target/server", "not found"), ("./text", "cannot be run: Permission")):
        with pytest.raises(EnvironmentLacksError, match=said):
            process.run([program], seconds=20, cwd=tmp_path, account=account)


def test_an_account_of_no_one_has_a_home_of_its_own_that_shows_root_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "of root").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    account = process.Account(name="no one", uid=os.getuid(), gid=os.getgid(), rights=(accounts.READS,))
    with accounts.home(account) as environment:
        home = Path(environment["HOME"])
        assert (home.stat().st_uid, home.stat().st_mode & 0o777) == (os.getuid(), 0o700)
        assert (home / ".m2").readlink() == tmp_path / ".m2"
        assert environment["XDG_CACHE_HOME"] == str(home / ".cache")
        assert list((home / ".cache").iterdir()) == []
    assert not home.parent.exists()
    assert (tmp_path / ".m2").is_dir()


def test_an_account_that_somebody_has_keeps_its_own_home_and_never_gets_root_s(root: pytest.MonkeyPatch) -> None:
    daemon = pwd.getpwnam("daemon")
    account = process.Account(name="daemon", uid=daemon.pw_uid, gid=daemon.pw_gid)
    expected = {"HOME": daemon.pw_dir, "USER": "daemon", "LOGNAME": "daemon"}
    with accounts.home(account) as environment:
        assert environment == accounts.home_of(account) == expected
    with accounts.home(None) as environment:
        assert environment == accounts.home_of(None) == {}
    root.setattr(os, "geteuid", lambda: daemon.pw_uid)
    assert accounts.home_of(account) == {}
