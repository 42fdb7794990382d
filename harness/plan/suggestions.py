"""Explains invalid values in configuration files and suggests similar names for unknown names."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Plain-language replacements for pydantic's messages that use Python terms.
PLAIN_MESSAGES = {
    "too_short": "must not be empty",
    "tuple_type": 'must be a list in square brackets, for example ["one", "two"]',
    "dict_type": "must be an object in { }",
    "model_type": "must be an object in { }",
}

INTERNAL_KEYS = ("urls",)  # model fields that are not keys in the file
MAX_LISTED_WORDS = 20  # maximum number of valid names that a message lists
MAX_VIOLATIONS = 8  # maximum number of invalid keys and values that a message lists


def schema_keys(schema: Mapping[str, Any]) -> set[str]:
    """Return all keys that a JSON Schema defines, at the top level or in ``$defs``."""
    parts = (schema, *schema.get("$defs", {}).values())
    return {key for part in parts for key in part.get("properties", {})}


@contextmanager
def name_file_in_errors(
    path: Path, schema: Callable[[], Mapping[str, Any]] = dict, missing_message: str = ""
) -> Iterator[None]:
    """Convert errors in the ``with`` block to a ConfigError that names the file and suggests valid keys."""
    try:
        yield
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        message = (
            missing_message if missing_message and is_missing else f"{path}: cannot read the file: {error.strerror}"
        )
        raise ConfigError(message) from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {'; '.join(explain_violations(error, schema()))}") from error
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error


def explain_violations(error: ValidationError, schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield a message for each invalid key or value. ``prefix`` is the validated object's path in the file."""
    violations = error.errors()
    for violation in violations[:MAX_VIOLATIONS]:
        if violation["type"] == "too_short" and violation["input"]:
            continue  # skip, because each invalid entry gets a separate message
        location = [part for part in violation["loc"] if part not in INTERNAL_KEYS]
        names = (f"{part!s:.80}" if part != "" else '""' for part in location)
        key_path = [*([prefix] if prefix else []), *names]
        if violation["type"] == "extra_forbidden":
            yield f"{'.'.join(key_path)}: unknown key; {suggest(key_path[-1], schema_keys(schema) - {key_path[-1]})}"
        else:
            explanation = explain_violation(violation, schema)
            yield f"{'.'.join(key_path) or 'the whole file'}: {explanation} (found {violation['input']!r:.80})"
    if len(violations) > MAX_VIOLATIONS:
        yield f"and {len(violations) - MAX_VIOLATIONS} more"


def explain_violation(violation: "ErrorDetails", schema: Mapping[str, Any]) -> str:
    """Explain in plain words why a value is invalid. For a violated pattern, quote the schema's ``description``."""
    if violation["type"] == "string_pattern_mismatch":
        pattern = violation["ctx"]["pattern"]
        if words := next(_described(schema, pattern), None):
            return f"should be {words}"
    return PLAIN_MESSAGES.get(violation["type"], violation["msg"]).removeprefix("Value error, ")


def _described(schema: object, pattern: str) -> Iterator[str]:
    """Yield the descriptions of all subschemas that have this pattern."""
    if isinstance(schema, Mapping):
        if schema.get("pattern") == pattern and "description" in schema:
            yield schema["description"]
        schema = schema.values()
    elif not isinstance(schema, list):
        return
    for part in schema:
        yield from _described(part, pattern)


def suggest(word: str, known: Iterable[str]) -> str:
    """Suggest the allowed words most similar to ``word``. If no word is similar, list the allowed words."""
    allowed = sorted(known)
    near = difflib.get_close_matches(word, allowed, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = len(allowed) - MAX_LISTED_WORDS
    if more <= 0:
        return f"choose from {', '.join(allowed)}"
    return f"choose from {', '.join(allowed[:MAX_LISTED_WORDS])} and {more} more"
