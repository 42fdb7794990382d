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

MOST_NAMED = 20  # of words that are allowed: a longer list hides the sentence that it stands in


def suggest(word: str, known: Iterable[str], *, listed_by: str = "") -> str:
    """The nearest known word as a question, or the list of all of them, of many the first and what lists the others."""
    allowed = sorted(known)
    near = difflib.get_close_matches(word, allowed, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = len(allowed) - MOST_NAMED
    if more <= 0:
        return f"allowed are {', '.join(allowed)}"
    command = f" ({listed_by})" if listed_by else ""
    return f"allowed are {', '.join(allowed[:MOST_NAMED])} and {more} more{command}"
