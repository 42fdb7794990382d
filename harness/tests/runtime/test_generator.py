"""A load generator that ends too early is an error with what it said; one that is interrupted says what it has."""

import pytest

from harness.errors import LoadError
from harness.runtime.generator import run_generator


def test_one_that_ends_before_it_is_ready_is_an_error_with_what_it_said() -> None:
    with (
        run_generator(["sh", "-c", "printf 'no such option'; exit 2"], waits_for_go=True) as running,
        pytest.raises(LoadError, match="did not become ready; it printed: no such option"),
    ):
        running.begin()


def test_an_interrupt_ends_it_with_what_it_has() -> None:
    script = "trap 'echo half; exit 0' INT; echo ready; while :; do sleep 0.05; done"
    with run_generator(["bash", "-c", script], waits_for_go=True) as running:
        running.begin()
        running.interrupt()
        assert running.wait(10) == 0
        assert running.output() == "ready\nhalf\n"
