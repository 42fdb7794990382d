"""Takes servers of the galleries through trials: the real generator, the real database, the real judgement."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from harness.host import crates
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Closed, Evidence
from harness.runtime import DatabaseAddress, Server
from harness.tests.doubles.reference import ReferenceServer
from harness.verify.checks.evidence import Account
from harness.verify.trial import Sampling
from harness.verify.verifier import WireVerifier

SECONDS = 1.5


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
    rules: str = "tfb"
    rate: float | None = None  # requests/s of the last trial
    number: int = 0

    def trial(
        self, test_type: str, load: Closed | None = None, *, seconds: float = SECONDS, written: bool = True
    ) -> Evidence:
        """One trial; not ``written``: by a generator that writes no answers out."""
        kind, load = TEST_TYPES[test_type], load or usual_load(test_type)
        self.number += 1
        evidence = self.verifier.trial(
            _as_server(self.server, self.rules),
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
    with server:
        yield Trials(server=server, database=database, verifier=verifier)
    verifier.end(database)


def _as_server(server: ReferenceServer, rules: str) -> Server:
    implementation = SimpleNamespace(urls=server.urls, name="double", rules=rules)
    return cast("Server", SimpleNamespace(implementation=implementation, endpoint=server.endpoint, upstream=None))


def _words(load: Closed, accept: str, seconds: float, seed: int, sampling: Sampling, answers: Path) -> list[str]:
    words = [str(crates.loadgen()), "--start-at-once", "--threads", "1", "--connections", f"{load.connections}"]
    words += ["--depth", f"{load.depth}", "--duration", f"{seconds:g}", "--seed", f"{seed}"]
    words += ["--header", f"Accept: {accept}", "--header", "Connection: keep-alive"]
    words += ["--sample-file", str(answers), "--sample-rate", f"{sampling.share:.6g}"]
    return [*words, "--sample-limit", f"{sampling.answers}"]


def _total(output: str) -> dict[str, Any]:
    lines = [json.loads(line) for line in output.splitlines()]
    return next(line for line in lines if line["kind"] == "total")


def _account(total: dict[str, Any]) -> Account:
    faults = total["errors"]
    return Account(
        sent=total["sent"],
        received=total["received"],
        successes=total["successes"],
        failed=total["received"] - total["successes"],
        unasked=total["unasked_responses"],
        unasked_bytes=total["unasked_bytes"],
        unfinished=total["unfinished"] if total["drain_seconds"] < 8 else 0,
        hung=total["connections_hung"],
        closed=total["connections_closed_by_peer"],
        unsound=faults["framing"] + faults["length"] + faults["body"] + faults["dropped"],
        statuses=total["statuses"],
        sampled=total["sampled"],
        whole=total["sampled"] == total["received"] and not total["sampled_over_limit"],
    )
