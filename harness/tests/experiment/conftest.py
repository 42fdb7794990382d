"""Fixtures for simulated runs."""

from contextlib import nullcontext

import pytest

from harness.experiment import observe


@pytest.fixture(autouse=True)
def no_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable real-time priority, because simulated loads do not need it."""
    monkeypatch.setattr(observe, "realtime_priority", nullcontext)
