"""The nearest known word for one that is not known."""

import difflib
from collections.abc import Iterable


def suggest(word: str, known: Iterable[str]) -> str:
    """The nearest known word as a question, or the list of all of them."""
    allowed = sorted(known)
    near = difflib.get_close_matches(word, allowed, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"allowed are {', '.join(allowed)}"
