"""Text of others on terminals."""

import io

from harness.console import SafeConsole
from harness.plain_text import printable


def test_active_characters_are_spelled_out() -> None:
    plain = "plain ü 漢\n\t"
    active = ("\x1b[2J", "a\rb", "\x9b31m", "\u202egnp", "\ud800")
    spelled = ["\\x1b[2J", "a\\rb", "\\x9b31m", "\\u202egnp", "\\ud800"]
    assert [printable(text) for text in (plain, *active)] == [plain, *spelled]


def test_the_console_sends_nothing_active_and_takes_no_brackets_for_markup() -> None:
    out = io.StringIO()
    SafeConsole(file=out, width=80).print("[/bold] \x1b[2J :boom:")
    assert out.getvalue() == "[/bold] \\x1b[2J :boom:\n"
