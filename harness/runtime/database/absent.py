"""In place of the shared PostgreSQL, for services that need none or bring their own."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.runtime import NO_DATABASE, DatabaseAddress


class NoDatabase:
    """A ``SharedDatabase`` in which there is nothing: never down, never full."""

    address: DatabaseAddress = NO_DATABASE
    divisible = True  # there is nothing to get into each other's way with

    def restore(self) -> None:
        """Nothing to do."""

    def meter(self) -> None:
        """Nothing to read."""

    def crash_reason(self) -> None:
        """It never ends."""

    @contextmanager
    def own(self, _name: str) -> "Iterator[NoDatabase]":
        """The same nothing."""
        yield self

    def connections_free(self) -> None:
        """None are needed."""
