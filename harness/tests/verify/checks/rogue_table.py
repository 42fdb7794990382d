"""``python -m harness.tests.verify.checks.rogue_table`` writes docs/rogues.md; needs PostgreSQL on the machine."""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.host import toolchain
from harness.paths import REPOSITORY
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.runtime.database.embedded import embedded
from harness.tests.doubles.honest import HONEST
from harness.tests.doubles.honest_orders import HONEST_ORDERS
from harness.tests.doubles.reference import URLS
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.audited import AUDITED
from harness.tests.doubles.rogues.everyone import CUNNING, EVERYONE
from harness.tests.doubles.rogues.gallery import ROGUES
from harness.tests.doubles.rogues.hidden import HIDDEN
from harness.tests.techempower_checks import MINIMUM_URL, Verification
from harness.tests.verify.gallery_runs import Seen
from harness.verify.checks.registry import CHECKS

DOCUMENT = REPOSITORY / "docs" / "rogues.md"
WITHOUT_DATABASE = frozenset({"http", "json", "plaintext", "delay", "fan-out"})
TIMEOUT = 2.0  # seconds; TechEmpower waits fifteen, and the servers are in this process

HEAD = """# The rogues' gallery

Servers that break one requirement each. Every one is caught by the check named beside it, and no check could be
removed without one of them getting through (`harness/tests/verify/checks/test_rogues.py` runs them all). The rules are
the paragraphs of [requirements.md](requirements.md).

*In a run* is what became of the server, as a program of its own, in the latest whole run of it at profile smoke on local processes:
*refused* or *warned* by the check named, *missed* where that check said nothing, – where no run has been made of it.
{runs} *Seen* says on which day (UTC) and with which commit, + where the tree differed from it, – where a
run on 2026-11-22 before 17:20 UTC did not write it down. There are {ages}.

The last column is the outcome of TechEmpower's own verification of the same server, computed with
`harness/tests/techempower_checks.py`: a server that *passes* or *warns* is benchmarked there, one that *fails* is not.
{summary}

| command | what it does |
|---|---|
| `python -m harness.tests.verify.gallery` | takes rogues through whole runs and prints the matrix; `NAME …`, `--kind load`, `--part 1/2`, `--seconds 240` for pieces, `--batch N` servers a run; what was seen is kept (`--kept FILE`), and with `--since 2026-11-22T20:52` made again where it is older |
| `python -m harness.tests.verify.gallery --honest --times 20` | the honest variants past verification; with `--runs` through whole runs |
| `python -m harness.tests.verify.gallery --write` | writes this file from what is kept, with the outcomes of TechEmpower's checks that stand in it |
| `python -m harness.tests.verify.checks.rogue_table` | works those outcomes out anew and writes this file |
"""

HIDING = """
## Honest until the load is on

These pass every look at them that is not a load, TechEmpower's and ours. The audited samples of a run catch them, or
the database's own counters over the whole life of their process: `harness/tests/verify/test_audit.py` puts an eighth
of them under load in each check, and all of them with
`TFB_WHOLE_GALLERY=1 .venv/bin/python -m pytest harness/tests/verify/test_audit.py`.
"""

HONEST_HEAD = """
## Honest variants

{count} servers that do what the requirements leave open, each in another way; an objection to one is a defect of a check. *Verified*: how often
it passed verification of all its test types and HTTP as a whole; *in runs*: how often a whole run at profile smoke, audits included;
*refused*: how often a check objected in either. *Seen*: the latest of these. **{tried}** of them have been taken past verification since that
is counted here, {times} times in all, with **{refused}** refusals{twenty}.
"""

TAIL = REPOSITORY / "harness" / "tests" / "verify" / "checks" / "rogues_tail.md"  # what is written by hand
NOT_RUN = NOT_KNOWN = "–"
TIMES = 20  # that an honest variant should pass in a row


@dataclass(frozen=True, kw_only=True)
class InARun:
    """Two cells of the table: what a whole run made of a rogue, and when and with which code it was made."""

    word: str = NOT_RUN
    seen: str = NOT_KNOWN


@dataclass(frozen=True, kw_only=True)
class Passed:
    """Four cells of the table of honest variants."""

    verified: int = 0
    in_runs: int = 0
    refused: int = 0
    seen: str = NOT_KNOWN


def passed(verified: Sequence[Seen], runs: Sequence[Seen]) -> Passed:
    """What became of an honest variant, of what was seen in either way."""
    latest = max((*verified, *runs), key=lambda one: one.at)
    return Passed(
        verified=sum(one.ok for one in verified),
        in_runs=sum(one.ok for one in runs),
        refused=sum(not one.ok for one in (*verified, *runs)),
        seen=_moment(latest),
    )


def _moment(seen: Seen) -> str:
    day = datetime.fromtimestamp(seen.at, UTC).strftime("%Y-%m-%d") if seen.at else ""
    return f"{day} {seen.code}".strip() or NOT_KNOWN


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


def in_a_run(seen: Seen) -> InARun:
    """What a whole run made of a rogue, and which run that was."""
    named = EVERYONE[seen.name].caught_by
    word = "refused" if named in seen.failed else "warned" if named in seen.warned else "missed"
    return InARun(word=word, seen=_moment(seen))


