"""A sample of the faults of ``python -m harness.faults``: those that need no server; and the table of all."""

import ipaddress
import json
import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from harness.faults import own_engine, table
from harness.faults.case import BrokenPromise, CannotBeProducedError, Case, hold
from harness.faults.registry import CASES
from harness.faults.scene import Answer, Scene, judge

BY_NAME = {case.name: case for case in CASES}
SAMPLE = (
    "config/traversal",
    "config/pipe",
    "profile/level-zero",
    "flag/concurrency-levels",
    "surroundings/all-closed",
    "surroundings/ascii",
)
QUICK = tuple(name for name in BY_NAME if name.startswith(("output/wrk-", "output/loadgen-")))


@pytest.mark.parametrize("name", [*SAMPLE, *QUICK])
def test_a_promise_is_kept(name: str, tmp_path: Path) -> None:
    BY_NAME[name].produce(Scene(tmp_path))


def test_every_case_has_a_name_of_its_own_and_a_promise() -> None:
    assert [name for name, times in Counter(case.name for case in CASES).items() if times > 1] == []
    assert [case.name for case in CASES if not case.promise or not case.fault or "/" not in case.name] == []
    assert len(CASES) >= 150


def test_every_case_is_in_the_page() -> None:
    page = table.PAGE.read_text(encoding="utf-8")
    assert [case.name for case in CASES if f"| {case.name} |" not in page] == []


@pytest.mark.parametrize(
    ("text", "status", "memory"),
    [("Traceback (most recent call last)", 1, 0), ("\x1b[2J", 0, 0), ("", 0, 1 << 30), ("", -9, 0)],
)
def test_what_no_command_may_do_is_a_broken_promise(text: str, status: int, memory: int) -> None:
    with pytest.raises(BrokenPromise):
        judge(Answer(status=status, stdout=text, stderr="", seconds=0.0, peak_bytes=memory))


def test_a_broken_promise_says_what_was_seen() -> None:
    with pytest.raises(BrokenPromise, match="3 files"):
        hold(False, else_="3 files")


def test_a_case_s_group_is_the_first_part_of_its_name() -> None:
    assert Case(name="a/b", fault="f", promise="p", produce=lambda _: None).group == "a"


def test_the_page_says_of_which_commit_its_results_are(tmp_path: Path) -> None:
    one, other, third = CASES[:3]
    file = tmp_path / "record.jsonl"
    file.write_text(json.dumps({"case": one.name, "word": "kept", "detail": "", "seconds": 1.0}) + "\n")
    for case, commit, when in (
        (other, "abc1234", "2026-01-02 03:04"),
        (one, "abc1234", "2026-01-02 03:05"),
        (third, "def5678", "2026-01-03 03:04"),
    ):
        table.record(table.Result(case=case, word="kept", detail="", seconds=2.0, commit=commit, when=when), file)
    found = table.read([file], CASES[:4])
    assert [result.word for result in found] == ["kept", "kept", "kept", "not run"]
    assert "By commit: 2 of abc1234, 1 of def5678. Produced from 2026-01-02 03:04 to 2026-01-03 03:04 UTC." in (
        page := table.page(found)
    )
    assert "| kept | def5678 2026-01-03 03:04 |" in page
    assert table.ages([table.Result(case=one, word="kept", detail="", seconds=1.0)]) == "1 of one that was not recorded"


def test_a_page_keeps_what_newer_results_do_not_replace(tmp_path: Path) -> None:
    one, other, third, fourth = CASES[:4]
    before = [
        table.Result(case=one, word="kept", detail="", seconds=1.0, commit="abc1234", when="2026-01-02 03:04"),
        table.Result(case=other, word="broken", detail="a | b: <c>", seconds=1.0),
        table.Result(case=third, word="kept", detail="", seconds=1.0, commit="abc1234", when="2026-01-02 03:04"),
    ]
    file = tmp_path / "record.jsonl"
    table.record(replace(before[0], word="not here", detail="no engine", when="2026-01-01 00:00"), file)
    table.record(replace(before[2], word="not here", detail="no engine", when="2026-01-05 00:00"), file)
    found = table.read([file], (one, other, third, fourth), table.page(before))
    assert [(result.word, result.detail, result.commit, result.when) for result in found] == [
        ("kept", "", "abc1234", "2026-01-02 03:04"),
        ("broken", "a | b: <c>", "", ""),
        ("not here", "no engine", "abc1234", "2026-01-05 00:00"),
        ("not run", "", "", ""),
    ]
    assert table.page(table.read([], (one, other, third, fourth), table.page(found))) == table.page(found)


def test_the_bridge_of_the_suite_s_own_engine_overlaps_no_network_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def has(*networks: str) -> None:
        found = [ipaddress.ip_interface(network) for network in networks]
        cards = [SimpleNamespace(family=socket.AF_INET, address=str(i.ip), netmask=str(i.netmask)) for i in found]
        monkeypatch.setattr(psutil, "net_if_addrs", lambda: {"eth0": cards})

    has("192.0.2.2/24")
    assert str(own_engine.free_network()) == "198.51.100.0/30"
    has("198.51.100.7/24", "203.0.113.9/25")
    assert str(own_engine.free_network()) == "198.18.0.0/30"
    has("192.0.0.0/4", "203.0.113.9/25")
    with pytest.raises(CannotBeProducedError, match="in use here"):
        own_engine.free_network()
