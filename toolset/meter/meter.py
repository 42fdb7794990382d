"""Reads what a container uses, on its own machine: a line on standard input, a JSON line on standard output.

    meter.py PID PORT     the container whose first process is PID; the connections of others to PORT

Runs in a container of its own with the host's process, control-group and network namespaces, until its input ends.
Every line has the machine's own monotonic time, so that no clocks need to agree. An error is a line {"gone": reason}.
"""

import json
import os
import socket
import struct
import sys
import time

CGROUPS = "/sys/fs/cgroup"
SOCK_DIAG, SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, INFO = 4, 20, 0x301, 2
ERROR, DONE = 2, 3
BYTES_ACKED = 120  # offset in struct tcp_info; bytes received follow


class GoneError(Exception):
    """The container has no process any more."""


def text(path: str) -> str:
    """The whole of a small file."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - it is read every second: no object a file
        return file.read()


def fields(path: str) -> dict[str, int]:
    """A file of ``name number`` lines."""
    return {name: int(value) for name, value in (line.split()[:2] for line in text(path).splitlines())}


class Group:
    """The control group of a process, v1 or v2."""

    def __init__(self, pid: int) -> None:
        groups: dict[str, str] = {}
        try:
            for line in text(f"/proc/{pid}/cgroup").splitlines():
                _, controllers, path = line.split(":", 2)
                for controller in controllers.split(","):
                    groups[controller] = path.lstrip("/")
        except OSError as error:
            raise GoneError(f"process {pid} is gone") from error
        self.unified = "cpuacct" not in groups
        self.threads: dict[tuple[int, str], tuple[int, int]] = {}
        if self.unified:
            self.cpu = self.accounts = self.memory = f"{CGROUPS}/{groups['']}"
        else:
            self.cpu = f"{self._mounted('cpu')}/{groups['cpu']}"
            self.accounts = f"{self._mounted('cpuacct')}/{groups['cpuacct']}"
            self.memory = f"{CGROUPS}/memory/{groups['memory']}"

    @staticmethod
    def _mounted(controller: str) -> str:
        alone = f"{CGROUPS}/{controller}"
        return alone if os.path.isdir(alone) else f"{CGROUPS}/cpu,cpuacct"  # noqa: PTH112 - as above

    def read(self) -> dict[str, object]:
        """CPU, throttling, memory, and run-queue wait of all threads, those that have ended included."""
        try:
            pids = [int(pid) for pid in text(f"{self.accounts}/cgroup.procs").split()]
            stat = fields(f"{self.cpu}/cpu.stat")
            if self.unified:
                cpu, throttled = stat["usage_usec"] / 1e6, stat.get("throttled_usec", 0) / 1e6
            else:
                cpu = int(text(f"{self.accounts}/cpuacct.usage")) / 1e9
                throttled = stat.get("throttled_time", 0) / 1e9
        except OSError as error:
            raise GoneError("its control group is gone") from error
        if not pids:
            raise GoneError("no process is left in its control group")
        for pid in pids:
            self._threads_of(pid)
        return {
            "cpu_seconds": cpu,
            "throttled_seconds": throttled,
            "rss": self._memory(),
            "run_seconds": sum(run for run, _ in self.threads.values()) / 1e9,
            "wait_seconds": sum(wait for _, wait in self.threads.values()) / 1e9,
            "pids": pids,
        }

    def _threads_of(self, pid: int) -> None:
        try:
            for tid in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - as above
                try:
                    run, wait = text(f"/proc/{pid}/task/{tid}/schedstat").split()[:2]
                    self.threads[pid, tid] = (int(run), int(wait))
                except OSError:
                    continue  # it has ended meanwhile
        except OSError:
            return

    def _memory(self) -> int | None:
        try:
            stat = fields(f"{self.memory}/memory.stat")
        except OSError:
            return None
        if self.unified:
            return stat["anon"] + stat["file_mapped"]
        return stat["total_rss"] + stat["total_mapped_file"]


class Sockets:
    """Established connections of others to a port here, as their clients see the bytes; by sock_diag(7)."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.seen: dict[bytes, tuple[int, int]] = {}
        self.netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG)
        self.netlink.settimeout(1.0)
        self.netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def read(self) -> dict[str, int] | None:
        """Connections, bytes that the clients have received and sent; counters of closed connections are kept."""
        try:
            count = sum(self._dump(family) for family in (socket.AF_INET, socket.AF_INET6))
        except OSError:
            return None
        sent, received = (sum(each) for each in zip(*self.seen.values(), strict=True)) if self.seen else (0, 0)
        return {"connections": count, "bytes_received": sent, "bytes_sent": received}

    def _dump(self, family: int) -> int:
        wanted = struct.pack("=BBBBL", family, socket.IPPROTO_TCP, 1 << (INFO - 1), 0, 1 << 1)
        identity = struct.pack(">HH", 0, 0) + bytes(32) + struct.pack("=L", 0) + b"\xff" * 8
        # Source port at least and at most this one; a jump beyond the end rejects.
        code = struct.pack("=BBH", 2, 8, 20) + struct.pack("=BBH", 0, 0, self.port)
        code += struct.pack("=BBH", 3, 8, 12) + struct.pack("=BBH", 0, 0, self.port)
        payload = wanted + identity + struct.pack("=HH", 4 + len(code), 1) + code
        header = struct.pack("=LHHLL", 16 + len(payload), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0)
        self.netlink.send(header + payload)
        count = 0
        while True:
            data = self.netlink.recv(1 << 18)
            at = 0
            while at + 16 <= len(data):
                length, kind = struct.unpack_from("=LH", data, at)
                if kind == DONE:
                    return count
                if kind == ERROR:
                    raise OSError("sock_diag refused the request")
                count += self._take(data, at + 16, at + length)
                at += (length + 3) & ~3

    def _take(self, data: bytes, start: int, end: int) -> int:
        cookie, at = data[start + 44 : start + 52], start + 72
        while at + 4 <= end:
            length, kind = struct.unpack_from("=HH", data, at)
            if kind == INFO and length >= 4 + BYTES_ACKED + 16:
                acknowledged, received = struct.unpack_from("=QQ", data, at + 4 + BYTES_ACKED)
                self.seen[cookie] = (acknowledged, received)
                return 1
            at += (length + 3) & ~3 if length >= 4 else 4
        return 0


def steal() -> list[int]:
    """Stolen and all ticks of the machine's CPUs."""
    ticks = [int(word) for word in text("/proc/stat").splitlines()[0].split()[1:9]]
    return [ticks[7], sum(ticks)]


def main() -> None:
    """Answer a reading for every line."""
    pid, port = int(sys.argv[1]), int(sys.argv[2])
    try:
        group, sockets = Group(pid), Sockets(port) if port else None
        print(json.dumps({"ready": True}), flush=True)
        for _ in sys.stdin:
            at = time.monotonic()
            line = {"reading": {"at": at, **group.read()}, "steal": steal(), "sockets": sockets and sockets.read()}
            print(json.dumps(line), flush=True)
    except GoneError as error:
        print(json.dumps({"gone": str(error)}), flush=True)


main()
