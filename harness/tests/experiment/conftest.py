"""What all runs on the fakes share: their loads ask for no priority of this machine's."""

from contextlib import nullcontext

import pytest

from harness.experiment import observe


@pytest.fixture(autouse=True)
def no_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of loads of no real length."""
    monkeypatch.setattr(observe, "realtime_priority", nullcontext)
