"""Which tests are handed to the same process of pytest-xdist."""

from xdist.scheduler import LoadScopeScheduling

DATABASE_GROUP = "of a database"
GROUPS = {  # what ids of their tests begin with; the first that fits counts
    # Whose tests start a PostgreSQL: several groups, for together they would keep one process busy to the end.
    "of honest servers": ("harness/tests/verify/test_honest.py::test_an_honest_variant",),
    "of honest order services": ("harness/tests/verify/test_honest.py", "harness.tests.verify.test_order_evidence.py"),
    DATABASE_GROUP: (
        "harness/tests/runtime/database/",
        *(f"harness/tests/verify/test_{name}.py" for name in ("tables", "trial", "verification")),
    ),
    # Whose tests start containers, or look whether there are any.
    "of containers": (
        *(f"harness/tests/e2e/test_{name}" for name in ("dashboard_page.py", "docker.py", "gate.py::test_containers")),
        "harness/tests/extras/deployments/",
    ),
    # Whose tests look at one run that takes a minute.
    "of a run of failures": tuple(
        f"harness/tests/faults/test_servers.py::test_{name}"
        for name in ("what_works", "each_failure", "nothing_that_a_run")
    ),
    "of a damaged run": (
        "harness/tests/faults/test_records.py",
        "harness/tests/faults/test_surroundings.py::test_a_report_is_whole",
    ),
    # Whole implementations on the machine: one at a time.
    "of real servers": ("harness/tests/e2e/",),
    # Whose tests look at runs that are made once a process.
    "of the runs of the dashboard": ("harness/tests/dashboard/", "harness/tests/extras/site/"),
}
LEFT = "harness/tests/faults/test_surroundings.py"  # who ends what a dead harness has left ends it for all


def group(nodeid: str) -> str:
    """Tests whose ids end in ``@group]`` are one group, as are those of GROUPS; any other is alone."""
    name, at, last = nodeid.rpartition("@")
    if at and "[" in name and last.endswith("]"):
        return last.removesuffix("]")
    if nodeid.startswith(LEFT) and "_left" in nodeid:
        return "of what is left"
    if nodeid.endswith("[docker]"):
        return "of containers"
    return next((name for name, places in GROUPS.items() if nodeid.startswith(places)), nodeid)


class Grouped(LoadScopeScheduling):  # type: ignore[misc]  # of a package without types
    """Hands out a group as one."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
