"""The local runtime: runs all programs as processes on this machine."""

import contextlib
import os
import shlex
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from harness.errors import EnvironmentLacksError, ServerDiedError, StartError, TfbError
from harness.host import accounts, environment, process, spawn
from harness.host.machine import ControlGroups
from harness.host.metering import ProcessTreeMeter, Reading
from harness.host.ownership import process_start
from harness.paths import CONFIG_FILE, TOOLSET
from harness.plan.implementation import Implementation
from harness.provisioning import advice, crates, requirements, toolchain
from harness.records import safe_write
from harness.records.run_info import BuildRecord
from harness.runtime import DatabaseAddress, Endpoint, Server, ServerProgram, SharedDatabase, install_scripts
from harness.runtime.crashes import crash_reason
from harness.runtime.database.embedded import embedded_database, free_port
from harness.runtime.generator import GeneratorProgram, run_generator
from harness.runtime.inputs import prepare_inputs
from harness.runtime.readiness import wait_until_ready
from harness.runtime.upstream import upstream_for

BUILD_SECONDS = 3600.0  # as in TechEmpower's toolset
LOOPBACK = ("127.0.0.1", "::1")  # a server that listens on "localhost" may use either address
ANY_ADDRESS = ("0.0.0.0", "::", "::ffff:127.0.0.1")  # noqa: S104 - only compared


class LocalProgram(ProcessTreeMeter, ServerProgram):
    """A server's process tree. ``read`` also truncates the log if it is too large."""

    def __init__(self, name: str, child: process.Child, log: Path) -> None:
        super().__init__(child.pid, child.adopted)
        self.name, self.child, self.log = name, child, log
        self._groups = ControlGroups(proc=Path(f"/proc/{child.pid}"))

    def read(self) -> Reading:
        """Return the counters. If the server has exited, raise ServerDiedError with the status and last log lines."""
        process.truncate_log(self.log)
        try:
            return replace(super().read(), throttled_seconds=self._groups.throttled_seconds())
        except ServerDiedError:
            self.child.wait(2.0)
            self.require_alive()
            raise

    def identity(self) -> str:
        """Return the root process's pid and start time."""
        return f"{self.child.pid}@{process_start(self.child.pid)}"

    def require_alive(self) -> None:
        """If the server has exited, raise ServerDiedError with the exit status and the last lines of the log."""
        status = self.child.poll()
        if status is not None:
            daemon = "" if status else "; the server must stay in the foreground and not daemonize"
            reason = f"the server ended ({process.describe_status(status)}{daemon})"
            raise ServerDiedError(crash_reason(self.name, reason, self.log))

    def end(self) -> float | None:
        """Send SIGTERM. Return the seconds until the server exits, or None if it keeps running."""
        began = time.monotonic()
        self.child.terminate()
        return None if self.child.wait(process.STOP_SECONDS) is None else time.monotonic() - began

    def is_own(self, pid: int, uid: int) -> bool:
        """Return whether a process has the server's uid and, if the uid is shared, is in the server's process tree."""
        account = self.child.account
        if uid != (account.uid if account else os.geteuid()):
            return False
        if account and account.has_own_uid:
            return True
        self.require_alive()
        return pid in ProcessTreeMeter(self.root, self.child.adopted).read().pids

    def require_listening(self, endpoint: Endpoint) -> None:
        """Raise StartError if the address that responded does not belong to the server's processes.

        Unix sockets need no check here, because ``UnixSocket.connect`` checks which process is listening.
        """
        port = endpoint.port
        if not endpoint.unix and not self._listening() & {(host, port) for host in (endpoint.host, *ANY_ADDRESS)}:
            raise StartError(
                f"port {port} of {endpoint.host} belongs to {describe_listener(port)}, which is outside the server's "
                "process tree, so tfb could not meter it. Start the server in the foreground"
            )

    def listens_elsewhere(self, port: int) -> str | None:
        """Return a message if the server is listening, but not at the expected address and port, otherwise None."""
        ports = self.listening_ports()
        if not ports:
            return None
        if port in ports:
            return f"it listens on port {port}, but on a different address: make it listen on 127.0.0.1 or [::1]"
        listed = ", ".join(map(str, sorted(ports)))
        return f"it listens on port {listed}, but PORT in its environment is {port}"

    def listening_ports(self) -> set[int]:
        """Return the ports on which the server's processes accept connections."""
        return {port for _, port in self._listening()}

    def _listening(self) -> set[tuple[str, int]]:
        """Return the addresses and ports at which the server's processes accept connections."""
        try:
            pids = self.read().pids
        except ServerDiedError:
            self.require_alive()  # if the server has exited, raise an error that explains why
            raise
        listening = set()
        for pid in pids:
            with contextlib.suppress(psutil.Error):  # the process has exited, or belongs to a different user
                connections = psutil.Process(pid).net_connections("tcp")
                addresses = (each.laddr for each in connections if each.laddr and each.status == psutil.CONN_LISTEN)
                listening |= {(address.ip, address.port) for address in addresses}
        return listening


