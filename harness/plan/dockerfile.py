"""Which images a Dockerfile builds upon: its FROM lines with their arguments filled in. Pure."""

import re
from collections.abc import Iterator
from pathlib import Path

from harness.records import bounded

# Blanks within a line only: \s would search the rest of a file of empty lines again at each of them.
FROM = re.compile(
    r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*(\S+)(?:[ \t]+AS[ \t]+(\S+))?[ \t\r]*$", re.IGNORECASE | re.MULTILINE
)
ARG = re.compile(r"^[ \t]*ARG[ \t]+(\w+)=(\S+)", re.IGNORECASE | re.MULTILINE)
COPYING = ("COPY", "RUN", "ADD")
NAME_CHARACTERS = 1000  # of an image: the rest is cut off, or arguments made of arguments could fill memory


def base_images(text: str) -> tuple[str, ...]:
    """Images by the names that the file asks for, in its order; its own stages and ``scratch`` are none."""
    first = FROM.search(text)
    arguments: dict[str, str] = {}
    for name, default in ARG.findall(text[: first.start()] if first else text):
        arguments[name] = _filled(default, arguments)  # a default may be made of the arguments above it
    stages = {"scratch"}
    found = []
    for image, stage in FROM.findall(text):
        found += [_filled(image, arguments)] if _filled(image, arguments).lower() not in stages else []
        stages.add(stage.lower())
    copied = (_filled(image, arguments) for image in _copied(text))
    found += [image for image in copied if image.lower() not in stages and not image.isdigit()]
    return tuple(dict.fromkeys(found))


def of_file(path: Path) -> tuple[str, ...]:
    """Those of a file; none where it cannot be read."""
    try:
        return base_images(bounded.read(path, bounded.TEXT_BYTES).decode("utf-8-sig", errors="replace"))
    except OSError:
        return ()


def _copied(text: str) -> Iterator[str]:
    """Yield the images from which an instruction takes files: ``--from=IMAGE`` and ``--mount=type=bind,from=IMAGE``."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0].upper() in COPYING:
            for word in words[1:]:
                flag, _, value = word.partition("=")
                options = [f"from={value}"] if flag == "--from" else value.split(",") if flag == "--mount" else ()
                yield from (option.removeprefix("from=") for option in options if option.startswith("from="))


def _filled(word: str, arguments: dict[str, str]) -> str:
    """Replace ``$NAME``, ``${NAME}`` and ``${NAME:-default}``, and cut the result to the length of an image's name."""

    def value(match: re.Match[str]) -> str:
        return arguments.get(match[1] or match[3]) or match[2] or ""

    return re.sub(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))", value, word[:NAME_CHARACTERS]).strip("\"'")[:NAME_CHARACTERS]
