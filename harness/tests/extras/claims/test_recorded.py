"""claims.json: the newest verdict on each claim, whatever else was recorded."""

from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.extras.claims.measure import keep
from harness.records import claims as recorded
from harness.tests.extras.claims.records import STEADY, claim, judged, run_of


def test_a_newer_verdict_takes_the_place_of_the_older_one_and_of_no_other(tmp_path: Path) -> None:
    first = judged(claim(ratio=2.5), run_of(STEADY))
    for verdict in (first, first.model_copy(update={"claim": "other"}), first.model_copy(update={"runs": ("newer",)})):
        keep(tmp_path / "results", [verdict])
    kept = recorded.read(tmp_path / "results").verdicts
    assert {name: verdict.runs for name, verdict in kept.items()} == {"name": ("newer",), "other": first.runs}


def test_published_verdicts_stand_where_nothing_of_one_s_own_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "PUBLISHED", tmp_path / "published")
    theirs = judged(claim(ratio=2.5), run_of(STEADY))
    keep(tmp_path / "published", [theirs, theirs.model_copy(update={"claim": "other"})])
    keep(tmp_path / "own", [theirs.model_copy(update={"runs": ("mine",)})])
    found = recorded.latest(tmp_path / "own")
    assert {name: each.runs for name, each in found.items()} == {"name": ("mine",), "other": theirs.runs}


@pytest.mark.parametrize("text", ["", "{", '{"verdicts": {"x": {}}}'])
def test_a_broken_file_is_named_and_never_overwritten(tmp_path: Path, text: str) -> None:
    file = tmp_path / recorded.FILE
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"claims\.json: .*move it away"):
        keep(tmp_path, [judged(claim(ratio=2.5), run_of(STEADY))])
    assert file.read_text(encoding="utf-8") == text
