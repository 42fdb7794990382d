"""Draws the image for link previews: a bar chart of a run's ranking, without text. Link previews add the title."""

import struct
import zlib

from harness.extras.site.site_records import PublishedRun, standing_of
from harness.report.summary import OVERALL

WIDTH, HEIGHT = 1200, 630  # px, the size that Open Graph consumers recommend
MARGIN, TOP, WHISKER = 80, 190, 4  # px; the first bar starts TOP px below the upper edge
MAX_BARS = 10
# Palette indices of the dashboard's colours: background, the logo's three lines, and bars. Whiskers use LINE_2.
GROUND, LINE_1, LINE_2, LINE_3, BAR = range(5)
PALETTE = bytes.fromhex("10312f f4b860 f3f1ea b4c9c3 55b3a0")


def draw_preview(run: PublishedRun) -> bytes:
    """Return a PNG with a bar for each of the best rows in a run's first table.

    A longer bar is better. Whiskers show confidence intervals.
    """
    pixels = [bytearray([GROUND]) * WIDTH for _ in range(HEIGHT)]

    def fill(colour: int, left: float, top: float, width: float, height: float) -> None:
        start, end = (max(0, min(WIDTH, round(value))) for value in (left, left + width))
        for row in pixels[round(top) : round(top + height)]:
            row[start:end] = bytes([colour]) * (end - start)

    for number, (colour, share) in enumerate(((LINE_1, 1.0), (LINE_2, 0.72), (LINE_3, 0.45))):
        fill(colour, MARGIN, MARGIN - 20 + 24 * number, 88 * share, 13)
    bars = _bars(run)
    step = (HEIGHT - TOP - MARGIN) / MAX_BARS
    longest = max((high for _, _, high in bars), default=1.0)
    for number, bar in enumerate(bars):
        low, length, high = ((WIDTH - 2 * MARGIN) * value / longest for value in bar)
        top = TOP + step * number
        fill(BAR, MARGIN, top, length, 0.66 * step)
        if low < high:
            fill(LINE_2, MARGIN + low, top + 0.33 * step - WHISKER / 2, high - low, WHISKER)
            for end in (low, high):
                fill(LINE_2, MARGIN + end - WHISKER / 2, top + 0.16 * step, WHISKER, 0.34 * step)
    return _encode_png(pixels)


def _bars(run: PublishedRun) -> list[tuple[float, float, float]]:
    """Return (low, median, high) for each of the best rows. Costs are inverted, so that higher values are better."""
    table = next(iter(run.tables), None)
    standings = [standing_of(row, run.leading) for row in table.rows] if table and run.ranked else []
    estimates = [standing.estimate for standing in standings if standing and standing.estimate.median > 0][:MAX_BARS]
    ends = [(each.low or each.median, each.median, each.high or each.median) for each in estimates]
    if table and (table.test_type == OVERALL or run.leading == "throughput"):
        return ends
    return [(1 / high, 1 / median, 1 / low) for low, median, high in ends if low > 0]


def _encode_png(pixels: list[bytearray]) -> bytes:
    """Encode rows of palette indices as a PNG (ISO/IEC 15948)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)  # 8 bits per pixel, palette, no interlacing
    data = zlib.compress(b"".join(b"\0" + row for row in pixels), 9)  # each row starts with filter type 0 (none)
    chunks = ((b"IHDR", header), (b"PLTE", PALETTE), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)
