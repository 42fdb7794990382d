"""Which tests are handed to the same process of pytest-xdist."""

from xdist.scheduler import LoadScopeScheduling

# Whose tests start a PostgreSQL, but for the gallery, which takes minutes.
OF_A_DATABASE = (
    "harness/tests/servers/database/",
    *(f"harness/tests/verify/test_{name}.py" for name in ("audit", "honest_orders", "orders", "probe", "verification")),
)


def group(nodeid: str) -> str:
    """Tests whose ids end in ``@group]`` are one group, as are those of one PostgreSQL; any other is by itself."""
    name, at, last = nodeid.rpartition("@")
    if at and "[" in name and last.endswith("]"):
        return last
    return "of a database" if nodeid.startswith(OF_A_DATABASE) else nodeid


class Grouped(LoadScopeScheduling):  # type: ignore[misc]  # of a package without types
    """Hands out a group as one."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
