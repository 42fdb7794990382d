"""Exact statement counts: the difference between two readings of pg_stat_statements, which counts during the whole run.

Counting is always active. Otherwise, a server could detect when it is observed. The cost is the same for all
implementations and trials. Statements are classified by the text that PostgreSQL recorded, by means of regular
expressions instead of a complete SQL parser.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import psycopg

TABLE_ROWS = 10_000  # rows of world; a statement that returns this many rows per call reads the complete table
# Maximum number of different statements of all running servers, as in toolset/database/statistics.conf.
MAX_STATEMENTS = 20_000

# Line comments, beginnings of block comments, dollar quotes, strings and quoted identifiers. The first match wins, so a
# quote within a comment does not open a string, and a string cannot open a comment.
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
# A statement that modifies data within or after WITH … AS ( … ). FOR [NO KEY] UPDATE only locks rows.
_MODIFIES = re.compile(r"(?<![\w$])(?:update|insert\s+into|delete\s+from|merge\s+into)(?![\w$])", re.IGNORECASE)
_LOCKS = re.compile(r"(?<![\w$])for\s+(?:no\s+key\s+)?update(?![\w$])", re.IGNORECASE)
_COPIES_OUT = re.compile(r"copy\s*\(|copy\s.*\sto\s", re.IGNORECASE | re.DOTALL)
# Syntax by which a SELECT finds several ids. Object mappers write IN with a single parameter, which is permitted.
_LISTS = re.compile(
    r"""
      (?<![\w$"]) (?: any | some | or | between | join | union | values
        | in (?! \s* \( \s* \$\d+ (?:::\w+)? \s* \) ) ) (?![\w$"])
    | (?: unnest | _series | _elements | _elements_text | _to_table | _recordset ) "? \s* \(
    | <@ | @> | u&"
    """,
    re.VERBOSE | re.IGNORECASE,
)
# EXECUTE is counted under the text of PREPARE.
_PREPARES = re.compile(r"\Aprepare\s.*?[\s)]as\s+", re.IGNORECASE | re.DOTALL)
# Work on rows in the database: function calls, string concatenation, and sorting by other columns than id.
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
    """A normalised statement of the server under test, with counts."""

    text: str
    calls: int = 0
    rows: int = 0  # number of rows retrieved or affected
    pages: int = 0  # number of table and index pages touched

    def names_table(self, table: str) -> bool:
        """Return whether the statement names this table, quoted or not, or may use its code points (``U&"…"``)."""
        return (
            re.search(rf'(?<![\w$])(?:"?{table}"?(?![\w$])|u&")', strip_comments(self.text), re.IGNORECASE) is not None
        )

    @property
    def writes(self) -> bool:
        """Return whether the verb of the statement changes rows. SELECT … FOR UPDATE only locks them."""
        text = _PREPARES.sub("", strip_comments(self.text)).lstrip("( \t\r\n")
        verb = re.split("[^A-Za-z]", text, maxsplit=1)[0].lower()
        if verb == "copy":
            return not _COPIES_OUT.match(text)
        return verb in _WRITING_VERBS or (verb == "with" and _MODIFIES.search(_LOCKS.sub("", text)) is not None)

    @property
    def accepts_list(self) -> bool:
        """Return whether a call may find several ids. PostgreSQL 18 records a list as a parameter and a comment."""
        return "/*, ... */" in self.text or _LISTS.search(strip_comments(self.text)) is not None

    def returns_column(self, column: str) -> bool:
        """Return whether the statement returns a column, by name or with ``*``, without database work on it."""
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
        return self.calls > 0 and self.rows >= TABLE_ROWS * self.calls


@dataclass(frozen=True, kw_only=True)
class StatementSnapshot:
    """Counts up to a point in time: (query id, text) -> (calls, rows, pages)."""

    counted: Mapping[tuple[int, str], tuple[int, int, int]]
    deallocated: int
    # Last statements of open transactions, which are counted when the transactions end.
    open_statements: tuple[str, ...]

    def since(self, earlier: "StatementSnapshot") -> tuple[NormalisedStatement, ...] | None:
        """Return the counts between two snapshots, or None if the view was too small for exact counts."""
        if self.deallocated != earlier.deallocated:
            return None
        statements = []
        for key, now in self.counted.items():
            calls, rows, pages = (a - b for a, b in zip(now, earlier.counted.get(key, (0, 0, 0)), strict=True))
            if calls > 0:
                statements.append(NormalisedStatement(text=key[1], calls=calls, rows=rows, pages=pages))
        return tuple(statements)


def find_counting_obstacle(admin: psycopg.Connection) -> str | None:
    """Return the reason why this database does not count all statements, or None if it counts them."""
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
    """Return the current counts of all roles except the administrator."""
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


@lru_cache(maxsize=512)  # a server has few different statements, which are read before and after every load
def strip_comments(text: str) -> str:
    """Return the statement without comments and without the contents of strings. Quoted identifiers remain."""
    kept: list[str] = []
    position = 0
    while match := _TOKENS.search(text, position):
        kept.append(text[position : match.start()])
        position = match.end()
        if match["block"]:
            position = _comment_end(text, position)
        kept.append(match[0] if match["identifier"] else " " if match["block"] or match["line"] else "''")
    kept.append(text[position:])
    return "".join(kept).strip()


def _comment_end(text: str, position: int) -> int:
    """Return the index after a block comment, given the index after its opening. PostgreSQL nests block comments."""
    depth = 1
    for match in re.finditer(r"/\*|\*/", text[position:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return position + match.end()
    return len(text)
