"""What a comparison of two runs prints: regressions first, cells without a difference folded."""

import re
from pathlib import Path

import pytest

from harness import cli
from harness.records.models import Sample
from harness.records.store import RunStore
from harness.tests import records


def two_runs(results: Path, factors: dict[str, float]) -> None:
    """A run of four replicates, and one whose throughput of a test type is another by a factor."""
    for number, changed in enumerate(({}, factors), 1):
        store = RunStore(results / f"2026010{number}-000000", started_at=0.0)
        store.write_info(records.info(f"2026010{number}-000000"))
        for block in range(4):
            for sample in records.samples():
                store.add_sample(scaled(sample, changed.get(sample.test_type, 1.0) * (1 + 0.001 * block), block))


def scaled(sample: Sample, factor: float, block: int) -> Sample:
    cpu = None if sample.cpu_per_request is None else sample.cpu_per_request / factor
    changed = {"block": block, "process": block, "throughput": sample.throughput * factor, "cpu_per_request": cpu}
    return sample.model_copy(update={**changed, "id": f"{sample.id}-{block}"})


def test_regressions_stand_first_and_cells_without_a_difference_are_folded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_runs(tmp_path, {"query": 0.5})
    assert cli.main(["compare", "20260101", "20260102", "--results", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert "(regression)" in lines[2]
    assert lines[2].startswith("query")
    assert re.search(r"no difference in \d+ cells? \(--all shows them\):", text)
    assert "  fast: json c64" in lines
    assert "…" not in text


def test_all_shows_every_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs(tmp_path, {})
    assert cli.main(["compare", "20260101", "20260102", "--results", str(tmp_path), "--all"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"json +c64 +fast +1\.00×", text)
    assert "no regression beyond 5%" in text
