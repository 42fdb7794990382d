"""Text that a server, a file or a tool wrote, made harmless where it is shown."""

import re

from harness.redaction import redacted

# Control characters but newline and tab, what turns the direction of writing, line separators, halves of characters.
_ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return the text without declared secrets, and with each active character as its escape (``\x1b``)."""
    return _ACTIVE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), redacted(text))


def is_printable(text: str) -> bool:
    """Whether a text has no active character in it."""
    return _ACTIVE.search(text) is None


def require_printable(text: str) -> str:
    """The text as it is; raises ValueError where an active character is in it."""
    if not is_printable(text):
        raise ValueError("holds control characters")
    return text
