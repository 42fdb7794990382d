"""Tests for the docker arguments of folders from TechEmpower's toolset."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from harness.plan.implementation import Implementation
from harness.runtime.privileges import SECCOMP
from harness.runtime.techempower_container import build_arguments, run_arguments
from harness.tests.doubles import implementations


def implementation(*, allowed: tuple[str, ...] = (), **entry: object) -> Implementation:
    config = implementations.implementation(
        Path("/tree/C/x"), "x-raw@fb", **{"port": 3000, "database": "postgres", **entry}
    )
    return replace(config, variant="raw", framework="x", allowed=allowed)


def arguments(of: Implementation, **fields: object) -> list[str]:
    labels = ("--label", "org.tfb.run=1")
    limits = {"TFB_NOFILE": "1000000", "TFB_SERVER_MEMORY": "536870912", "TFB_SERVER_PIDS": "99"}
    return run_arguments(of, image="tfb/x", network="net", labels=labels, limits=limits, **fields)  # type: ignore[arg-type]


def test_build_arguments_contain_the_declared_name() -> None:
    build_values = build_arguments(implementation(), "Citrine")[1::2]
    assert build_values == ["BENCHMARK_ENV=Citrine", "TFB_TEST_NAME=x-raw", "TFB_TEST_DATABASE=postgres"]


def test_container_has_limits_of_toolset_without_privileges() -> None:
    run_values = arguments(implementation())
    for pair in (
        ("--ulimit", "nofile=200000:200000"),
        ("--sysctl", "net.core.somaxconn=65535"),
        ("--memory", "536870912"),
        ("--pids-limit", "99"),
    ):
        assert pair in set(pairwise(run_values))
    assert run_values[-1] == "tfb/x"
    assert {"--privileged", "--cap-add", "--read-only", "--publish", "--security-opt"}.isdisjoint(run_values)


def test_command_is_split_like_a_shell() -> None:
    assert arguments(implementation(docker_cmd="run 'a b' --port=1"))[-4:] == ["tfb/x", "run", "a b", "--port=1"]


def test_external_database_has_the_host_name_of_toolset() -> None:
    assert "tfb-database:10.0.0.9" in arguments(implementation(), database_host="10.0.0.9")


@pytest.mark.parametrize(
    ("privilege", "argument"), [("io_uring", f"seccomp={SECCOMP}"), ("privileged", "--privileged")]
)
def test_allow_grants_only_named_privileges(privilege: str, argument: str) -> None:
    assert argument in arguments(implementation(allowed=(privilege,)))
    assert argument not in arguments(implementation())
