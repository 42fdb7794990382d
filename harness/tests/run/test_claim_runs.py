"""The settings of a claim's run, when it is out of time, and what is made of a program's figures."""

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.claims import judgement
from harness.claims.claim import Program
from harness.claims.judgement import Place
from harness.claims.planning import Piece
from harness.errors import EnvironmentLacksError, StartError
from harness.host import process, toolchain
from harness.paths import REPOSITORY
from harness.plan import profile as profiles
from harness.plan.discovery import Selection
from harness.records.models import Closed
from harness.run import claims, workflow
from harness.run.claims import OutOfTime, profile_of, settings_of
from harness.run.progress import Progress
from harness.tests.claims.records import claim, run_of
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour, FakeClock
from harness.tests.run.measuring import Teller
from harness.tests.run.test_claims import fake, programmed
from harness.tests.stats.test_by_metric import run as run_with_starts

C64 = Closed(connections=64)
CLAIMS = profiles.load("claims")
CELLS = {"a": {"json": (C64,), "db": (C64,)}, "b": {"json": (C64,)}}


def piece(**changes: Any) -> Piece:
    named = tuple(claim(ratio=2.5).model_copy(update={"name": name}) for name in ("one", "two"))
    known: dict[str, Any] = {"claims": named, "cells": CELLS, "seconds": 240.0, "in_turns": True, "processes": 4}
    return Piece(**{**known, **changes})


def test_a_piece_s_run_is_of_its_cells_alone_and_says_for_which_claims(tmp_path: Path) -> None:
    settings = fake(tmp_path).settings()
    found = settings_of(piece(), settings)
    assert found == replace(
        settings,
        profile=profile_of(piece(), settings.profile),
        selection=Selection(test=("a", "b")),
        test_types=("json", "db"),
        cells=CELLS,
        claims=("one", "two"),
        results_name="claims: one, two",
    )


def test_a_piece_in_turns_has_its_time_and_processes_every_level_and_one_look() -> None:
    assert CLAIMS.rounds is not None
    found = profile_of(piece(), CLAIMS)
    changed = {"time_seconds": 240.0, "processes": 4, "every_level": True}
    assert found.rounds == CLAIMS.rounds.model_copy(update=changed)
    assert found.replication == CLAIMS.replication.model_copy(update={"minimum": 1, "maximum": 1, "looks": ()})
    assert found.model_copy(update={"rounds": CLAIMS.rounds, "replication": CLAIMS.replication}) == CLAIMS
    assert profile_of(piece(in_turns=False), CLAIMS) == CLAIMS.model_copy(update={"rounds": None})
    without = CLAIMS.model_copy(update={"rounds": None})
    assert profile_of(piece(), without) == without


def test_pieces_are_planned_for_the_implementations_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replace(fake(tmp_path), jit=frozenset("a"))
    run._write()
    asked: Any = []
    monkeypatch.setattr(claims, "pieces", lambda *words: asked.append(words) or ())
    settings = run.settings()
    assert claims.plan([claim(ratio=2.5)], settings, 600.0) == ()
    ((of, profile, jit, limit),) = asked
    assert (of, profile, limit) == ([claim(ratio=2.5)], settings.profile, 600.0)
    assert [jit(name) for name in ("a", "b", "gone")] == [True, False, False]


def test_a_piece_is_measured_until_its_claims_are_settled_or_out_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fake(tmp_path)
    asked: list[Any] = []
    monkeypatch.setattr(workflow, "benchmark", lambda *words, **named: asked.append((words, named)))
    progress = Progress(Teller(), clock=run.world.clock)
    needs = run.dependencies()
    claims.measure(piece(), run.settings(), progress, 77.0, needs)
    (((settings, told), named),) = asked
    assert (settings, told) == (settings_of(piece(), run.settings()), progress)
    rule = named["needs"].stopping
    assert rule.claims == piece().claims
    assert rule.out_of_time == OutOfTime(clock=run.world.clock, seconds=77.0)
    assert replace(named["needs"], stopping=needs.stopping) == needs


def starts(clock: FakeClock, *since: tuple[int, float]) -> Any:
    """A run whose processes were started in these blocks, so many seconds after now."""
    records = run_with_starts()
    one = records.replicates[0]
    moved = [one.model_copy(update={"block": block, "started_at": clock.time() + later}) for block, later in since]
    return replace(records, replicates=moved)


def test_a_session_is_out_of_time_when_a_block_like_its_others_would_end_too_late() -> None:
    """Three blocks in 90 s from the first start: a fourth ends after 120."""
    for limit, over in ((120.0, False), (119.9, True)):
        clock = FakeClock()
        rule = OutOfTime(clock=clock, seconds=limit)
        records = starts(clock, (0, 0.0), (0, 5.0), (1, 30.0), (2, 60.0))
        clock.sleep(90.0)
        assert rule(records) is over
    clock = FakeClock()
    rule = OutOfTime(clock=clock, seconds=1.0)
    assert rule.began == clock.time()
    earlier = starts(clock, (0, -0.1))
    clock.sleep(50.0)
    assert rule(earlier) is False  # of an earlier session


@pytest.mark.parametrize(
    ("status", "blocks", "rounds", "over"),
    [
        ("complete", 0, False, True),
        ("failed", 2, False, False),
        ("failed", 3, False, True),
        ("failed", 1, True, True),
        ("failed", 0, True, False),
        ("interrupted", 9, True, False),
        ("running", 9, False, False),
    ],
)
def test_a_run_has_ended_that_completed_or_failed_with_its_least_blocks(
    tmp_path: Path, status: str, blocks: int, rounds: bool, over: bool
) -> None:
    records = run_of({"a": (1.0,) * blocks})
    samples = [sample.model_copy(update={"round": 0 if rounds else None}) for sample in records.samples]
    told = replace(records, samples=samples, info=records.info.model_copy(update={"status": status}))
    assert claims.ended(told, fake(tmp_path).settings()) is over


