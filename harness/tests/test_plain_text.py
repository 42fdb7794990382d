"""Untrusted text is escaped, and numbers are formatted for people."""

import io

from harness.console import SafeConsole
from harness.plain_text import printable
from harness.units import format_bytes, format_micros, format_rate, format_seconds


def test_active_characters_are_escaped() -> None:
    plain = "plain ü 漢\n\t"
    active = ("\x1b[2J", "a\rb", "\x9b31m", "\u202egnp", "\ud800")
    spelled = ["\\x1b[2J", "a\\rb", "\\x9b31m", "\\u202egnp", "\\ud800"]
    assert [printable(text) for text in (plain, *active)] == [plain, *spelled]


def test_the_console_escapes_controls_and_ignores_markup() -> None:
    out = io.StringIO()
    SafeConsole(file=out, width=80).print("[/bold] \x1b[2J :boom:")
    assert out.getvalue() == "[/bold] \\x1b[2J :boom:\n"


def test_durations_have_three_digits() -> None:
    texts = [format_seconds(seconds) for seconds in (None, 840e-6, 0.0123, 4.2, 185, 59.99, 7440)]
    assert texts == ["–", "840 µs", "12.3 ms", "4.2 s", "3 min 05 s", "60 s", "2 h 04 min"]


def test_bytes_are_binary() -> None:
    texts = [format_bytes(count) for count in (None, 512, 3482, 131 * 2**20)]
    assert texts == ["–", "512 B", "3.4 KiB", "131 MiB"]


def test_rates_and_micros() -> None:
    assert (format_rate(1234567.8), format_rate(None)) == ("1,234,568", "–")
    assert (format_micros(0.0000123), format_micros(0.0012), format_micros(None)) == ("12.3", "1,200", "–")
