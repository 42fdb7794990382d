"""Claims as files: all that are there can be measured, and what is wrong with one is said with its key."""

from pathlib import Path

import pytest

from harness.claims.claim import Claims, read
from harness.errors import UsageError
from harness.plan.discovery import scan
from harness.records.models import Closed

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


def written(folder: Path, text: str) -> Claims:
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return read(folder)


def test_every_claim_of_the_project_can_be_read_and_measured() -> None:
    found = read()
    assert found.problems == ()
    serves = {implementation.name: implementation.urls for implementation in scan().implementations}
    for claim in found.claims.values():
        for cell in claim.cells:
            assert cell.test_type in serves[cell.implementation], f"{claim.name}: {cell.label}"


def test_a_claim_has_the_name_of_its_file_and_names_its_cells(tmp_path: Path) -> None:
    claim = written(tmp_path, GOOD).claims["mine"]
    assert [cell.key for cell in claim.cells] == [
        ("a", "query", Closed(connections=512, queries=20)),
        ("b", "query", Closed(connections=512, queries=20)),
    ]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('title = "t"', "", "title: Field required"),
        ("ratio =", "ration =", "compare.0.ration: unknown key; did you mean ratio?"),
        (
            "queries = 20 }\nratio",
            "querries = 20 }\nratio",
            "compare.0.to.querries: unknown key; did you mean queries?",
        ),
        ('"throughput"', '"troughput"', "compare.0.metric: no metric 'troughput'; did you mean throughput"),
        ('"query"', '"querry"', "compare.0.of.test_type: no test type 'querry'; did you mean query"),
        ("ratio = 2.5", "", "compare.0: says exactly one of ratio, order, none, some"),
        ("ratio = 2.5", 'ratio = 2.5\norder = "higher"', "compare.0: says exactly one of ratio, order, none, some"),
        ("ratio = 2.5", "ratio = -1", "compare.0.ratio: Input should be greater than 0"),
        ("[[compare]]", "[[compare]", "not valid TOML"),
    ],
)
def test_a_broken_file_is_named_with_its_key_and_the_others_are_read(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    (tmp_path / "good.toml").write_text(GOOD, encoding="utf-8")
    found = written(tmp_path, GOOD.replace(old, new, 1))
    assert list(found.claims) == ["good"]
    (problem,) = found.problems
    assert problem.startswith(f"{tmp_path / 'mine.toml'}: ")
    assert complaint in problem


def test_a_name_that_is_no_claim_is_answered_with_the_nearest_and_with_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("x", encoding="utf-8")
    found = written(tmp_path, GOOD)
    with pytest.raises(UsageError, match=r"no claim 'mime'; did you mean mine\?\n.*broken\.toml: not valid TOML"):
        found.chosen(("mime",))