def test_a_site_is_told_each_statement_with_its_source() -> None:
    statements = [SimpleNamespace(name=name, verdict=verdict) for name, verdict in (("x", "refuted"), ("y", "open"))]
    found: Any = [
        SimpleNamespace(title="T1", talk="Talk", page="p. 3", statements=statements),
        SimpleNamespace(title="T2", talk="Other", page="p. 4", statements=statements[:1]),
    ]
    text = claims.for_the_site(found, lambda of, index: f"{of.title}/{index}")
    assert json.loads(text) == [
        {"statement": "T1: x", "source": "Talk, p. 3", "verdict": "refuted", "measured": "T1/0"},
        {"statement": "T1: y", "source": "Talk, p. 3", "verdict": "open", "measured": "T1/1"},
        {"statement": "T2: x", "source": "Other, p. 4", "verdict": "refuted", "measured": "T2/0"},
    ]
    assert text.startswith('[\n {\n  "statement"')


def program(monkeypatch: pytest.MonkeyPatch, printed: str, status: int = 0) -> list[Any]:
    asked: list[Any] = []

    def run(words: list[str], **how: Any) -> SimpleNamespace:
        asked.append((words, how))
        return SimpleNamespace(status=status, stdout=printed)

    monkeypatch.setattr(process, "run", run)
    return asked


def test_a_program_is_run_from_the_repository_and_its_figures_are_judged_where_they_were_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = program(monkeypatch, '{"slow": 3, "quick": 0.5}')
    judged: Any = []
    monkeypatch.setattr(judgement, "of_program", lambda *words: judged.append(words) or "verdict")
    run, display = fake(tmp_path), Teller()
    needs = replace(run.dependencies(), revision=lambda: ("abc", True))
    of = programmed("x", "-y")
    found = claims.run_program(of, run.settings(), Progress(display, clock=run.world.clock), needs)
    assert str(found) == "verdict"
    assert asked == [(["x", "-y"], {"seconds": 20.0, "cwd": REPOSITORY, "env": dict(os.environ)})] * 5
    figures = {"slow": 3.0, "quick": 0.5}
    place = Place(
        machine=needs.machine(), measured_at=run.world.clock.time(), profile="claims", runtime="local",
        revision="abc", dirty=True,
    )  # fmt: skip
    assert judged == [(of, [figures] * 5, place)]
    assert display.lines == [f"name: start {number} of 5" for number in range(1, 6)]
    assert {state.stage for state in display.states} == {"measuring"}


@pytest.mark.parametrize(
    ("printed", "status", "said"),
    [
        ("", 0, "exit status 0 and printed: nothing"),
        ("[1]", 0, "exit status 0 and printed: [1]"),
        ('{"slow": 1}', 3, 'exit status 3 and printed: {"slow": 1}'),
        ("y" + "x" * 400, -9, "killed by SIGKILL and printed: " + "x" * 300),
    ],
)
def test_a_program_that_prints_something_else_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, status: int, said: str
) -> None:
    program(monkeypatch, printed, status)
    run = fake(tmp_path)
    with pytest.raises(StartError) as odd:
        claims.run_program(programmed("x", "-y"), run.settings(), Progress(Teller()), run.dependencies())
    assert str(odd.value) == (f"claim name: x -y has to print one JSON object of numbers; it ended with {said}")


def test_a_program_finds_its_tools_before_the_machine_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = {
        ("java", ">=21"): SimpleNamespace(env={"JAVA_HOME": "/jdk"}, bin=Path("/jdk/bin")),
        ("node", ">=24"): SimpleNamespace(env={}, bin=Path("/node/bin")),
    }
    monkeypatch.setattr(toolchain, "find", lambda *what: tools.get(what))
    monkeypatch.setattr(toolchain, "packages", lambda *what: ("p1", f"{what[0]}-x"))
    monkeypatch.setenv("PATH", "/usr/bin")
    needs = {"java": ">=21", "node": ">=24"}
    found = claims.environment(Program(command=("x",), needs=needs))
    assert (found["PATH"], found["JAVA_HOME"]) == ("/node/bin:/jdk/bin:/usr/bin", "/jdk")
    assert found.keys() - os.environ.keys() <= {"JAVA_HOME"}
    with pytest.raises(EnvironmentLacksError) as lacking:
        claims.environment(Program(command=("x", "-y"), needs={"go": ">=1"}))
    assert str(lacking.value) == "x -y needs go >=1: apt-get install p1 go-x"


def test_the_newest_run_of_the_same_claims_and_cells_is_found(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, {"a": Behaviour()})
    settings = run.settings()
    infos = [run_of({"a": (1.0,)}).info for _ in range(3)]
    cells: Any = {name: {kind: list(levels) for kind, levels in kinds.items()} for name, kinds in CELLS.items()}
    for number, (names, of) in enumerate(((["one", "two"], cells), (["one", "two"], cells), (["one"], cells))):
        folder = settings.results / f"2026010{number}-000000"
        folder.mkdir(parents=True)
        info = infos[number].model_copy(
            update={"run_id": folder.name, "settings": {"claims": names}, "cells": CELLS if of else {}}
        )
        (folder / "run.json").write_text(info.model_dump_json())
    found = claims.earlier(settings, piece())
    assert found is not None
    assert found.info.run_id == "20260101-000000"
    assert claims.earlier(settings, piece(cells={"a": CELLS["a"]})) is None
    assert claims.earlier(settings, piece(claims=piece().claims[1:])) is None
