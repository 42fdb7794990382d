"""The local runtime: everything as plain processes of this machine."""

import contextlib
import shlex
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.errors import EnvironmentLacksError, ServerDiedError, StartError, TfbError
from harness.host import accounts, environment, process, spawn
from harness.host.metering import ProcessTreeMeter, Reading
from harness.host.ownership import process_start
from harness.paths import CONFIG_FILE, TOOLSET
from harness.plan.discovery import Implementation
from harness.provisioning import advice, crates, requirements, toolchain
from harness.records import safe_write
from harness.records.run_info import BuildRecord
from harness.runtime import DatabaseAddress, Endpoint, Server, ServerProgram, SharedDatabase, install_scripts
from harness.runtime.crashes import crash_reason
from harness.runtime.database.embedded import embedded_database, free_port
from harness.runtime.generator import GeneratorProgram, run_generator
from harness.runtime.readiness import wait_until_ready
from harness.runtime.upstream import upstream_for

BUILD_SECONDS = 3600.0  # TechEmpower's
EXIT_SECONDS = 2.0  # from the end of a process to its exit status
# A clean exit is no crash: most of these programs have left a server behind.


class LocalProgram(ProcessTreeMeter, ServerProgram):
    """A process tree; its log is kept from growing without end at every reading."""

    def __init__(self, name: str, child: process.Child, log: Path) -> None:
        super().__init__(child.pid, child.adopted)
        self.name, self.child, self.log = name, child, log

    def read(self) -> Reading:
        """Return the counters; raise ServerDiedError with the exit status and the last lines of the log."""
        process.truncate_log(self.log)
        try:
            return super().read()
        except ServerDiedError:
            self.child.wait(EXIT_SECONDS)
            self.require_alive()
            raise

    def identity(self) -> str:
        """Pid and start time of the root process."""
        return f"{self.child.pid}@{process_start(self.child.pid)}"

    def require_alive(self) -> None:
        """Raise ServerDiedError with the exit status and the last lines of the log if the server has exited."""
        status = self.child.poll()
        if status is not None:
            daemon = "" if status else "; run has to stay in the foreground, so a server must not become a daemon"
            how = f"the server ended ({process.describe_status(status)}{daemon})"
            raise ServerDiedError(crash_reason(self.name, how, self.log))

    def end(self) -> float | None:
        """Ask it to stop with SIGTERM; return the seconds until it had ended, or None if it still runs then."""
        began = time.monotonic()
        self.child.terminate()
        return None if self.child.wait(process.STOP_SECONDS) is None else time.monotonic() - began

    def require_listening(self, port: int) -> None:
        """Raises StartError when the port is not served by the processes whose CPU and memory are read."""
        if port not in self._listening():
            raise StartError(
                f"port {port} answers, but {describe_listener(port)} listens there, which is not of the server's process tree: "
                "its work could not be metered. Start the server in the foreground"
            )

    def listens_elsewhere(self, port: int) -> str | None:
        """What is wrong when it accepts connections on other ports or addresses, and not here."""
        ports = self._listening()
        if not ports:
            return None
        if port in ports:
            return f"it listens on port {port} of another address (of [::1]?): have it listen on 127.0.0.1"
        where = ", ".join(map(str, sorted(ports)))
        return f"it listens on port {where} and not on {port}, which PORT in its environment names"

    def _listening(self) -> set[int]:
        """Ports on which its processes accept connections."""
        try:
            pids = self.read().pids
        except ServerDiedError:
            self.require_alive()  # knows the exit status and the last lines
            raise
        found = set()
        for pid in pids:
            with contextlib.suppress(psutil.Error):  # it is gone, or belongs to another user
                connections = psutil.Process(pid).net_connections("tcp")
                found |= {each.laddr.port for each in connections if each.laddr and each.status == psutil.CONN_LISTEN}
        return found


