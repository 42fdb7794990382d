"""Makes documents in a process of its own: parsing a large ranking holds Python's one lock, and every viewer waits."""

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from harness.dashboard.making import Made, Maker, Making, Wanted
from harness.dashboard.runs import Answer
from harness.errors import StoreError

logger = logging.getLogger("tfb.dashboard")

NICENESS = 5  # whoever looks at documents that are there goes before whoever makes newer ones
STOP_SECONDS = 2.0
COLLECT = (50_000, 20, 20)  # objects made between two looks for cycles, and how many of those make a thorough one


class Apart:
    """Makes documents in another process, which is started when first needed and again when it has died.

    Thread-safe, one at a time. Raises StoreError as the maker does, ValueError for what else went wrong there, OSError
    when the process ended instead of answering.
    """

    def __init__(self, source_base: str | None, answer: Answer) -> None:
        self._arguments = source_base, answer
        self._lock = threading.Lock()
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._closed = False

    def make(self, wanted: Wanted) -> Made:
        """The documents that are wanted."""
        with self._lock:
            found = self._asked(wanted)
            if self._closed:
                raise StoreError(f"{wanted.folder.name}: the dashboard has been ended")
            if found is None:
                logger.warning("%s: the process that makes documents ended with status %s", wanted.folder, self._stop())
                found = self._asked(wanted)
            if found is None:
                raise OSError(f"the process that makes documents ended with status {self._stop()}")
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """End the process, whatever it is making."""
        self._closed = True
        if process := self._process:
            process.kill()
        with self._lock:
            self._stop()

    def _asked(self, wanted: Wanted) -> Made | StoreError | ValueError | None:
        """The answer, None from a process that ended instead."""
        if self._closed:
            return None
        try:
            connection = self._connection or self._start()
            connection.send(wanted)
            found: Made | StoreError | ValueError = connection.recv()
        except (EOFError, OSError):
            return None
        return found

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, *self._arguments), name="documents", daemon=True)
        self._process.start()
        theirs.close()  # theirs alone: it sees our end closed when we die, and we see theirs
        return self._connection

    def _stop(self) -> int | None:
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is None:
            return None
        process.join(STOP_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
        return process.exitcode


def work(connection: Connection, source_base: str | None, answer: Answer) -> None:
    """The other process: answers until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the server's, which then closes the pipe
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    collect_rarely()
    answer_all(connection, Making(source_base, answer))


def collect_rarely() -> None:
    """Look for cycles rarely: records have none, and a sample is hundreds of objects.

    Of the time that reading samples took, two fifths were Python's looking through them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)


def answer_all(connection: Connection, maker: Maker) -> None:
    """Answer every question until the other end is closed."""
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            connection.send(_answer(maker, connection.recv()))


def _answer(maker: Maker, wanted: Wanted) -> Made | StoreError | ValueError:
    try:
        return maker.make(wanted)
    except StoreError as error:
        return StoreError(str(error))
    except (OSError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        logger.exception("%s", wanted.folder.name)
        return ValueError(f"{type(error).__name__}: {error}")
