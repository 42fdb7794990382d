"""Reads what a container uses, on its own machine: a line on standard input, a JSON line on standard output.

    meter.py PID PORT     the container whose first process is PID; the connections of others to PORT

Runs in a container of its own with the host's process, control-group and network namespaces, until its input ends. It
reads as the harness does here: ``harness/host/metering.py`` and ``sockets.py`` are in its image. Every line has the
machine's own monotonic time, so that no clocks need to agree. An error is a line {"gone": reason}.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from harness.errors import ServerDiedError
from harness.host.metering import CgroupMeter
from harness.host.sockets import SocketMeter


def steal() -> list[int]:
    """Stolen and all ticks of the machine's CPUs."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:9]]
    return [ticks[7], sum(ticks)]


def main() -> None:
    """Answer a reading for every line."""
    pid, port = int(sys.argv[1]), int(sys.argv[2])
    try:
        group, sockets = CgroupMeter(pid), SocketMeter(port, served=True) if port else None
        print(json.dumps({"ready": True}), flush=True)
        for _ in sys.stdin:
            seen = sockets.read() if sockets else None
            line = {"reading": asdict(group.read()), "steal": steal(), "sockets": seen and asdict(seen)}
            print(json.dumps(line), flush=True)
    except ServerDiedError as error:
        print(json.dumps({"gone": str(error)}), flush=True)


main()
