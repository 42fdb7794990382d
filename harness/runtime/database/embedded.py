"""A PostgreSQL of the run's own: initdb in a scratch folder, loopback only, a free port, removed afterwards.

The administrator's password is made up for each run and known to the harness alone: neither a measured server nor
another user of the machine can reset the counters that judge, or read what is not theirs.
"""

import contextlib
import os
import pwd
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg

from harness.errors import EnvironmentLacksError, StartError, StoreError
from harness.host import environment, ownership, process
from harness.host.metering import ProcessTreeMeter
from harness.provisioning.toolchain import Tool
from harness.records import safe_write
from harness.records.remove_tree import remove_tree_if_possible
from harness.runtime import DatabaseAddress
from harness.runtime.database import ADMIN_ROLE, SCRIPTS, connect, execute_script, file_size
from harness.runtime.database.copies import RunDatabase

START_SECONDS = 30.0


class EmbeddedDatabase(RunDatabase):
    """PostgreSQL as processes of this machine."""

    def __init__(self, tool: Tool, scratch: Path, log: Path, cpus: Sequence[int] | None) -> None:
        password = secrets.token_urlsafe(24)
        address = DatabaseAddress(host="127.0.0.1", port=0, admin_user=ADMIN_ROLE, admin_password=password)
        super().__init__(address, log)
        self._tool, self._scratch, self._cpus = tool, scratch, cpus
        self._account = _unprivileged()
        if self._account:
            os.chown(scratch, self._account.uid, self._account.gid)
        self._child: process.Child | None = None

    def begin(self) -> None:
        """A fresh cluster under the address that servers know; raises StartError with the last lines of its log."""
        self.close()
        data = self._scratch / "data"
        remove_tree_if_possible(data)
        _initialise(self._tool, data, self._account, self.log, self.address.admin_password or "")
        if not self.address.port:  # now: in the time that initdb takes, another program could come to it
            self.address = replace(self.address, port=free_port())
        self.start()
        try:
            seed_database(self.address)
        except psycopg.Error as error:
            raise StartError(f"PostgreSQL could not be seeded: {error}\n{process.tail(self.log)}") from error
        self.read_to = file_size(self.log)

    def start(self) -> None:
        """Start it on the cluster that is there, and wait until it answers; raises StartError likewise."""
        command = [
            str(self._tool.bin / "postgres"),
            *("-D", str(self._scratch / "data"), "-p", str(self.address.port)),
            *("-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self._scratch}"),
        ]
        with safe_write.append(self.log, private=True) as output:
            options = process.ProcessOptions(
                cwd=self._scratch,
                env=environment.server_environment(),
                account=self._account,
                cpus=self._cpus,
                stop_signal=signal.SIGINT,  # fast shutdown, which does not wait for sessions
            )
            child = process.Child(command, options, stdout=output)
        self._child, self._meter = child, ProcessTreeMeter(child.pid)
        _await(self.address, child, self.log)

    def ended(self) -> str | None:
        """By its first process."""
        status = self._child.poll() if self._child else None
        return None if status is None else f"PostgreSQL ended ({process.describe_status(status)}); log: {self.log}"

    def meter(self) -> ProcessTreeMeter:
        """Of its processes."""
        return self._meter

    def close(self) -> None:
        """Stop it."""
        if self._child:
            self._child.stop()


@contextmanager
def embedded_database(tool: Tool, log: Path, *, cpus: Sequence[int] | None = None) -> Iterator[EmbeddedDatabase]:
    """Make, start and seed a server; stop it and remove its folder on the way out, however that happens.

    Raises StartError with the last lines of its log when it does not come up.
    """
    with ownership.make_scratch_folder("postgres") as scratch:
        database = EmbeddedDatabase(tool, scratch, log, cpus)
        try:
            database.begin()
            yield database
        finally:
            database.close()


