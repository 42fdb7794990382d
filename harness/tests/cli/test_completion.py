"""What a shell offers on Tab."""

import io
import os
from collections.abc import Callable
from typing import NoReturn

import pytest
from argcomplete.finders import CompletionFinder

from harness import cli
from harness.cli import completion

Offered = Callable[[str], set[str]]


class Left(Exception):  # noqa: N818 - argcomplete leaves the process
    """The end of an answer."""


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Offered:
    """The words that are offered at the end of a line."""

    def ask(line: str) -> set[str]:
        out = io.StringIO()

        def leave(_status: int) -> NoReturn:
            raise Left

        monkeypatch.setattr(CompletionFinder, "_init_debug_stream", lambda _self: None)  # it takes one of pytest's
        for name, value in {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_IFS": "\n",
            "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(Left):
            completion.answer(out, leave)
        return set(out.getvalue().split())

    return ask


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("./tfb re", {"report"}),
        ("./tfb run vertx-w", {"vertx-web"}),
        ("./tfb verify --type cached", {"cached-query"}),
        ("./tfb run --profile sta", {"standard"}),
        ("./tfb --test-lang Ja", {"Java", "JavaScript"}),
        ("./tfb compare --fail", {"--fail-over"}),
        ("./tfb new x --language Go", {"Go"}),
        ("./tfb completion f", {"fish"}),
    ],
)
def test_words_are_completed(line: str, expected: set[str], offered: Offered) -> None:
    assert offered(line) == expected


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_has_its_function(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "_ARGCOMPLETE" in text
    assert ("--command tfb" if shell == "fish" else "./tfb") in text  # fish goes by the last part of a path


def test_nothing_is_answered_where_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_ARGCOMPLETE", raising=False)
    completion.answer()
    assert "_ARGCOMPLETE" not in os.environ
