"""Numbers for people."""

import pytest

from harness.units import format_bytes, format_micros, format_rate, format_seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (840e-6, "840 µs"),
        (0.0123, "12.3 ms"),
        (4.2, "4.2 s"),
        (185, "3 min 05 s"),
        (59.99, "60 s"),
        (7440, "2 h 04 min"),
    ],
)
def test_a_duration_has_the_unit_that_keeps_three_digits(seconds: float | None, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "–"), (512, "512 B"), (3482, "3.4 KiB"), (131 * 2**20, "131 MiB")],
)
def test_bytes_are_binary(count: float | None, text: str) -> None:
    assert format_bytes(count) == text


def test_rates_and_micros() -> None:
    assert (format_rate(1234567.8), format_rate(None)) == ("1,234,568", "–")
    assert (format_micros(0.0000123), format_micros(0.0012), format_micros(None)) == ("12.3", "1,200", "–")