@dataclass(frozen=True, kw_only=True)
class LocalRuntime:
    """A runtime that builds implementations in their folders, and starts them on free loopback ports."""

    work: Path  # the run's folder for logs
    server_cpus: Sequence[int] | None = None
    other_cpus: Sequence[int] | None = None
    server_port: int | None = None  # None: a free port for each start
    pool: accounts.AccountPool | None = None  # accounts under which servers run; None: tfb's account
    name: str = "local"
    network: str = "host"  # loopback
    own_scripts: bool = False  # whether all npm packages may run install scripts

    @property
    def side_by_side(self) -> bool:
        """Return whether several servers can run at the same time, on different ports."""
        return self.server_port is None

    @property
    def accounts(self) -> dict[str, str]:
        """Return the accounts under which builds and servers run."""
        return {"builds": accounts.describe_account(None), "servers": accounts.describe_account(self.pool)}

    def build_as(self, implementation: Implementation) -> tuple[process.Account | None, dict[str, str]]:
        """Return the account and the additional variables for a build. None means tfb's account."""
        return None, {}

    @contextmanager
    def serve_as(self, implementation: Implementation) -> Iterator[tuple[process.Account | None, dict[str, str]]]:
        """Yield the account and the additional variables for a server. None means tfb's account."""
        if self.pool is None:
            yield None, {}
            return
        with self.pool.account(implementation.name) as account, accounts.server_home(account) as variables:
            yield account, variables

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Run the build commands in the ``local`` block. If a command fails, return a record with the reason."""
        local = implementation.local
        if local is None:
            reason = 'has no "local" block in benchmark_config.json, so it needs Docker: --runtime docker'
            return BuildRecord(status="skipped", reason=reason)
        tools = requirements.select_tools(implementation)
        if missing := sorted(set(local.requires) - set(tools)):
            details = "; ".join(advice.describe_missing(kind, local.requires[kind]) for kind in missing)
            return BuildRecord(status="skipped", reason=f"needs {details} ({CONFIG_FILE}: local.requires)")
        started_at, reason = time.monotonic(), ""
        account, account_variables = self.build_as(implementation)
        variables = toolchain.tool_environment(tools.values(), environment.build_environment()) | account_variables
        if not self.own_scripts:
            variables = install_scripts.SCRIPTS_OFF | variables
        safe_write.make_folder(log.parent)
        script_policy = install_scripts.InstallScriptPolicy(local, implementation.folder, variables, log, BUILD_SECONDS)
        try:
            for command in local.build:
                completed = process.run(
                    command,
                    seconds=BUILD_SECONDS,
                    cwd=implementation.folder,
                    env=variables,
                    log=log,
                    account=account,
                )
                if completed.status != 0:
                    status = process.describe_status(completed.status)
                    reason = f"{shlex.join(command)} failed ({status}):\n{process.tail(log)}\nlog: {log}"
                    reason += install_scripts.script_hint(implementation.folder, process.tail(log), command=command)
                    break
                script_policy.run()
            else:
                script_policy.require_all()
        except EnvironmentLacksError as error:
            reason = describe_command_error(implementation, "local.build", error)
        except TfbError as error:
            reason = str(error)
        return BuildRecord(
            status="failed" if reason else "ok",
            reason=reason,
            duration=time.monotonic() - started_at,
            log=f"logs/{implementation.name}/{log.name}",
            commands=tuple(shlex.join(command) for command in local.build),
            tools={kind: str(tool) for kind, tool in tools.items()},
        )

    def database(self) -> AbstractContextManager[SharedDatabase]:
        """Start a PostgreSQL server for this run. Stop it at the end of the block."""
        tool = toolchain.find_tool("postgres", ">=12")
        if tool is None:
            raise EnvironmentLacksError(
                f"{advice.describe_missing('postgres', '>=12')}, or use --database-host with PostgreSQL's address"
            )
        return embedded_database(tool, self.work / "database.log", cpus=self.other_cpus)

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        """Start a server and wait until it responds. Stop it and all descendants at the end of the block."""
        local = implementation.local
        if local is None:
            raise StartError(f"{implementation.name} has no local block: use --runtime docker")
        port = self.server_port or free_port()
        if self.server_port:
            require_free_port(port)
        tools = requirements.select_tools(implementation)
        base = toolchain.tool_environment(tools.values(), environment.server_environment())
        if upstream := upstream_for(implementation):
            base["UPSTREAM_URL"] = upstream.url
        safe_write.make_folder(log.parent)
        with ExitStack() as stack:
            account, account_variables = stack.enter_context(self.serve_as(implementation))
            inputs = stack.enter_context(prepare_inputs(implementation))
            contract = contract_variables(implementation, database, port) | inputs.variables()
            variables = base | account_variables | contract | local.env
            stack.callback(process.truncate_log, log)
            spawn.start_guardian()  # before ``started_at``, so that it does not count as startup time
            started_at = time.monotonic()
            with safe_write.append(log, private=True) as output, naming_run_command(implementation):
                options = process.ProcessOptions(
                    cwd=implementation.folder, env=variables, account=account, cpus=self.server_cpus, isolated=True
                )
                child = process.Child(local.run, options, stdout=output)
            stack.enter_context(process.running(child))
            program = LocalProgram(implementation.name, child, log)
            endpoints = self.endpoints(implementation, port, program)
            server = Server(
                implementation=implementation,
                endpoint=endpoints[0],
                program=program,
                upstream=upstream,
                inputs=inputs,
            )
            try:
                server.startup_time = wait_until_ready(
                    server, ready_path, started_at, program.listens_elsewhere, endpoints=endpoints
                )
                program.require_listening(server.endpoint)
            except StartError as error:
                message = f"{implementation.name}: {error}\n{process.tail(log)}\nlog: {log}"
                raise StartError(message + describe_run_command(implementation, log)) from error
            except ServerDiedError as error:
                raise ServerDiedError(f"{error}{describe_run_command(implementation, log)}") from error
            yield server

    def endpoints(self, implementation: Implementation, port: int, program: LocalProgram) -> Sequence[Endpoint]:
        """Return the addresses at which a started server may listen."""
        return [Endpoint(host=host, port=port) for host in LOOPBACK]

    def own_generator(self, crate: str = "loadgen") -> str:
        """Return the path of a load generator in toolset/. Build it with cargo if necessary."""
        return str(crates.ensure_built(crate, crate))

    def generator(
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> AbstractContextManager[GeneratorProgram]:
        """Start a load generator under tfb's account."""
        if not Path(program).is_absolute():
            tool = toolchain.find_tool(program)
            if tool is None:
                raise EnvironmentLacksError(advice.describe_missing(program, ">=0"))
            program = str(tool.program)
        wrk_scripts = {path.name: str(path) for path in (TOOLSET / "wrk").glob("*.lua")}
        command = [program, *(wrk_scripts.get(argument, argument) for argument in arguments)]
        return run_generator(command, waits_for_go=waits_for_go, cpus=self.other_cpus)

    def versions(self) -> dict[str, str]:
        """Return the versions of wrk and PostgreSQL."""
        tools = {kind: toolchain.find_tool(kind) for kind in ("wrk", "postgres")}
        return {kind: ".".join(map(str, tool.version)) for kind, tool in tools.items() if tool}


