"""What the fan-out test counts of its upstream is what its own requests made the server ask."""

from harness.runtime import UpstreamStats
from harness.verify.checks.fan_out import LOOKS, at_rest


class Busy:
    """An upstream that is called for a while by a request whose client is gone."""

    url = ""

    def __init__(self, calls_left: int) -> None:
        self.calls_left = calls_left
        self.looks = 0

    def reset(self) -> None:
        """Nothing to do."""

    def stats(self) -> UpstreamStats:
        self.looks += 1
        return UpstreamStats(calls=min(self.looks, self.calls_left), sum=0)


def test_what_a_load_left_behind_is_waited_for() -> None:
    upstream, slept = Busy(calls_left=15), list[float]()
    at_rest(upstream, slept.append)
    assert (upstream.looks, len(slept)) == (16, 15)


def test_a_server_that_never_stops_calling_is_not_waited_for_for_ever() -> None:
    upstream, slept = Busy(calls_left=10**9), list[float]()
    at_rest(upstream, slept.append)
    assert len(slept) == LOOKS
