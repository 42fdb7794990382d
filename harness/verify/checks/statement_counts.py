"""Exact statement counts: the difference of two readings of pg_stat_statements, which counts throughout a run.

Counting is never switched: a server that could see it on and off would know when it is watched. What it costs the
database is the same for every implementation and in every trial. What a statement does is told by its text as the
database recorded it: no more of SQL is understood than that needs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import psycopg

TABLE_ROWS = 10_000  # of world: a statement that returns as many a call reads the table as a whole
MOST_STATEMENTS = 20_000  # different ones, of all servers that are up, as toolset/database/statistics.conf has it

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
_COPIES_OUT = re.compile(r"copy\s*\(|copy\s.*\sto\s", re.IGNORECASE | re.DOTALL)
# What makes one SELECT find several ids. An IN of a single parameter, as object mappers write it, does not.
_LISTS = re.compile(
    r"""
      (?<![\w$"]) (?: any | some | or | between | join | union | values
        | in (?! \s* \( \s* \$\d+ (?:::\w+)? \s* \) ) ) (?![\w$"])
    | (?: unnest | _series | _elements | _elements_text | _to_table | _recordset ) "? \s* \(
    | <@ | @> | u&"
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PREPARES = re.compile(r"\Aprepare\s.*?[\s)]as\s+", re.IGNORECASE | re.DOTALL)  # what EXECUTE runs is counted as this
# Work that the database does on rows: a function, texts that are joined, an order but that of the ids.
_WORKS = re.compile(
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
    """One normalised statement of the server under test."""

    text: str
    calls: int = 0
    rows: int = 0  # retrieved or affected
    pages: int = 0  # table and index pages that it touched

    def names(self, table: str) -> bool:
        """Does it name this table, quoted or not, outside of comments and strings? By code points it may."""
        return re.search(rf'(?<![\w$])(?:"?{table}"?(?![\w$])|u&")', bare(self.text), re.IGNORECASE) is not None

    @property
    def writes(self) -> bool:
        """Does it change rows? Told by its verb; SELECT … FOR UPDATE only locks them."""
        text = _PREPARES.sub("", bare(self.text)).lstrip("( \t\r\n")
        word = re.split("[^A-Za-z]", text, maxsplit=1)[0].lower()
        if word == "copy":
            return not _COPIES_OUT.match(text)
        return word in _WRITING or (word == "with" and _CHANGES.search(_LOCKS.sub("", text)) is not None)

    @property
    def takes_list(self) -> bool:
        """May one call find several ids? PostgreSQL 18 writes a list as its first parameter and a comment."""
        return "/*, ... */" in self.text or _LISTS.search(bare(self.text)) is not None

    def takes(self, column: str) -> bool:
        """Does it find this column, by name or with all others, without any work of the database on it?"""
        text = _PREPARES.sub("", bare(self.text))
        named = re.search(rf"\*|(?<![\w$])(?:table|{column})(?![\w$])", text, re.IGNORECASE)
        return named is not None and not _WORKS.search(text)

    @property
    def twin(self) -> bool:
        """Does it name the quoted twin of the table?"""
        return '"World"' in bare(self.text)

    @property
    def scans(self) -> bool:
        """Does it fetch the whole table, as the refreshing of a cache does?"""
        return self.calls > 0 and self.rows >= TABLE_ROWS * self.calls


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Everything counted so far: (query id, text) -> calls, rows, pages."""

    counted: Mapping[tuple[int, str], tuple[int, int, int]]
    deallocated: int
    waiting: tuple[str, ...]  # the last statement of each open transaction, which is counted only at its end

    def since(self, earlier: "Snapshot") -> tuple[NormalisedStatement, ...] | None:
        """What was counted between two snapshots; None where the view was too small, and the counts are not exact."""
        if self.deallocated != earlier.deallocated:
            return None
        found = []
        for key, now in self.counted.items():
            calls, rows, pages = (a - b for a, b in zip(now, earlier.counted.get(key, (0, 0, 0)), strict=True))
            if calls > 0:
                found.append(NormalisedStatement(text=key[1], calls=calls, rows=rows, pages=pages))
        return tuple(found)


def uncounted(admin: psycopg.Connection) -> str | None:
    """Why this database does not count every statement; None where it does."""
    try:
        admin.execute("SELECT 1 AS tfb_is_this_counted")
        query = "SELECT EXISTS (SELECT FROM pg_stat_statements WHERE query LIKE '%is_this_counted')"
        row = admin.execute(query).fetchone()
    except psycopg.Error as error:
        return f"pg_stat_statements: {str(error).strip().splitlines()[0]}"
    # Only the database's start mends it.
    return None if row and row[0] else "pg_stat_statements.track must be top, compute_query_id auto or on"


def snapshot(admin: psycopg.Connection) -> Snapshot:
    """What has been counted so far of all roles but the administrator's."""
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
    others = admin.execute(
        """
        SELECT (SELECT dealloc FROM pg_stat_statements_info),
               ARRAY(SELECT query FROM pg_stat_activity WHERE datname = current_database()
                     AND usename <> current_user AND state LIKE 'idle in transaction%')
        """
    ).fetchone()
    counted = {(number, text): (calls, n, pages) for number, text, calls, n, pages in rows}
    deallocated, waiting = others or (0, ())
    return Snapshot(counted=counted, deallocated=int(deallocated or 0), waiting=tuple(waiting))


# ---- a statement's text ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)  # the statements of a server are few, and are looked at around every load
def bare(text: str) -> str:
    """The statement without comments and with empty strings; quoted identifiers are kept."""
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
    """The index behind a block comment that has been opened; they nest in PostgreSQL."""
    depth = 1
    for match in re.finditer(r"/\*|\*/", text[position:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return position + match.end()
    return len(text)
