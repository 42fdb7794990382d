"""``python -m harness.tests.verify.gallery [NAME…]``: servers of the galleries, as programs, through whole runs.

A rogue is caught when the check meant for it objects in the run's files; an honest variant has to be left alone.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import StoreError
from harness.host import process
from harness.paths import REPOSITORY
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Outcome
from harness.records.reader import RunReader
from harness.tests.doubles.reference import URLS
from harness.tests.doubles.rogues.gallery import EVERYONE
from harness.tests.doubles.serve import VARIANTS
from harness.verify.checks.registry import CHECKS

BATCH = 6  # servers of one run
RUN_SECONDS = 3600.0  # of a batch, on a machine that stands still for most of it
LONG_SECONDS = 2.0  # a rogue that needs longer loads than this is given them


def test_types(name: str) -> tuple[str, ...]:
    """What a server of the galleries declares in a run."""
    if name in VARIANTS:
        return VARIANTS[name].test_types
    kind = EVERYONE[name].test_type
    return ("json",) if kind == "http" else (kind,)


def seconds(name: str) -> float:
    """How long the loads are that show a rogue."""
    return EVERYONE[name].seconds if name in EVERYONE else 0.0


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


def through_a_run(names: Sequence[str], profile: str) -> Iterator[tuple[str, bool, str]]:
    """One run of these servers: of each its name, whether it was judged rightly, and what objected or failed."""
    with tempfile.TemporaryDirectory(prefix="tfb-gallery-") as place:
        folder = Path(place)
        for name in names:
            own = folder / "frameworks" / "Python" / name
            own.mkdir(parents=True)
            (own / "benchmark_config.json").write_text(json.dumps(configuration(name)), encoding="utf-8")
        command = [sys.executable, "-m", "harness", "run", *names, "--frameworks", str(folder / "frameworks")]
        command += ["--rules", "tfb", "--profile", profile, "--runtime", "local"]
        command += ["--results", str(folder / "results"), "--results-name", "gallery", "--no-install", "--quiet"]
        if (longest := max(map(seconds, names))) > LONG_SECONDS:
            command += ["--duration", f"{longest:g}"]
        command += ["--type", *sorted({kind for name in names for kind in test_types(name)})]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = process.run(command, seconds=RUN_SECONDS, cwd=REPOSITORY, env=environment)
        found = [path.parent for path in (folder / "results").rglob("run.json")]
        if len(found) != 1:
            raise StoreError(f"the run of {', '.join(names)} left {len(found)} records: {done.stdout[-800:]}")
        records = RunReader(found[0]).records()
    for name in names:
        results = [r for verdict in records.verdicts if verdict.implementation == name for r in verdict.results]
        for trial in records.trials:
            results += trial.evidence.objections if trial.implementation == name and trial.evidence else ()
        objecting = {result.check for result in results if result.outcome is not Outcome.PASS}
        reasons = [record.reason for record in records.processes if record.implementation == name]
        right = EVERYONE[name].caught_by in objecting if name in EVERYONE else reasons != [] and not any(reasons)
        yield name, right, ", ".join(sorted(objecting)) + " " + "; ".join(reasons)[:400]


def main(argv: Sequence[str] | None = None) -> int:
    """Print what became of each; 1 when a rogue got past its check or an honest variant was refused."""
    parser = argparse.ArgumentParser(description="Servers of the galleries in whole runs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all rogues")
    parser.add_argument("--profile", choices=("smoke", "quick", "standard"), default="quick", help="of the runs")
    parser.add_argument("--list", action="store_true", help="list the rogues as a table; run nothing")
    options = parser.parse_args(argv)
    if options.list:
        for rogue in EVERYONE.values():
            rule = CHECKS[rogue.caught_by].rule
            print(f"| {rogue.name} | {rogue.test_type} | {rogue.does} | `{rogue.caught_by}` | {rule} |")
        return 0
    if strangers := [name for name in options.names if name not in EVERYONE and name not in VARIANTS]:
        raise SystemExit(f"no server is called {', '.join(strangers)}")
    names = sorted(options.names or EVERYONE, key=seconds)  # those of a batch have loads as long as each other's
    wrong = 0
    try:
        for start in range(0, len(names), BATCH):
            for name, right, why in through_a_run(names[start : start + BATCH], options.profile):
                print(f"{name:<40}{'right' if right else 'WRONG'}: {why}", flush=True)
                wrong += not right
    finally:
        process.stop_all()
    print(f"{len(names)} servers, {wrong} judged wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
