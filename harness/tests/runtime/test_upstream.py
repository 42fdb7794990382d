"""Tests for the upstream server's counters."""

import http.client
import os
import signal
import threading
from urllib.parse import urlsplit

import pytest

from harness.errors import StartError
from harness.runtime.upstream import UpstreamProcess


def sum_of_calls(url: str, times: int) -> int:
    address = urlsplit(url)
    line = http.client.HTTPConnection(f"{address.hostname}", address.port, timeout=10)
    total = 0
    for _ in range(times):
        line.request("GET", address.path)
        total += int(line.getresponse().read())
    line.close()
    return total


@pytest.mark.gallery  # compiles the upstream server
@pytest.mark.needs("cargo", ">=1.85")
def test_upstream_counts_calls_since_the_reset() -> None:
    running = UpstreamProcess()
    try:
        sum_of_calls(running.url, 3)
        reset = threading.Thread(target=running.reset)
        os.kill(running.child.pid, signal.SIGSTOP)
        reset.start()
        reset.join(0.3)
        assert reset.is_alive()
        os.kill(running.child.pid, signal.SIGCONT)
        reset.join(10)
        assert not reset.is_alive()
        total = sum_of_calls(running.url, 5)
        stats = running.stats()
        assert (stats.calls, stats.sum) == (5, total)
    finally:
        running.child.stop()
    with pytest.raises(StartError, match="toolset/upstream exited"):
        running.stats()
