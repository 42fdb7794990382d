"""Words of messages: the nearest known one for one that is not known, and what a violation is in plain ones."""

import difflib
from collections.abc import Iterable

# Of pydantic's types of errors, in plain words.
PLAIN = {
    "too_short": "must not be empty",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "string_type": "must be a text in quotes",
    "tuple_type": "must be a list in [ ]",
    "dict_type": "must be an object in { }",
    "model_type": "must be an object in { }",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "missing": "is missing",
}


def suggest(word: str, known: Iterable[str]) -> str:
    """The nearest known word as a question, or the list of all of them."""
    allowed = sorted(known)
    near = difflib.get_close_matches(word, allowed, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"allowed are {', '.join(allowed)}"
