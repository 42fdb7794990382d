"""What a Dockerfile says: the images it builds upon, the command and user of its image, what it copies. Pure."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.records import safe_read

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


def base_images_of_file(path: Path) -> tuple[str, ...]:
    """Those of a file; none where it cannot be read."""
    try:
        return base_images(safe_read.read(path, safe_read.MAX_TEXT_BYTES).decode("utf-8-sig", errors="replace"))
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


# ---- the image that a Dockerfile describes ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ImageRecipe:
    """What the last stage of a Dockerfile says of the image, and what all its stages take from the folder."""

    command: tuple[str, ...] = ()  # ENTRYPOINT and CMD as the engine joins them; empty: those of the base image
    user: str | None = None  # of the last USER; None: that of the base image
    copied: tuple[str, ...] = ()  # sources within the build context, as they are written


def parse_instructions(text: str) -> list[tuple[str, str]]:
    """Return name (upper case) and arguments of each instruction; continuation lines are joined, comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    parts = (line.strip().split(None, 1) for line in joined.splitlines() if line.strip())
    return [(words[0].upper(), words[1] if len(words) > 1 else "") for words in parts]


def parse_recipe(text: str) -> ImageRecipe:
    """Return what a Dockerfile makes of its last stage."""
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
    """Return the variables that ENV sets in the last stage of a Dockerfile and in the stages that it builds upon."""
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
    """Return the variables that the leading words NAME=value set, after an optional ``env``."""
    found = {}
    for word in parts[1:] if [*parts[:1]] == ["env"] else parts:
        name, equals, value = word.partition("=")
        if not (equals and name.isidentifier()):
            break
        found[name] = value
    return found


def split_command(text: str) -> list[str]:
    """Return the words of a command in exec form (JSON), or in shell form without the shell."""
    try:
        found = json.loads(text)
        if isinstance(found, list) and all(isinstance(word, str) for word in found):
            return found
    except ValueError:
        pass
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _sources(rest: str) -> list[str]:
    """Return what COPY or ADD takes from the build context; other images, addresses and inline files are left out."""
    flags = re.match(r"(?:--\S+\s+)*", rest)
    given = flags[0] if flags else ""
    if "--from=" in given:
        return []
    found = split_command(rest[len(given) :])[:-1]
    return [word for word in found if not re.match(r"<<|\$|\w+://|git@", word)]
