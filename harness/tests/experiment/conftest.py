"""Fixtures of runs on fakes: loads do not change the priority of the thread."""

from contextlib import nullcontext

import pytest

from harness.experiment import observe


@pytest.fixture(autouse=True)
def no_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the usual priority: there are thousands of loads without a real length."""
    monkeypatch.setattr(observe, "realtime_priority", nullcontext)
