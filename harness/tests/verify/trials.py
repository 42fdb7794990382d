"""Takes servers of the galleries through trials: the real generator, the real database, the real judgement."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.experiment.generators import ANSWERS, LoadRun
from harness.experiment.generators.own import Loadgen
from harness.host import crates
from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Closed, Evidence, Open, Outcome
from harness.runtime import DatabaseAddress, Server
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.verify.subjects import as_server
from harness.verify.trial import TrialAudit
from harness.verify.verifier import Verifier

WITH_GENERATOR = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),  # the first of them builds the generator
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not on this machine"),
]
SECONDS = 1.5
BETWEEN_SECONDS = 0.2  # two trials of a process, which others come between in a run


def usual_load(test_type: str, connections: int = 16) -> Closed:
    """A load that the server doubles can bear."""
    kind = TEST_TYPES[test_type]
    return Closed(
        connections=connections, queries=20 if kind.counts_rows else None, depth=16 if kind.sweep == "pipeline" else 1
    )


@dataclass
class Trials:
    """One process of a server, with its trials one after another."""

    server: ReferenceServer
    database: DatabaseAddress
    verifier: Verifier
    rate: float | None = None  # requests/s of the last trial
    number: int = 0
    left: set[str] = field(default_factory=set)  # checks that object to what the process has left behind

    def trial(
        self, test_type: str, load: Closed | None = None, *, seconds: float = SECONDS, written: bool = True
    ) -> Evidence:
        """One trial; not ``written``: by a generator that writes no answers out."""
        if self.number:
            time.sleep(BETWEEN_SECONDS)
        self.number += 1
        server, kind, load = as_server(self.server), TEST_TYPES[test_type], load or usual_load(test_type)
        looking = self.verifier.trial(
            server, kind, load, self.database, seconds=seconds, rate=self.rate, seed=self.number
        )
        evidence, self.rate = audited(server, kind, load, looking, seconds=seconds, seed=self.number, written=written)
        return evidence


def audited(
    server: Server,
    kind: TestType,
    load: Closed | Open,
    looking: TrialAudit,
    *,
    seconds: float,
    seed: int,
    written: bool = True,
) -> tuple[Evidence, float]:
    """What is objected to in one trial of the real generator, and its requests per second."""
    generator = Loadgen(binary=str(crates.loadgen()), chrt=None)
    with tempfile.TemporaryDirectory() as folder:
        with looking:
            run = LoadRun(
                url=server.endpoint.url(kind.path(server.implementation.urls[kind.name], load)),
                host="localhost",
                accept=kind.accept,
                load=load,
                seconds=seconds,
                threads=1,
                seed=seed,
                sampling=looking.sampling,
                requests=kind.requests,
            )
            command = [generator.program, *generator.arguments(run, Path(folder))]
            done = subprocess.run(command, input="go\n", capture_output=True, text=True, check=True)
        result = generator.result(run, done.stdout)
        assert result.account is not None
        evidence = looking.judge(
            good=result.account.successes,
            failed=result.account.failed,
            account=result.account if written else None,
            answers=Path(folder) / ANSWERS if written else None,
        )
    return evidence, result.requests / seconds


@contextmanager
def trials(server: ReferenceServer, database: DatabaseAddress) -> Iterator[Trials]:
    """A process with its beginning; the tables are as they were seeded."""
    verifier = Verifier()
    verifier.begin(database)
    running = Trials(server=server, database=database, verifier=verifier)
    with server:
        yield running
    running.left |= {result.check for result in verifier.end(database) if result.outcome is not Outcome.PASS}
