"""``python -m harness.tests.verify.checks.rogue_table`` writes docs/rogues.md; needs PostgreSQL on the machine."""

import sys
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.host import toolchain
from harness.paths import REPOSITORY
from harness.servers import DatabaseAddress
from harness.servers.database import connect
from harness.servers.database.embedded import embedded
from harness.tests.doubles.reference import URLS
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.audited import AUDITED
from harness.tests.doubles.rogues.gallery import ROGUES
from harness.tests.doubles.rogues.hidden import HIDDEN
from harness.tests.techempower_checks import MINIMUM_URL, Verification
from harness.verify.checks.registry import CHECKS

DOCUMENT = REPOSITORY / "docs" / "rogues.md"
WITHOUT_DATABASE = frozenset({"http", "json", "plaintext", "delay", "fan-out"})
TIMEOUT = 2.0  # seconds; TechEmpower waits fifteen, and the servers are in this process

HEAD = """# The rogues' gallery

Servers that break one requirement each. Every one is caught by the check named beside it, and no check could be
removed without one of them getting through (`harness/tests/verify/checks/test_rogues.py` runs them all). The rules are
the paragraphs of [requirements.md](requirements.md).

The last column is the outcome of TechEmpower's own verification of the same server, computed with
`harness/tests/techempower_checks.py`: a server that *passes* or *warns* is benchmarked there, one that *fails* is not.
{summary}

This file is generated: `python -m harness.tests.verify.checks.rogue_table`.
"""

HIDING = """
## Honest until the load is on

These pass every look at them that is not a load, TechEmpower's and ours. The audited samples of a run catch them, or
the database's own counters over the whole life of their process: `harness/tests/verify/test_audit.py` puts an eighth
of them under load in each check, and all of them with
`TFB_WHOLE_GALLERY=1 .venv/bin/python -m pytest harness/tests/verify/test_audit.py`.
"""


def techempower(rogue: Rogue, database: DatabaseAddress | None) -> str:
    """The worst outcome over the tests in which the rogue misbehaves."""
    if rogue.test_type not in ("http", *MINIMUM_URL):
        return "has no such test"
    types = ("json", "plaintext") if rogue.test_type == "http" else (rogue.test_type,)
    with rogue.server(database) as server:
        outcomes = [
            Verification(server.endpoint, name, URLS[name], database, timeout=TIMEOUT).outcome() for name in types
        ]
    return next(outcome for outcome in ("fail", "warn", "pass") if outcome in outcomes)


def outcomes(rogues: Iterable[Rogue], database: DatabaseAddress) -> Mapping[str, str]:
    """TechEmpower's outcome for each rogue; those without a database several at once."""
    chosen = list(rogues)
    alone = [rogue for rogue in chosen if rogue.test_type not in WITHOUT_DATABASE]
    together = [rogue for rogue in chosen if rogue.test_type in WITHOUT_DATABASE]
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip((r.name for r in together), pool.map(lambda r: techempower(r, None), together), strict=True))
    return found | {rogue.name: techempower(rogue, database) for rogue in alone}


def render(found: Mapping[str, str]) -> str:
    """The document."""
    judged = [outcome for outcome in found.values() if outcome in ("pass", "warn", "fail")]
    through = sum(outcome != "fail" for outcome in judged)
    lines = [
        HEAD.strip().format(
            summary=f"Of the {len(judged)} servers of its own tests it would have benchmarked **{through}**."
        ),
        "",
    ]
    lines += ["| rogue | test | what it does | caught by | rule | TechEmpower |", "|---|---|---|---|---|---|"]
    for rogue in ROGUES.values():
        test = f"{rogue.test_type}, under load" if rogue.under_load else rogue.test_type
        rule = CHECKS[rogue.caught_by].rule
        lines.append(f"| {rogue.name} | {test} | {rogue.does} | `{rogue.caught_by}` | {rule} | {found[rogue.name]} |")
    lines += ["", *(line.strip() for line in HIDING.strip().splitlines()), ""]
    lines += ["| rogue | test | what it does | caught by | rule |", "|---|---|---|---|---|"]
    for rogue in (*AUDITED, *HIDDEN):
        rule = CHECKS[rogue.caught_by].rule
        lines.append(f"| {rogue.name} | {rogue.test_type} | {rogue.does} | `{rogue.caught_by}` | {rule} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run TechEmpower's checks over the gallery and write the document."""
    tool = toolchain.find("postgres")
    if tool is None:
        sys.exit("no PostgreSQL server on this machine")
    with tempfile.TemporaryDirectory() as folder, embedded(tool, Path(folder) / "log") as running:
        with connect(running.address, admin=True) as admin:
            admin.execute("ALTER SYSTEM SET compute_query_id = on")
            admin.execute("SELECT pg_reload_conf()")
        DOCUMENT.write_text(render(outcomes(ROGUES.values(), running.address)), encoding="utf-8")


if __name__ == "__main__":
    main()
