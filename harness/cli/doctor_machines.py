"""``./tfb doctor --server-host …``: the machines of a run, and the links between them."""

from harness.plan.hosts import Hosts
from harness.runtime.choice import over_machines


def main(hosts: Hosts, *, as_json: bool) -> int:
    """Show every machine and link; exit code 3 when a run could not use one."""
    status: int = over_machines().doctor(hosts, as_json=as_json)
    return status
