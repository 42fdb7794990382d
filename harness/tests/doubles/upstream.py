"""An upstream server in the test's own process. It responds with random integers and records them."""

import random
import time

from harness.runtime import UpstreamStats
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import ReferenceServer


class FakeUpstream(ReferenceServer):
    """An upstream server that responds on all paths."""

    def __init__(self, delay_seconds: float = 0.0) -> None:
        super().__init__()
        self._delay = delay_seconds
        self._dice = random.Random(20260509)
        self._numbers: list[int] = []
        self.status = 200

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        time.sleep(self._delay)
        with self.lock:
            self._numbers.append(self._dice.randint(1, 10_000))
            return Reply(status=self.status, body=f"{self._numbers[-1]}".encode())

    @property
    def url(self) -> str:
        return self.endpoint.url("/value")

    def reset(self) -> None:
        with self.lock:
            self._numbers.clear()

    def stats(self) -> UpstreamStats:
        with self.lock:
            return UpstreamStats(calls=len(self._numbers), sum=sum(self._numbers), delay_seconds=self._delay)
