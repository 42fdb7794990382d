"""Container limits: memory, processes and log size."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil

from harness.errors import UsageError

MIN_MEMORY_BYTES = 6 << 20  # smallest limit that the engine accepts
SIZE = re.compile(r"(\d{1,12})([bkmg]?)b?", re.IGNORECASE)
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
LOGGING: Mapping[str, Any] = {"driver": "json-file", "options": {"max-size": "20m", "max-file": "1"}}
LOG_FLAGS = ("--log-driver", "json-file", "--log-opt", "max-size=20m", "--log-opt", "max-file=1")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """A container's limits. By default, the container may use half of the machine's memory."""

    memory_bytes: int = field(default_factory=lambda: psutil.virtual_memory().total // 2)
    pids: int = 4096  # processes and threads

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the ``docker run`` arguments that set these limits. Swap is not allowed."""
        memory = str(self.memory_bytes)
        return ("--memory", memory, "--memory-swap", memory, "--pids-limit", str(self.pids), *LOG_FLAGS)


def parse_server_limits(memory: str | None, pids: int | None) -> Limits:
    """Parse the flags that limit a server's container. Raises UsageError if ``memory`` is not a valid size."""
    default = Limits()
    memory_bytes = default.memory_bytes
    if memory:
        match = SIZE.fullmatch(memory)
        if match is None:
            raise UsageError(f"--test-container-memory: {memory!r} is not a valid size. Use a size such as 512m or 2g")
        memory_bytes = int(match[1]) * UNITS[match[2].lower()]
        if memory_bytes < MIN_MEMORY_BYTES:
            raise UsageError(f"--test-container-memory: {memory!r} is too small: the engine requires at least 6m")
    return Limits(memory_bytes=memory_bytes, pids=pids or default.pids)
