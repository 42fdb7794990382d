"""Tests for facts about a machine, and for the grade that follows from them."""

import os
import resource

import pytest

from harness.errors import EnvironmentLacksError
from harness.host import machine
from harness.records.run_info import Machine

QUIET = Machine(
    hostname="quiet",
    os="Debian",
    kernel="6.12",
    cpu_model="x",
    cpus_online=8,
    cpus_usable=tuple(range(8)),
    memory_bytes=1 << 34,
    governor="performance",
    load_average=0.1,
    nofile_hard=1 << 20,
)


def graded(**facts: object) -> tuple[str, tuple[str, ...]]:
    this_machine = machine.with_grade(QUIET.model_copy(update=facts))
    return this_machine.grade, this_machine.concerns


def test_facts_describe_this_machine() -> None:
    this_machine = machine.read_machine()
    assert this_machine.cpus_usable == tuple(sorted(os.sched_getaffinity(0)))
    assert this_machine.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert this_machine.kernel == os.uname().release
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert this_machine.nofile_hard == (None if hard == resource.RLIM_INFINITY else hard)
    assert this_machine.grade in "ABCD"


def test_other_systems_than_linux_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    with pytest.raises(EnvironmentLacksError, match="Linux only"):
        machine.read_machine()


def test_quiet_machine_has_grade_a() -> None:
    assert graded() == ("A", ())


@pytest.mark.parametrize(
    ("facts", "grade", "words"),
    [
        ({"turbo": True}, "B", "turbo is on"),
        ({"governor": "schedutil"}, "B", "CPU governor is schedutil, not performance"),
        ({"virtualised": "KVM"}, "B", "virtual machine (KVM)"),
        ({"nofile_hard": 4096}, "B", "at most 4096 open files"),
        ({"cpu_quota": 2.5}, "B", "a cgroup quota of 2.5 CPUs"),
        ({"steal_share": 0.05}, "B", "5.0% of CPU time stolen"),
        ({"turbo": True, "smt": True}, "C", "SMT is on"),
        ({"cpus_usable": (0, 1)}, "D", "only 2 CPUs"),
        ({"load_average": 9.0}, "D", "load average 9.0"),
        ({"pressure_cpu": 30.0}, "D", "CPU pressure 30 %"),
    ],
)
def test_concern_is_named_and_lowers_the_grade(facts: dict[str, object], grade: str, words: str) -> None:
    actual_grade, concerns = graded(**facts)
    assert actual_grade == grade
    assert any(words in concern for concern in concerns), concerns