def describe_command_error(implementation: Implementation, key: str, error: TfbError) -> str:
    """Return an error message that names the implementation and the key of the command that failed."""
    return f"{implementation.name}: {key} of {implementation.folder / CONFIG_FILE}: {error}"


@contextmanager
def naming_run_command(implementation: Implementation) -> Iterator[None]:
    """Convert an EnvironmentLacksError in the block to a StartError that names ``local.run``."""
    try:
        yield
    except EnvironmentLacksError as error:
        raise StartError(describe_command_error(implementation, "local.run", error)) from error


def describe_run_command(implementation: Implementation, log: Path) -> str:
    """Return the command of a server that failed to start. Add a hint if a disabled install script may be the cause."""
    command = shlex.join(implementation.local.run if implementation.local else ())
    source = f"\ncommand: {command} (local.run of {implementation.folder / CONFIG_FILE})"
    return source + install_scripts.script_hint(implementation.folder, process.tail(log, 50))


def contract_variables(implementation: Implementation, database: DatabaseAddress, port: int) -> dict[str, str]:
    """Return a server's address and database variables. A service without a database gets only PORT.

    A service with a database gets all variables except HOST.
    """
    address = {"PORT": str(port)} if implementation.is_service else {"HOST": "127.0.0.1", "PORT": str(port)}
    if implementation.is_service and implementation.entry.database == "none":
        return address
    return {
        **address,
        "DBHOST": database.host,
        "DBPORT": str(database.port),
        "DBNAME": database.name,
        "DBUSER": database.user,
        "DBPASS": database.password,
    }


def require_free_port(port: int) -> None:
    """Raise StartError if a process on this machine is listening on the port, or if tfb may not use it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError as error:
            raise StartError(
                f"this user may not listen on port {port}. Choose a port above 1023 with --server-port"
            ) from error
        except OSError as error:
            raise StartError(
                f"port {port} is taken by {describe_listener(port)}: stop it, or choose a port with --server-port"
            ) from error


def describe_listener(port: int) -> str:
    """Return the name and pid of the process that listens on a port, or "another user's process" if they are hidden."""
    with contextlib.suppress(psutil.Error):  # the process has exited
        for connection in psutil.net_connections(kind="tcp"):
            matches = connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN
            if matches and connection.pid is not None:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return "another user's process"
