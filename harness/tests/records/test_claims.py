"""claims.json: the newest verdict on each claim, whatever else was recorded."""

from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.records import claims
from harness.records.claims import ClaimVerdict


def verdict(claim: str, run_id: str = "first") -> ClaimVerdict:
    return ClaimVerdict.model_validate(
        {
            **dict.fromkeys(("title", "talk", "page", "said", "conditions", "machine", "profile"), ""),
            "claim": claim,
            "verdict": "supported",
            "statements": (),
            "run_id": run_id,
            "measured_at": 0.0,
            "cpus": 2,
        }
    )


def test_a_newer_verdict_takes_the_place_of_the_older_one_and_of_no_other(tmp_path: Path) -> None:
    claims.keep(tmp_path / "results", (verdict("name"), verdict("other")))
    claims.keep(tmp_path / "results", (verdict("name", "newer"),))
    kept = claims.read(tmp_path / "results").verdicts
    assert {name: each.run_id for name, each in kept.items()} == {"name": "newer", "other": "first"}


def test_nothing_recorded_is_no_error(tmp_path: Path) -> None:
    assert claims.read(tmp_path).verdicts == {}


@pytest.mark.parametrize("text", ["", "{", '{"verdicts": {"x": {}}}'])
def test_a_broken_file_is_named_and_never_overwritten(tmp_path: Path, text: str) -> None:
    file = tmp_path / claims.FILE
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"claims\.json: .*move it away"):
        claims.keep(tmp_path, (verdict("name"),))
    assert file.read_text(encoding="utf-8") == text
