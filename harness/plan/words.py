"""Words of messages: the nearest known one for one that is not known, and what a violation is in plain ones."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.errors import ConfigError

# Of pydantic's types of errors, where its message names what Python has and a file has not.
PLAIN = {
    "too_short": "must not be empty",
    "tuple_type": "must be a list in [ ]",
    "dict_type": "must be an object in { }",
    "model_type": "must be an object in { }",
}

MOST_NAMED = 20  # of words that are allowed: a longer list hides the sentence that it stands in
MOST_COMPLAINTS = 8  # about one file


def keys_of(schema: Mapping[str, Any]) -> set[str]:
    """The keys of a file, at whatever place of it, by its JSON Schema."""
    parts = (schema, *schema.get("$defs", {}).values())
    return {key for part in parts for key in part.get("properties", {})}


@contextmanager
def naming(path: Path, schema: Callable[[], Mapping[str, Any]] = dict, absent: str = "") -> Iterator[None]:
    """What is wrong with a file, as a ConfigError that names it; ``absent`` where it is not there."""
    try:
        yield
    except OSError as error:
        gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        raise ConfigError(absent if absent and gone else f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {'; '.join(explain(error, schema()))}") from error
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error


def explain(error: ValidationError, schema: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each violation of a file: its key, what is wrong, the nearest known key."""
    violations = error.errors()
    for violation in violations[:MOST_COMPLAINTS]:
        if violation["type"] == "too_short" and violation["input"]:
            continue  # of a list whose entries are broken, and told themselves
        place = [f"{part!s:.80}" for part in violation["loc"]]
        if violation["type"] == "extra_forbidden":
            yield f"{'.'.join(place)}: unknown key; {suggest(place[-1], keys_of(schema) - {place[-1]})}"
        else:
            said = PLAIN.get(violation["type"]) or violation["msg"]
            yield f"{'.'.join(place) or 'the whole file'}: {said} (found {violation['input']!r:.80})"
    if len(violations) > MOST_COMPLAINTS:
        yield f"and {len(violations) - MOST_COMPLAINTS} more"


def suggest(word: str, known: Iterable[str]) -> str:
    """The nearest known word as a question, or the list of all of them, of many the first."""
    allowed = sorted(known)
    near = difflib.get_close_matches(word, allowed, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = len(allowed) - MOST_NAMED
    if more <= 0:
        return f"allowed are {', '.join(allowed)}"
    return f"allowed are {', '.join(allowed[:MOST_NAMED])} and {more} more"
