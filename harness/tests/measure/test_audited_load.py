"""One audited load: how the generator is told to write its answers out, for how long, and what is handed on of it."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import BuildError, EnvironmentLacksError
from harness.measure import audit as auditing
from harness.measure.audit import AuditingGenerator, account, audit, drawn_seconds, obstacle
from harness.measure.loadgen import LoadResult
from harness.measure.loadgen.own import Total
from harness.measure.observe import Observation
from harness.records.models import AuditedLoad, CheckResult, Closed, Outcome
from harness.tests.measure.loadgen.test_own import READY, output, total
from harness.tests.measure.observed import (
    ASKED,
    BINNED,
    LEVEL,
    USE,
    Book,
    Watching,
    bed,
    load,
    observation,
    result,
    target,
)
from harness.verify.checks.evidence import Audit

FOUND = CheckResult(check="body", rule="json.1", outcome=Outcome.PASS)


class Judge:
    """In the place of the evidence: knows of what it was made and what it judged."""

    made: list[Any]

    def __init__(self, *words: Any, **named: Any) -> None:
        type(self).made.append((words, named))

    def judge(self, *words: Any, **named: Any) -> tuple[CheckResult, ...]:
        type(self).made.append((words, named))
        return (FOUND,)


class Load:
    """An audited load with these counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **counts: Any) -> None:
        sound = {"sent": 1000, "successes": 1000, "sampled": 1000, "errors": dict.fromkeys(FAULTS, 0)}
        self.total = Total.model_validate({**total(1000), **sound, **counts})
        self.asked: list[Any] = []
        self.generator: AuditingGenerator | None = None
        Judge.made = []
        self.judged = Judge.made
        monkeypatch.setattr(auditing, "AuditEvidence", Judge)
        monkeypatch.setattr(auditing, "Meanwhile", self.changes)
        monkeypatch.setattr(auditing, "observe", self.observe)

    def changes(self, *what: object) -> Any:
        self.asked.append(("meanwhile", *what))

        @contextmanager
        def on() -> Any:
            yield

        self.meanwhile = on()
        return self.meanwhile

    def observe(self, testbed: Any, on: Any, loaded: Any, **named: Any) -> Observation:
        self.generator = testbed.generator
        testbed.generator.total = self.total
        self.asked.append((loaded, named))
        return observation(result=result())


FAULTS = ("connect", "write", "closed", "timeout", "framing", "dropped", "status", "length", "body")


def test_an_audit_is_a_load_like_the_others_and_hands_on_what_it_showed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, book, watching = Load(monkeypatch, tmp_path), Book(), Watching()
    server = target().server
    server.implementation.rules = "techempower"  # type: ignore[misc]
    on = target(server=server, ledger=book)
    testbed = bed(verifier=watching, runtime=SimpleNamespace(own_generator=lambda: "/bin/loadgen"))
    found = audit(testbed, on, LEVEL, 77, 250.0, 4.0)
    assert found.results == (FOUND,)
    assert (found.successes, found.failed) == (1000, 0)
    assert found.load == AuditedLoad(duration=2.0, requests=998, cpu_per_request=0.002, latency=BINNED)
    assert made.asked == [
        ("meanwhile", on.test_type, on.database.address, 4.0, 77),
        (load(seconds=4.0), {"response_bytes": 150.0}),
    ]
    assert watching.asked == [(server, on.test_type, LEVEL, on.database.address), "on"]
    assert book.told == [("watched", "query", LEVEL, (ASKED,))]
    evidence, judged = made.judged
    assert evidence == ((on.test_type, "/q?queries=", LEVEL, on.database.address), {"rules": "techempower"})
    (counts, answers), named = judged
    assert counts == account(made.total)
    assert named == {"whole": True, "beside": (ASKED,), "meanwhile": made.meanwhile}
    generator = made.generator
    assert generator is not None
    assert (generator.program, generator.seed, generator.sample_share) == ("/bin/loadgen", 77, 1.0)
    assert generator.answers == answers
    assert answers.name == "answers.jsonl"
    assert answers.parent.name.startswith("tfb-audit-")
    assert generator.folder == answers.parent
    assert not answers.exists()


def server_of(kind: str, **changes: Any) -> Any:
    on = target(kind, **changes)
    on.server.implementation.rules = "tfb"  # type: ignore[misc]
    return on


RUNTIME = SimpleNamespace(own_generator=lambda: "x")


@pytest.mark.parametrize(
    ("kind", "expected", "seconds", "lasts"),
    [
        ("update", 10_000.0, 4.0, 2.0),  # half of what can be written out
        ("update", 100_000.0, 4.0, 1.0),
        ("update", 1_000.0, 4.0, 4.0),
        ("update", 0.0, 4.0, 4.0),
        ("update", 0.5, 4.0, 4.0),
        ("query", 100_000.0, 4.0, 4.0),
    ],
)
def test_an_audit_of_updates_is_as_long_as_all_its_answers_can_be_held_against_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, expected: float, seconds: float, lasts: float
) -> None:
    made = Load(monkeypatch, tmp_path)
    audit(bed(runtime=RUNTIME), server_of(kind), LEVEL, 7, expected, seconds)
    assert made.asked[1][0].seconds == lasts
    assert made.asked[0][3] == lasts


