"""Contradictory recorded ratios are found and attributed to differences in conditions."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.studies import consistency
from harness.studies.consistency import RecordedRatio, contradictions, ratios_of_claims, ratios_of_page

CONDITIONS = {"network path": "loopback", "runtime": "local", "server CPUs": "all 2", "load": "c64"}
FASTER = RecordedRatio(
    record="r1", conditions=CONDITIONS, metric="throughput", test_type="db", of="a", to="b", low=1.1, high=1.3
)
INVERSE = replace(FASTER, record="r2", of="b", to="a")  # the inverse ratio in a second record


@pytest.mark.parametrize(
    ("other", "differences"),
    [
        (INVERSE, [[]]),
        (replace(FASTER, record="r2", low=0.8, high=0.9), [[]]),
        (replace(INVERSE, conditions=CONDITIONS | {"load": "c512"}), [["load"]]),
        (replace(INVERSE, low=0.9), []),  # the interval includes equality
        (replace(INVERSE, test_type="json"), []),
        (replace(INVERSE, metric="cpu-per-request"), []),
        (replace(INVERSE, record="r1"), []),
        (replace(FASTER, record="r2"), []),
    ],
)  # fmt: skip
def test_contradictions_name_different_conditions(other: RecordedRatio, differences: list[list[str]]) -> None:
    assert [names for *_, names in contradictions([FASTER, other])] == differences


def test_records_of_the_repository_are_read() -> None:
    page = list(ratios_of_page(consistency.TECHEMPOWER_PAGE))
    assert ("es4x", "vertx-web", "db") in {(one.of, one.to, one.test_type) for one in page}
    claims = list(ratios_of_claims(consistency.ROUNDS / "1"))
    assert ("es4x", "vertx-web", "c512") in {(one.of, one.to, one.conditions["load"]) for one in claims}


def test_an_unexplained_contradiction_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(consistency, "ROUNDS", tmp_path)
    for found, code in (([FASTER], 0), ([FASTER, INVERSE], 1)):
        monkeypatch.setattr(consistency, "ratios_of_page", lambda _, found=found: found)
        assert consistency.main([]) == code
    assert "a ÷ b: r1 [1.1, 1.3] (loopback, local, all 2, c64) and r2" in capsys.readouterr().out
