"""Meters a container of a distributed run: for each line on standard input, prints one reading as a JSON line.

    meter.py PID PORT     meters the container of process PID and, unless PORT is 0, the connections to PORT

The program runs until standard input is closed. It runs on the metered container's machine, in a container with the
host's process, control-group and network namespaces. The image contains ``harness/host/metering.py`` and
``sockets.py``. Each reading includes the machine's monotonic time, so the machines' clocks need not be synchronised. If
the metered container exits, the program prints {"gone": reason} and exits.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from harness.errors import ServerDiedError
from harness.host.metering import CgroupMeter
from harness.host.sockets import SocketMeter


def steal() -> list[int]:
    """Return the CPU ticks stolen by the hypervisor, and the total CPU ticks, since boot."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:9]]
    return [ticks[7], sum(ticks)]


def main() -> None:
    """Print a reading for each input line."""
    pid, port = int(sys.argv[1]), int(sys.argv[2])
    try:
        group, sockets = CgroupMeter(pid), SocketMeter(port, served=True) if port else None
        print(json.dumps({"ready": True}), flush=True)
        for _ in sys.stdin:
            counters = sockets.read() if sockets else None
            line = {"reading": asdict(group.read()), "steal": steal(), "sockets": counters and asdict(counters)}
            print(json.dumps(line), flush=True)
    except ServerDiedError as error:
        print(json.dumps({"gone": str(error)}), flush=True)


main()
