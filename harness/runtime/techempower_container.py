"""Runs the container of a TechEmpower folder as TechEmpower's toolset does.

A TechEmpower folder is an implementation without a ``local`` block. The server listens on all addresses, on the
configured port, and finds PostgreSQL at ``tfb-database:5432``. The container's root file system is writable, and the
image determines the user. The toolset runs privileged containers, but tfb grants privileges only on request (``--allow
NAME=io_uring``).
"""

import shlex
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
from harness.plan.implementation import Implementation
from harness.runtime.limits import Limits
from harness.runtime.privileges import PRIVILEGES

DATABASE_CONNECTIONS = 2000  # max_connections in TechEmpower's toolset; implementations size their pools accordingly


def is_techempower_folder(implementation: Implementation) -> bool:
    """Return whether the implementation was written for TechEmpower's toolset and has no ``local`` block."""
    return implementation.local is None


def build_arguments(implementation: Implementation, environment: str) -> list[str]:
    """Return the toolset's build arguments. ``environment`` is the value of ``--results-environment``."""
    values = {
        "BENCHMARK_ENV": environment,
        "TFB_TEST_NAME": implementation.declared_name,
        "TFB_TEST_DATABASE": implementation.entry.database,
    }
    return [argument for key, value in values.items() for argument in ("--build-arg", f"{key}={value}")]


def run_arguments(
    implementation: Implementation,
    *,
    image: str,
    network: str,
    labels: Sequence[str],
    limits: Mapping[str, str],
    database_host: str | None = None,
) -> list[str]:
    """Return the arguments for ``docker`` that start the server. Raises UsageError if ``docker_cmd`` is malformed.

    ``limits`` contains compose.yaml's variables, such as TFB_SERVER_PIDS. ``database_host`` is an external PostgreSQL.
    """
    entry = implementation.entry
    # TechEmpower's toolset limits open files to 200,000.
    nofile = min(200_000, int(limits["TFB_NOFILE"]))
    arguments = ["run", "--detach", "--init", "--pull", "never", "--network", network, "--network-alias", "tfb-server"]
    arguments += [*labels, "--ulimit", f"nofile={nofile}:{nofile}", "--sysctl", "net.core.somaxconn=65535"]
    arguments += ["--cpuset-cpus", limits.get("TFB_SERVER_CPUS", "")]
    bounds = Limits(memory_bytes=int(limits["TFB_SERVER_MEMORY"]), pids=int(limits["TFB_SERVER_PIDS"]))
    arguments += bounds.flags
    if database_host:
        arguments += ["--add-host", f"tfb-database:{database_host}"]
    for privilege in implementation.privileges:
        arguments += PRIVILEGES[privilege]
    try:  # the toolset's Docker library also splits commands like a shell
        return [*arguments, image, *shlex.split(entry.docker_cmd or "")]
    except ValueError as error:
        raise UsageError(f"docker_cmd {entry.docker_cmd!r}: {error}") from error
