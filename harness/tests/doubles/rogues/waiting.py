"""Rogues for the test types delay and fan-out."""

import contextlib
import threading
import time
from typing import Any

from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import Rogue, every, under_load
from harness.tests.doubles.rogues.busy import while_busy


def wait_in_turn(self: ReferenceServer, seconds: float) -> None:
    """Make concurrent delays of 200 ms queue for a thread, as in a small thread pool."""
    turns = self.state.setdefault("turns", {})
    with self.lock:
        now = time.monotonic()
        turns["free"] = max(turns.get("free", now), now) + (0.03 if seconds == 0.2 else 0.0)
        until = turns["free"]
    time.sleep(max(seconds, until - now))


def cached_call(self: ReferenceServer) -> int:
    if every(self, 20) and "number" in self.state:
        return int(self.state["number"])
    self.state["number"] = ReferenceServer.call(self)
    return int(self.state["number"])


def extra_call(self: ReferenceServer, count: int) -> bytes:
    self.call()
    return ReferenceServer.fan_out_body(self, count)


def called_later(self: ReferenceServer, count: int) -> bytes:
    """Respond with an invented sum, and call the upstream server afterwards."""

    def call() -> None:
        with contextlib.suppress(OSError):  # the upstream server may have stopped
            for _ in range(count):
                self.call()

    threading.Thread(target=call, daemon=True).start()
    return self.encode_json({"calls": count, "sum": count * 5000})


def rogue(name: str, test_type: str, caught_by: str, does: str, **change: Any) -> Rogue:
    return Rogue(name=name, test_type=test_type, caught_by=caught_by, does=does, change=change)


ROGUES = (
    rogue("half-the-delay", "delay", "never-early", "waits only half as long", wait=lambda _, seconds: time.sleep(seconds / 2)),
    rogue("delay-by-default", "delay", "delay-clamped", "waits even if the delay is malformed", milliseconds=lambda self, text: 500 if text == "foo" else ReferenceServer.milliseconds(self, text)),
    rogue("delay-without-limit", "delay", "delay-clamped", "waits for more than a second", milliseconds=lambda self, text: 2000 if text == "2000" else ReferenceServer.milliseconds(self, text)),
    rogue("waits-in-turn", "delay", "delays-overlap", "serialises concurrent delays", wait=wait_in_turn),
    rogue("cached-calls", "fan-out", "upstream-called", "omits some calls", call=cached_call),
    rogue("a-call-too-many", "fan-out", "upstream-called", "makes one call too many", fan_out_body=extra_call),
    rogue("another-sum", "fan-out", "upstream-called", "returns a wrong sum", fan_out_body=lambda self, count: self.encode_json({"calls": count, "sum": sum(self.call() for _ in range(count)) + (count > 1)})),
    under_load("makes-sums-up-when-busy", "fan-out", "upstream-called", "invents the sum, under load", while_busy({"fan_out_body": lambda self, count: self.encode_json({"calls": count, "sum": count * 5000})})),
    under_load("calls-later-when-busy", "fan-out", "upstream-called", "responds before it calls upstream, under load", while_busy({"fan_out_body": called_later})),
    rogue("sum-alone", "fan-out", "calls-and-sum", "omits the member calls", fan_out_body=lambda self, count: self.encode_json({"sum": sum(self.call() for _ in range(count))})),
    rogue("calls-without-limit", "fan-out", "calls-clamped", "makes 101 calls", calls=lambda self, text: 101 if text == "101" else ReferenceServer.calls(self, text)),
)  # fmt: skip
