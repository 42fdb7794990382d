"""Takes servers of the galleries through trials: the real generator, the real database, the real judgement."""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.host import crates
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Closed, Evidence, Outcome
from harness.runtime import DatabaseAddress
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.verify.subjects import as_server
from harness.verify.checks.evidence import Account
from harness.verify.trial import Sampling
from harness.verify.verifier import WireVerifier

SECONDS = 1.5
BETWEEN_SECONDS = 0.2  # two trials of a process, which others come between in a run
DRAIN_SECONDS = 8  # after which the generator listens no more


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
        with tempfile.TemporaryDirectory() as folder:
            answers = Path(folder) / "answers.jsonl"
            with evidence:
                words = _words(load, kind.accept, seconds, self.number, evidence.sampling, answers)
                url = self.server.endpoint.url(kind.path(self.server.urls[test_type], load))
                total = _total(subprocess.run([*words, url], capture_output=True, text=True, check=True).stdout)
            self.rate = total["in_time"]["received"] / seconds
            return evidence.judge(
                good=total["successes"],
                failed=total["received"] - total["successes"],
                account=_account(total) if written else None,
                answers=answers if written else None,
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


def _words(load: Closed, accept: str, seconds: float, seed: int, sampling: Sampling, answers: Path) -> list[str]:
    words = [str(crates.loadgen()), "--start-at-once", "--threads", "1", "--connections", f"{load.connections}"]
    words += ["--depth", f"{load.depth}", "--duration", f"{seconds:g}", "--seed", f"{seed}"]
    words += ["--header", f"Accept: {accept}", "--header", "Connection: keep-alive"]
    words += ["--sample-file", str(answers), "--sample-rate", f"{sampling.share:.6g}"]
    return [*words, "--sample-limit", f"{sampling.answers}"]


def _total(output: str) -> dict[str, Any]:
    lines = [json.loads(line) for line in output.splitlines()]
    return next(line for line in lines if line["kind"] == "total")


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


def _account(total: dict[str, Any]) -> Account:
    faults = total["errors"]
    return account_of(
        received=total["received"],
        sent=total["sent"],
        successes=total["successes"],
        failed=total["received"] - total["successes"],
        unasked=total["unasked_responses"],
        unasked_bytes=total["unasked_bytes"],
        unfinished=total["unfinished"] if total["drain_seconds"] < DRAIN_SECONDS else 0,
        hung=total["connections_hung"],
        closed=total["connections_closed_by_peer"],
        unsound=faults["framing"] + faults["length"] + faults["body"] + faults["dropped"],
        statuses=total["statuses"],
        sampled=total["sampled"],
        whole=total["sampled"] == total["received"] and not total["sampled_over_limit"],
    )
