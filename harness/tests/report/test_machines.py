"""The machines of a run on several stand above its tables, each with its role and grade, and the links with them."""

from harness.benchmarks.simulation import MACHINE, run_info
from harness.plan.profile import Replication
from harness.records.models import MachineLink, RoleMachine
from harness.report.terminal import heading, several


def test_each_role_s_machine_and_each_link_is_named() -> None:
    info = run_info(["a", "b"], Replication())
    assert several(info) == ()
    machine = MACHINE.model_copy(update={"cpu_model": "Fast CPU", "cpus_usable": (0, 1), "grade": "B"})
    app = RoleMachine(role="server", name="app", address="10.0.0.2", engine="26.1.5", machine=machine)
    link = MachineLink(of="app", to="c1", round_trip=80e-6, throughput=1.25e9)
    info = info.model_copy(update={"machines": (app,), "links": (link,)})
    lines = heading(info).plain.splitlines()
    assert "server: app (10.0.0.2), Fast CPU, 2 CPUs, Docker 26.1.5, grade B" in lines
    assert "app to c1: round trip 80 µs, 10.00 Gbit/s" in lines
