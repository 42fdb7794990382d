"""Whether an engine is there: asked each second through its forwarded socket, by a thread of its own."""

import socket
import threading
from pathlib import Path

EVERY_SECONDS = 1.0
PATIENCE_SECONDS = 5.0
GONE = 2  # connections in a row that end without a word: an engine that is starting anew refuses one
REQUEST = b"GET /_ping HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n"


class Pulse:
    """Follows one engine until ``close``; ``silent`` says what is wrong as long as something is.

    An engine that hangs keeps its connections, and containers run on under it: nothing else would tell.
    """

    def __init__(self, path: Path, *, every: float = EVERY_SECONDS, patience: float = PATIENCE_SECONDS) -> None:
        self._path, self._every, self._patience = path, every, patience
        self._silent: str | None = None
        self._refused = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="pulse", daemon=True)
        self._thread.start()

    @property
    def silent(self) -> str | None:
        """What is wrong, in words that follow the machine's name; None while it answers."""
        return self._silent

    def close(self) -> None:
        """Ask no more."""
        self._over.set()

    def _follow(self) -> None:
        while not self._over.wait(self._every):
            try:
                answered = self._ask()
            except TimeoutError:
                self._silent = f"has not answered for {self._patience:.0f} s"
                continue
            except OSError:  # nobody listens: the ssh session has ended, which is seen as such
                answered = False
            self._refused = 0 if answered else self._refused + 1
            if self._refused < GONE:
                self._silent = None
            else:
                self._silent = "answers no more"

    def _ask(self) -> bool:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(self._patience)
            asked.connect(str(self._path))
            asked.sendall(REQUEST)
            return asked.recv(16).startswith(b"HTTP/1.")
