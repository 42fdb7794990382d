"""Creates implementations for runtime tests."""

from pathlib import Path

from harness.plan.benchmark_config import TestEntry
from harness.plan.implementation import Implementation


def implementation(folder: Path = Path(), name: str = "x", **entry: object) -> Implementation:
    known = {"language": "C", "json_url": "/json", **entry}
    return Implementation(
        name=name,
        variant="default",
        framework=name,
        folder=folder,
        maintainers=(),
        entry=TestEntry.model_validate(known),
    )
