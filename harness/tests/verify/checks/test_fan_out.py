"""What the fan-out test counts of its upstream is what its own requests made the server ask."""

import pytest

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


@pytest.mark.parametrize(("calls_left", "looks"), [(15, 15), (10**9, LOOKS)])
def test_what_a_load_left_behind_is_waited_for_but_not_for_ever(calls_left: int, looks: int) -> None:
    slept = list[float]()
    at_rest(Busy(calls_left), slept.append)
    assert len(slept) == looks
