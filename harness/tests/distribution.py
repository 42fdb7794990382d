"""Which tests are handed to the same process of pytest-xdist."""

from xdist.scheduler import LoadScopeScheduling

DATABASE_GROUP = "of a database"
# Whose tests start a PostgreSQL, but for the gallery, which takes minutes.
OF_A_DATABASE = (
    "harness/tests/runtime/database/",
    *(f"harness/tests/verify/test_{name}.py" for name in ("honest", "orders", "tables", "trial", "verification")),
)
# Whose tests look at a run, or runs, that are made once a process.
OF_ONE_RUN = ("harness/tests/dashboard/",)
# Whose tests start containers, or look whether there are any.
OF_CONTAINERS = (
    *(f"harness/tests/e2e/test_{name}" for name in ("dashboard_page", "docker", "gate.py::test_containers")),
    *(
        "harness/tests/runtime/test_containers.py",
        "harness/tests/extras/deployments/",
        "harness/tests/faults/test_engine.py",
    ),
)
OF_REAL_SERVERS = ("harness/tests/e2e/",)
LEFT = "harness/tests/faults/test_surroundings.py"  # who ends what a dead harness has left ends it for all


def group(nodeid: str) -> str:
    """Tests whose ids end in ``@group]`` are one group, as are those of one PostgreSQL or run; any other is alone.

    So are those of containers and those of whole implementations on the machine: side by side, one of each.
    """
    name, at, last = nodeid.rpartition("@")
    if at and "[" in name and last.endswith("]"):
        return last.removesuffix("]")
    if nodeid.startswith(OF_A_DATABASE):
        return DATABASE_GROUP
    if nodeid.startswith(LEFT) and "_left" in nodeid:
        return "of what is left"
    if nodeid.startswith(OF_CONTAINERS) or nodeid.endswith("[docker]"):
        return "of containers"
    if nodeid.startswith(OF_REAL_SERVERS):
        return "of real servers"
    return next((f"of the run of {place}" for place in OF_ONE_RUN if nodeid.startswith(place)), nodeid)


class Grouped(LoadScopeScheduling):  # type: ignore[misc]  # of a package without types
    """Hands out a group as one."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
