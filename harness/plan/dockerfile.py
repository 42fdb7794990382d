"""Parses a Dockerfile: base images, copied files, and the command and user of the resulting image."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.records import safe_read

# [ \t] instead of \s: with \s, a file with many empty lines would take quadratic time.
FROM = re.compile(
    r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*(\S+)(?:[ \t]+AS[ \t]+(\S+))?[ \t\r]*$", re.IGNORECASE | re.MULTILINE
)
ARG = re.compile(r"^[ \t]*ARG[ \t]+(\w+)=(\S+)", re.IGNORECASE | re.MULTILINE)
COPYING = ("COPY", "RUN", "ADD")
NAME_CHARACTERS = 1000  # maximum length of an image's name; nested arguments can grow exponentially


def base_images(text: str) -> tuple[str, ...]:
    """Return the distinct external images of a Dockerfile in order. Build stages and ``scratch`` are excluded."""
    first = FROM.search(text)
    arguments: dict[str, str] = {}
    for name, default in ARG.findall(text[: first.start()] if first else text):
        arguments[name] = _filled(default, arguments)  # a default may contain earlier arguments
    stages = {"scratch"}
    images = []
    for image, stage in FROM.findall(text):
        images += [_filled(image, arguments)] if _filled(image, arguments).lower() not in stages else []
        stages.add(stage.lower())
    copied = (_filled(image, arguments) for image in _copied(text))
    images += [image for image in copied if image.lower() not in stages and not image.isdigit()]
    return tuple(dict.fromkeys(images))


def base_images_of_file(path: Path) -> tuple[str, ...]:
    """Return the base images of a Dockerfile, or an empty tuple if it cannot be read."""
    try:
        return base_images(safe_read.read(path, safe_read.MAX_TEXT_BYTES).decode("utf-8-sig", errors="replace"))
    except OSError:
        return ()


def _copied(text: str) -> Iterator[str]:
    """Yield the images that ``--from=IMAGE`` and ``--mount=type=bind,from=IMAGE`` take files from."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0].upper() in COPYING:
            for word in words[1:]:
                flag, _, value = word.partition("=")
                options = [f"from={value}"] if flag == "--from" else value.split(",") if flag == "--mount" else ()
                yield from (option.removeprefix("from=") for option in options if option.startswith("from="))


def _filled(word: str, arguments: dict[str, str]) -> str:
    """Replace ``$NAME``, ``${NAME}`` and ``${NAME:-default}``, and truncate the result to ``NAME_CHARACTERS``."""

    def value(match: re.Match[str]) -> str:
        return arguments.get(match[1] or match[3]) or match[2] or ""

    return re.sub(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))", value, word[:NAME_CHARACTERS]).strip("\"'")[:NAME_CHARACTERS]


# ---- the image that a Dockerfile describes ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ImageRecipe:
    """Properties of the image that the last stage builds, and the files that all stages copy."""

    command: tuple[str, ...] = ()  # ENTRYPOINT and CMD; empty: inherited from the base image
    user: str | None = None  # last USER; None: inherited from the base image
    copied: tuple[str, ...] = ()  # paths in the build context, as written


def parse_instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions as (upper-case name, arguments), with continuation lines joined and without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    parts = (line.strip().split(None, 1) for line in joined.splitlines() if line.strip())
    return [(words[0].upper(), words[1] if len(words) > 1 else "") for words in parts]


def parse_recipe(text: str) -> ImageRecipe:
    """Return the properties of the image that a Dockerfile describes."""
    entry: list[str] = []
    command: list[str] = []
    stages: dict[str, str | None] = {}
    stage, user = "", None
    copied: list[str] = []
    for name, rest in parse_instructions(text):
        if name == "FROM":
            match = FROM.match(f"FROM {rest}")
            image, stage = (match[1].lower(), (match[2] or "").lower()) if match else ("", "")
            user = stages.get(image)
            entry, command = [], []
        elif name == "USER":
            user = rest.strip().strip("\"'")
        elif name == "ENTRYPOINT":
            entry, command = split_command(rest), []  # an ENTRYPOINT resets the CMD of the base image
        elif name == "CMD":
            command = split_command(rest)
        elif name in ("COPY", "ADD"):
            copied += _sources(rest)
        stages[stage] = user
    return ImageRecipe(command=(*entry, *command), user=user, copied=tuple(copied))


def environment_variables(text: str) -> dict[str, str]:
    """Return the variables that ENV sets in the last stage and in the stages that it is based on."""
    stages: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for name, rest in parse_instructions(text):
        if name == "FROM" and (match := FROM.match(f"FROM {rest}")):
            current = dict(stages.get(match[1].lower(), {}))
            stages[(match[2] or "").lower()] = current
        elif name == "ENV":
            parts = split_command(rest)
            old_form = len(parts) > 1 and "=" not in parts[0]
            current |= {parts[0]: " ".join(parts[1:])} if old_form else parse_assignments(parts)
    return current


def parse_assignments(parts: Sequence[str]) -> dict[str, str]:
    """Return the variables set by leading NAME=value words, after an optional ``env``."""
    variables = {}
    for word in parts[1:] if [*parts[:1]] == ["env"] else parts:
        name, equals, value = word.partition("=")
        if not (equals and name.isidentifier()):
            break
        variables[name] = value
    return variables


def split_command(text: str) -> list[str]:
    """Return the words of a command in exec form (JSON) or in shell form."""
    try:
        words = json.loads(text)
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return words
    except ValueError:
        pass
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _sources(rest: str) -> list[str]:
    """Return the sources of COPY or ADD in the build context. Images, URLs and inline files are excluded."""
    flags = re.match(r"(?:--\S+\s+)*", rest)
    options = flags[0] if flags else ""
    if "--from=" in options:
        return []
    sources = split_command(rest[len(options) :])[:-1]
    return [word for word in sources if not re.match(r"<<|\$|\w+://|git@", word)]
