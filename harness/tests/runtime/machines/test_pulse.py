"""Whether an engine is there is told within its patience, and again once it answers."""

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from harness.runtime.machines.pulse import Pulse


def until(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


def test_an_engine_that_hangs_is_silent_until_it_answers(tmp_path: Path) -> None:
    path = tmp_path / "s"
    hangs = threading.Event()
    hangs.set()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(16)  # a stopped engine's kernel accepts for it

        def answer() -> None:
            while True:
                try:
                    asked, _ = listener.accept()
                except OSError:
                    return
                with asked:
                    if not hangs.is_set():
                        asked.recv(200)
                        asked.sendall(b"HTTP/1.1 200 OK\r\n\r\nOK")
                    else:
                        hanging.append(asked.dup())

        hanging: list[socket.socket] = []
        threading.Thread(target=answer, daemon=True).start()
        pulse = Pulse(path, every=0.01, patience=0.05)
        assert until(lambda: pulse.silent is not None)
        assert pulse.silent == "has not answered for 0 s"
        hangs.clear()
        assert until(lambda: pulse.silent is None)
        listener.shutdown(socket.SHUT_RDWR)
        pulse.close()
        for each in hanging:
            each.close()


def test_an_engine_to_which_nobody_listens_answers_no_more(tmp_path: Path) -> None:
    pulse = Pulse(tmp_path / "none", every=0.01, patience=0.05)
    assert until(lambda: pulse.silent == "answers no more")
    pulse.close()
