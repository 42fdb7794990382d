"""Takes servers of the galleries through trials: the real generator, the real database, the real judgement."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.experiment.generators import ANSWERS, LoadRun, Sampling
from harness.experiment.generators.own import Loadgen
from harness.host import crates
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Closed, Evidence, Outcome
from harness.runtime import DatabaseAddress
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.verify.subjects import as_server
from harness.verify.checks.evidence import Account
from harness.verify.verifier import WireVerifier

SECONDS = 1.5
BETWEEN_SECONDS = 0.2  # two trials of a process, which others come between in a run


def usual_load(test_type: str, connections: int = 16) -> Closed:
    """A load that the server doubles can bear."""
    kind = TEST_TYPES[test_type]
    return Closed(
        connections=connections,
        queries=20 if kind.counts_rows else None,
        depth=16 if kind.sweep == "pipeline" else 1,
    )


@dataclass
class Trials:
    """One process of a server, with its trials one after another."""

    server: ReferenceServer
    database: DatabaseAddress
    verifier: WireVerifier
    rate: float | None = None  # requests/s of the last trial
    number: int = 0
    left: set[str] = field(default_factory=set)  # checks that object to what the process has left behind

    def trial(
        self, test_type: str, load: Closed | None = None, *, seconds: float = SECONDS, written: bool = True
    ) -> Evidence:
        """One trial; not ``written``: by a generator that writes no answers out."""
        kind, load = TEST_TYPES[test_type], load or usual_load(test_type)
        if self.number:
            time.sleep(BETWEEN_SECONDS)
        self.number += 1
        evidence = self.verifier.trial(
            as_server(self.server),
            kind,
            load,
            self.database,
            seconds=seconds,
            rate=self.rate,
            seed=self.number,
        )
        generator = Loadgen(binary=str(crates.loadgen()), chrt=None)
        with tempfile.TemporaryDirectory() as folder:
            with evidence:
                run = LoadRun(
                    url=self.server.endpoint.url(kind.path(self.server.urls[test_type], load)),
                    host="localhost",
                    accept=kind.accept,
                    load=load,
                    seconds=seconds,
                    threads=1,
                    seed=self.number,
                    sampling=Sampling(**vars(evidence.sampling)),
                )
                command = [generator.program, *generator.arguments(run, Path(folder))]
                done = subprocess.run(command, input="go\n", capture_output=True, text=True, check=True)
            result = generator.result(run, done.stdout)
            self.rate = result.requests / seconds
            assert result.account is not None
            return evidence.judge(
                good=result.account.successes,
                failed=result.account.failed,
                account=result.account if written else None,
                answers=Path(folder) / ANSWERS if written else None,
            )


@contextmanager
def trials(server: ReferenceServer, database: DatabaseAddress) -> Iterator[Trials]:
    """A process with its beginning; the tables are as they were seeded."""
    verifier = WireVerifier()
    verifier.begin(database)
    running = Trials(server=server, database=database, verifier=verifier)
    with server:
        yield running
    running.left |= {result.check for result in verifier.end(database) if result.outcome is not Outcome.PASS}


def account_of(*, received: int, **more: Any) -> Account:
    """Of a load in which each request had its answer, but for ``more``."""
    sound = Account(
        sent=received,
        received=received,
        successes=received,
        failed=0,
        unasked=0,
        unasked_bytes=0,
        unfinished=0,
        hung=0,
        closed=0,
        unsound=0,
        statuses={"200": received},
        sampled=received,
        whole=True,
    )
    return replace(sound, **more)
