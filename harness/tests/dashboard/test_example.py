"""The example that ships: a real run's files, smaller."""

from pathlib import Path

import pytest

from harness.dashboard import example
from harness.dashboard.runs import Run


def test_an_example_ranks_as_the_run_that_it_was_made_of(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "MOST_BYTES", 10_000_000)
    log = results / "run" / "logs" / "harness.log"
    log.write_text("a line\n" * 1000)
    size = example.shrink(results / "run", tmp_path / "examples" / "run")
    made = Run(tmp_path / "examples" / "run")
    assert made.example
    assert made.ranking() == Run(results / "run").ranking()
    assert [sample.throughput for sample in made.samples()] == [s.throughput for s in Run(results / "run").samples()]
    assert all(not sample.latency.histogram for sample in made.samples() if sample.latency)
    assert made.log("logs/harness.log").text.count("a line") < 100
    assert size == sum(path.stat().st_size for path in made.folder.rglob("*") if path.is_file())


def test_one_that_is_too_large_is_refused(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="take a run with fewer samples"):
        example.shrink(results / "run", tmp_path / "run")
