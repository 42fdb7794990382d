"""Connects to a server's Unix socket, and rejects sockets that belong to other processes.

A hostile server could replace the socket file at any time, for example with a link to the container engine's socket.
For each connection, tfb therefore opens the file, connects through the open descriptor, and checks two conditions:

- The path contains no link below the server's folder, and the file is a socket.
- The listening process has the server's account and, if other programs use the account, is in the server's process
  tree. SO_PEERCRED names the process that called listen(2).

Load generators cannot check these conditions. They get a path in /proc that leads to the checked file, even if the
server replaces the file.
"""

import errno
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import LoadError, StartError
from harness.records import confined

CONNECT_SECONDS = 10.0  # time limit for a connection attempt; loadgen has the same limit
CREDENTIALS = struct.Struct("iII")  # struct ucred of unix(7): pid, uid, gid
REFUSED = (errno.ELOOP, errno.EINVAL, errno.ENOTDIR)  # a link in the path, or not a socket
EXPECTED = (
    "tfb connects only to a socket that this server itself created, at a path without links. Let the server create the "
    "socket file that service.listen names"
)


class UnixSocket:
    """The Unix socket ``name`` in a server's folder. ``is_own`` returns whether a pid and uid belong to the server."""

    def __init__(self, folder: Path, name: str, is_own: Callable[[int, int], bool]) -> None:
        self.path = folder / name
        self._folder, self._name, self._is_own = folder, name, is_own
        self._checking = threading.Lock()
        # The file that was last checked successfully; initially /dev/null.
        self._checked = os.open(os.devnull, os.O_PATH | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._checked)

    def connect(self, seconds: float) -> socket.socket:
        """Return a connection with a timeout. Raises StartError if the socket does not belong to the server."""
        with self._opened() as file:
            connection = _connect(f"/proc/self/fd/{file}", seconds)
            try:
                self._check(connection, file)
            except BaseException:
                connection.close()
                raise
            return connection

    def checked_path(self) -> str:
        """Return a path that leads to the checked file even if the server replaces the socket file.

        Raises StartError or LoadError.
        """
        try:
            with self._opened() as file:
                checked = os.path.sameopenfile(self._checked, file)
            if not checked:  # connect only if necessary, because servers log connections without requests as errors
                self.connect(CONNECT_SECONDS).close()
        except OSError as error:
            message = f"tfb cannot connect to {self.path}: {error}. The server may have exited: read its log"
            raise LoadError(message) from error
        return f"/proc/{os.getpid()}/fd/{self._checked}"

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the socket file. Raises StartError if the path contains a link or the file is not a socket."""
        try:
            with confined.opened_socket(self._folder, self._name) as file:
                yield file
        except OSError as error:
            if error.errno in REFUSED:
                raise StartError(f"{self.path}: {error.filename} {error.strerror}: {EXPECTED}") from error
            raise

    def _check(self, connection: socket.socket, file: int) -> None:
        """Raise StartError if a different process is listening. Skip the check if this file has already passed it."""
        with self._checking:
            if os.path.sameopenfile(self._checked, file):
                return
            data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
            pid, uid, _ = CREDENTIALS.unpack(data)
            if not self._is_own(pid, uid):
                raise StartError(f"{self.path} belongs to a different process (pid {pid}, uid {uid}): {EXPECTED}")
            os.dup2(file, self._checked, inheritable=False)


def _connect(path: str, seconds: float) -> socket.socket:
    """Return a connection to a Unix socket. If the queue is full, wait, as the kernel does for TCP."""
    connection, deadline = socket.socket(socket.AF_UNIX), time.monotonic() + seconds
    connection.settimeout(seconds)
    try:
        while True:
            try:
                connection.connect(path)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.002)
            else:
                return connection
    except OSError:
        connection.close()
        raise
