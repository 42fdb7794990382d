"""``./tfb doctor``: who wants a tool is counted where many do, and a pipe gets whole lines."""

import pytest

from harness.cli import machine
from harness.host.provision import Need


def _need(*names: str) -> Need:
    return Need(kind="java", condition=">=25", wanted_by=names, tool=None)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ((), "the harness"),
        (("a", "b"), "a, b"),
        (tuple("abcdef"), "a, b, c, d, e, f"),
        (tuple("abcdefg"), "7 implement"),
    ],
)
def test_many_that_want_a_tool_are_counted(
    names: tuple[str, ...], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.show_tools([_need(*names)])
    line = next(line for line in capsys.readouterr().out.splitlines() if "java" in line)
    assert shown in line


def test_in_a_pipe_no_line_is_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    names = tuple(f"an-implementation-with-a-long-name-{number}" for number in range(5))
    machine.show_tools([_need(*names)])
    assert ", ".join(names) in capsys.readouterr().out
