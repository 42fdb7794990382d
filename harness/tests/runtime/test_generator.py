"""Tests for load generators that exit early or are interrupted."""

import pytest

from harness.errors import LoadError
from harness.runtime.generator import run_generator


def test_early_exit_raises_an_error_with_output() -> None:
    with (
        run_generator(["sh", "-c", "printf 'no such option'; exit 2"], waits_for_go=True) as running,
        pytest.raises(LoadError, match="did not become ready; it printed: no such option"),
    ):
        running.begin()


def test_interrupted_generator_prints_its_results() -> None:
    script = "trap 'echo half; exit 0' INT; echo ready; while :; do sleep 0.05; done"
    with run_generator(["bash", "-c", script], waits_for_go=True) as running:
        running.begin()
        running.interrupt()
        assert running.wait(10) == 0
        assert running.output() == "ready\nhalf\n"
