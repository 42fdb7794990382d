r"""Makes untrusted text inert, with a function for each kind of output.

Untrusted text comes from servers, files and tools.

``printable`` is for terminals, ``inert_line`` for a line of a CI log, ``markdown`` for a Markdown document,
``json_text`` for a JSON document that is printed. HTML and XML have escaping functions in the standard library.
"""

import re

from harness.redaction import redacted

# Control characters except newline and tab, bidirectional controls, line separators, invisible tags and annotations,
# and surrogates.
_ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
# Commands of CI systems: GitHub's ``::error::`` and ``##[error]``, Azure's ``##vso[``, TeamCity's ``##teamcity[``, and
# sections of GitLab and Travis. GitHub ignores leading white space.
_BEGINS_COMMAND = re.compile(r"^([\s\ufeff]*)(:(?=:[A-Za-z])|s(?=ection_(?:start|end):)|t(?=ravis_(?:fold|time):))")
_CONTAINS_COMMAND = re.compile(r"#(?=#(?:\[|vso\[|teamcity\[))")
_MARKUP = re.compile(r"[\\`*_\[\]~|$]")
_BEGINS_BLOCK = re.compile(r"^([-+=#:]|\d{1,9}(?=[.)]))")
_LINKED = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=GH)(?=-\d)|(?<=mailto)(?=:)", re.IGNORECASE)
_SEPARATOR = "&#8203;"  # zero-width space, which ends a name, number or address


def printable(text: str) -> str:
    r"""Return the text with secrets redacted and active characters escaped (``\x1b``)."""
    return _ACTIVE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), redacted(text))


def is_printable(text: str) -> bool:
    """Return whether a text contains no active characters."""
    return _ACTIVE.search(text) is None


def require_printable(text: str) -> str:
    """Return the text unchanged; raise ValueError if it contains an active character."""
    if not is_printable(text):
        raise ValueError("contains control characters")
    return text


def inert_line(line: str) -> str:
    r"""Escape commands of CI systems in a line: ``::error::x`` becomes ``\x3a:error::x``."""
    line = _BEGINS_COMMAND.sub(lambda match: f"{match[1]}\\x{ord(match[2]):02x}", line)
    return _CONTAINS_COMMAND.sub(r"\\x23", line)


def escape_markdown(text: str) -> str:
    """Return the text escaped for a paragraph, list item or table cell of Markdown, as a single line.

    The result cannot start a fence, list, heading, table, link, image, HTML, mention, issue number or formula.
    """
    line = " ".join(printable(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _LINKED.sub(_SEPARATOR, _MARKUP.sub(lambda match: f"\\{match[0]}", line))
    return _BEGINS_BLOCK.sub(lambda match: match[1] + _SEPARATOR if match[1].isdigit() else f"\\{match[1]}", line)


def json_text(document: str) -> str:
    r"""Return a JSON document with active characters and commands of CI systems as ``\u`` escapes."""
    document = _ACTIVE.sub(lambda match: _utf16(match[0]), redacted(document))
    return _CONTAINS_COMMAND.sub(r"\\u0023", document)


def _utf16(character: str) -> str:
    """Return the JSON escape of a character: one or two UTF-16 units."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))
