"""Two loads at once begin in their order, and an interruption at any moment ends both."""

import threading

import pytest

from harness.run import duets


def test_the_works_begin_in_their_order() -> None:
    began: list[str] = []
    duets.together(threading.Event(), lambda: began.append("first"), lambda: began.append("second"))
    assert began == ["first", "second"]


def test_an_interruption_between_the_two_starts_ends_the_first_load(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    ended: list[bool] = []

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.run.duets.time.sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        duets.together(over, lambda: ended.append(over.wait(20)), lambda: None)
    assert ended == [True]
