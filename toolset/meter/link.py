"""Measures the round-trip time and throughput of a TCP connection, and prints facts about a machine.

link.py serve ADDRESS     prints {"port": n}, serves a single connection, and exits when standard input is closed
link.py ask ADDRESS PORT  prints {"round_trip": seconds, "throughput": bytes per second from the server}
link.py facts [FILE ...]  prints this machine's open-file limit, CPUs and load, and the contents of files
"""

import json
import os
import resource
import socket
import statistics
import sys
import threading
import time
from pathlib import Path

TURNS = 300  # number of round trips to measure
SECONDS = 1.0  # duration of the throughput measurement, in seconds
BLOCK = bytes(1 << 18)


def serve(address: str) -> None:
    """Echo small messages, then send bytes for a second."""
    with socket.create_server((address, 0)) as listener:
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
        threading.Thread(target=_exit_after_input, daemon=True).start()
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(TURNS):
                connection.sendall(connection.recv(1))
            began = time.perf_counter()
            while time.perf_counter() - began < SECONDS:
                connection.sendall(BLOCK)


def ask(address: str, port: int) -> None:
    """Print the median round-trip time of a byte in seconds, and the throughput in bytes per second."""
    with socket.create_connection((address, port), timeout=5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(TURNS):
            began = time.perf_counter()
            connection.sendall(b"x")
            connection.recv(1)
            times.append(time.perf_counter() - began)
        began, total = time.perf_counter(), 0
        while chunk := connection.recv(1 << 20):
            total += len(chunk)
        print(
            json.dumps(
                {
                    "round_trip": statistics.median(times),
                    "throughput": total / (time.perf_counter() - began),
                }
            )
        )


def facts(files: list[str]) -> None:
    """Print machine facts that affect a load. Facts that cannot be read are null."""
    document = {
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "cpus": sorted(os.sched_getaffinity(0)),
        "load": text("/proc/loadavg"),
        "files": {path: text(path) for path in files},
    }
    print(json.dumps(document))


def text(path: str) -> str | None:
    """Return the contents of a small file, or None if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _exit_after_input() -> None:
    sys.stdin.read()
    os._exit(0)


match sys.argv[1:]:
    case ["serve", address]:
        serve(address)
    case ["ask", address, port]:
        ask(address, int(port))
    case ["facts", *files]:
        facts(files)
    case _:
        sys.exit(__doc__)
