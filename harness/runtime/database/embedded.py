"""A PostgreSQL server that tfb starts for a run, in a scratch folder and on a free loopback port.

Only tfb knows the administrator's random password. Measured servers and other users of the machine therefore cannot
reset the counters that verification uses.
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
from harness.runtime.database.table_sets import TABLE_SETS

START_SECONDS = 30.0


class EmbeddedDatabase(RunDatabase):
    """A PostgreSQL server that runs as local processes."""

    def __init__(self, tool: Tool, scratch: Path, log: Path, cpus: Sequence[int] | None) -> None:
        password = secrets.token_urlsafe(24)
        address = DatabaseAddress(host="127.0.0.1", port=0, admin_user=ADMIN_ROLE, admin_password=password)
        super().__init__(address, log)
        self._tool, self._scratch, self._cpus = tool, scratch, cpus
        self._account = _unprivileged()
        if self._account:
            os.chown(scratch, self._account.uid, self._account.gid)
        self._child: process.Child | None = None

    def start_server(self) -> None:
        """Start PostgreSQL with a new, seeded cluster at the same address. Raises StartError if it fails."""
        self.close()
        data = self._scratch / "data"
        remove_tree_if_possible(data)
        _initialise(self._tool, data, self._account, self.log, self.address.admin_password or "")
        if not self.address.port:  # choose it after initdb, so that no program takes it meanwhile
            self.address = replace(self.address, port=free_port())
        self.start_postgres()
        try:
            seed_database(self.address)
        except psycopg.Error as error:
            raise StartError(f"PostgreSQL could not be seeded: {error}\n{process.tail(self.log)}") from error
        self.log_offset = file_size(self.log)

    def start_postgres(self) -> None:
        """Start PostgreSQL with the existing cluster and wait until it accepts connections."""
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
                stop_signal=signal.SIGINT,  # fast shutdown: do not wait for sessions to end
            )
            child = process.Child(command, options, stdout=output)
        self._child, self._meter = child, ProcessTreeMeter(child.pid)
        _wait_until_ready(self.address, child, self.log)

    def exit_reason(self) -> str | None:
        """Return how the postmaster exited, or None while it is running."""
        status = self._child.poll() if self._child else None
        return None if status is None else f"PostgreSQL exited ({process.describe_status(status)}); log: {self.log}"

    def meter(self) -> ProcessTreeMeter:
        """Return the meter for PostgreSQL's processes."""
        return self._meter

    def close(self) -> None:
        """Stop PostgreSQL."""
        if self._child:
            self._child.stop()


@contextmanager
def embedded_database(tool: Tool, log: Path, *, cpus: Sequence[int] | None = None) -> Iterator[EmbeddedDatabase]:
    """Start and seed PostgreSQL. At the end of the block, stop it and remove the files.

    Raises StartError, with the end of the log, if PostgreSQL does not start.
    """
    with ownership.make_scratch_folder("postgres") as scratch:
        database = EmbeddedDatabase(tool, scratch, log, cpus)
        try:
            database.start_server()
            yield database
        finally:
            database.close()


def seed_database(address: DatabaseAddress) -> None:
    """Create the role, the seeded tables, and the template that ``restore`` copies."""
    with connect(address, admin=True, name="postgres") as connection:
        execute_script(connection, "role.sql")
    with connect(address, admin=True) as connection:
        for script in ("schema.sql", "seed.sql", *(tables.seed_script for tables in TABLE_SETS)):
            execute_script(connection, script)
        # Some installations lack the extension. Verification then reports that statements cannot be counted.
        with contextlib.suppress(psycopg.Error):
            execute_script(connection, "statistics.sql")
        execute_script(connection, "private.sql")
    with connect(address, admin=True, name="postgres") as connection:
        execute_script(connection, "template.sql")


def free_port() -> int:
    """Return a free port on the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _initialise(tool: Tool, data: Path, account: process.Account | None, log: Path, password: str) -> None:
    """Create a cluster. Raises StartError, with the end of the log, if it fails.

    Follow no links in the scratch folder. PostgreSQL's account owns it, so other programs of that account could plant
    links there.
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
        completed = process.run(
            command, seconds=60, cwd=data.parent, env=environment.server_environment(), log=log, account=account
        )
        secret.unlink(missing_ok=True)
        if completed.status != 0:
            hint = f"; {reason}" if account and (reason := describe_access_problem(account, data.parent)) else ""
            status = process.describe_status(completed.status)
            raise StartError(f"initdb failed ({status}){hint}:\n{process.tail(log)}\nlog: {log}")
        safe_write.replace_for_owner(data / "postgresql.conf", settings.encode(), owner)
        safe_write.replace_for_owner(data / "pg_hba.conf", access.encode(), owner)
    except (OSError, StoreError) as error:
        raise StartError(
            f"cannot write PostgreSQL's files: {error}. A different program may be changing them. Run tfb again"
        ) from error


def describe_access_problem(account: process.Account, folder: Path) -> str:
    """Return a message if an account cannot enter a parent of a scratch folder, otherwise an empty string."""
    for parent in reversed(folder.parents):
        status = parent.stat()
        shift = 6 if status.st_uid == account.uid else 3 if status.st_gid == account.gid else 0
        if not status.st_mode >> shift & 1:
            return (
                f"PostgreSQL's account, {account.name}, may not enter {parent} "
                f"(mode {status.st_mode & 0o7777:04o}), which is part of TMPDIR. Set TMPDIR to a folder that "
                f"every user may enter, or chmod o+x {parent}"
            )
    return ""


def _statistics(tool: Tool) -> str:
    """Return the settings that load pg_stat_statements, or an empty string if it is not installed."""
    library = tool.bin.parent / "lib"
    if (tool.bin / "pg_config").exists():
        library = Path(process.run([str(tool.bin / "pg_config"), "--pkglibdir"], seconds=10).stdout.strip())
    if not (library / "pg_stat_statements.so").exists():
        return ""
    return (SCRIPTS / "statistics.conf").read_text(encoding="utf-8")


def _unprivileged() -> process.Account | None:
    """Return an unprivileged account for PostgreSQL, which refuses to run as root, or None if tfb is not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return process.Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise EnvironmentLacksError(
        "PostgreSQL refuses to run as root, and there is neither a postgres nor a nobody account. Create one of them"
    )


def _wait_until_ready(address: DatabaseAddress, child: process.Child, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with connect(address, admin=True, name="postgres"):
                return
        except StartError:
            status = child.wait(0.05)
            if status is not None:
                reason = process.describe_status(status)
                raise StartError(
                    f"PostgreSQL exited immediately ({reason}):\n{process.tail(log)}\nlog: {log}"
                ) from None
    raise StartError(f"PostgreSQL did not respond within {START_SECONDS:.0f} s:\n{process.tail(log)}\nlog: {log}")
