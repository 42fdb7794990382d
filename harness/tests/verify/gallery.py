"""``python -m harness.tests.verify.gallery``: the galleries' servers through whole runs, or honest variants verified.

Each is a program, as anybody's implementation is; a batch of them is one ``./tfb run`` from a temporary folder of
implementations that declare the one test type concerned. A rogue is caught when the check meant for it objects in the
run's own files. ``--honest`` takes the honest variants past verification, with ``--runs`` through whole runs.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.errors import StoreError, TfbError
from harness.host import process, toolchain
from harness.paths import REPOSITORY
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import CheckResult, Outcome
from harness.records.reader import RunReader
from harness.runtime.database.embedded import embedded
from harness.tests.doubles.honest import HONEST
from harness.tests.doubles.honest_orders import HONEST_ORDERS
from harness.tests.doubles.reference import URLS
from harness.tests.doubles.rogues.gallery import EVERYONE, UNDER_LOAD
from harness.tests.verify.checks import honest_gallery
from harness.verify.checks.registry import CHECKS

BATCH = 6  # servers of one run
RUN_SECONDS = 3600.0  # of a batch, on a machine that stands still for most of it
LONG_SECONDS = 2.0  # a rogue that needs longer loads than this is given them
VARIANTS = {f"honest-{variant.name}": variant for variant in (*HONEST, *HONEST_ORDERS)}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one run, or verification, said of one server."""

    name: str
    profile: str
    failed: tuple[str, ...]  # checks that objected
    warned: tuple[str, ...] = ()
    ok: bool  # the process has no reason against it: what is ranked
    reason: str
    seconds: float  # of the run, shared by the servers of its batch

    @property
    def right(self) -> bool:
        """Whether a rogue was caught by its check, or an honest variant let be."""
        return EVERYONE[self.name].caught_by in self.failed + self.warned if self.name in EVERYONE else self.ok

    def __str__(self) -> str:
        by = ", ".join(self.failed) or "nothing"
        if self.name in EVERYONE:
            meant = EVERYONE[self.name].caught_by
            return (
                f"{self.name:<40}{f'caught by {by}' if self.right else f'MISSED by {meant}; {by} {self.reason[:200]}'}"
            )
        return f"{self.name:<40}{'passes' if self.right else f'REFUSED by {by}: {self.reason[:400]}'}"


def test_types(name: str) -> tuple[str, ...]:
    """What a server of the galleries declares in a run."""
    if name not in EVERYONE:
        return VARIANTS[name].test_types
    kind = EVERYONE[name].test_type
    return ("json",) if kind == "http" else (kind,)


def configuration(name: str) -> dict[str, object]:
    """The benchmark_config.json of a server of the galleries."""
    urls = {**URLS, "order": "/orders"}
    entry = {
        **{TEST_TYPES[kind].url_key: urls[kind] for kind in test_types(name)},
        "approach": "Realistic",
        "classification": "Platform",
        "database": "Postgres",
        "language": "Python",
        "display_name": name,
        "local": {
            "run": [sys.executable, "-m", "harness.tests.doubles.serve", name],
            "env": {"PYTHONPATH": str(REPOSITORY)},
        },
    }
    return {"framework": name, "tests": [{"default": entry}]}


def through_a_run(names: Sequence[str], profile: str) -> Iterator[Seen]:
    """One run of these servers; a StoreError where it left no record, with the end of what it printed."""
    with tempfile.TemporaryDirectory(prefix="tfb-gallery-") as place:
        folder = Path(place)
        for name in names:
            own = folder / "frameworks" / "Python" / name
            own.mkdir(parents=True)
            (own / "benchmark_config.json").write_text(json.dumps(configuration(name)), encoding="utf-8")
        words = [sys.executable, "-m", "harness", "run", *names, "--frameworks", str(folder / "frameworks")]
        words += ["--rules", "tfb", "--profile", profile, "--runtime", "local", "--reference", names[0]]
        words += ["--results", str(folder / "results"), "--results-name", "gallery", "--no-install", "--quiet"]
        longest = max((EVERYONE[name].seconds for name in names if name in EVERYONE), default=0.0)
        if longest > LONG_SECONDS:
            words += ["--duration", f"{longest:g}"]
        words += ["--type", *sorted({kind for name in names for kind in test_types(name)})]
        began = time.monotonic()
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = process.run(words, seconds=RUN_SECONDS, cwd=REPOSITORY, env=environment)
        found = [path.parent for path in (folder / "results").rglob("run.json")]
        if len(found) != 1:
            raise StoreError(f"the run of {', '.join(names)} left {len(found)} records: {done.stdout[-800:]}")
        yield from read(found[0], names, profile, time.monotonic() - began)


