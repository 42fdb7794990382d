"""Every implementation beside the core ones verifies on the local runtime; ``./tfb check --all`` asks for it.

Those of the core are measured by the smoke run, and all of them in Docker there (test_smoke).
"""

import json

import pytest

from harness.host import provision
from harness.request.discovery import Selection, scan, select
from harness.tests.e2e.conftest import tfb

pytestmark = [pytest.mark.e2e, pytest.mark.every, pytest.mark.timeout(1200)]

KNOWN = scan().implementations
OTHERS = [one.name for one in KNOWN if not one.core and not one.broken]


@pytest.mark.parametrize("name", OTHERS)
def test_it_verifies_on_the_local_runtime(name: str) -> None:
    needs = provision.needs(select(KNOWN, Selection(test=(name,))), own_database=True)
    if missing := [need.missing for need in needs if need.tool is None]:
        pytest.skip(f"{', '.join(missing)} is missing: ./tfb doctor")
    done = tfb("verify", name, "--runtime", "local", "--format", "json", seconds=1200)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    said = json.loads(done.stdout)
    assert said["problems"] == []
    declared = next(one for one in KNOWN if one.name == name).urls
    assert {verdict["test_type"] for verdict in said["verdicts"]} >= {*declared, "http"}
    failed = [
        (verdict["test_type"], result["check"], result["message"])
        for verdict in said["verdicts"]
        for result in verdict["results"]
        if result["outcome"] == "fail"
    ]
    assert failed == []
