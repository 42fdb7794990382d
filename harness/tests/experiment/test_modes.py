"""``./tfb verify`` reports a verdict for every selected implementation, and starts no unnecessary process."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.errors import Exit, TfbError
from harness.experiment import first_use, modes, verifying
from harness.plan.discovery import Selection
from harness.plan.implementation import Implementation
from harness.records.run_info import BuildRecord
from harness.records.verification_record import CheckResult, Outcome
from harness.runtime import Database
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_runtime import FakeDatabase, FakeRuntime
from harness.tests.doubles.fakes_verifier import FakeVerifier
from harness.tests.doubles.fakes_world import Behaviour

BUILDS = {
    "broken": BuildRecord(status="failed", reason="make failed (exit status 2):\nmain.c:3: error\nlog: build.log"),
    "lacking": BuildRecord(status="skipped", reason="needs zig >=0.14, which is not on this machine (./tfb doctor)"),
}
SERVERS = {
    "good": Behaviour(),
    "wrong": Behaviour(),
    "mute": Behaviour(never_starts=True),
    **{name: Behaviour() for name in BUILDS},
}
LINES = {
    "good: verified",
    "wrong: failed: 1 violation",
    "mute: not started: no valid response within 60 s",
    "broken: build failed: make failed (exit status 2)",
    "lacking: skipped: needs zig >=0.14, which is not on this machine (./tfb doctor)",
}


@dataclass
class VerifyScene:
    """A simulated machine on which ``./tfb verify`` runs."""

    fake: FakeRun
    databases: list[FakeDatabase] = field(default_factory=list)  # databases that were started

    def verify(self, *names: str, **options: Any) -> int:
        self.fake.write_folders()
        options = {"mode": "verify", "selection": Selection(test=names), **options}
        return modes.verify(replace(self.fake.settings(), **options))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VerifyScene:
    scene = VerifyScene(fake=FakeRun(tmp_path, SERVERS))
    world, verifier = scene.fake.world, scene.fake.verifier
    verifier.fails_before = frozenset({("wrong", "json")})

    class Runtime(FakeRuntime):
        def build(self, implementation: Implementation, log: Path) -> BuildRecord:
            return BUILDS.get(implementation.name, BuildRecord(status="ok"))

        @contextmanager
        def database(self) -> Iterator[FakeDatabase]:
            scene.databases.append(FakeDatabase(world))
            yield scene.databases[-1]

    monkeypatch.setattr(modes, "choose_runtime", lambda *_, **__: Runtime(world))
    monkeypatch.setattr(verifying, "Verifier", lambda: verifier)
    monkeypatch.setattr(first_use, "find_first_use_tasks", lambda *_: ())
    return scene


def lines_of(text: str) -> set[str]:
    """Return the verdict lines of the output, without durations."""
    lines = (line.partition("; startup")[0] for line in text.splitlines())
    return {line for line in lines if line.partition(":")[0] in {*SERVERS, "idle"}}


def test_every_named_implementation_has_a_verdict_line(scene: VerifyScene, capsys: pytest.CaptureFixture[str]) -> None:
    assert scene.verify(*SERVERS) == Exit.FAILED
    assert lines_of(capsys.readouterr().out) == LINES


@pytest.mark.parametrize("name", SERVERS)
def test_an_implementation_alone_has_its_verdict_line(
    scene: VerifyScene, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code = scene.verify(name)
    assert lines_of(capsys.readouterr().out) == {line for line in LINES if line.startswith(f"{name}:")}
    assert code == (Exit.OK if name == "good" else Exit.FAILED)
    assert bool(scene.databases) is (name not in BUILDS)


def test_quiet_leaves_out_only_what_passed(scene: VerifyScene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.verify(*SERVERS, quiet=True)
    assert lines_of(capsys.readouterr().out) == LINES - {"good: verified"}


def test_no_database_starts_without_builds(scene: VerifyScene, capsys: pytest.CaptureFixture[str]) -> None:
    assert scene.verify(*BUILDS) == Exit.FAILED
    assert scene.databases == []
    assert "PostgreSQL" not in capsys.readouterr().err


def test_built_implementations_share_a_database(scene: VerifyScene) -> None:
    scene.verify("good", "broken", "wrong")
    assert len(scene.databases) == 1


def test_json_has_a_verdict_on_each_implementation(scene: VerifyScene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.verify(*SERVERS, verdict_format="json")
    implementations = {each["name"]: each for each in json.loads(capsys.readouterr().out)["implementations"]}
    verdicts = {name: each["verdict"] for name, each in implementations.items()}
    assert verdicts == {
        "good": "verified",
        "wrong": "failed",
        "mute": "not started",
        "broken": "build failed",
        "lacking": "skipped",
    }
    assert "main.c:3: error" in implementations["broken"]["reason"]


def test_github_annotates_failed_builds(scene: VerifyScene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.verify(*SERVERS, verdict_format="github")
    out = capsys.readouterr().out
    assert lines_of(out) == LINES
    errors = [line for line in out.splitlines() if line.startswith("::error")]
    (broken,) = (line for line in errors if "main.c:3: error" in line)
    assert "title=broken%3A build failed::" in broken
    assert not any(line.startswith("::error title=tfb::") for line in errors)  # one annotation per cause


def test_junit_reports_an_error_without_builds(scene: VerifyScene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.verify(*SERVERS, verdict_format="junit")
    root = ElementTree.fromstring(capsys.readouterr().out)  # noqa: S314 - tfb's own output
    (suite,) = (each for each in root if each.get("name") == "implementations")
    cases = {case.get("name"): case for case in suite}
    assert {case.findtext("system-out") for case in suite} == LINES
    assert {name for name, case in cases.items() if case.find("error") is not None} == {"broken", "lacking", "mute"}
    assert len(list(root.iter("error"))) == 3  # each error is reported once
    assert suite.get("errors") == "3"


@pytest.mark.parametrize("form", ["text", "json", "github", "junit"])
def test_implementations_without_the_test_types_are_skipped(
    scene: VerifyScene, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    scene.fake.write_folders()
    home = scene.fake.folder / "frameworks" / "Fake" / "idle"
    home.mkdir()
    entry = {"language": "Fake", "db_url": "/db"}
    document = {"framework": "idle", "tests": [{"default": entry}]}
    (home / "benchmark_config.json").write_text(json.dumps(document))
    assert scene.verify("good", "idle", verdict_format=form) == Exit.OK
    out = capsys.readouterr().out
    assert "idle" in out
    assert "declares none of the selected test types" in out


def test_a_verdict_names_a_dead_server(
    scene: VerifyScene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = FakeVerifier.verify_test_type

    def verify_test_type(self: FakeVerifier, server: Any, *args: Any, **named: Any) -> Any:
        server.program.dead = True
        return real(self, server, *args, **named)

    monkeypatch.setattr(FakeVerifier, "verify_test_type", verify_test_type)
    assert scene.verify("good") == Exit.FAILED
    (line,) = lines_of(capsys.readouterr().out)
    assert line.startswith("good: failed: while verifying json: good: the server ended")


@pytest.mark.parametrize("check_name", ["status-ok", "answered", "json-message"])
def test_exceptions_behind_failing_responses_are_quoted(
    check_name: str, scene: VerifyScene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = FakeVerifier.verify_test_type

    def verify_test_type(self: FakeVerifier, server: Any, *args: Any, **named: Any) -> Any:
        with server.program.log.open("a") as log:
            log.write("2026-11-28 17:10:33 - PG::Bad - no such table:\n\tapp.rb:8:in `block'\n")
        verdict = real(self, server, *args, **named)
        failed = CheckResult(check=check_name, rule="http.2", outcome=Outcome.FAIL, message="status 500")
        return verdict.model_copy(update={"outcome": Outcome.FAIL, "results": (failed,)})

    monkeypatch.setattr(FakeVerifier, "verify_test_type", verify_test_type)
    assert scene.verify("good") == Exit.FAILED
    captured = capsys.readouterr()
    assert "server log: PG::Bad - no such table" in captured.out
    assert "good: failed: 1 violation" in captured.out


def test_watching_starts_the_database_once_a_build_passes(
    scene: VerifyScene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    database_lists: list[Sequence[Database]] = []

    def changed(settings: Any, plan: Any, _: Any) -> Any:
        database_lists.append([*scene.databases])
        if len(database_lists) == 2:
            raise TfbError("enough")
        monkeypatch.setitem(BUILDS, "broken", BuildRecord(status="ok"))
        return plan

    monkeypatch.setattr(modes, "_wait_for_new_plan", changed)
    with pytest.raises(TfbError, match="enough"):
        scene.verify("broken", watch=True)
    assert [len(each) for each in database_lists] == [0, 1]
    assert lines_of(capsys.readouterr().out) == {
        "broken: build failed: make failed (exit status 2)",
        "broken: verified",
    }
