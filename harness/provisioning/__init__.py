"""Finds, builds and installs the programs that tfb runs: tools, Debian packages, Rust crates, a container engine."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness.units import format_elapsed

# Logger that reports the start of a step at level DEBUG, and its end and duration at level INFO.
STEPS = logging.getLogger("tfb.steps")


@contextmanager
def step(task: str) -> Iterator[None]:
    """Report that a step begins. At the end of the block, report how long the step took."""
    began = time.monotonic()
    STEPS.debug("%s", task)
    yield
    STEPS.info("%s: %s", task, format_elapsed(time.monotonic() - began))
