"""An upstream folder: the arguments by which its container is built and run."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from harness.plan.discovery import Implementation
from harness.runtime.techempower_container import SECCOMP, build_arguments, parse_allow, run_arguments
from harness.tests.doubles import implementations


def implementation(*, allowed: tuple[str, ...] = (), **entry: object) -> Implementation:
    made = implementations.implementation(
        Path("/tree/C/x"), "x-raw@fb", **{"port": 3000, "database": "postgres", **entry}
    )
    return replace(made, variant="raw", framework="x", allowed=allowed)


def arguments(of: Implementation, **more: object) -> list[str]:
    labels = ("--label", "org.tfb.run=1")
    limits = {"TFB_NOFILE": "1000000", "TFB_SERVER_MEMORY": "536870912", "TFB_SERVER_PIDS": "99"}
    return run_arguments(of, image="tfb/x", network="net", labels=labels, limits=limits, **more)  # type: ignore[arg-type]


def test_the_toolset_s_build_arguments_carry_the_name_that_its_file_gives() -> None:
    given = build_arguments(implementation(), "Citrine")[1::2]
    assert given == ["BENCHMARK_ENV=Citrine", "TFB_TEST_NAME=x-raw", "TFB_TEST_DATABASE=postgres"]


def test_limits_network_and_name_are_those_of_the_toolset_and_nothing_is_privileged() -> None:
    found = arguments(implementation())
    for pair in (
        ("--ulimit", "nofile=200000:200000"),
        ("--sysctl", "net.core.somaxconn=65535"),
        ("--memory", "536870912"),
        ("--pids-limit", "99"),
    ):
        assert pair in set(pairwise(found))
    assert found[-1] == "tfb/x"
    assert {"--privileged", "--cap-add", "--read-only", "--publish", "--security-opt"}.isdisjoint(found)


def test_its_command_is_split_as_a_shell_does() -> None:
    assert arguments(implementation(docker_cmd="run 'a b' --port=1"))[-4:] == ["tfb/x", "run", "a b", "--port=1"]


def test_an_existing_database_goes_by_the_toolset_s_name() -> None:
    assert "tfb-database:10.0.0.9" in arguments(implementation(), database_host="10.0.0.9")


@pytest.mark.parametrize(
    ("privilege", "argument"), [("io_uring", f"seccomp={SECCOMP}"), ("privileged", "--privileged")]
)
def test_a_consent_gives_what_it_names_and_no_more(privilege: str, argument: str) -> None:
    assert argument in arguments(implementation(allowed=(privilege,)))
    assert argument not in arguments(implementation())


def test_consents_are_read_by_name() -> None:
    assert parse_allow(["a=io_uring,io_uring", "b=privileged", "a=privileged"]) == {
        "a": ("io_uring", "privileged"),
        "b": ("privileged",),
    }
