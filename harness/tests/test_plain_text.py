"""Text of others on terminals."""

import io

import pytest

from harness.console import SafeConsole
from harness.plain_text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢\n\t", "plain ü 漢\n\t"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb", "a\\rb"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp", "\\u202egnp"),
        ("\ud800", "\\ud800"),
    ],
)
def test_active_characters_are_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_the_console_sends_nothing_active_and_takes_no_brackets_for_markup() -> None:
    out = io.StringIO()
    SafeConsole(file=out, width=80).print("[/bold] \x1b[2J :boom:")
    assert out.getvalue() == "[/bold] \\x1b[2J :boom:\n"
