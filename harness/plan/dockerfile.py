"""Parses a Dockerfile: base images, copied files, and the command and user of the resulting image."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.records import safe_read

# With \s instead of [ \t], a search would take quadratic time in a file with many empty lines.
FROM = re.compile(
    r"^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*(\S+)(?:[ \t]+AS[ \t]+(\S+))?[ \t\r]*$", re.IGNORECASE | re.MULTILINE
)
ARG = re.compile(r"^[ \t]*ARG[ \t]+(\w+)=(\S+)", re.IGNORECASE | re.MULTILINE)
COPYING = ("COPY", "RUN", "ADD")
MAX_IMAGE_NAME = 1000  # characters; without a limit, ARGs that repeat earlier ARGs could grow exponentially


def base_images(text: str) -> tuple[str, ...]:
    """Return the external images that a Dockerfile uses, without duplicates. Exclude build stages and ``scratch``."""
    first = FROM.search(text)
    arguments: dict[str, str] = {}
    for name, default in ARG.findall(text[: first.start()] if first else text):
        arguments[name] = _substitute(default, arguments)  # a default may refer to an earlier ARG
    stages = {"scratch"}
    images = []
    for base, stage in FROM.findall(text):
        image = _substitute(base, arguments)
        images += [image] if image.lower() not in stages else []
        stages.add(stage.lower())
    sources = (_substitute(image, arguments) for image in _source_images(text))
    images += [image for image in sources if image.lower() not in stages and not image.isdigit()]
    return tuple(dict.fromkeys(images))


def base_images_of_file(path: Path) -> tuple[str, ...]:
    """Return the base images of a Dockerfile, or an empty tuple if it cannot be read."""
    try:
        return base_images(safe_read.read(path, safe_read.MAX_TEXT_BYTES).decode("utf-8-sig", errors="replace"))
    except OSError:
        return ()


def _source_images(text: str) -> Iterator[str]:
    """Yield each IMAGE in ``--from=IMAGE`` and ``--mount=type=bind,from=IMAGE``."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0].upper() in COPYING:
            for word in words[1:]:
                flag, _, value = word.partition("=")
                options = [f"from={value}"] if flag == "--from" else value.split(",") if flag == "--mount" else ()
                yield from (option.removeprefix("from=") for option in options if option.startswith("from="))


def _substitute(word: str, arguments: dict[str, str]) -> str:
    """Replace ``$NAME``, ``${NAME}`` and ``${NAME:-default}`` with values. Truncate to ``MAX_IMAGE_NAME``."""

    def value(match: re.Match[str]) -> str:
        return arguments.get(match[1] or match[3]) or match[2] or ""

    return re.sub(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))", value, word[:MAX_IMAGE_NAME]).strip("\"'")[:MAX_IMAGE_NAME]


# ---- properties of the resulting image -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ImageRecipe:
    """Properties of a Dockerfile's final image, and the files that any stage copies."""

    command: tuple[str, ...] = ()  # ENTRYPOINT and CMD; empty if inherited from the base image
    user: str | None = None  # last USER; None if inherited from the base image
    source_paths: tuple[str, ...] = ()  # paths in the build context, as written in COPY and ADD


def parse_instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions as (upper-case name, arguments). Join continuation lines and omit comments."""
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
    source_paths: list[str] = []
    for name, arguments in parse_instructions(text):
        if name == "FROM":
            match = FROM.match(f"FROM {arguments}")
            image, stage = (match[1].lower(), (match[2] or "").lower()) if match else ("", "")
            user = stages.get(image)
            entry, command = [], []
        elif name == "USER":
            user = arguments.strip().strip("\"'")
        elif name == "ENTRYPOINT":
            entry = split_command(arguments)  # discards the base image's CMD, but not a CMD of the same stage
        elif name == "CMD":
            command = split_command(arguments)
        elif name in ("COPY", "ADD"):
            source_paths += _source_paths(arguments)
        stages[stage] = user
    return ImageRecipe(command=(*entry, *command), user=user, source_paths=tuple(source_paths))


def environment_variables(text: str) -> dict[str, str]:
    """Return the last stage's ENV variables, including variables inherited from earlier stages."""
    stages: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for name, arguments in parse_instructions(text):
        if name == "FROM" and (match := FROM.match(f"FROM {arguments}")):
            current = dict(stages.get(match[1].lower(), {}))
            stages[(match[2] or "").lower()] = current
        elif name == "ENV":
            parts = split_command(arguments)
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


def _source_paths(arguments: str) -> list[str]:
    """Return the paths in the build context that COPY or ADD reads.

    Exclude files in other images, URLs, inline files, and paths that start with a variable.
    """
    flags = re.match(r"(?:--\S+\s+)*", arguments)
    options = flags[0] if flags else ""
    if "--from=" in options:
        return []
    sources = split_command(arguments[len(options) :])[:-1]
    return [word for word in sources if not re.match(r"<<|\$|\w+://|git@", word)]
