"""A claim of two servers and runs over them, for the tests of the claims room."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.benchmarks.simulation import run_info, sample
from harness.claims.claim import Claim
from harness.plan.profile import Replication
from harness.records.models import Closed, Load, RunRecords, Sample

LEVEL = Closed(connections=64)
RULES = Replication(minimum=3, maximum=8, looks=(3, 5, 8))


def side(name: str, connections: int = 64) -> dict[str, object]:
    """A cell of a claim's file."""
    return {"implementation": name, "test_type": "json", "connections": connections}


def claim(**compare: object) -> Claim:
    """A claim of one statement: throughput of ``a`` over ``b`` unless said otherwise."""
    return claim_of({"name": "rate", "metric": "throughput", "of": side("a"), "to": side("b"), **compare})


def claim_of(*compare: Mapping[str, object], **more: Any) -> Claim:
    """A claim of these statements."""
    words = {key: key for key in ("name", "title", "talk", "page", "said", "conditions")}
    return Claim.model_validate({**words, "compare": compare, **more})


def run_of(values: Mapping[str, Sequence[float]], level: Load = LEVEL) -> RunRecords:
    """A run in which each server had these throughputs, block by block."""
    samples = [
        sample(name, i, v, test_type="json", level=level) for name, row in values.items() for i, v in enumerate(row)
    ]
    return records(samples)


def records(samples: Sequence[Sample]) -> RunRecords:
    """A run of these samples."""
    names = tuple(dict.fromkeys(sample.implementation for sample in samples))
    return RunRecords(info=run_info(names, RULES, levels={"json": (LEVEL,)}), samples=samples)
