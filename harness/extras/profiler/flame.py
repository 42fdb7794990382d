"""A flame graph as one SVG file: stacks with their counts, widths in shares of all samples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape
from zlib import crc32

WIDTH, ROW, MARGIN = 1200.0, 17, 34  # pixels
NARROWEST = 0.3  # pixels: narrower frames are left out
LETTER = 6.7  # pixels of one

Stacks = Mapping[tuple[str, ...], int]  # frames from the outermost in -> samples


@dataclass
class _Node:
    samples: int = 0
    inner: dict[str, "_Node"] = field(default_factory=dict)


def folded(stacks: Stacks) -> str:
    """One line a stack, ``outer;inner count``: what other flame graph programs read."""
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(stacks.items()))


def svg(stacks: Stacks, title: str) -> str:
    """The picture; every frame has its name, samples and share as a tooltip."""
    root = _Node()
    for stack, count in stacks.items():
        root.samples += count
        node = root
        for frame in stack:
            node = node.inner.setdefault(frame, _Node())
            node.samples += count
    boxes = list(_boxes(root, 0.0, 0, root.samples or 1))
    depth = max((level for level, *_ in boxes), default=0) + 1
    height = MARGIN + depth * ROW + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}" width="{WIDTH:.0f}" '
        f'height="{height}" font-family="monospace" font-size="11">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="6" y="20" font-size="13">{escape(title)}, {root.samples} samples</text>',
        *(_box(*box, root.samples or 1, height) for box in boxes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _boxes(node: _Node, left: float, level: int, total: int) -> Iterator[tuple[int, float, float, str, int]]:
    """(level, left, width, frame, samples) of all frames wide enough to be seen, siblings by name."""
    for name, inner in sorted(node.inner.items()):
        width = WIDTH * inner.samples / total
        if width >= NARROWEST:
            yield level, left, width, name, inner.samples
            yield from _boxes(inner, left, level + 1, total)
        left += width


def _box(level: int, left: float, width: float, name: str, samples: int, total: int, height: int) -> str:
    top = height - 8 - (level + 1) * ROW
    letters = int(width / LETTER) - 1
    text = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 3 else ""
    shown = f'<text x="{left + 2:.1f}" y="{top + 12}">{escape(text)}</text>' if text else ""
    tip = escape(f"{name}: {samples} samples, {samples / total:.1%}")
    return (
        f'<g><title>{tip}</title><rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 1}" '
        f'fill="{_colour(name)}" rx="1"/>{shown}</g>'
    )


def _colour(name: str) -> str:
    """The kernel blue, everything else a warm hue of its name."""
    spread = crc32(name.encode())
    if name.endswith("[k]"):
        return f"hsl({205 + spread % 25},55%,{68 + spread % 12}%)"
    return f"hsl({15 + spread % 40},80%,{62 + spread % 14}%)"