def render(found: Mapping[str, str], runs: Mapping[str, InARun], honest: Mapping[str, Passed]) -> str:
    """The document: TechEmpower's outcomes and those of whole runs, by rogue, and what became of honest variants."""
    judged = [outcome for outcome in found.values() if outcome in ("pass", "warn", "fail")]
    through = sum(outcome != "fail" for outcome in judged)
    taken = [runs[name] for name in EVERYONE if runs.get(name, InARun()).word != NOT_RUN]
    ages = Counter(one.seen for one in taken)
    lines = [
        HEAD.strip().format(
            summary=f"Of the {len(judged)} servers of its own tests it would have benchmarked **{through}**.",
            runs=f"Of the {len(EVERYONE)} rogues **{len(taken)}** have been taken through a run, "
            f"**{sum(one.word != 'missed' for one in taken)}** of them were caught by the check named.",
            ages=", ".join(
                f"{count} {'earlier' if seen == NOT_KNOWN else f'on {seen}'}" for seen, count in sorted(ages.items())
            ),
        ),
        "",
    ]
    lines += [
        "| rogue | test | what it does | caught by | rule | in a run | seen | TechEmpower |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [f"{_cells(rogue, runs)} {found[rogue.name]} |" for rogue in ROGUES.values()]
    lines += ["", *(line.strip() for line in HIDING.strip().splitlines()), ""]
    lines += ["| rogue | test | what it does | caught by | rule | in a run | seen |", "|---|---|---|---|---|---|---|"]
    lines += [_cells(rogue, runs) for rogue in (*AUDITED, *HIDDEN, *CUNNING)]
    lines += ["", *_honest(honest)]
    return "\n".join([*lines, "", TAIL.read_text(encoding="utf-8").strip()]) + "\n"


def _honest(known: Mapping[str, Passed]) -> list[str]:
    variants = (*HONEST, *HONEST_ORDERS)
    rows = [known.get(variant.name, Passed()) for variant in variants]
    twenty = sum(row.verified >= TIMES and not row.refused for row in rows)
    head = HONEST_HEAD.strip().format(
        count=len(variants),
        tried=sum(row.verified > 0 for row in rows),
        times=sum(row.verified for row in rows),
        refused=sum(row.refused for row in rows),
        twenty=f"; {twenty} passed {TIMES} times" if twenty else f"; none has passed {TIMES} times yet",
    )
    lines = [
        head,
        "",
        "| variant | tests | what it does | verified | in runs | refused | seen |",
        "|---|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {one.name} | {', '.join(one.test_types)} | {one.does} | {row.verified} | {row.in_runs} | {row.refused} | {row.seen} |"
        for one, row in zip(variants, rows, strict=True)
    ]


def _cells(rogue: Rogue, runs: Mapping[str, InARun]) -> str:
    test = f"{rogue.test_type}, under load" if rogue.under_load and rogue.name in ROGUES else rogue.test_type
    rule, run = CHECKS[rogue.caught_by].rule, runs.get(rogue.name, InARun())
    return f"| {rogue.name} | {test} | {rogue.does} | `{rogue.caught_by}` | {rule} | {run.word} | {run.seen} |"


def documented() -> tuple[dict[str, str], dict[str, InARun], dict[str, Passed]]:
    """What the document says: TechEmpower's outcomes, those of whole runs, by rogue, and honest variants' by name."""
    rows = [line.strip("| \n").split(" | ") for line in DOCUMENT.read_text(encoding="utf-8").splitlines()]
    found = {row[0]: row[7] for row in rows if row[0] in ROGUES and len(row) == 8}
    runs = {row[0]: InARun(word=row[5], seen=row[6]) for row in rows if row[0] in EVERYONE and len(row) >= 7}
    names = {variant.name for variant in (*HONEST, *HONEST_ORDERS)}
    honest = {
        row[0]: Passed(verified=int(row[3]), in_runs=int(row[4]), refused=int(row[5]), seen=row[6])
        for row in rows
        if row[0] in names and len(row) == 7 and row[3].isdigit()
    }
    return found, runs, honest


def write(seen: Mapping[str, Sequence[Seen]], verified: Mapping[str, Sequence[Seen]]) -> None:
    """Write the document with what further whole runs, and verifications of honest variants, have shown.

    What of a server nothing is kept stays as the document has it.
    """
    found, runs, honest = documented()
    runs |= {name: in_a_run(all_of[-1]) for name, all_of in seen.items() if name in EVERYONE}
    for name in (*seen, *verified):
        if name not in EVERYONE:
            honest[name.removeprefix("honest-")] = passed(verified.get(name, ()), seen.get(name, ()))
    DOCUMENT.write_text(render(found, runs, honest), encoding="utf-8")


def main() -> None:
    """Run TechEmpower's checks over the gallery and write the document."""
    tool = toolchain.find("postgres")
    if tool is None:
        sys.exit("no PostgreSQL server on this machine")
    with tempfile.TemporaryDirectory() as folder, embedded(tool, Path(folder) / "log") as running:
        with connect(running.address, admin=True) as admin:
            admin.execute("ALTER SYSTEM SET compute_query_id = on")
            admin.execute("SELECT pg_reload_conf()")
        found = outcomes(ROGUES.values(), running.address)
        DOCUMENT.write_text(render(found, *documented()[1:]), encoding="utf-8")


if __name__ == "__main__":
    main()
