"""Stands between the docker client and the engine, and fails as an engine does: it hangs, or it is gone.

For the client it is the engine: every byte passes through, until it is told to stop. The engine itself goes on, so that
nobody else on the machine is harmed, and containers go on as under an engine that is stopped or killed.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.faults.promises import CannotBeProducedError

ENGINE = "/var/run/docker.sock"
BLOCK = 1 << 16
MOST_CLIENTS = 128  # that wait in the kernel


class Relay:
    """A socket of its own before the engine's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._flows = threading.Event()
        self._flows.set()
        self._ends: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(MOST_CLIENTS)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.path}"

    def hang(self) -> None:
        """Answer nothing any more, as an engine under SIGSTOP: connections are accepted by the kernel alone."""
        self._flows.clear()

    def stop(self) -> None:
        """Be gone, with every connection, as an engine that was stopped."""
        self.path.unlink(missing_ok=True)
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(_engine())
                self._ends += [client, engine]
                for source, target in ((client, engine), (engine, client)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(BLOCK):
                self._flows.wait()
                target.sendall(data)
            self._flows.wait()
            target.shutdown(socket.SHUT_WR)


def _engine() -> str:
    host = os.environ.get("DOCKER_HOST", f"unix://{ENGINE}")
    if not host.startswith("unix://"):
        raise CannotBeProducedError(f"the engine is at {host}, not at a socket of this machine")
    return host.removeprefix("unix://")


@contextmanager
def relay(folder: Path) -> Iterator[Relay]:
    """Until the end of the block."""
    _engine()
    between = Relay(folder / "engine.sock")
    try:
        yield between
    finally:
        between.stop()