@dataclass(frozen=True, kw_only=True)
class LocalRuntime:
    """Builds in the implementation's folder and starts it on a free port of the loopback address."""

    work: Path  # of this run: build stamps and the database's log go here
    server_cpus: Sequence[int] | None = None
    other_cpus: Sequence[int] | None = None
    server_port: int | None = None  # None: a free one for each start
    pool: accounts.AccountPool | None = None  # accounts of servers; None: they have that of the harness
    name: str = "local"
    network: str = "host"  # loopback
    own_scripts: bool = False  # whether packages run code of theirs while they are installed

    @property
    def side_by_side(self) -> bool:
        """Each on a port of its own, unless one was asked for."""
        return self.server_port is None

    @property
    def accounts(self) -> dict[str, str]:
        """The accounts of builds and servers."""
        return {"builds": accounts.describe_account(None), "servers": accounts.describe_account(self.pool)}

    def build_as(self, implementation: Implementation) -> tuple[process.Account | None, dict[str, str]]:
        """Return the account of an implementation's build (None: that of the harness) and variables of its own."""
        return None, {}

    @contextmanager
    def serve_as(self, implementation: Implementation) -> Iterator[tuple[process.Account | None, dict[str, str]]]:
        """Lend an account to a server (None: that of the harness), with variables of its own."""
        if self.pool is None:
            yield None, {}
            return
        with self.pool.account(implementation.name) as account, accounts.server_home(account) as own:
            yield account, own

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Run the build commands of the ``local`` block; a failure is in the result, with the log's last lines."""
        local = implementation.local
        if local is None:
            reason = 'has no "local" block in benchmark_config.json, so it needs Docker: --runtime docker'
            return BuildRecord(status="skipped", reason=reason)
        chosen = requirements.select_tools(implementation)
        if absent := sorted(set(local.requires) - set(chosen)):
            kinds = "; ".join(advice.describe_missing(kind, local.requires[kind]) for kind in absent)
            return BuildRecord(status="skipped", reason=f"needs {kinds} ({CONFIG_FILE}: local.requires)")
        began, reason = time.monotonic(), ""
        account, own = self.build_as(implementation)
        variables = toolchain.tool_environment(chosen.values(), environment.build_environment()) | own
        if not self.own_scripts:
            variables = install_scripts.SCRIPTS_OFF | variables
        safe_write.make_folder(log.parent)
        allowed = install_scripts.InstallScriptPolicy(local, implementation.folder, variables, log, BUILD_SECONDS)
        try:
            for command in local.build:
                done = process.run(
                    command,
                    seconds=BUILD_SECONDS,
                    cwd=implementation.folder,
                    env=variables,
                    log=log,
                    account=account,
                )
                if done.status != 0:
                    how = process.describe_status(done.status)
                    reason = f"{shlex.join(command)} failed ({how}):\n{process.tail(log)}\nlog: {log}"
                    reason += install_scripts.script_hint(implementation.folder, process.tail(log), command=command)
                    break
                allowed.run()
            else:
                allowed.require_all()
        except EnvironmentLacksError as error:
            reason = describe_command_error(implementation, "local.build", error)
        except TfbError as error:
            reason = str(error)
        return BuildRecord(
            status="failed" if reason else "ok",
            reason=reason,
            duration=time.monotonic() - began,
            log=f"logs/{implementation.name}/{log.name}",
            commands=tuple(shlex.join(command) for command in local.build),
            tools={kind: str(tool) for kind, tool in chosen.items()},
        )

    def database(self) -> AbstractContextManager[SharedDatabase]:
        """A PostgreSQL of the run's own."""
        tool = toolchain.find_tool("postgres", ">=12")
        if tool is None:
            raise EnvironmentLacksError(
                f"{advice.describe_missing('postgres', '>=12')}, or name a PostgreSQL by --database-host"
            )
        return embedded_database(tool, self.work / "database.log", cpus=self.other_cpus)

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        """A fresh process that has answered once; stopped with all its children on the way out."""
        local = implementation.local
        if local is None:
            raise StartError(f"{implementation.name} has no local block")
        port = self.server_port or free_port()
        if self.server_port:
            require_free_port(port)
        chosen = requirements.select_tools(implementation)
        base = toolchain.tool_environment(chosen.values(), environment.server_environment())
        variables = base | contract_variables(database, port) | local.env
        if upstream := upstream_for(implementation):
            variables["UPSTREAM_URL"] = upstream.url
        safe_write.make_folder(log.parent)
        with ExitStack() as stack:
            account, own = stack.enter_context(self.serve_as(implementation))
            variables |= own
            stack.callback(process.truncate_log, log)  # once all that writes it has stopped, started well or not
            spawn.start_guardian()  # not a part of the server's startup time
            began = time.monotonic()
            with safe_write.append(log, private=True) as output, naming_run_command(implementation):
                options = process.ProcessOptions(
                    cwd=implementation.folder, env=variables, account=account, cpus=self.server_cpus, isolated=True
                )
                child = process.Child(local.run, options, stdout=output)
            stack.enter_context(process.running(child))
            program = LocalProgram(implementation.name, child, log)
            endpoint = Endpoint(host="127.0.0.1", port=port)
            server = Server(implementation=implementation, endpoint=endpoint, meter=program, upstream=upstream)
            try:
                server.startup_time = wait_until_ready(server, ready_path, began, program.listens_elsewhere)
                program.require_listening(port)
            except StartError as error:
                said = f"{implementation.name}: {error}\n{process.tail(log)}\nlog: {log}"
                raise StartError(said + describe_run_command(implementation, log)) from error
            except ServerDiedError as error:
                raise ServerDiedError(f"{error}{describe_run_command(implementation, log)}") from error
            yield server

    def own_generator(self) -> str:
        """The path of the program, built by cargo."""
        return str(crates.loadgen_program())

    def generator(
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> AbstractContextManager[GeneratorProgram]:
        """A process of this machine, which may write wherever the harness may."""
        if not Path(program).is_absolute():
            tool = toolchain.find_tool(program)
            if tool is None:
                raise EnvironmentLacksError(advice.describe_missing(program, ">=0"))
            program = str(tool.program)
        wrk_scripts = {path.name: str(path) for path in (TOOLSET / "wrk").glob("*.lua")}
        command = [program, *(wrk_scripts.get(argument, argument) for argument in arguments)]
        return run_generator(command, waits_for_go=waits_for_go, cpus=self.other_cpus)

    def versions(self) -> dict[str, str]:
        """What wrk and PostgreSQL call themselves."""
        found = {kind: toolchain.find_tool(kind) for kind in ("wrk", "postgres")}
        return {kind: ".".join(map(str, tool.version)) for kind, tool in found.items() if tool}


def describe_command_error(implementation: Implementation, key: str, error: TfbError) -> str:
    """Return an error of a command with the framework and the key of its file that holds the command."""
    return f"{implementation.name}: {key} of {implementation.folder / CONFIG_FILE}: {error}"


@contextmanager
def naming_run_command(implementation: Implementation) -> Iterator[None]:
    """Turn a program that cannot be started into a StartError that names the framework and ``local.run``."""
    try:
        yield
    except EnvironmentLacksError as error:
        raise StartError(describe_command_error(implementation, "local.run", error)) from error


def describe_run_command(implementation: Implementation, log: Path) -> str:
    """Return the command of a server that did not come up, with its key, and what its log suggests."""
    command = shlex.join(implementation.local.run if implementation.local else ())
    where = f"\ncommand: {command} (local.run of {implementation.folder / CONFIG_FILE})"
    return where + install_scripts.script_hint(implementation.folder, process.tail(log, 50))


def contract_variables(database: DatabaseAddress, port: int) -> dict[str, str]:
    """The environment that every implementation reads."""
    return {
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "DBHOST": database.host,
        "DBPORT": str(database.port),
        "DBNAME": database.name,
        "DBUSER": database.user,
        "DBPASS": database.password,
    }


def require_free_port(port: int) -> None:
    """Raise StartError that names who listens on a port of this machine: it would answer in the server's place."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError as error:
            raise StartError(f"port {port} is not for this user: choose one above 1023") from error
        except OSError as error:
            raise StartError(
                f"port {port} is taken by {describe_listener(port)}: stop it, or choose another with --server-port"
            ) from error


def describe_listener(port: int) -> str:
    """Who listens on a port: ``nginx (pid 812)``, as far as this user may see."""
    with contextlib.suppress(psutil.Error):  # it may end while we look
        for connection in psutil.net_connections(kind="tcp"):
            there = connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN
            if there and connection.pid is not None:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return "a process that this user may not see"
