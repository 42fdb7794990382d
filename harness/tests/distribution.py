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


def group(nodeid: str) -> str:
    """Tests whose ids end in ``@group]`` are one group, as are those of one PostgreSQL or run; any other is alone."""
    name, at, last = nodeid.rpartition("@")
    if at and "[" in name and last.endswith("]"):
        return last.removesuffix("]")
    if nodeid.startswith(OF_A_DATABASE):
        return DATABASE_GROUP
    return next((f"of the run of {place}" for place in OF_ONE_RUN if nodeid.startswith(place)), nodeid)


class Grouped(LoadScopeScheduling):  # type: ignore[misc]  # of a package without types
    """Hands out a group as one."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
