"""Reads server and socket counters each second during a load, and computes a window for each second."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import LoadError
from harness.experiment.generators import LoadResult, LoadRun
from harness.host.clock import Clock
from harness.host.metering import Reading
from harness.host.sockets import SocketCounters
from harness.records.measurements import ServerUsage, Window
from harness.runtime import ConnectionTracker, Meter, RunningGenerator

WINDOW_SECONDS = 1.0
MIN_REQUESTS = 100  # with fewer requests, unfinished requests would distort the ratio of responses to requests


@dataclass(frozen=True)
class _Moment:
    reading: Reading
    sockets: SocketCounters | None


class LoadWindows:
    """Counter readings during a load, and the windows between consecutive readings."""

    def __init__(self, meter: Meter, sockets: ConnectionTracker, load: LoadRun, response_bytes: float | None) -> None:
        self._meter = meter
        self._sockets = sockets
        self._load = load
        self._response_bytes = response_bytes
        self._first = self._read()
        self._moments = [self._first]  # boundaries of the windows
        self._middle_of_first: SocketCounters | None = None  # counters in the middle of the first window

    def _read(self) -> _Moment:
        return _Moment(self._meter.read(), self._sockets.read())

    def follow(
        self, running: RunningGenerator, clock: Clock, max_seconds: float, on_window: Callable[[Window], None]
    ) -> None:
        """Read the counters each second until the generator exits.

        Raises LoadError if the generator is still running after ``max_seconds``.
        """
        started_at = clock.monotonic()
        # Wait until the generator has connected, because its container may take seconds to start. Give up after 5 s.
        while not self._is_connected(self._sockets.read()) and clock.monotonic() - started_at < 5.0:
            if running.wait(0.01) is not None:
                break
        started_at, tick = clock.monotonic(), 1
        self._moments = [self._read()]  # exclude the generator's startup from the windows
        # Also count connections after half a second, because a one-second load may end before the first window does.
        if running.wait(WINDOW_SECONDS / 2) is None:
            self._middle_of_first = self._sockets.read()
        while running.wait(started_at + tick * WINDOW_SECONDS - clock.monotonic()) is None:
            self._moments.append(self._read())
            on_window(self._window(self._moments[-2], self._moments[-1], self._response_bytes))
            if clock.monotonic() - started_at > max_seconds:
                late = max_seconds - self._load.seconds
                raise LoadError(
                    f"the load on {self._load.url} should have ended {late:.0f} s ago, "
                    "but its generator is still running"
                )
            tick = max(tick, int((clock.monotonic() - started_at) / WINDOW_SECONDS)) + 1
        self._end = self._meter.read()  # read only CPU time and memory, because the sockets are closed by now

    def windows(self, response_bytes: float | None) -> tuple[Window, ...]:
        """Return the windows that ended while the generator was connected.

        The number of responses in a window is computed from ``response_bytes``, the mean response size.
        """
        pairs = zip(self._moments, self._moments[1:], strict=False)
        return tuple(
            self._window(before, after, response_bytes) for before, after in pairs if self._is_connected(after.sockets)
        )

    def _window(self, before: _Moment, after: _Moment, size: float | None) -> Window:
        responses = None
        if before.sockets and after.sockets and size:
            responses = round((after.sockets.bytes_received - before.sockets.bytes_received) / size, 1)
        return Window(
            start=round(before.reading.read_at - self._first.reading.read_at, 4),
            duration=round(after.reading.read_at - before.reading.read_at, 4),
            responses=responses,
            server_cpu=round(after.reading.cpu_seconds - before.reading.cpu_seconds, 4),
            wait_share=_wait_share(before.reading, after.reading),
            compiler_cpu=_compiler_cpu(before.reading, after.reading),
            rss=after.reading.rss,
            connections=self._generator_connections(after.sockets),
        )

    def _generator_connections(self, sockets: SocketCounters | None) -> int | None:
        """Return the number of connections that the generator has opened, or None if unknown."""
        first = self._first.sockets
        return sockets.connections - first.connections if first and sockets else None

    def _is_connected(self, sockets: SocketCounters | None) -> bool:
        """Return whether the generator is connected. If the sockets cannot be read, return True."""
        connections = self._generator_connections(sockets)
        # Require two connections, because a single connection may belong to a readiness check.
        return connections is None or connections >= min(self._load.load.connections, 2)

    def _socket_readings(self) -> list[SocketCounters | None]:
        return [moment.sockets for moment in self._moments] + [self._middle_of_first]

    def max_connections(self) -> int | None:
        """Return the maximum number of established connections during the load, or None if unknown.

        The minimum would be misleading, because a busy machine accepts connections slowly, and wrk closes them before
        the load ends. Connections that are lost during the load count as errors anyway.
        """
        counts = [self._generator_connections(sockets) for sockets in self._socket_readings()[1:]]
        return max((count for count in counts if count is not None), default=None)

    def responses_per_request(self, result: LoadResult) -> float | None:
        """Return the ratio of responses to requests, estimated from the sockets' byte counts, or None if unknown."""
        last = max((read for read in self._socket_readings() if read), key=lambda read: read.bytes_sent, default=None)
        first = self._first.sockets
        # A service's declared requests vary in size, so their number cannot be computed from bytes.
        if first is None or last is None or not result.requests or self._load.requests:
            return None
        requests = (last.bytes_sent - first.bytes_sent) / self._load.request_bytes
        responses = (last.bytes_received - first.bytes_received) / (result.bytes / result.requests)
        return responses / requests if requests >= MIN_REQUESTS else None

    def server_usage(self) -> ServerUsage:
        """Return the resources that the server used while the generator was running."""
        first, end = self._first.reading, self._end
        readings = [*(moment.reading for moment in self._moments[1:]), end]
        throttled = None
        if first.throttled_seconds is not None and end.throttled_seconds is not None:
            throttled = end.throttled_seconds - first.throttled_seconds
        idle = None
        if first.idle_seconds is not None and end.idle_seconds is not None:
            idle = round(max(0.0, end.idle_seconds - first.idle_seconds), 4)
        return ServerUsage(
            cpu_seconds=end.cpu_seconds - first.cpu_seconds,
            rss_peak=max((each.rss for each in readings if each.rss is not None), default=None),
            wait_share=_wait_share(first, end),
            compiler_cpu_seconds=_compiler_cpu(first, end),
            throttled_seconds=throttled,
            pids=end.pids,
            threads_peak=max((each.threads for each in readings if each.threads is not None), default=None),
            idle_seconds=idle,
        )


def _wait_share(before: Reading, after: Reading) -> float | None:
    """Return the fraction of the server's runnable time that it spent waiting in a run queue, or None if unknown."""
    if None in (before.run_seconds, before.wait_seconds, after.run_seconds, after.wait_seconds):
        return None
    run = (after.run_seconds or 0) - (before.run_seconds or 0)
    wait = (after.wait_seconds or 0) - (before.wait_seconds or 0)
    return round(wait / (wait + run), 4) if wait + run > 0 else None


def _compiler_cpu(before: Reading, after: Reading) -> float | None:
    """Return compiler threads' CPU seconds between two readings, or None if the server has no compiler threads."""
    if after.compiler_seconds is None:
        return None
    return round(after.compiler_seconds - (before.compiler_seconds or 0.0), 4)
