"""A link between two machines: round trip and throughput, by TCP, within two seconds.

link.py serve ADDRESS     prints {"port": n}, answers one partner, ends with its standard input
link.py ask ADDRESS PORT  prints {"round_trip": seconds, "throughput": bytes a second}
link.py facts             prints limits and kernel settings of this machine
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

TURNS = 300
SECONDS = 1.0
BLOCK = bytes(1 << 18)
SETTINGS = {
    "somaxconn": "/proc/sys/net/core/somaxconn",
    "port_range": "/proc/sys/net/ipv4/ip_local_port_range",
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "tcp_tw_reuse": "/proc/sys/net/ipv4/tcp_tw_reuse",
    "load": "/proc/loadavg",
}


def serve(address: str) -> None:
    """Echo small messages, swallow what follows them, and say how much it was."""
    with socket.create_server((address, 0)) as listener:
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
        threading.Thread(target=_leave_with_input, daemon=True).start()
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(TURNS):
                connection.sendall(connection.recv(1))
            total = 0
            while part := connection.recv(1 << 20):
                total += len(part)
            connection.sendall(json.dumps(total).encode() + b"\n")


def ask(address: str, port: int) -> None:
    """Median round trip of one byte, then as many bytes as go within a second."""
    with socket.create_connection((address, port), timeout=5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(TURNS):
            began = time.perf_counter()
            connection.sendall(b"x")
            connection.recv(1)
            times.append(time.perf_counter() - began)
        began = time.perf_counter()
        while time.perf_counter() - began < SECONDS:
            connection.sendall(BLOCK)
        connection.shutdown(socket.SHUT_WR)
        total = json.loads(connection.recv(100))
        print(
            json.dumps(
                {
                    "round_trip": statistics.median(times),
                    "throughput": total / (time.perf_counter() - began),
                }
            )
        )


def facts() -> None:
    """What a load depends on, as far as it can be read; unknown is null."""
    found: dict[str, object] = {"now": time.time(), "nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1]}
    for name, path in SETTINGS.items():
        try:
            found[name] = Path(path).read_text(encoding="utf-8").strip()
        except OSError:
            found[name] = None
    print(json.dumps(found))


def _leave_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


match sys.argv[1:]:
    case ["serve", address]:
        serve(address)
    case ["ask", address, port]:
        ask(address, int(port))
    case ["facts"]:
        facts()
    case _:
        sys.exit(__doc__)
