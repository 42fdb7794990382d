"""The test types: one small file each, behind one dataclass and one explicit registry."""

from dataclasses import dataclass
from typing import Literal

from harness.results.records import Level

Sweep = Literal["concurrency", "pipeline", "query", "cached-query"]

ACCEPT_JSON = "application/json,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7"
ACCEPT_PLAIN = "text/plain,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7"
ACCEPT_HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@dataclass(frozen=True, kw_only=True)
class SweepLevels:
    """The levels that a profile or the flags ask for, before they are turned into a test type's own."""

    concurrency: tuple[int, ...]
    pipeline_concurrency: tuple[int, ...]
    query: tuple[int, ...]
    cached_query: tuple[int, ...]
    query_concurrency: int  # connections of the tests that sweep the query count
    pipeline_depth: int


@dataclass(frozen=True, kw_only=True)
class TestType:
    """What a test type asks of a server and how it is swept. The checks are registered in ``harness.verify.checks``."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    name: str  # as in --type and results.json
    url_key: str  # key of benchmark_config.json
    accept: str  # Accept header of verification and load
    sweep: Sweep
    reads_database: bool
    writes_database: bool = False
    minimum_url_length: int

    def path(self, url: str, level: Level) -> str:
        """The request target at a level: the query count is appended literally, as TechEmpower does."""
        return url if level.queries is None else f"{url}{level.queries}"

    def levels(self, sweep: SweepLevels) -> tuple[Level, ...]:
        """All levels of this test type, in ascending order of load."""
        match self.sweep:
            case "concurrency":
                return tuple(Level(concurrency=c) for c in sweep.concurrency)
            case "pipeline":
                return tuple(Level(concurrency=c, pipeline=sweep.pipeline_depth) for c in sweep.pipeline_concurrency)
            case "query":
                return tuple(Level(concurrency=sweep.query_concurrency, queries=q) for q in sweep.query)
            case "cached-query":
                return tuple(Level(concurrency=sweep.query_concurrency, queries=q) for q in sweep.cached_query)
