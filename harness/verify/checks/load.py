"""Did the load itself reach the table? What PostgreSQL's table counters show of a whole replicate, at no cost to it.

The counters are always on. Sessions publish theirs about once a second and when they end, so the second reading is
taken after the server has stopped: then every row that it fetched or updated is in them (measured: 0 to 2 % more than
the generator's answers, which is what was under way when it stopped).
"""

from collections.abc import Iterator

from harness.servers import DatabaseAddress
from harness.servers.database import connect
from harness.verify.checks import LOAD, Finding, check
from harness.verify.checks.evidence import Evidence, TableUse

# Responses are counted by the generator, rows by the database; an answer is counted after its rows were. Nothing may be
# missing but what a crash of a session loses; the allowance is for that.
ALLOWANCE = 0.01


@check("load.5", frozenset({LOAD}), lambda evidence: evidence.use is not None and evidence.answered_reads > 0)
def load_reads_the_table(evidence: Evidence) -> Iterator[Finding]:
    """As many rows were fetched by index as db, query and update answered under load."""
    assert evidence.use is not None  # noqa: S101 - needs
    yield from _short("read", evidence.use.fetched, evidence.answered_reads)


@check("load.6", frozenset({LOAD}), lambda evidence: evidence.use is not None and evidence.answered_writes > 0)
def load_writes_the_table(evidence: Evidence) -> Iterator[Finding]:
    """As many rows were updated as update answered under load."""
    assert evidence.use is not None  # noqa: S101 - needs
    yield from _short("written", evidence.use.updated, evidence.answered_writes)


def read_table_use(database: DatabaseAddress) -> TableUse:
    """What all sessions did to the world tables since the database was made."""
    with connect(database, admin=database.admin_user is not None) as connection:
        row = connection.execute(
            "SELECT coalesce(sum(idx_tup_fetch), 0)::bigint, coalesce(sum(n_tup_upd), 0)::bigint "
            "FROM pg_stat_user_tables WHERE lower(relname) = 'world'"
        ).fetchone()
    return TableUse(fetched=row[0], updated=row[1]) if row else TableUse(fetched=0, updated=0)


def _short(what: str, came: int, answered: int) -> Iterator[Finding]:
    if came < answered * (1 - ALLOWANCE):
        yield Finding(
            message=f"{answered - came} of {answered} rows that were answered under load were not {what}",
            expected=f"{answered} rows {what}",
            actual=f"{came} rows {what}",
        )


CHECKS = (load_reads_the_table, load_writes_the_table)
