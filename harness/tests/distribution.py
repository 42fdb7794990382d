"""Groups of tests. pytest-xdist runs all tests of a group in the same process."""

import re

from xdist.scheduler import LoadScopeScheduling

DATABASE_GROUP = "of a database"
GROUPS = {  # group -> prefixes of test ids; the first match applies
    # Tests that start PostgreSQL. There are several groups, because a process with all of these tests would finish
    # last.
    "of honest servers": ("harness/tests/verify/test_honest.py::test_an_honest_variant",),
    "of honest order services": ("harness/tests/verify/test_honest.py", "harness/tests/verify/test_order_evidence.py"),
    DATABASE_GROUP: (
        "harness/tests/runtime/database/",
        *(f"harness/tests/verify/test_{name}.py" for name in ("database_tables", "trial", "verification")),
    ),
    # Tests that start containers, or that require that no container exists.
    "of containers": (
        *(
            f"harness/tests/e2e/test_{name}"
            for name in ("dashboard_page.py", "docker_runs.py", "gate_runs.py::test_containers")
        ),
        "harness/tests/extras/deployments/",
        "harness/tests/adversarial/test_docker_data.py",
        "harness/tests/adversarial/test_compose_keys.py::test_head_uses_",
        *(
            f"harness/tests/adversarial/test_secrets.py::test_{name}"
            for name in ("a_comparison_hides", "a_service_cannot", "a_value_reaches")
        ),
    ),
    # Tests that share one run, which takes a minute.
    "of a run of failures": tuple(
        f"harness/tests/faults/test_servers.py::test_{name}"
        for name in ("working_servers", "each_failure", "no_process")
    ),
    "of a damaged run": (
        "harness/tests/faults/test_records.py",
        "harness/tests/faults/test_surroundings.py::test_report_is_complete",
    ),
    # Tests of complete implementations, which must not run concurrently.
    "of real servers": ("harness/tests/e2e/",),
    # Tests that share generated runs, so that only one process generates them.
    "of the runs of the dashboard": ("harness/tests/dashboard/", "harness/tests/extras/site/"),
}
LEFTOVERS = "of leftovers"  # these tests remove the leftovers of all tests, so they must not run concurrently
LEFTOVER_TESTS = re.compile(r"harness/tests/faults/test_surroundings\.py::test_\w*leftovers")


def group(nodeid: str) -> str:
    """Return a test's group: the text after "@" in its parameters, its group in GROUPS, or else its own id."""
    name, at, last = nodeid.rpartition("@")
    if at and "[" in name and last.endswith("]"):
        return last.removesuffix("]")
    if LEFTOVER_TESTS.match(nodeid):
        return LEFTOVERS
    if nodeid.endswith("[docker]"):
        return "of containers"
    return next((name for name, places in GROUPS.items() if nodeid.startswith(places)), nodeid)


class Grouped(LoadScopeScheduling):  # type: ignore[misc]  # the package has no types
    """A scheduler that assigns all tests of a group to the same process."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
