"""Every implementation outside the core passes verification on the local runtime, within the check's time limit.

The smoke run (test_smoke) measures the core implementations, or with ``./tfb check --all`` all implementations in
Docker. Verification needs no quiet machine, so folders are verified in parallel. The variants of a folder share a build
and are verified in sequence. Folders with the most variants come first.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Sequence

import pytest

from harness.plan.discovery import scan_folders
from harness.plan.implementation import Implementation
from harness.tests.e2e.conftest import LATE, left, require_tools, tfb

pytestmark = [pytest.mark.e2e, pytest.mark.every, pytest.mark.timeout(1200)]

KNOWN = scan_folders().implementations
LONGEST = 1200.0  # time limit in seconds for a build and all checks
LAST = 180.0  # seconds that a test may take beyond the check's deadline


def by_folder(implementations: Sequence[Implementation]) -> list[Implementation]:
    """Group implementations by folder. Folders with the most variants come first."""
    variants = Counter(one.folder for one in implementations)
    return sorted(implementations, key=lambda one: (-variants[one.folder], one.folder))


OTHERS = [
    pytest.param(one.name, id=f"{one.name}@{one.folder.name}")  # the suffix is a group (see distribution.py)
    for one in by_folder([one for one in KNOWN if not one.is_core and not one.is_broken])
]


@pytest.mark.parametrize("name", OTHERS)
def test_it_verifies_on_the_local_runtime(name: str) -> None:
    require_tools(name)
    if left() <= 0:
        pytest.skip(LATE)
    try:
        completed = tfb("verify", name, "--runtime", "local", "--format", "json", seconds=min(LONGEST, left() + LAST))
    except subprocess.TimeoutExpired:
        if left() > 0:
            raise
        pytest.skip(LATE)
    assert completed.returncode == 0, completed.stdout[-4000:] + completed.stderr[-4000:]
    document = json.loads(completed.stdout)
    assert document["problems"] == []
    declared = next(one for one in KNOWN if one.name == name).urls
    assert {verdict["test_type"] for verdict in document["verdicts"]} >= {*declared, "http"}
    failed = [
        (verdict["test_type"], result["check"], result["message"])
        for verdict in document["verdicts"]
        for result in verdict["results"]
        if result["outcome"] == "fail"
    ]
    assert failed == []
