"""``./tfb profile``: what it refuses, which level it takes, and how it starts the server that it looks at."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import TfbError, UsageError
from harness.extras.profiler import profilers
from harness.plan import profile as profiles
from harness.plan.benchmark_config import Local
from harness.records.models import Closed, Load
from harness.run import profiling
from harness.tests.run.measuring import SetUp, set_up

QUICK = profiles.load("quick")


def profiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str = "query", *, ready: bool = True
) -> tuple[Any, list[Any], SetUp]:
    """What was sampled, and how the server was started."""
    made = set_up(tmp_path, QUICK, ("a",), (kind,))
    happened: list[Any] = []
    logs = tmp_path / "logs"
    server = SimpleNamespace(name="server")

    @contextmanager
    def start(implementation: Any, address: Any, log: Path, *, ready_path: str) -> Any:
        happened.append(("start", implementation, address, log, ready_path))
        yield server

    runtime = SimpleNamespace(start=start)
    database = SimpleNamespace(restore=lambda: happened.append("restore"), address="address")

    @contextmanager
    def built(settings: Any, selected: Any, console: Any, problems: list[str]) -> Any:
        happened.append(("built", settings, selected.implementations, problems == []))
        if not ready:
            problems += ["a: no compiler", "b: neither"]
        yield runtime, database, selected.implementations if ready else (), logs

    monkeypatch.setattr(profilers, "chosen", lambda: happened.append("chosen"))
    monkeypatch.setattr(profiling, "built", built)
    monkeypatch.setattr(profiling, "_with_names", lambda one: one)
    monkeypatch.setattr(profiling, "_sample", lambda *words: words)
    return profiling.profile(made.fake.settings(), 12.0), happened, made


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("json", Closed(connections=64)),  # the nearest to sixty-four
        ("query", Closed(connections=64, queries=20)),
        ("plaintext", Closed(connections=256, depth=16)),
    ],
)
def test_one_server_is_started_on_fresh_tables_and_sampled_at_the_level_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, level: Load
) -> None:
    found, happened, made = profiled(tmp_path, monkeypatch, kind)
    (one,) = made.selected.implementations
    settings = made.fake.settings()
    runtime = found[1]
    assert found == (settings, runtime, found[2], kind, level, 12.0)
    assert found[2].name == "server"
    assert happened == [
        "chosen",
        ("built", settings, (one,), True),
        "restore",
        ("start", one, "address", tmp_path / "logs" / "a" / "profile.log", one.ready_path),
    ]


def test_what_could_not_be_built_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TfbError) as failed:
        profiled(tmp_path, monkeypatch, ready=False)
    assert str(failed.value) == "a: no compiler\nb: neither"


@pytest.mark.parametrize(("names", "kinds"), [(("a", "b"), ("json",)), (("a",), ("json", "db"))])
def test_more_than_one_of_anything_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], kinds: tuple[str, ...]
) -> None:
    monkeypatch.setattr(profilers, "chosen", lambda: "perf")
    made = set_up(tmp_path, QUICK, names, kinds)
    with pytest.raises(UsageError) as refused:
        profiling.profile(made.fake.settings(), 12.0)
    assert str(refused.value) == "./tfb profile NAME --type TYPE: one implementation and one test type"


def test_runtimes_name_their_compiled_frames_beside_the_variables_that_are_set(tmp_path: Path) -> None:
    (one,) = set_up(tmp_path, QUICK, ("a",)).selected.implementations
    assert profiling._with_names(one) is one
    local = Local.model_validate({"run": ["x"], "env": {"NODE_OPTIONS": "--a", "MINE": "1"}})
    own = replace(one, entry=one.entry.model_copy(update={"local": local}))
    found = profiling._with_names(own)
    assert found.local is not None
    assert found.local.env == {
        **profilers.NAMED_FRAMES,
        "NODE_OPTIONS": f"--a {profilers.NAMED_FRAMES['NODE_OPTIONS']}",
        "MINE": "1",
    }
    assert replace(found, entry=own.entry) == own


@pytest.mark.parametrize(
    ("stacks", "share"),
    [({}, 0.0), ({("a", "b"): 3, ("a", "c_[k]"): 1}, 0.25), ({("a_[k]", "b"): 3, ("x[k]",): 1}, 0.25)],
)
def test_a_sample_is_the_kernel_s_whose_innermost_frame_is(stacks: Any, share: float) -> None:
    assert profiling._kernel(stacks) == share
