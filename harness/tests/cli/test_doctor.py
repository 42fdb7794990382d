"""``./tfb doctor``: who wants a tool is counted where many do, and a pipe gets whole lines."""

import pytest

from harness.cli import machine
from harness.host.provision import Need

LONG = tuple(f"an-implementation-with-a-long-name-{number}" for number in range(5))


@pytest.mark.parametrize(
    ("names", "shown"), [((), "the harness"), (tuple("abcdefg"), "7 implement"), (LONG, ", ".join(LONG))]
)
def test_those_that_want_a_tool_are_named_or_counted_and_no_line_of_a_pipe_is_cut(
    names: tuple[str, ...], shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    machine.show_tools([Need(kind="java", condition=">=25", wanted_by=names, tool=None)])
    assert shown in next(line for line in capsys.readouterr().out.splitlines() if "java" in line)
