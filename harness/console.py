"""The console on which everything is shown: what a server or a file wrote cannot move its cursor."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from harness.plain_text import printable


class SafeConsole(Console):
    """rich's console, on which only rich itself may move the cursor or change colours."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - rich's own options
        # Names and messages hold brackets and colons that are no markup: what is styled says so with rich's Text.
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What rich renders, with the active characters of texts escaped."""
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else printable(segment.text)
            yield segment if shown == segment.text else Segment(shown, segment.style)
