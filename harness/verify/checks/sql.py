"""What a SQL statement does, by its text as the database recorded it: pure, and no more of SQL than that needs."""

import re

# Line comments, nested block comments (by repetition), dollar quotes, strings and quoted identifiers; in this order of
# alternatives the first that begins wins, so that a quote within a comment opens nothing and the other way round.
_TOKENS = re.compile(
    r"""
      (?P<line>--[^\n]*)
    | (?P<block>/\*)
    | (?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
    | (?P<string>[eE]?'(?:[^']|'')*')
    | (?P<identifier>"(?:[^"]|"")*")
    """,
    re.VERBOSE | re.DOTALL,
)
_WRITING = frozenset({"update", "insert", "delete", "merge", "copy", "truncate"})
# A data-modifying statement within WITH … AS ( … ), or behind it; FOR [NO KEY] UPDATE only locks.
_CHANGES = re.compile(r"(?<![\w$])(?:update|insert\s+into|delete\s+from|merge\s+into)(?![\w$])", re.IGNORECASE)
_LOCKS = re.compile(r"(?<![\w$])for\s+(?:no\s+key\s+)?update(?![\w$])", re.IGNORECASE)


def bare(text: str) -> str:
    """The statement without comments and with empty strings; quoted identifiers are kept."""
    kept: list[str] = []
    position = 0
    while match := _TOKENS.search(text, position):
        kept.append(text[position : match.start()])
        position = match.end()
        if match["block"]:
            position = _comment_end(text, position)
            kept.append(" ")
        elif match["line"]:
            kept.append(" ")
        elif match["identifier"]:
            kept.append(match[0])
        else:
            kept.append("''")
    kept.append(text[position:])
    return "".join(kept).strip()


def writes(text: str) -> bool:
    """Does the statement change rows? Told by its verb; SELECT … FOR UPDATE only locks them."""
    statement = bare(text).lstrip("( \t\r\n")
    verb = re.match(r"[A-Za-z]+", statement)
    if verb is None:
        return False
    word = verb[0].lower()
    if word in _WRITING:
        return True
    return word == "with" and _CHANGES.search(_LOCKS.sub("", statement)) is not None


def names(text: str, table: str) -> bool:
    """Does the statement name this table, quoted or not, outside of comments and strings?"""
    return re.search(rf'(?<![\w$])"?{table}"?(?![\w$])', bare(text), re.IGNORECASE) is not None


def _comment_end(text: str, position: int) -> int:
    """The index behind a block comment that has been opened; they nest in PostgreSQL."""
    depth = 1
    for match in re.finditer(r"/\*|\*/", text[position:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return position + match.end()
    return len(text)
