"""Formats SI values for display. Only this module and ``harness.report`` convert numbers to text."""

NS = 1e-9  # seconds per nanosecond


def format_rate(per_second: float | None) -> str:
    """Return requests per second with thousands separators, or an en dash if unknown."""
    return "–" if per_second is None else f"{per_second:,.0f}"


def format_seconds(seconds: float | None) -> str:
    """Return a duration with about three digits: 840 µs, 12.3 ms, 4.2 s, 3 min 05 s, 2 h 04 min."""
    if seconds is None or seconds < 0:  # negative if the clock was set back
        return "–"
    if seconds < 0.995e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def format_elapsed(seconds: float) -> str:
    """Return an elapsed time without fractions of a second: 7 s, 3 min 05 s, 2 h 04 min."""
    return f"{seconds:.0f} s" if seconds < 59.5 else format_seconds(seconds)


def format_bytes(count: float | None) -> str:
    """Return a number of bytes in binary units: 512 B, 3.4 KiB, 131 MiB."""
    if count is None:
        return "–"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1000 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def format_micros(seconds: float | None) -> str:
    """Return a duration in microseconds, without the unit and with about three digits."""
    if seconds is None:
        return "–"
    micros = seconds * 1e6
    return f"{micros:,.0f}" if micros >= 100 else f"{micros:.3g}"