def seed_database(address: DatabaseAddress) -> None:
    """Role, tables, rows and the template that ``restore`` copies."""
    with connect(address, admin=True, name="postgres") as connection:
        execute_script(connection, "role.sql")
    with connect(address, admin=True) as connection:
        for script in ("schema.sql", "seed.sql", "orders.sql"):
            execute_script(connection, script)
        # Some installations lack the extension: statements are then not counted, and verification says so.
        with contextlib.suppress(psycopg.Error):
            execute_script(connection, "statistics.sql")
        execute_script(connection, "private.sql")
    with connect(address, admin=True, name="postgres") as connection:
        execute_script(connection, "template.sql")


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _initialise(tool: Tool, data: Path, account: process.Account | None, log: Path, password: str) -> None:
    """Make a cluster; raises StartError with the last lines of the log.

    The scratch folder belongs to PostgreSQL's account, as which other programs may run: no link in it is followed.
    """
    owner = (account.uid, account.gid) if account else None
    secret = data.parent / "password"
    command = [
        str(tool.bin / "initdb"),
        *("-D", str(data), "--username", ADMIN_ROLE, "--no-sync", "--locale=C.UTF-8", "--encoding=UTF8"),
        *("--auth=scram-sha-256", "--pwfile", str(secret)),
    ]
    settings = (SCRIPTS / "postgresql.conf").read_text(encoding="utf-8") + _statistics(tool)
    access = f"host all {ADMIN_ROLE} 127.0.0.1/32 scram-sha-256\nhost all +benchmarkdbuser 127.0.0.1/32 scram-sha-256\n"
    try:
        safe_write.replace_for_owner(secret, f"{password}\n".encode(), owner)
        done = process.run(
            command, seconds=60, cwd=data.parent, env=environment.server_environment(), log=log, account=account
        )
        secret.unlink(missing_ok=True)
        if done.status != 0:
            why = f"; {closed}" if account and (closed := closed_to(account, data.parent)) else ""
            how = process.describe_status(done.status)
            raise StartError(f"initdb failed ({how}){why}:\n{process.tail(log)}\nlog: {log}")
        safe_write.replace_for_owner(data / "postgresql.conf", settings.encode(), owner)
        safe_write.replace_for_owner(data / "pg_hba.conf", access.encode(), owner)
    except (OSError, StoreError) as error:
        raise StartError(f"PostgreSQL's files cannot be written: {error}; another program changes them") from error


def closed_to(account: process.Account, folder: Path) -> str:
    """Return which folder above a scratch folder an account cannot enter, and what to do; empty where it enters all."""
    for parent in reversed(folder.parents):
        found = parent.stat()
        shift = 6 if found.st_uid == account.uid else 3 if found.st_gid == account.gid else 0
        if not found.st_mode >> shift & 1:
            return (
                f"PostgreSQL runs as {account.name}, which may not enter {parent} (mode {found.st_mode & 0o7777:04o}), "
                f"a part of TMPDIR. Set TMPDIR to a folder that every user may enter, or chmod o+x {parent}"
            )
    return ""


def _statistics(tool: Tool) -> str:
    """Settings that load pg_stat_statements, where the installation has it: it counts from start to end.

    The default of compute_query_id is kept: with it off, statements are never counted.
    """
    library = tool.bin.parent / "lib"
    if (tool.bin / "pg_config").exists():
        library = Path(process.run([str(tool.bin / "pg_config"), "--pkglibdir"], seconds=10).stdout.strip())
    if not (library / "pg_stat_statements.so").exists():
        return ""
    return (SCRIPTS / "statistics.conf").read_text(encoding="utf-8")


def _unprivileged() -> process.Account | None:
    """PostgreSQL refuses root: the account that it drops to, or None when we are not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return process.Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise EnvironmentLacksError("PostgreSQL does not run as root and there is no account postgres or nobody: add one")


def _await(address: DatabaseAddress, child: process.Child, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            with connect(address, admin=True, name="postgres"):
                return
        except StartError:
            status = child.wait(0.05)
            if status is not None:
                raise StartError(
                    f"PostgreSQL ended at once ({process.describe_status(status)}):\n{process.tail(log)}\nlog: {log}"
                ) from None
    raise StartError(f"PostgreSQL did not answer within {START_SECONDS:.0f} s:\n{process.tail(log)}\nlog: {log}")
