"""Counts statements exactly, as the difference between two readings of pg_stat_statements.

PostgreSQL counts during the whole run, so that a server cannot detect when it is observed. Counting slows down all
implementations and trials equally. Regular expressions classify statements by the text that PostgreSQL recorded.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import psycopg

HIGHEST_ID = 10_000  # ids in the world tables range from 1 to HIGHEST_ID
# Maximum number of different statements that PostgreSQL counts; toolset/database/statistics.conf sets the same number.
MAX_STATEMENTS = 20_000

# Matches a line comment, the beginning of a block comment, a dollar quote, a string or a quoted identifier, whichever
# comes first. A quote within a comment therefore does not open a string, and a string cannot open a comment.
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
_WRITING_VERBS = frozenset({"update", "insert", "delete", "merge", "copy", "truncate"})
# Matches a statement that modifies data within or after WITH … AS ( … ). FOR [NO KEY] UPDATE is removed first, because
# it only locks rows.
_MODIFIES = re.compile(r"(?<![\w$])(?:update|insert\s+into|delete\s+from|merge\s+into)(?![\w$])", re.IGNORECASE)
_LOCKS = re.compile(r"(?<![\w$])for\s+(?:no\s+key\s+)?update(?![\w$])", re.IGNORECASE)
_COPIES_OUT = re.compile(r"copy\s*\(|copy\s.*\sto\s", re.IGNORECASE | re.DOTALL)
# Syntax that lets a SELECT find several ids. IN with a single parameter is allowed, because object mappers generate it.
_LISTS = re.compile(
    r"""
      (?<![\w$"]) (?: any | some | or | between | join | union | values
        | in (?! \s* \( \s* \$\d+ (?:::\w+)? \s* \) ) ) (?![\w$"])
    | (?: unnest | _series | _elements | _elements_text | _to_table | _recordset ) "? \s* \(
    | <@ | @> | u&"
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Match queries about statement counting. PostgreSQL records names of settings and extensions as ``$1``, except in SHOW,
# so the second pattern also matches unrelated queries. It excludes set_config, with which asyncpg changes settings.
_NAMES_COUNTING = re.compile(r"pg_stat_statements|compute_query_id", re.IGNORECASE)
_MAY_ASK_FOR_COUNTING = re.compile(
    r"(?<!\w)(?: pg_settings | pg_show_all_settings | current_setting | pg_extension | pg_available_extension\w*"
    r" | \A do \s | \A show \s+ all )(?!\w)(?!.*set_config)",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
# PostgreSQL counts EXECUTE under the text of the PREPARE statement.
_PREPARES = re.compile(r"\Aprepare\s.*?[\s)]as\s+", re.IGNORECASE | re.DOTALL)
# Matches work that the server leaves to the database: function calls, string concatenation, and sorting by columns
# other than id.
_DATABASE_WORK = re.compile(
    r"""
      \|\|
    | (?<![\w$:]) (?! (?: select | from | where | and | or | not | in | as | on | by | any | exists | lateral | cast
                        | coalesce | row | limit | offset | values | copy | materialized | first | next | case | when
                        | then | else | is | like | between | using | all | union | distinct ) \b )
      "?[a-z_]\w*"? \s* \(
    | (?<![\w$]) order\s+by\s (?! \s* (?: "?\w+"? \. )* "?id"? (?![\w$"]) )
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class NormalisedStatement:
    """A statement of the server under test, normalised by PostgreSQL, with counts."""

    text: str
    calls: int = 0
    rows: int = 0  # number of rows retrieved or affected
    pages: int = 0  # number of table and index pages touched

    def names_table(self, table: str) -> bool:
        """Return whether the statement may name this table, quoted or not. ``U&"…"`` could name any table."""
        return (
            re.search(rf'(?<![\w$])(?:"?{table}"?(?![\w$])|u&")', strip_comments(self.text), re.IGNORECASE) is not None
        )

    @property
    def asks_for_counting(self) -> bool | None:
        """Return whether the statement inspects pg_stat_statements or its settings, or None if that is unclear."""
        return True if _NAMES_COUNTING.search(self.text) else None if _MAY_ASK_FOR_COUNTING.search(self.text) else False

    @property
    def writes(self) -> bool:
        """Return whether the statement changes rows. SELECT … FOR UPDATE only locks rows, so it does not count."""
        text = _PREPARES.sub("", strip_comments(self.text)).lstrip("( \t\r\n")
        verb = re.split("[^A-Za-z]", text, maxsplit=1)[0].lower()
        if verb == "copy":
            return not _COPIES_OUT.match(text)
        return verb in _WRITING_VERBS or (verb == "with" and _MODIFIES.search(_LOCKS.sub("", text)) is not None)

    @property
    def accepts_list(self) -> bool:
        """Return whether a single call can select several ids. PostgreSQL 18 normalises a list to ``$1 /*, ... */``."""
        return "/*, ... */" in self.text or _LISTS.search(strip_comments(self.text)) is not None

    def returns_column(self, column: str) -> bool:
        """Return whether the statement selects a column, by name or with ``*``, and contains no ``_DATABASE_WORK``."""
        text = _PREPARES.sub("", strip_comments(self.text))
        selected = re.search(rf"\*|(?<![\w$])(?:table|{column})(?![\w$])", text, re.IGNORECASE)
        return selected is not None and not _DATABASE_WORK.search(text)

    @property
    def names_quoted_table(self) -> bool:
        """Return whether the statement names the quoted table ``"World"``."""
        return '"World"' in strip_comments(self.text)

    @property
    def reads_whole_table(self) -> bool:
        """Return whether the statement fetches the complete table, for example to refresh a cache."""
        return self.calls > 0 and self.rows >= HIGHEST_ID * self.calls


@dataclass(frozen=True, kw_only=True)
class StatementSnapshot:
    """The statement counts at a point in time. ``counted`` maps (query id, text) to (calls, rows, pages)."""

    counted: Mapping[tuple[int, str], tuple[int, int, int]]
    deallocated: int  # number of times that PostgreSQL discarded counts because it had too many statements
    # The last statement of each open transaction. PostgreSQL counts this statement when the transaction ends.
    open_statements: tuple[str, ...]

    def since(self, earlier: "StatementSnapshot") -> tuple[NormalisedStatement, ...] | None:
        """Return the counts since an earlier snapshot, or None if PostgreSQL discarded counts in the meantime."""
        if self.deallocated != earlier.deallocated:
            return None
        statements = []
        for key, now in self.counted.items():
            calls, rows, pages = (a - b for a, b in zip(now, earlier.counted.get(key, (0, 0, 0)), strict=True))
            if calls > 0:
                statements.append(NormalisedStatement(text=key[1], calls=calls, rows=rows, pages=pages))
        return tuple(statements)


def find_counting_obstacle(admin: psycopg.Connection) -> str | None:
    """Return why this database does not count every statement, or None if it does."""
    try:
        admin.execute("SELECT 1 AS tfb_is_this_counted")
        query = "SELECT EXISTS (SELECT FROM pg_stat_statements WHERE query LIKE '%is_this_counted')"
        row = admin.execute(query).fetchone()
    except psycopg.Error as error:
        return f"pg_stat_statements: {str(error).strip().splitlines()[0]}"
    if row and row[0]:
        return None
    return "set pg_stat_statements.track to top and compute_query_id to auto or on, and restart PostgreSQL"


def take_snapshot(admin: psycopg.Connection) -> StatementSnapshot:
    """Return the current statement counts for every role except the administrator."""
    rows = admin.execute(
        """
        SELECT queryid, query, sum(calls)::bigint, sum(rows)::bigint, sum(shared_blks_hit + shared_blks_read)::bigint
        FROM pg_stat_statements
        WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND userid <> (SELECT oid FROM pg_roles WHERE rolname = current_user)
          AND query IS NOT NULL
        GROUP BY queryid, query
        """
    ).fetchall()
    state = admin.execute(
        """
        SELECT (SELECT dealloc FROM pg_stat_statements_info),
               ARRAY(SELECT query FROM pg_stat_activity WHERE datname = current_database()
                     AND usename <> current_user AND state LIKE 'idle in transaction%')
        """
    ).fetchone()
    counted = {(number, text): (calls, n, pages) for number, text, calls, n, pages in rows}
    deallocated, open_statements = state or (0, ())
    return StatementSnapshot(counted=counted, deallocated=int(deallocated or 0), open_statements=tuple(open_statements))


# ---- a statement's text ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)  # every load uses the same few statements
def strip_comments(text: str) -> str:
    """Return the statement without comments and without the contents of strings. Quoted identifiers remain."""
    parts: list[str] = []
    position = 0
    while match := _TOKENS.search(text, position):
        parts.append(text[position : match.start()])
        position = match.end()
        if match["block"]:
            position = _comment_end(text, position)
        parts.append(match[0] if match["identifier"] else " " if match["block"] or match["line"] else "''")
    parts.append(text[position:])
    return "".join(parts).strip()


def _comment_end(text: str, position: int) -> int:
    """Return the index after a block comment, given the index after ``/*``. Block comments may be nested."""
    depth = 1
    for match in re.finditer(r"/\*|\*/", text[position:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return position + match.end()
    return len(text)
