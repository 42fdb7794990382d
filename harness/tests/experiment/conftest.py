"""Fixtures for simulated runs."""

from contextlib import nullcontext

import pytest

from harness.experiment import observe


@pytest.fixture(autouse=True)
def no_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the thread priority unchanged, because simulated loads do not need real-time priority."""
    monkeypatch.setattr(observe, "realtime_priority", nullcontext)
