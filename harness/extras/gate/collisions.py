"""Explains why a side (base, control copy or head) failed.

Sides collide if they need the same port, file or lock. To detect a collision, tfb restarts a failed side
without the other sides.
"""

import os
import pwd
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from harness.errors import TfbError
from harness.extras.gate.paired import COPY
from harness.plan.implementation import Implementation
from harness.records.run_records import ProcessRecord
from harness.records.verification_record import Outcome
from harness.runtime import NO_DATABASE, DatabaseAddress, Runtime, Server
from harness.runtime.local import LocalProgram
from harness.verify.verifier import Verifier

DENIED = re.compile(
    r"EACCES|EPERM|EROFS|permission denied|operation not permitted|read-only file system|failed to map segment",
    re.IGNORECASE,
)
NO_REPOSITORY = re.compile(r"not a git repository|unable to detect version|\.git can't be found", re.IGNORECASE)
PATH = re.compile(r"(?<![\w:/.])(?:\.{0,2}/)[^\s'\"`,;:()<>\[\]]+")
OWN_FOLDERS = "The side may write only to its folder, HOME and TMPDIR"


def explain_failure(output: str, folder: Path, account: str) -> str:
    """Return the cause and remedy of a failed build or start, or "" if the output does not show the cause."""
    for line in output.splitlines():
        if DENIED.search(line):
            return _explain_denial(line, folder, account)
        if NO_REPOSITORY.search(line) and not any((place / ".git").exists() for place in (folder, *folder.parents)):
            return (
                f"cause: {folder} has no .git folder, because the side is a copy of a folder outside a git repository. "
                "Compare revisions of a repository (--base main), or pass the version to the build through build_env"
            )
    return ""


def _explain_denial(line: str, folder: Path, account: str) -> str:
    for path in _paths(line, folder):
        if not path.is_dir() and path.exists() and os.statvfs(path).f_flag & os.ST_NOEXEC:
            return (
                f"cause: {path} cannot be executed, because its file system is mounted with noexec. Set TMPDIR to a "
                "folder on a different file system, and compare again"
            )
        if path.exists() and not (path.is_dir() or path.stat().st_mode & 0o111):
            return f"cause: {path} is not executable: run chmod +x and commit it, or start it with its interpreter"
        place = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
        if not path.is_relative_to(folder):
            return (
                f"cause: the side's account ({account}) may not access {path} ({_owner(place)}). {OWN_FOLDERS}: use a "
                "path in one of these folders, for example by setting a variable in service.env"
            )
    return f"cause: the side's account ({account}) may not access a file. {OWN_FOLDERS}"


def _paths(line: str, folder: Path) -> Iterator[Path]:
    """Yield the paths in a log line. Resolve relative paths against the service's folder."""
    for match in PATH.finditer(line):
        with suppress(OSError):
            yield Path(os.path.normpath(folder / match[0].rstrip(".")))


def _owner(path: Path) -> str:
    """Describe which account owns a path."""
    try:
        uid = path.stat().st_uid
    except OSError:
        return "its owner is unknown"
    with suppress(KeyError):
        return f"{path} belongs to {pwd.getpwuid(uid).pw_name}"
    return f"{path} belongs to uid {uid}"


LOG_BYTES = 1 << 20  # search only this many bytes at the end of a log
# Messages that programs print if a port, a pid file or a lock is already in use.
IN_USE = re.compile(
    r"EADDRINUSE|EEXIST|EWOULDBLOCK|already (?:in use|running|bound|locked|exists|started|active|allocated)|file exists"
    r"|another (?:\w+ )?(?:instance|process|server)|pid ?file|resource temporarily unavailable|pool overlaps"
    r"|(?:is|was|database) locked|lock(?:ed)? by|(?:get|acquire|obtain|take|hold).{0,40}\block\b|\bin use by\b",
    re.IGNORECASE,
)
PORT = re.compile(r"(?:\bport\D{0,9}|[\d\])*]:|:::|localhost:)(\d{2,5})\b", re.IGNORECASE)


class CollisionError(TfbError):
    """A conflict between sides that need the same port, file or lock."""


@dataclass(kw_only=True)
class CollisionWatch:
    """The running sides, and the files and additional ports that they use."""

    up: dict[str, Server] = field(default_factory=dict)
    ports: dict[str, set[int]] = field(default_factory=dict)  # side -> additional ports (see ``second_ports``)
    files: dict[str, str] = field(default_factory=dict)  # path of a file in use -> side that uses it

    def look(self) -> None:
        """Record the additional ports of all running sides."""
        for side, server in self.up.items():
            self.ports.setdefault(side, set()).update(second_ports(server))

    def find_owners(self, log: Path, uids: Mapping[str, int]) -> None:
        """Record which running side uses each file that a failed side's log reports as in use.

        ``uids`` maps each side to its account's uid. It is empty if the sides share an account.
        """
        for path in {each for line in _lines_in_use(log) for each in _named_paths(line)}:
            for side, server in self.up.items():
                if _uses(server, path) or (side in uids and _uid_of(path) == uids[side]):
                    self.files[path] = side


