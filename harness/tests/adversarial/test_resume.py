"""Attack: a received results folder makes ``--resume`` execute commands that the user did not accept."""

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness import cli
from harness.errors import Exit, UsageError
from harness.experiment import origin
from harness.records import store
from harness.records.run_folders import list_runs
from harness.records.run_info import RunInfo
from harness.tests.doubles import records
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour

ASKS = "was not started by this user on this machine"


class TerminalStream(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a separate state folder for each test."""
    folder = tmp_path / "state"
    monkeypatch.setenv("TFB_STATE", str(folder))
    return folder


@pytest.fixture
def attack(tmp_path: Path) -> Path:
    """Create a results folder with an implementation that has a build command."""
    entry = {"language": "Python", "json_url": "/json", "local": {"build": ["touch", "/nonexistent"], "run": ["true"]}}
    folder = tmp_path / "results" / "frameworks" / "Python" / "evil"
    folder.mkdir(parents=True)
    document = {"framework": "evil", "tests": [{"default": entry}]}
    (folder / "benchmark_config.json").write_text(json.dumps(document), encoding="utf-8")
    return folder.parent.parent


def received(tmp_path: Path, *command: str, status: str = "interrupted") -> RunInfo:
    """Create a run that another user sent and return its run.json."""
    info = records.info("sent").model_copy(update={"status": status, "command": command})
    records.stored(tmp_path / "results" / "sent", info, records.trials())
    return info


def resume(tmp_path: Path, *words: str) -> int:
    return cli.main(["run", "--resume", *words, "--results", str(tmp_path / "results"), "--no-install"])


def own(tmp_path: Path) -> tuple[Path, RunInfo]:
    """Run the workflow as this user. Return the run's folder and run.json."""
    FakeRun(tmp_path, {"one": Behaviour()}).run()
    (folder,) = list_runs(tmp_path / "results")
    return folder, store.read_info(folder)


@pytest.mark.parametrize(
    "words", [("sent",), (), ("sent", "--yes"), ("sent", "--dry-run"), ("sent", "--quiet")], ids=str
)
def test_received_command_is_shown_and_not_executed(
    tmp_path: Path, attack: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    received(tmp_path, "run", "evil", "--frameworks", str(attack), "--runtime", "local")
    assert resume(tmp_path, *words) == Exit.USAGE
    message = capsys.readouterr().err
    assert ASKS in message
    assert f"run evil --frameworks {attack} --runtime local" in message
    assert "--accept-command" in message


@pytest.mark.parametrize("command", [("--new",), ("--list-tests",), ("--completion", "bash"), ("run", "--help"), ()])
def test_received_command_does_nothing_when_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    received(tmp_path, *command)
    assert resume(tmp_path, "sent") == Exit.USAGE
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("command", [("--new",), ("--list-tests=true",), ("run", "--help"), ("clean",)])
def test_accepted_command_has_to_be_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    received(tmp_path, *command)
    assert resume(tmp_path, "sent", "--accept-command") == Exit.USAGE
    out, err = capsys.readouterr()
    assert (out, "cannot be resumed" in err) == ("", True)


def test_shown_command_moves_no_cursor_and_hides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    received(tmp_path, "run", "a\x1b[2K\rgood", "b\u202ec", "d\u200b;\nharmless", "\u043f")
    resume(tmp_path, "sent")
    message = capsys.readouterr().err
    assert message.isascii()
    assert "\x1b" not in message
    assert "\\nharmless" in message


def test_command_too_long_to_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    received(tmp_path, "run", "x" * 100_000, "--frameworks", "evil")
    assert resume(tmp_path, "sent") == Exit.USAGE
    said = capsys.readouterr().err
    assert len(said) < 10_000
    assert "too long" in said


def test_accepted_command_is_carried_out(tmp_path: Path, attack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    received(tmp_path, "run", "absent", "--frameworks", str(attack))
    assert resume(tmp_path, "sent", "--accept-command") == Exit.USAGE
    said = capsys.readouterr().err
    assert ASKS not in said
    assert "unknown name 'absent'" in said


@pytest.mark.parametrize(("answer", "executed"), [("\n", False), ("n\n", False), ("", False), ("y\n", True)])
def test_silence_at_a_terminal_means_no(
    tmp_path: Path, attack: Path, monkeypatch: pytest.MonkeyPatch, answer: str, executed: bool
) -> None:
    received(tmp_path, "run", "absent", "--frameworks", str(attack))
    monkeypatch.setattr(sys, "stdin", TerminalStream(answer))
    monkeypatch.setattr(sys, "stderr", TerminalStream())
    assert resume(tmp_path, "sent") == Exit.USAGE
    assert isinstance(sys.stderr, TerminalStream)
    assert ("unknown name 'absent'" in sys.stderr.getvalue()) == executed


def test_own_run_is_told_from_a_received_one(tmp_path: Path) -> None:
    folder, info = own(tmp_path)
    assert origin.is_own(folder, info)
    moved = folder.rename(folder.with_name("moved"))
    assert origin.is_own(moved, store.read_info(moved))


def steps(*each: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return a function that calls the given functions in order."""
    return lambda path: [step(path) for step in each]


FORGERIES: dict[str, Callable[[RunInfo], RunInfo]] = {
    "command": lambda info: info.model_copy(update={"command": ("run", "evil", "--frameworks", "here")}),
    "word": lambda info: info.model_copy(update={"command": (*info.command, "--allow", "one=privileged")}),
    "seed": lambda info: info.model_copy(update={"seed": info.seed + 1}),
    "name": lambda info: info.model_copy(update={"name": "another"}),
    "start": lambda info: info.model_copy(update={"started_at": info.started_at + 1}),
}


@pytest.mark.parametrize("forged", FORGERIES)
def test_changed_record_is_nobodys_own(tmp_path: Path, forged: str) -> None:
    folder, info = own(tmp_path)
    assert not origin.is_own(folder, FORGERIES[forged](info))


MARKS: dict[str, Callable[[Path], object]] = {
    "missing": lambda mark: mark.unlink(),
    "empty": lambda mark: mark.write_text(""),
    "object": lambda mark: mark.write_text("{}"),
    "list": lambda mark: mark.write_text("[]"),
    "null": lambda mark: mark.write_text('{"seal": null, "places": null}'),
    "not ASCII": lambda mark: mark.write_text('{"seal": "\u00e9", "places": []}'),
    "other places": lambda mark: mark.write_text(json.dumps({**json.loads(mark.read_text()), "places": ["/evil"]})),
    "deep": lambda mark: mark.write_text("[" * 100_000),
    "pipe": steps(Path.unlink, os.mkfifo),
    "link": lambda mark: mark.symlink_to(mark.rename(mark.with_name("real"))),
    "endless": steps(Path.unlink, lambda mark: mark.symlink_to("/dev/zero")),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("mark", MARKS)
def test_forged_mark_is_nobodys_own(tmp_path: Path, mark: str) -> None:
    folder, info = own(tmp_path)
    MARKS[mark](folder / origin.FILE)
    assert not origin.is_own(folder, info)


KEYS: dict[str, Callable[[Path], object]] = {
    "another machine": lambda key: shutil.rmtree(key.parent.parent),
    "another key": lambda key: key.write_bytes(b"x" * 32),
    "short": lambda key: key.write_bytes(b""),
    "readable by others": lambda key: key.chmod(0o644),
    "folder of others": lambda key: key.parent.chmod(0o755),
    "hard link": lambda key: key.with_name("two").hardlink_to(key),
    "link": lambda key: key.symlink_to(key.rename(key.with_name("real"))),
    "pipe": steps(Path.unlink, lambda key: os.mkfifo(key, 0o600)),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("key", KEYS)
def test_key_that_others_may_know_proves_nothing(tmp_path: Path, state: Path, key: str) -> None:
    folder, info = own(tmp_path)
    (path,) = state.glob("own-runs-*/key")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    KEYS[key](path)
    assert not origin.is_own(folder, info)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
@pytest.mark.parametrize("what", ["key", "folder"])
def test_key_of_another_user_proves_nothing(tmp_path: Path, state: Path, what: str) -> None:
    folder, info = own(tmp_path)
    (path,) = state.glob("own-runs-*/key")
    os.chown(path if what == "key" else path.parent, 65534, 65534)
    assert not origin.is_own(folder, info)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_run_without_private_key_gets_no_mark(tmp_path: Path, state: Path, caplog: pytest.LogCaptureFixture) -> None:
    own(tmp_path)
    (path,) = state.glob("own-runs-*/key")
    os.chown(path.parent, 65534, 65534)
    folder, info = own(tmp_path / "next")
    assert not (folder / origin.FILE).exists()
    assert "--resume will ask for consent: other users can access" in caplog.text
    assert not origin.is_own(folder, info)


def test_readable_keys_are_replaced(tmp_path: Path, state: Path) -> None:
    own(tmp_path)
    (path,) = state.glob("own-runs-*/key")
    path.chmod(0o644)
    path.parent.chmod(0o755)
    known = path.read_bytes()
    folder, info = own(tmp_path / "next")
    assert path.read_bytes() != known
    assert origin.is_own(folder, info)


def test_command_that_means_other_folders_now_is_refused(tmp_path: Path) -> None:
    folder, info = own(tmp_path)
    settings = FakeRun(tmp_path, {"one": Behaviour()}).settings()
    origin.require_same_places(folder, info, settings)
    with pytest.raises(UsageError, match="cannot be resumed: its command now refers to"):
        origin.require_same_places(folder, info, replace(settings, frameworks=(tmp_path / "evil",)))


def test_folders_replaced_after_the_check_are_rejected(tmp_path: Path) -> None:
    folder, info = own(tmp_path)
    settings = FakeRun(tmp_path, {"one": Behaviour()}).settings()
    other = replace(settings, frameworks=(tmp_path / "evil",))
    mark = json.loads((folder / origin.FILE).read_text(encoding="utf-8"))
    # Another process replaces the file after ``is_own`` has read it.
    for seal in (mark["seal"], "", None):
        exchanged = {"places": origin.list_places(other), "seal": seal}
        (folder / origin.FILE).write_text(json.dumps(exchanged), encoding="utf-8")
        with pytest.raises(UsageError, match="cannot be resumed: its command now refers to"):
            origin.require_same_places(folder, info, other)


def test_runs_continue_without_a_writable_state_folder(tmp_path: Path, state: Path) -> None:
    state.touch()
    folder, info = own(tmp_path)
    assert info.status == "complete"
    assert not origin.is_own(folder, info)
