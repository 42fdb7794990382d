"""Simulated runs that measure claims and judge them."""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from harness.errors import StartError, StoreError
from harness.extras.claims.claim import Claim
from harness.extras.claims.measure import (
    evidence,
    groups,
    measurement_settings,
    open_part,
    record_verdicts,
    run_program,
)
from harness.plan import profile as profiles
from harness.plan.run_settings import Settings
from harness.records import claims as recorded
from harness.records.claims import StatementVerdict
from harness.records.run_records import RunRecords
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour
from harness.tests.extras.claims import claim_records
from harness.tests.extras.claims.claim_records import claim, claim_of, judged, side

TRUE = {"a": Behaviour(cpu_per_request=40e-6, process_spread=0.01), "b": Behaviour(cpu_per_request=100e-6)}


@dataclass
class ClaimRun(FakeRun):
    """A simulated five-minute run that measures a claim."""

    claim: Claim = claim(ratio=2.5)  # noqa: RUF009 - frozen

    def settings(self) -> Settings:
        return measurement_settings([self.claim], super().settings(), 300.0)


def run_of(folder: Path, said: Claim, **more: Any) -> RunRecords:
    return ClaimRun(folder, TRUE, profile=profiles.load_profile("claims"), claim=said, **more).run().records


@pytest.mark.parametrize(("ratio", "word"), [(2.5, "supported"), (8.0, "direction only"), (0.4, "refuted")])
def test_a_claim_is_judged_by_what_is_true(tmp_path: Path, ratio: float, word: str) -> None:
    said = claim(metric="cpu-per-request", of=side("b"), to=side("a"), ratio=ratio)
    verdict = judged(said, run_of(tmp_path, said))
    (statement,) = verdict.statements
    assert (verdict.verdict, statement.processes) == (word, 6)
    assert statement.value == pytest.approx(2.5, rel=0.05)
    assert 1.0 < width(statement) < 1.15
    assert statement.value == pytest.approx(median(statement.figures_of) / median(statement.figures_to), rel=0.05)


def test_evidence_accumulates_over_runs_of_equal_builds(tmp_path: Path) -> None:
    results, statement = tmp_path / "results", claim(metric="cpu-per-request", of=side("b"), to=side("a"), ratio=2.5)
    assert evidence(results) is None
    first = run_of(tmp_path, statement, seed=1)
    alone = judged(statement, first).statements[0]
    again = run_of(tmp_path, statement, seed=2)
    together = evidence(results)
    assert together is not None
    pooled, behind = together
    assert {name: [run.run_id for run in runs] for name, runs in behind.items()} == {
        name: [first.info.run_id, again.info.run_id] for name in ("a", "b")
    }
    assert {trial.process for trial in pooled.trials} == set(range(12))
    more = judged(statement, pooled).statements[0]
    assert (alone.processes, more.processes) == (6, 12)
    assert width(more) < width(alone)


def test_evidence_of_other_machines_or_builds_is_excluded(tmp_path: Path) -> None:
    results, said = tmp_path / "results", claim(ratio=2.5)
    first, again = (run_of(tmp_path, said, seed=seed) for seed in (1, 2))
    file = results / first.info.run_id / "run.json"
    document = json.loads(file.read_text())

    def runs(changed: dict[str, Any]) -> dict[str, list[str]]:
        file.write_text(json.dumps(changed))
        found = evidence(results)
        assert found is not None
        return {name: [run.run_id for run in own] for name, own in found[1].items() if len(own) > 1}

    assert set(runs(document)) == {"a", "b"}
    assert runs(document | {"machine": document["machine"] | {"cpus_usable": [0]}}) == {}
    assert runs(document | {"tools": {"postgres": "another"}}) == {}
    assert runs(document | {"dirty": True}) == {}
    assert runs(document | {"settings": document["settings"] | {"cpuset_cpus": "0"}}) == {}
    assert runs(document | {"sets": [{"name": "n", "machine": document["machine"], "runs": [], "processes": []}]}) == {}
    file.with_name("trials.jsonl").touch()
    assert runs({}) == {}  # unreadable runs are ignored
    a, b = sorted(document["implementations"], key=lambda each: str(each["name"]))
    assert set(runs(document | {"implementations": [{**a, "digest": "other"}, b]})) == {"b"}
    assert again.info.run_id not in runs(document | {"revision": "a commit that git does not know"})


def test_claims_with_shared_servers_are_measured_together() -> None:
    pairs = {"one": ("a", "b"), "apart": ("e", "f"), "two": ("c", "d"), "joins": ("b", "c")}
    claims = [
        claim(of=side(a), to=side(b), order="higher").model_copy(update={"name": name})
        for name, (a, b) in pairs.items()
    ]
    assert [[each.name for each in group] for group in groups(claims)] == [["apart"], ["one", "two", "joins"]]


@pytest.mark.parametrize(("more", "is_open"), [(0.0, False), (3.0, True), (1000.0, False)])
def test_claim_is_open_while_processes_could_decide(more: float, is_open: bool) -> None:
    claim_text = claim_of(
        {"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), "ratio": 2.5},
        {"name": "shown", "metric": "throughput", "of": side("a"), "to": side("c"), "order": "higher", "context": True},
    )
    known = judged(claim_text, claim_records.run_of(claim_records.STEADY))
    own, shown = known.statements
    assert open_part(claim_text, None) == claim_text
    assert shown.value is None
    open_claim = open_part(
        claim_text, known.model_copy(update={"statements": (own.model_copy(update={"more": more}),)})
    )
    assert [each.name for each in (open_claim.compare if open_claim else ())] == ["rate"] * is_open


def width(statement: StatementVerdict) -> float:
    assert statement.low
    assert statement.high
    return statement.high / statement.low


def test_invalid_output_of_a_program_is_quoted() -> None:
    fields = {"name": "n", "figures": ["slow", "quick"], "ratio": 4.0}
    printed = '{"slow": 2, "quick": 0.5}'
    assert run_program(claim_of(fields, program=("printf", printed))) == {"slow": 2.0, "quick": 0.5}
    for command in (("printf", "no"), ("printf", '{"slow": "2"}'), ("printf", '{"slow": 2}'), ("false",)):
        with pytest.raises(StartError, match=r"claim name: .* must print a JSON object with the numbers"):
            run_program(claim_of(fields, program=command))


def test_newer_verdicts_replace_older_and_published_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "PUBLISHED", tmp_path / "published")
    theirs = judged(claim(ratio=2.5), claim_records.run_of(claim_records.STEADY))
    record_verdicts(tmp_path / "published", [theirs, theirs.model_copy(update={"claim": "other"})])
    for name in ("older", "newer"):
        record_verdicts(tmp_path / "own", [theirs.model_copy(update={"runs": (name,)})])
    found = recorded.latest_verdicts(tmp_path / "own")
    assert {name: each.runs for name, each in found.items()} == {"name": ("newer",), "other": theirs.runs}


def test_a_broken_file_is_named_and_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / recorded.CLAIMS_FILE
    file.write_text('{"verdicts": {"x": {}}}', encoding="utf-8")
    with pytest.raises(StoreError, match=r"claims\.json: .*Move the file away"):
        record_verdicts(tmp_path, [judged(claim(ratio=2.5), claim_records.run_of(claim_records.STEADY))])
    assert file.read_text(encoding="utf-8") == '{"verdicts": {"x": {}}}'
