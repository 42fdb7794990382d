"""Which images a Dockerfile builds upon: its FROM lines with their arguments filled in. Pure."""

import re
from pathlib import Path

from harness.records import bounded

FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE | re.MULTILINE)
COPIED = re.compile(r"^\s*(?:COPY|RUN|ADD)\b.*?--(?:from|mount=[^\s]*from)=([^\s,]+)", re.IGNORECASE | re.MULTILINE)
ARG = re.compile(r"^\s*ARG\s+(\w+)=(\S+)", re.IGNORECASE | re.MULTILINE)


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
    copied = (_filled(image, arguments) for image in COPIED.findall(text))
    found += [image for image in copied if image.lower() not in stages and not image.isdigit()]
    return tuple(dict.fromkeys(found))


def of_file(path: Path) -> tuple[str, ...]:
    """Those of a file; none where it cannot be read."""
    try:
        return base_images(bounded.read(path, bounded.TEXT_BYTES).decode("utf-8-sig", errors="replace"))
    except OSError:
        return ()


def _filled(word: str, arguments: dict[str, str]) -> str:
    """With ``$NAME``, ``${NAME}`` and ``${NAME:-default}`` replaced."""

    def value(match: re.Match[str]) -> str:
        return arguments.get(match[1] or match[3]) or match[2] or ""

    return re.sub(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))", value, word).strip("\"'")
