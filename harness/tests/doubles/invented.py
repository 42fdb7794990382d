"""Generates synthetic runs for the dashboard. They name real frameworks, but contain no measurements."""

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.plan import profile as profiles
from harness.plan.profile import ProcessLimits
from harness.records.run_info import BuildRecord, ImplementationInfo, NoiseFloor
from harness.records.run_records import RunRecords
from harness.records.verification_record import CheckResult, Outcome, VerificationRecord
from harness.tests.doubles import records
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour, FakeWorld

EntryWords = Sequence[str]
CellNames = Collection[tuple[str, str]]  # (implementation, test type)

EPOCH = 1_750_000_000.0
SIX = ("json", "plaintext", "db", "query", "fortune", "update")
REAL: tuple[EntryWords, ...] = (  # name, language, platform, webserver, database, orm, classification
    ("vertx-web", "Java", "Vert.x", "None", "Postgres", "Raw", "Micro"),
    ("resteasy", "Java", "Undertow", "Undertow", "Postgres", "Raw", "Micro"),
    ("es4x", "JavaScript", "Vert.x", "None", "Postgres", "Raw", "Micro"),
    ("express", "JavaScript", "Node.js", "None", "Postgres", "Raw", "Micro"),
)
SPEEDS = {"vertx-web": 1.30, "resteasy": 1.33, "es4x": 0.86, "express": 0.31}  # the first two should tie
MACHINE = {
    "hostname": "bench-01",
    "os": "Debian GNU/Linux 12",
    "kernel": "6.1.0-37-amd64",
    "cpu_model": "Invented CPU 9000 @ 3.00GHz",
    "cpus_online": 8,
    "smt": True,
    "grade": "B",
    "concerns": ("SMT is on: two threads share a core",),
}
MARKUP = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(2)</script>",
    "\u202egnp.exe\u202c 日本語 \u0000\u001b[31m",
    "=cmd|' /C calc'!A0",
    "a" * 180,
)


def simulated(
    speeds: Mapping[str, float], test_types: Sequence[str] = SIX, *, processes: int = 3, rounds: int = 2,
    seconds: float = 8.0, failing: CellNames = (),
) -> RunRecords:  # fmt: skip
    """Return the records of a run with servers of these relative speeds. Cells in ``failing`` fail verification."""
    usual = profiles.load_profile("standard")
    fields = {
        "duration_seconds": seconds,
        "processes": ProcessLimits(minimum=processes, maximum=processes),
        "interleaved": usual.interleaved.model_copy(update={"rounds": rounds, "witness": False}),
    }
    servers = {
        name: Behaviour(
            cpu_per_request=50e-6 / speed, rss=(90 + 60 * speed) * 2**20, start_seconds=0.2 + 0.6 / speed,
            cold=1.0, process_spread=0.02, window_spread=0.01,
        )
        for name, speed in speeds.items()
    }  # fmt: skip
    memory = "/dev/shm"  # noqa: S108 - only for a private folder; a run replaces a file every second
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        world = FakeWorld(cpus=8, steal=0.03)
        fake = FakeRun(Path(folder), servers, usual.model_copy(update=fields), test_types, world=world)
        fake.verifier.fails_before = frozenset(failing)
        fake.run()
        return fake.records()


def copied(records: RunRecords, speeds: Mapping[str, float]) -> RunRecords:
    """Replace the run's only implementation with a copy for each name, scaled by the speed. Shorten the trials."""
    trials = [
        trial.model_copy(
            update={
                "id": f"{name} {trial.id}",
                "implementation": name,
                "requests": round(trial.requests * speed),
                "throughput": trial.throughput * speed,
                "cpu_per_request": trial.cpu_per_request and trial.cpu_per_request / speed,
                "windows": trial.windows[:2],
                "warm_up": None,
                "validity": tuple(check for check in trial.validity if check.outcome is not Outcome.PASS),
            }
        )
        for name, speed in speeds.items()
        for trial in records.trials
    ]
    processes = [
        one.model_copy(update={"implementation": name, "log": f"logs/{safe(name)}/p{one.process}.log"})
        for name in speeds
        for one in records.processes
    ]
    return replace(records, trials=trials, processes=processes)


def finished(
    records: RunRecords, run_id: str, items: Sequence[ImplementationInfo], *, started_at: float, failing: CellNames = ()
) -> RunRecords:
    """Return ``records`` as a completed run of the implementations ``items``. Each cell is verified once."""
    floor = NoiseFloor(
        implementation=items[0].name, profile="standard", measured_at=started_at - 86_400, pairs=6, throughput=0.018,
        cpu_per_request=0.009,
    )  # fmt: skip
    fields = {
        "run_id": run_id,
        "name": f"Synthetic run {run_id}",
        "environment": "invented figures, not a measurement",
        "status": "complete",
        "problems": (),
        "started_at": started_at,
        "completed_at": started_at + 5_400,
        "command": ("./tfb", "--test", "run", "--profile", "standard"),
        "reference": items[0].name,
        "machine": records.info.machine.model_copy(update=MACHINE),
        "tools": {"wrk": "4.1.0", "postgres": "15.13", "python": "3.11.2", "java": "25", "node": "20.20.2"},
        "revision": "0123456789abcdef0123456789abcdef01234567",
        "implementations": tuple(item.model_copy(update={"test_types": tuple(records.info.loads)}) for item in items),
        "noise_floor": floor,
    }
    verdicts = [verdict(i.name, kind, failed=(i.name, kind) in failing) for i in items for kind in records.info.loads]
    return replace(records, info=records.info.model_copy(update=fields), verdicts=verdicts)


def implementation(row: EntryWords) -> ImplementationInfo:
    """Return an implementation as read from benchmark_config.json. ``row`` has the same columns as REAL."""
    name, language, platform, webserver, database, orm, classification = row
    return ImplementationInfo(
        name=name,
        framework=name,
        language=language,
        folder=f"frameworks/{language}/{name}",
        display_name=name,
        approach="Realistic",
        classification=classification,
        platform=platform,
        webserver=webserver,
        database=database,
        orm=orm,
        os="Linux",
        database_os="Linux",
        build=BuildRecord(
            status="ok",
            duration=31.4,
            log=f"logs/{safe(name)}/build.log",
            commands=("mvn -q package",) if language == "Java" else ("npm ci",),
            tools={"java": "25"} if language == "Java" else {"node": "20.20.2"},
        ),
    )


def verdict(name: str, test_type: str, *, failed: bool) -> VerificationRecord:
    """Return a verification record with a failed check if ``failed`` is set."""
    record = records.verdict(name, test_type)
    clamped = CheckResult(
        check="query-count-clamped", rule="query.3", outcome=Outcome.FAIL,
        message="queries=501 answered with 501 rows", expected="500 objects", actual="501 objects",
    )  # fmt: skip
    wrong = {"outcome": Outcome.FAIL, "results": (*record.results, clamped)}
    return record.model_copy(update=wrong) if failed else record


def safe(name: str) -> str:
    """Convert a name to a valid folder name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)[:80]
