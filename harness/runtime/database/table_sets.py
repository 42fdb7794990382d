"""Tables that plugins need in addition to TechEmpower's tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.plugins import Extensions


@dataclass(frozen=True, kw_only=True)
class TableSet:
    """The tables that a plugin's test types use. Scripts are files in toolset/database."""

    seed_script: str  # creates and fills the tables
    refill_script: str  # restores the rows while servers are connected; runs as the administrator
    reload_script: str  # restores the rows of an external database; runs as the benchmark's role
    exists_query: str  # returns whether an external database has these tables; if not, tfb skips ``reload_script``
    state_queries: Mapping[str, str]  # additions to ``QUERIES`` in harness.verify.checks.after_load


TABLE_SETS: Sequence[TableSet] = tuple(Extensions[TableSet]("table_sets").load_all().values())