def read(folder: Path, names: Sequence[str], profile: str, seconds: float) -> Iterator[Seen]:
    """What the files of a run say of each of these servers: its verdicts, and the evidence of its trials."""
    records = RunReader(folder).records()
    for name in names:
        processes = [record for record in records.processes if record.implementation == name]
        results = [r for verdict in records.verdicts if verdict.implementation == name for r in verdict.results]
        for trial in records.trials:
            if trial.implementation == name and trial.evidence:
                results += trial.evidence.objections
        reasons = [line for record in processes if record.status != "ok" for line in record.reason.splitlines()]
        yield Seen(
            name=name,
            profile=profile,
            failed=_of(results, Outcome.FAIL),
            warned=_of(results, Outcome.WARN),
            ok=bool(processes) and all(record.status == "ok" for record in processes),
            reason="\n".join(reasons) if processes else "it was never started",
            seconds=seconds,
        )


def _of(results: Sequence[CheckResult], outcome: Outcome) -> tuple[str, ...]:
    return tuple(dict.fromkeys(result.check for result in results if result.outcome is outcome))


def through_runs(names: Sequence[str], profile: str, batch: int) -> Iterator[Seen]:
    """Batches of servers whose loads are as long as each other's."""
    by_length = sorted(names, key=lambda name: EVERYONE[name].seconds if name in EVERYONE else 0.0)
    for group in (by_length[start : start + batch] for start in range(0, len(by_length), batch)):
        try:
            yield from through_a_run(group, profile)
        except TfbError as error:
            print(f"{', '.join(group)}: {error}", file=sys.stderr, flush=True)
            for name in group:
                yield Seen(name=name, profile=profile, failed=(), ok=False, reason="no record", seconds=0.0)


def verified(names: Sequence[str]) -> Iterator[Seen]:
    """Take honest variants past verification, one after another."""
    tool = toolchain.find("postgres")
    if tool is None:
        raise SystemExit("no PostgreSQL server on this machine")
    with tempfile.TemporaryDirectory() as folder, embedded(tool, Path(folder) / "log") as postgres:
        for name in names:
            began = time.monotonic()
            found = honest_gallery.objections(VARIANTS[name], postgres)
            yield Seen(
                name=name,
                profile="",
                failed=tuple(result.check for _, result in found),
                ok=not found,
                reason="; ".join(f"{kind}: {result.message}" for kind, result in found),
                seconds=time.monotonic() - began,
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Print what became of each; 1 when a rogue got past its check or an honest variant was refused."""
    p = argparse.ArgumentParser(description="The galleries: rogues in whole runs, honest variants.")
    p.add_argument("names", nargs="*", metavar="NAME", help="servers; default: all")
    p.add_argument("--profile", choices=("smoke", "quick", "standard"), default="quick", help="of the runs")
    p.add_argument("--kind", choices=("all", "load", "always"), default="all", help="rogues of the load, or the others")
    p.add_argument("--honest", action="store_true", help="the honest variants instead, past verification")
    p.add_argument("--runs", action="store_true", help="with --honest: through whole runs")
    p.add_argument("--times", type=int, default=1, metavar="N", help="how often each; default 1")
    p.add_argument("--part", default="1/1", metavar="I/N", help="every Nth server from the Ith: several calls at once")
    p.add_argument("--batch", type=int, default=BATCH, metavar="N", help=f"servers of one run; default {BATCH}")
    p.add_argument("--kept", type=Path, metavar="FILE", help="add what is seen, a line of JSON a server")
    p.add_argument("--list", action="store_true", help="list the rogues as a table; run nothing")
    options = p.parse_args(argv)
    if options.list:
        for rogue in EVERYONE.values():
            rule = CHECKS[rogue.caught_by].rule
            print(f"| {rogue.name} | {rogue.test_type} | {rogue.does} | `{rogue.caught_by}` | {rule} |")
        return 0
    of_kind = VARIANTS if options.honest else {"load": UNDER_LOAD, "all": EVERYONE}.get(options.kind)
    wanted = options.names or list(of_kind or EVERYONE.keys() - UNDER_LOAD.keys())
    if strangers := [name for name in wanted if name not in EVERYONE and name not in VARIANTS]:
        raise SystemExit(f"no server is called {', '.join(strangers)}")
    part, parts = map(int, options.part.split("/"))
    due = wanted[part - 1 :: parts] * options.times
    past_verification = options.honest and not options.runs
    seen = []
    try:
        for one in verified(due) if past_verification else through_runs(due, options.profile, options.batch):
            seen.append(one)
            print(one, flush=True)
            if options.kept:
                with options.kept.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(asdict(one)) + "\n")
    finally:
        process.stop_all()
    wrong = sum(not one.right for one in seen)
    print(f"{len(seen)} servers, {wrong} {'refused' if options.honest else 'missed'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
