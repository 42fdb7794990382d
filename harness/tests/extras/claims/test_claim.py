"""Claims as files: all that are there can be measured, and what is wrong with one is said with its key."""

from pathlib import Path

import pytest

from harness.errors import ConfigError, UsageError
from harness.extras.claims.claim import chosen, read
from harness.extras.claims.measure import cells_of, settings_of
from harness.plan import profile as profiles
from harness.plan.config import Settings
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


def test_every_claim_of_the_project_can_be_read_and_measured() -> None:
    serves = {implementation.name: implementation.urls for implementation in scan().implementations}
    for claim in read().values():
        for cell in claim.cells:
            assert cell.test_type in serves[cell.implementation], f"{claim.name}: {cell.label}"


def test_a_claim_has_the_name_of_its_file_and_its_run_measures_its_cells_alone(tmp_path: Path) -> None:
    lone = GOOD.replace("connections = 512", "connections = 1", 1)
    (tmp_path / "mine.toml").write_text(lone.replace('implementation = "b"', 'implementation = "a"'), encoding="utf-8")
    claim = read(tmp_path)["mine"]
    heavy, light = Closed(connections=512, queries=20), Closed(connections=1, queries=20)
    assert cells_of(claim) == {"a": {"query": (heavy, light)}}  # a server is warmed at the heaviest
    given = Settings(
        command=(), profile=profiles.load("claims"), seed=1, results_name="", results_environment="", results=tmp_path
    )
    asked = settings_of(claim, given, 600.0)
    assert (asked.cells, asked.claims, asked.selection.test) == (cells_of(claim), ("mine",), ("a",))
    assert (asked.test_types, asked.profile.interleaved.time_seconds) == (("query",), 600.0)


@pytest.mark.parametrize(("name", "processes"), [("multiple-queries", 8), ("twenty-slow-calls", 4)])
def test_more_servers_have_fewer_processes_each_in_the_same_time(name: str, processes: int) -> None:
    given = Settings(command=(), profile=profiles.load("claims"), seed=1, results_name="", results_environment="")
    found = settings_of(read()[name], given, 900.0).profile.processes
    assert (found.minimum, found.maximum) == (processes, processes)
    assert settings_of(read()[name], given, 60.0).profile.processes.maximum == 3  # fewer tell nothing


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
        (
            "ratio = 2.5",
            'ratio = 2.5\nrounds = { calls = 20, of_at_once = "2 cpus", to_at_once = "20" }',
            "compare.0.rounds.of_at_once: '2 cpus' is none of 4, cpus, cpus - 1",
        ),
        ("[[compare]]", "[[compare]", "not valid TOML"),
    ],
)
def test_a_broken_file_is_named_with_its_key(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    (tmp_path / "mine.toml").write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read(tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / 'mine.toml'}: ")
    assert complaint in str(raised.value)


def test_a_name_that_is_no_claim_is_answered_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(UsageError, match=r"no claim 'mime'; did you mean mine\?"):
        chosen(read(tmp_path), ("mime",))
