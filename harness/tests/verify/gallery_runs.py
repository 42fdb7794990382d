"""Takes servers of the galleries through whole runs: the real workflow, each a program, as anybody's implementation is.

A batch of servers is one ``./tfb run`` at profile smoke, from a temporary folder of implementations that declare
the one test type concerned. What the run's own files say of each is kept, a line of JSON a server, so that a long
gallery can be run in pieces.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.errors import StoreError
from harness.host import process
from harness.paths import REPOSITORY
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Outcome
from harness.records.reader import RunReader
from harness.tests.doubles.honest import HONEST
from harness.tests.doubles.honest_orders import HONEST_ORDERS
from harness.tests.doubles.reference import URLS
from harness.tests.doubles.rogues.everyone import EVERYONE

PROFILE = "smoke"
UNAUDITED = "no sample is audited"  # as harness.run.running logs it
RUN_SECONDS = 900.0  # of a batch, on a machine that stands still for most of it


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one whole run said of one server."""

    name: str
    failed: tuple[str, ...]  # checks, in the order in which they objected
    warned: tuple[str, ...]
    measured: bool  # whether a load was made
    ok: bool  # the process has no reason against it: what is ranked
    reason: str
    seconds: float  # of the run, shared by the servers of its batch
    at: float = 0.0  # when the run began, epoch seconds; 0: not known
    code: str = ""  # the commit, with a + where the tree differed from it


def test_types(name: str) -> tuple[str, ...]:
    """What a server of the galleries declares in a run."""
    if name in EVERYONE:
        kind = EVERYONE[name].test_type
        return ("json",) if kind == "http" else (kind,)
    return {variant.name: variant for variant in (*HONEST, *HONEST_ORDERS)}[name.removeprefix("honest-")].test_types


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


def run(names: Sequence[str]) -> Iterator[Seen]:
    """One run of these servers; a StoreError where it left no record, with the end of what it printed."""
    folder = Path(tempfile.mkdtemp(prefix="tfb-gallery-"))
    try:
        for name in names:
            place = folder / "frameworks" / "Python" / name
            place.mkdir(parents=True)
            (place / "benchmark_config.json").write_text(json.dumps(configuration(name)), encoding="utf-8")
        kinds = sorted({kind for name in names for kind in test_types(name)})
        words = [sys.executable, "-m", "harness", "run", *names, "--frameworks", str(folder / "frameworks")]
        words += ["--rules", "tfb", "--profile", PROFILE, "--runtime", "local", "--reference", names[0]]
        words += ["--results", str(folder / "results"), "--results-name", "gallery", "--no-install", "--quiet"]
        words += ["--type", *kinds]
        began = time.monotonic()
        done = process.run(
            words, seconds=RUN_SECONDS, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}
        )
        found = [path.parent for path in (folder / "results").rglob("run.json")]
        if len(found) != 1:
            raise StoreError(f"the run of {', '.join(names)} left {len(found)} records: {done.stdout[-800:]}")
        if UNAUDITED in (found[0] / "logs" / "harness.log").read_text(encoding="utf-8"):
            raise StoreError(f"the run of {', '.join(names)} had no audits: ./tfb doctor says what the generator lacks")
        yield from read(found[0], names, time.monotonic() - began)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read(folder: Path, names: Sequence[str], seconds: float) -> Iterator[Seen]:
    """What the files of a run say of each of these servers."""
    records = RunReader(folder).records()
    code = (records.info.revision or "")[:7] + ("+" if records.info.dirty else "")
    for name in names:
        replicates = [record for record in records.replicates if record.implementation == name]
        results = [
            result for verdict in records.verdicts if verdict.implementation == name for result in verdict.results
        ]
        reasons = [line for record in replicates if record.status != "ok" for line in record.reason.splitlines()]
        yield Seen(
            name=name,
            failed=tuple(dict.fromkeys(r.check for r in results if r.outcome is Outcome.FAIL)),
            warned=tuple(dict.fromkeys(r.check for r in results if r.outcome is Outcome.WARN)),
            measured=any(sample.implementation == name for sample in records.samples),
            ok=bool(replicates) and all(record.status == "ok" for record in replicates),
            reason="\n".join(reasons) if replicates else "it was never started",
            seconds=seconds,
            at=records.info.started_at,
            code=code,
        )


def keep(seen: Seen, file: Path) -> None:
    """Add a line."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(seen)) + "\n")


def kept(file: Path) -> Mapping[str, list[Seen]]:
    """Everything kept so far, by server, oldest first."""
    found: dict[str, list[Seen]] = {}
    if not file.exists():
        return found
    for line in file.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        entry["failed"], entry["warned"] = tuple(entry["failed"]), tuple(entry["warned"])
        found.setdefault(entry["name"], []).append(Seen(**entry))
    return found
