"""Claim files: validation, with error messages that name the key."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.extras.claims.claim import read_claims
from harness.extras.claims.measure import measurement_settings, merge_cells
from harness.plan import profile as profiles
from harness.plan.discovery import scan_folders
from harness.plan.run_settings import Settings
from harness.records.loads import ClosedLoop

GOOD = """
title = "t"
talk = "k"
page = "p"
said = "s"
conditions = "c"
[[compare]]
name = "n"
metric = "throughput"
of = { implementation = "a", test_type = "query", connections = 512, queries = 20 }
to = { implementation = "b", test_type = "query", connections = 512, queries = 20 }
ratio = 2.5
"""


def test_all_claims_can_be_read_and_measured() -> None:
    serves = {implementation.name: implementation.urls for implementation in scan_folders().implementations}
    for claim in read_claims().values():
        for cell in claim.cells:
            assert cell.test_type in serves[cell.implementation], f"{claim.name}: {cell.label}"


def test_claim_run_measures_only_its_own_cells(tmp_path: Path) -> None:
    lone = GOOD.replace("connections = 512", "connections = 1", 1)
    (tmp_path / "mine.toml").write_text(lone.replace('implementation = "b"', 'implementation = "a"'), encoding="utf-8")
    claim = read_claims(tmp_path)["mine"]
    (statement,) = claim.compare
    heavy, light = ClosedLoop(connections=512, queries=20), ClosedLoop(connections=1, queries=20)
    cells = merge_cells(statement.cells)
    assert cells == {"a": {"query": (heavy, light)}}  # the heaviest load comes first, because it warms up the cell
    given = Settings(
        command=(),
        profile=profiles.load_profile("claims"),
        seed=1,
        results_name="",
        results_environment="",
        results=tmp_path,
    )
    settings = measurement_settings([claim], given)
    assert (settings.cells, settings.claims, settings.selection.test, settings.test_types) == (
        cells,
        ("mine",),
        ("a",),
        ("query",),
    )
    exactly = given.profile.model_copy(update={"processes": profiles.ProcessLimits(minimum=2, maximum=2)})
    assert measurement_settings([claim], replace(given, profile=exactly), 1.0).profile.processes.minimum == 2


def test_cpu_per_request_is_always_context() -> None:
    statements = {f"{claim.name}: {one.name}": one for claim in read_claims().values() for one in claim.compare}
    assert [name for name, one in statements.items() if one.metric == "cpu-per-request" and not one.context] == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("ratio =", "ration =", "compare.0.ration: unknown key; did you mean ratio?"),
        ('"throughput"', '"troughput"', "compare.0.metric: no metric 'troughput'; did you mean"),
        ('"query"', '"querry"', "compare.0.of.test_type: no test type 'querry'; did you mean query"),
        ("ratio = 2.5", 'ratio = 2.5\norder = "higher"', "compare.0: needs exactly one of `ratio` and `order`"),
        ("ratio = 2.5", 'order = "higher"\nrounds = { calls = 20 }', "`rounds` requires `ratio`"),
        ("ratio = 2.5", "ratio = 2.5\ncontext = true", "compare: every statement is context"),
    ],
)
def test_a_broken_file_is_named_with_its_key(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    (tmp_path / "mine.toml").write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_claims(tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / 'mine.toml'}: ")
    assert complaint in str(raised.value)
