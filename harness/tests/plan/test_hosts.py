"""Tests for machines that flags and layout files name."""

from pathlib import Path

import pytest

from harness.errors import ConfigError, UsageError
from harness.plan import hosts
from harness.plan.hosts import HERE, ExistingDatabase, Host, Hosts


def test_all_roles_default_to_this_machine() -> None:
    assert hosts.hosts_from_flags(None, None, ()) == Hosts(server=HERE, database=HERE, clients=(HERE,))
    assert not hosts.hosts_from_flags("127.0.0.1", None, ("localhost",)).uses_remote_machines


def test_host_is_an_ssh_name_or_a_context() -> None:
    assert hosts.parse_host("ssh://bench@app.mgmt:2222=10.1.0.3", "--server-host") == Host(
        text="ssh://bench@app.mgmt:2222=10.1.0.3",
        reached_by="ssh",
        name="bench@app.mgmt",
        port=2222,
        address="10.1.0.3",
    )
    assert hosts.parse_host("app", "--server-host") == Host(text="app", reached_by="ssh", name="app")
    assert hosts.parse_host("context:lab=10.0.0.1", "--server-host") == Host(
        text="context:lab=10.0.0.1", reached_by="context", name="lab", address="10.0.0.1"
    )


@pytest.mark.parametrize("text", ["-oProxyCommand=x", "a b", "app:99999", "app:", "=10.0.0.1", "tcp://app:2375", "a;b"])
def test_invalid_host_is_reported_with_its_flag(text: str) -> None:
    with pytest.raises(UsageError, match="--server-host"):
        hosts.parse_host(text, "--server-host")


def test_postgresql_url_selects_an_existing_database() -> None:
    parsed = hosts.hosts_from_flags("app", "postgresql://db:5433", ("c1",))
    assert parsed.database == ExistingDatabase(host="db", port=5433)
    assert [host.name for host in parsed.machines] == ["app", "c1"]
    assert hosts.parse_database("postgresql://db") == ExistingDatabase(host="db", port=5432)
    for text in ("postgresql://user@db", "postgresql://", "postgresql://db/other", "postgresql://db:port"):
        with pytest.raises(UsageError, match="--database-host"):
            hosts.parse_database(text)


def test_loopback_address_is_rejected_with_several_machines() -> None:
    for server, database in (("app", None), (None, "db")):
        with pytest.raises(UsageError, match="this machine's loopback address"):
            hosts.hosts_from_flags(server, database, ())
    with pytest.raises(UsageError, match="a machine is named twice"):
        hosts.hosts_from_flags("app", "db", ("c1", "c1"))


def test_layout_file_names_all_roles(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('server = "app"\ndatabase = "db"\nclient = ["c1", "c2"]\n')
    assert hosts.read_layout(str(path)) == hosts.hosts_from_flags("app", "db", ("c1", "c2"))
    assert hosts.read_layout("three").uses_remote_machines
    path.write_text('servers = "app"\n')
    with pytest.raises(ConfigError, match="servers: unknown key; did you mean server"):
        hosts.read_layout(str(path))
    with pytest.raises(ConfigError, match="available: three"):
        hosts.read_layout("four")
