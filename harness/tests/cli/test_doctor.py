"""``./tfb doctor``: who wants a tool is counted where many do, a pipe gets whole lines; ``clean`` without an engine."""

import pytest

from harness.cli import machine
from harness.errors import EnvironmentLacksError, Exit
from harness.host.provision import Need
from harness.runtime import compose

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


def test_clean_says_that_it_saw_no_images_where_no_engine_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine() -> str:
        raise EnvironmentLacksError("none")

    monkeypatch.setattr(compose, "engine", engine)
    monkeypatch.setattr(machine, "all_leftovers", tuple)
    assert machine.clean() == Exit.OK
    assert capsys.readouterr().out.startswith("images were not looked at")
