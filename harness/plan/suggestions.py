"""Words of error messages: the nearest known name for an unknown one, and violations of a schema in plain words."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Of pydantic's types of errors, where its message names what Python has and a file has not.
PLAIN_MESSAGES = {
    "too_short": "must not be empty",
    "tuple_type": 'must be a list in [ ], such as ["one", "two"]',
    "dict_type": "must be an object in { }",
    "model_type": "must be an object in { }",
}

INTERNAL_KEYS = ("urls",)  # keys that the models add: a file has json_url and its like without them
MAX_LISTED_WORDS = 20  # of words that are allowed: a longer list hides the sentence that it stands in
MAX_VIOLATIONS = 8  # about one file


def schema_keys(schema: Mapping[str, Any]) -> set[str]:
    """The keys of a file, at whatever place of it, by its JSON Schema."""
    parts = (schema, *schema.get("$defs", {}).values())
    return {key for part in parts for key in part.get("properties", {})}


@contextmanager
def name_file_in_errors(path: Path, schema: Callable[[], Mapping[str, Any]] = dict, absent: str = "") -> Iterator[None]:
    """What is wrong with a file, as a ConfigError that names it; ``absent`` where it is not there."""
    try:
        yield
    except OSError as error:
        gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        raise ConfigError(absent if absent and gone else f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {'; '.join(explain_violations(error, schema()))}") from error
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error


def explain_violations(error: ValidationError, schema: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Yield one sentence for each violation of a file: its key, what is wrong, the nearest known key.

    ``within`` is the path of the part of the file that was validated.
    """
    violations = error.errors()
    for violation in violations[:MAX_VIOLATIONS]:
        if violation["type"] == "too_short" and violation["input"]:
            continue  # of a list whose entries are broken, and told themselves
        location = [part for part in violation["loc"] if part not in INTERNAL_KEYS]
        names = (f"{part!s:.80}" if part != "" else '""' for part in location)  # a key may be empty
        place = [*([within] if within else []), *names]
        if violation["type"] == "extra_forbidden":
            yield f"{'.'.join(place)}: unknown key; {suggest(place[-1], schema_keys(schema) - {place[-1]})}"
        else:
            said = explain_violation(violation, schema)
            yield f"{'.'.join(place) or 'the whole file'}: {said} (found {violation['input']!r:.80})"
    if len(violations) > MAX_VIOLATIONS:
        yield f"and {len(violations) - MAX_VIOLATIONS} more"


def explain_violation(violation: "ErrorDetails", schema: Mapping[str, Any]) -> str:
    """Return what is wrong with one value, in words that need no knowledge of Python or regular expressions.

    A pattern is explained by the ``description`` that the schema has beside it.
    """
    if violation["type"] == "string_pattern_mismatch":
        pattern = violation["ctx"]["pattern"]
        if words := next(_described(schema, pattern), None):
            return f"should be {words}"
    return PLAIN_MESSAGES.get(violation["type"], violation["msg"]).removeprefix("Value error, ")


def _described(schema: object, pattern: str) -> Iterator[str]:
    """Yield the descriptions of the parts of a schema that have this pattern."""
    if isinstance(schema, Mapping):
        if schema.get("pattern") == pattern and "description" in schema:
            yield schema["description"]
        schema = schema.values()
    elif not isinstance(schema, list):
        return
    for part in schema:
        yield from _described(part, pattern)


def suggest(word: str, known: Iterable[str]) -> str:
    """The nearest known word as a question, or the list of all of them, of many the first."""
    allowed = sorted(known)
    near = difflib.get_close_matches(word, allowed, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = len(allowed) - MAX_LISTED_WORDS
    if more <= 0:
        return f"allowed are {', '.join(allowed)}"
    return f"allowed are {', '.join(allowed[:MAX_LISTED_WORDS])} and {more} more"
