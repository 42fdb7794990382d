"""``python -m harness.tests.verify.gallery``: the galleries' matrix, of rogues in whole runs or of honest variants.

Rogues go through whole runs at profile smoke (``harness.tests.verify.gallery_runs``); what has been seen is kept, and
the next call goes on from there. ``--honest`` takes the honest variants past verification, with ``--runs`` through
whole runs. ``--write`` writes docs/rogues.md from what is kept.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from harness.errors import TfbError
from harness.host import crates, process, toolchain
from harness.run.preparation import git_state
from harness.runtime.database.embedded import embedded
from harness.tests.doubles.honest import HONEST
from harness.tests.doubles.honest_orders import HONEST_ORDERS
from harness.tests.doubles.rogues.everyone import EVERYONE
from harness.tests.verify import gallery_runs
from harness.tests.verify.checks import honest_gallery, rogue_table
from harness.tests.verify.gallery_runs import Seen

BATCH = 6  # servers of one run


def chosen(names: Sequence[str], kind: str) -> list[str]:
    """The rogues asked for: of these names, or of a kind."""
    if names:
        if strangers := [name for name in names if name not in EVERYONE]:
            raise SystemExit(f"no rogue is called {', '.join(strangers)}: docs/rogues.md lists them")
        return list(names)
    return [
        name for name, rogue in EVERYONE.items() if kind == "all" or kind == ("load" if rogue.under_load else "always")
    ]


def line(seen: Seen) -> str:
    """One line of the matrix."""
    if seen.name not in EVERYONE:
        by = ", ".join(seen.failed) or seen.reason[:200]
        return f"{seen.name:<40}{'passes' if seen.ok else 'REFUSED by ' + by}"
    named = EVERYONE[seen.name].caught_by
    others = [check for check in seen.failed if check != named]
    beside = f" (and {', '.join(others)})" if others else ""
    if named in (*seen.failed, *seen.warned):
        return f"{seen.name:<40}{named}{'' if named in seen.failed else ', a warning'}{beside}"
    return f"{seen.name:<40}MISSED by {named}{beside}{'; ' + seen.reason[:200] if seen.reason else ''}"


def caught(seen: Seen) -> bool:
    """Whether the named check objected."""
    return EVERYONE[seen.name].caught_by in (*seen.failed, *seen.warned)


def through_runs(names: Iterable[str], file: Path, until: float, batch: int) -> list[Seen]:
    """Run these in batches, until all are done or the time is up."""
    seen: list[Seen] = []
    due = list(names)
    for group in (due[start : start + batch] for start in range(0, len(due), batch)):
        if time.monotonic() > until:
            break
        try:
            for one in gallery_runs.run(group):
                gallery_runs.keep(one, file)
                seen.append(one)
                print(line(one), flush=True)
        except TfbError as error:
            print(f"{', '.join(group)}: {error}", file=sys.stderr, flush=True)
    return seen


def main(argv: Sequence[str] | None = None) -> int:
    """Print the matrix; 1 when a rogue got past its check or an honest variant was refused."""
    p = argparse.ArgumentParser(description="The galleries' matrix: rogues in whole runs, honest variants.")
    p.add_argument("names", nargs="*", metavar="NAME", help="servers; default: all")
    p.add_argument("--kind", choices=("all", "load", "always"), default="all", help="rogues of the load, or the others")
    p.add_argument("--honest", action="store_true", help="the honest variants instead, past verification")
    p.add_argument("--runs", action="store_true", help="with --honest: through whole runs")
    p.add_argument("--times", type=int, default=1, metavar="N", help="how often each; default 1")
    p.add_argument("--part", default="1/1", metavar="I/N", help="every Nth server from the Ith: several calls at once")
    p.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="begin no run after that time")
    p.add_argument("--batch", type=int, default=BATCH, metavar="N", help=f"servers of one run; default {BATCH}")
    p.add_argument(
        "--kept", type=Path, default=None, metavar="FILE", help="what was seen; default: in the state folder"
    )
    p.add_argument("--since", type=moment, default=0.0, metavar="WHEN", help="what was seen before is due again")
    p.add_argument("--write", action="store_true", help="write docs/rogues.md from what is kept; run nothing")
    options = p.parse_args(argv)
    past_verification = options.honest and not options.runs
    runs, verifications = (options.kept or crates.state_folder() / f"gallery{kind}.jsonl" for kind in ("", "-honest"))
    if options.write:
        rogue_table.write(gallery_runs.kept(runs), {} if options.kept else gallery_runs.kept(verifications))
        return 0
    file = verifications if past_verification else runs
    known = gallery_runs.kept(file)
    wanted = honest_names(options.names) if options.honest else chosen(options.names, options.kind)
    part, parts = map(int, options.part.split("/"))
    turns = {
        name: options.times - sum(one.at >= options.since for one in known.get(name, ()))
        for name in wanted[part - 1 :: parts]
    }
    until = time.monotonic() + options.seconds
    seen: list[Seen] = []
    try:
        for turn in range(max(turns.values(), default=0)):
            due = [name for name, left in turns.items() if left > turn]
            seen += verified(due, file, until) if past_verification else through_runs(due, file, until, options.batch)
    finally:
        process.stop_all()
    wrong = [one for one in seen if (not one.ok if one.name not in EVERYONE else not caught(one))]
    where = "past verification" if past_verification else "in whole runs"
    print(f"{len(seen)} servers {where}, {len(wrong)} {'refused' if options.honest else 'missed'}")
    return 1 if wrong else 0


def moment(text: str) -> float:
    """A local time of the command line, in epoch seconds."""
    return datetime.fromisoformat(text).timestamp()


def honest_names(names: Sequence[str]) -> list[str]:
    """Honest variants as a run calls them."""
    return [f"honest-{variant.name}" for variant in (*HONEST, *HONEST_ORDERS) if not names or variant.name in names]


def verified(names: Sequence[str], file: Path, until: float) -> list[Seen]:
    """Take honest variants past verification, one after another, until all are done or the time is up."""
    tool = toolchain.find("postgres")
    if tool is None:
        raise SystemExit("no PostgreSQL server on this machine")
    variants = {f"honest-{variant.name}": variant for variant in (*HONEST, *HONEST_ORDERS)}
    found: list[Seen] = []
    revision, differs = git_state()
    code = (revision or "")[:7] + ("+" if differs else "")
    with tempfile.TemporaryDirectory() as folder, embedded(tool, Path(folder) / "log") as postgres:
        for name in names:
            if time.monotonic() > until:
                break
            began = time.monotonic()
            objections = honest_gallery.objections(variants[name], postgres)
            one = Seen(
                name=name,
                failed=tuple(result.check for _, result in objections),
                warned=(),
                measured=False,
                ok=not objections,
                reason="\n".join(f"{kind}: {result.check}: {result.message}" for kind, result in objections),
                seconds=time.monotonic() - began,
                at=time.time(),
                code=code,
            )
            gallery_runs.keep(one, file)
            found.append(one)
            print(f"{line(one)} {one.reason}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
