"""Finds, builds and installs the programs that tfb runs: tools, Debian packages, Rust crates, a container engine."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness.units import format_elapsed

# Receives the start of each step at level DEBUG, and the duration at level INFO.
STEPS = logging.getLogger("tfb.steps")


@contextmanager
def step(task: str) -> Iterator[None]:
    """Log the start of a step and, when the context ends, the step's duration."""
    began = time.monotonic()
    STEPS.debug("%s", task)
    yield
    STEPS.info("%s: %s", task, format_elapsed(time.monotonic() - began))