def _named_paths(line: str) -> list[str]:
    return [match[0].rstrip(".") for match in PATH.finditer(line)]


def _uid_of(path: str) -> int | None:
    with suppress(OSError):
        return Path(path).lstat().st_uid
    return None


def _uses(server: Server, path: str) -> bool:
    """Return whether any of a side's processes has the file or Unix socket ``path`` open."""
    if not isinstance(server.program, LocalProgram):
        return False
    with suppress(TfbError):  # the server has exited
        for pid in server.program.read().pids:
            with suppress(psutil.Error):
                running = psutil.Process(pid)
                opened = [each.path for each in running.open_files()]
                if path in (*opened, *(each.laddr for each in running.net_connections("unix"))):
                    return True
    return False


def second_ports(server: Server) -> set[int]:
    """Return the ports on which a side's processes listen, except for the port that receives tfb's requests."""
    if not isinstance(server.program, LocalProgram):
        return set()
    try:
        return server.program.listening_ports() - {server.endpoint.port}
    except TfbError:  # the server has exited
        return set()


def require_no_collision(
    runtime: Runtime,
    watch: CollisionWatch,
    implementations: Sequence[Implementation],
    processes: Sequence[ProcessRecord],
    folder: Path,
) -> None:
    """Restart each failed side alone, and raise CollisionError if it then works. Call this when no side is running.

    Skip a side that had started, unless its log reports a port, file or lock in use.
    """
    for process in processes:
        if process.status != "failed" or process.log is None:
            continue
        lines = _lines_in_use(folder / process.log)
        if process.startup_time is not None and not lines:
            continue
        side = next((each for each in implementations if each.name == process.implementation), None)
        if side is None or (ports := _ports_alone(runtime, side, folder / "logs" / side.name / "alone")) is None:
            continue
        raise CollisionError(_describe(side.name, ports, watch, lines))


def _lines_in_use(log: Path) -> list[str]:
    """Return the log lines that report a port, file or lock in use."""
    try:
        text = log.read_bytes()[-LOG_BYTES:].decode(errors="replace")
    except OSError:
        return []
    return [" ".join(line.split())[:300] for line in text.splitlines() if IN_USE.search(line)]


def _ports_alone(runtime: Runtime, side: Implementation, log: Path) -> set[int] | None:
    """Start and verify a side alone. Return its additional ports (see ``second_ports``), or None if the side fails."""
    try:
        with ExitStack() as stack:
            address: DatabaseAddress = NO_DATABASE
            if side.entry.database != "none":
                database = stack.enter_context(runtime.database())
                address = stack.enter_context(database.private_database(f"{side.name}-alone", empty=True)).address
            server = stack.enter_context(runtime.start(side, address, log, ready_path=side.ready_path))
            verifier = Verifier()
            for kind in side.test_types.values():
                verdict = verifier.verify_test_type(server, kind, address, process=1, thorough=False, loads=())
                if verdict.outcome is Outcome.FAIL:
                    return None
            time.sleep(3.0)  # a working side must keep running for this long
            server.program.require_alive()
            return second_ports(server)
    except TfbError:
        return None


def _describe(side: str, ports: set[int], watch: CollisionWatch, lines: Sequence[str]) -> str:
    """Return an error message that names the shared port or file, the side that uses it, and a remedy."""
    others = {name: taken for name, taken in watch.ports.items() if name != side}
    ports_in_log = {int(port) for line in lines for port in PORT.findall(line)}
    shared_ports = {
        port: name for name, taken in reversed(others.items()) for port in taken if port in ports | ports_in_log
    }
    failure = f"{_called(side)} fails while the other sides run, but works alone"
    if shared_ports:
        port = min(shared_ports)
        return (
            f"the sides collide on port {port} (in use by {_called(shared_ports[port])}): {failure}. In service.env, "
            "derive this port from PORT, set it to 0, or turn off the listener"
        )
    path = next((each for line in lines for each in sorted(_named_paths(line), key=watch.files.__contains__)[-1:]), "")
    owner = f" (in use by {_called(watch.files[path])})" if path in watch.files else ""
    on = f" on {path}{owner}" if path else f" on port {min(ports_in_log)}" if ports_in_log else ""
    said = f" (its log: {lines[0]})" if lines else ""
    return (
        f"the sides collide{on}: {failure}{said}. Keep files, locks and sockets in the service's folder, HOME or "
        "TMPDIR, which the sides do not share, and derive additional ports from PORT"
    )


def _called(side: str) -> str:
    return "base's copy" if side == COPY else side
