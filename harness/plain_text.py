r"""Escapes text from servers, files and tools, so that it cannot control a terminal, a CI system or a page.

``printable`` is for terminals, and ``inert_line`` and ``inert_lines`` are for CI logs. ``escape_markdown``,
``markdown_code`` and ``markdown_block`` are for Markdown, and ``json_text`` is for printed JSON documents. The standard
library escapes HTML and XML.
"""

import re
from collections.abc import Iterable

from harness.redaction import redacted

# Characters to escape: control characters except newline and tab, bidirectional controls, line separators, invisible
# tags and annotations, and surrogates.
_ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
# CI commands: GitHub's ``::error::`` and ``##[error]``, Azure's ``##vso[``, TeamCity's ``##teamcity[``, and section
# markers of GitLab and Travis. GitHub ignores white space before a command.
_BEGINS_COMMAND = re.compile(r"^([\s\ufeff]*)(:(?=:[A-Za-z])|s(?=ection_(?:start|end):)|t(?=ravis_(?:fold|time):))")
_CONTAINS_COMMAND = re.compile(r"#(?=#(?:\[|vso\[|teamcity\[))")
_MARKUP = re.compile(r"[\\`*_\[\]~|$]")
_BEGINS_BLOCK = re.compile(r"^([-+=#:]|\d{1,9}(?=[.)]))")
_LINKED = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=GH)(?=-\d)|(?<=mailto)(?=:)", re.IGNORECASE)
_SEPARATOR = "&#8203;"  # zero-width space; it prevents Markdown from turning names, numbers and addresses into links
# Words and numbers that Markdown does not render as links, mentions, issue numbers, commits or lists.
_PLAIN_WORD = re.compile(r"(?!www\b|GH-)[A-Za-z]{1,40}[,;:]?|\[?[-+]?\d{1,6}([.,]\d{1,6})*[×%]?\]?[,;:]?|[–·→÷×±%]")
_COMMIT = re.compile(r"\b[0-9a-f]{7,}\b")
# Lookalikes for characters in code spans: | would end a table cell, and some viewers interpret < and > as HTML.
_LOOKALIKES = str.maketrans({"|": "\u2502", "<": "\u2039", ">": "\u203a"})


def printable(text: str) -> str:
    r"""Return the text with secrets redacted and control characters escaped (``\x1b``)."""
    return _ACTIVE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), redacted(text))


def is_printable(text: str) -> bool:
    """Return whether a string contains no control characters."""
    return _ACTIVE.search(text) is None


def require_printable(text: str) -> str:
    """Return the text unchanged. Raises ValueError if it contains a control character."""
    if not is_printable(text):
        raise ValueError("contains control characters")
    return text


def inert_line(line: str) -> str:
    r"""Return a line in which CI commands are escaped: ``::error::x`` becomes ``\x3a:error::x``."""
    line = _BEGINS_COMMAND.sub(lambda match: f"{match[1]}\\x{ord(match[2]):02x}", line)
    return _CONTAINS_COMMAND.sub(r"\\x23", line)


def inert_lines(text: str) -> str:
    """Return multi-line text with control characters and CI commands escaped."""
    return "\n".join(map(inert_line, printable(text).split("\n")))


def one_line(text: str) -> str:
    """Return text as a single printable line."""
    return printable(" ".join(text.split()))


def escape_markdown(text: str) -> str:
    """Escape text for a paragraph, list item or table cell in Markdown, and return it as a single line.

    The result cannot start a fence, list, heading, table, link, image, HTML, mention, issue number or formula.
    """
    line = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _LINKED.sub(_SEPARATOR, _MARKUP.sub(lambda match: f"\\{match[0]}", line))
    return _BEGINS_BLOCK.sub(lambda match: match[1] + _SEPARATOR if match[1].isdigit() else f"\\{match[1]}", line)


def markdown_code(text: str) -> str:
    """Return plain words unchanged, and other text as a code span. The result is safe in a table cell."""
    text = inert_line(one_line(text))
    if not text or (all(_PLAIN_WORD.fullmatch(word) for word in text.split(" ")) and not _COMMIT.search(text)):
        return text
    text = text.translate(_LOOKALIKES)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    padding = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def markdown_block(lines: Iterable[str]) -> str:
    """Return the lines as a fenced code block. The fence is longer than any run of backticks in the lines."""
    text = "\n".join(map(inert_lines, lines))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def json_text(document: str) -> str:
    r"""Return a JSON document in which control characters and CI commands are written as ``\u`` escapes."""
    document = _ACTIVE.sub(lambda match: _utf16(match[0]), redacted(document))
    return _CONTAINS_COMMAND.sub(r"\\u0023", document)


def _utf16(character: str) -> str:
    """Return the JSON escapes for the UTF-16 code units of a character."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))