def test_the_share_of_the_answers_is_of_those_expected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = Load(monkeypatch, tmp_path)
    audit(bed(runtime=RUNTIME), server_of("json"), Closed(connections=8), 7, 3_000.0, 2.0)
    assert made.generator is not None
    assert made.generator.sample_share == 0.5  # three thousand of six
    assert made.asked[1][1] == {"response_bytes": 148.0}
    audit(bed(runtime=RUNTIME), server_of("query"), Closed(connections=8, queries=5), 7, 1.0, 2.0)
    assert made.asked[3][1] == {"response_bytes": None}


@pytest.mark.parametrize(
    ("counts", "whole"),
    [({}, True), ({"sampled": 999}, False), ({"sampled_over_limit": 1}, False)],
)
def test_answers_are_whole_where_each_was_written_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, counts: dict[str, int], whole: bool
) -> None:
    made = Load(monkeypatch, tmp_path, **counts)
    audit(bed(runtime=RUNTIME), server_of("query"), LEVEL, 7, 10.0, 2.0)
    assert made.judged[1][1]["whole"] is whole


@pytest.mark.parametrize(
    ("counts", "failed", "cost", "latency"),
    [
        ({}, 0, 0.002, True),
        ({"received": 200, "sent": 200, "successes": 200}, 0, 0.01, True),
        ({"received": 199, "sent": 199, "successes": 199}, 0, None, True),  # too few to tell
        ({"successes": 990}, 10, 0.002, False),  # not every request had a good answer
        ({"sent": 1001}, 0, 0.002, False),
    ],
)
def test_a_cost_needs_many_answers_and_a_latency_all(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    counts: dict[str, int],
    failed: int,
    cost: float | None,
    latency: bool,
) -> None:
    Load(monkeypatch, tmp_path, **counts)
    found = audit(bed(runtime=RUNTIME), server_of("query"), LEVEL, 7, 10.0, 2.0)
    assert found.failed == failed
    assert found.load.cpu_per_request == cost
    assert found.load.latency == (BINNED if latency else None)
    assert USE.cpu_seconds == 2.0


def test_an_auditing_generator_connects_when_the_load_begins_and_writes_a_share_of_the_answers_out() -> None:
    generator = AuditingGenerator(program="x", sample_share=0.12345678, answers=Path("/of/one/answers.jsonl"), seed=5)
    words = list(generator.arguments(load()))
    place = words.index("--connect-at-go")
    assert words[place:] == [
        "--connect-at-go", "--sample-file", "/of/one/answers.jsonl", "--sample-rate", "0.123457",
        "--sample-limit", "40000", "http://app:81/q?queries=20",
    ]  # fmt: skip
    assert words[place - 2 :][:1] == ["5"]
    assert "--start-at-once" in words
    assert (generator.waits_for_go, generator.timeout_seconds, generator.folder) == (False, 8.0, Path("/of/one"))
    assert generator.total is None


def test_an_auditing_generator_keeps_the_whole_account() -> None:
    generator = AuditingGenerator(program="x", sample_share=1.0, answers=Path("a"), seed=5)
    printed = output(READY, total(1000))
    found: LoadResult = generator.result(load(), printed)
    assert found.requests == 998
    assert generator.total == Total.model_validate(total(1000))


@pytest.mark.parametrize("error", [EnvironmentLacksError("no cargo"), BuildError("does not compile")])
def test_why_there_can_be_no_audits_is_told(error: Exception) -> None:
    def refuses() -> str:
        raise error

    assert obstacle(SimpleNamespace(own_generator=refuses)) == str(error)
    assert obstacle(SimpleNamespace(own_generator=lambda: "x")) is None


def test_an_account_adds_up_what_was_wrong_with_answers() -> None:
    faults = {name: 10**place for place, name in enumerate(FAULTS)}
    counts = {"sent": 1000, "unasked_responses": 3, "unasked_bytes": 4, "connections_hung": 5,
              "connections_closed_by_peer": 6, "errors": faults, "unfinished": 7}  # fmt: skip
    found = account(Total.model_validate(total(990, **counts)))
    assert found == Audit(
        sent=1000,
        received=990,
        unasked=3,
        unasked_bytes=4,
        unfinished=7,
        hung=5,
        closed=6,
        unsound=10**4 + 10**5 + 10**7 + 10**8,  # framing, dropped, length, body
        statuses={"200": 990},
    )
    for drained, missing in ((7.99, 7), (8.0, 0)):
        late = Total.model_validate(total(990, **counts, drain_seconds=drained))
        assert account(late).unfinished == missing


def test_the_time_of_an_audit_is_drawn_between_three_seconds_and_its_samples() -> None:
    drawn = [drawn_seconds(12.0, seed) for seed in range(400)]
    assert drawn == [drawn_seconds(12.0, seed) for seed in range(400)]
    assert min(drawn) == 3.0
    assert sum(seconds == 3.0 for seconds in drawn) == pytest.approx(200, abs=30)  # the square of a half
    assert max(drawn) > 11.5
    assert sum(drawn) / len(drawn) == pytest.approx(3.0 * 0.5 + 12.0 * (1 - 0.125) / 3, abs=0.3)
    assert drawn_seconds(2.0, 1) == 2.0
