"""Creates claims about two servers, and runs with given results."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.extras.claims import assessment
from harness.extras.claims.claim import Claim
from harness.records.claims import ClaimVerdict
from harness.records.loads import Load
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.tests.report import made

STEADY = {"a": (2500.0, 2520.0, 2490.0, 2510.0, 2505.0), "b": (1000.0, 1010.0, 995.0, 1003.0, 1001.0)}
ROUNDS = (1.0, 1.01, 0.99)


def side(name: str, connections: int = 64) -> dict[str, object]:
    return {"implementation": name, "test_type": "json", "connections": connections}


def claim(**compare: object) -> Claim:
    """Return a claim with one statement. By default, it compares the throughput of ``a`` to that of ``b``."""
    return claim_of({"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), **compare})


def claim_of(*compare: Mapping[str, object], **more: Any) -> Claim:
    words = {key: key for key in ("name", "title", "talk", "page", "said", "conditions")}
    return Claim.model_validate({**words, "compare": compare, **more})


def trials(values: Mapping[str, Sequence[float]], load: Load = made.JSON, **fields: Any) -> list[Trial]:
    """Return trials with these throughputs. Each value belongs to one process, which has three rounds."""
    return [
        made.trial(name, process, value * wobble, load, round=number, **fields)
        for name, row in values.items()
        for process, value in enumerate(row)
        for number, wobble in enumerate(ROUNDS)
    ]


def run_of(found: Mapping[str, Sequence[float]] | Sequence[Trial], **fields: Any) -> RunRecords:
    measured = trials(found) if isinstance(found, Mapping) else found
    names = tuple(dict.fromkeys(trial.implementation for trial in measured))
    return RunRecords(info=made.info(names), trials=measured, **fields)


def judged(said: Claim, records: RunRecords) -> ClaimVerdict:
    return assessment.judge_by_runs(said, records, [records.info])
