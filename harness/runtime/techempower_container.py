"""An upstream folder, without a ``local`` block: its container is run as TechEmpower's own toolset runs it.

It knows no PORT and no DBHOST: it listens on the port that its file names, on all addresses, and finds PostgreSQL as
``tfb-database:5432``. Its root is written to, it starts as whatever user its image names, with the engine's usual
capabilities and its limits raised as the toolset raises them. The toolset's containers are privileged; ours are not:
what needs more runs after a consent that names it (``--allow NAME=io_uring``).
"""

import shlex
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
from harness.paths import REPOSITORY
from harness.plan.discovery import Implementation
from harness.plan.suggestions import suggest
from harness.runtime.limits import Limits

NOFILE = 200_000  # the toolset's
DATABASE_CONNECTIONS = 2000  # what the toolset's PostgreSQL takes; pools are sized for it
SECCOMP = REPOSITORY / "docker" / "seccomp-io_uring.json"


PRIVILEGES: Mapping[str, Sequence[str]] = {  # what a consent gives beyond the engine's usual
    "io_uring": ("--security-opt", f"seccomp={SECCOMP}"),
    "privileged": ("--privileged",),
}


def is_techempower_folder(implementation: Implementation) -> bool:
    """Whether it is to run as TechEmpower's toolset runs it: nothing in its file is written for this harness."""
    return implementation.local is None


def parse_allow(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Name -> privileges, of arguments such as ``name=io_uring,privileged``; raises UsageError."""
    found: dict[str, tuple[str, ...]] = {}
    for argument in given:
        name, _, listed = argument.partition("=")
        privileges = tuple(part for part in listed.split(",") if part)
        if not name or not privileges:
            raise UsageError(f"--allow: {argument!r} is not NAME=PRIVILEGE,…, such as faf=io_uring")
        for privilege in privileges:
            if privilege not in PRIVILEGES:
                raise UsageError(f"--allow {name}: unknown privilege {privilege!r}; {suggest(privilege, PRIVILEGES)}")
        found[name] = tuple(dict.fromkeys((*found.get(name, ()), *privileges)))
    return found


def build_arguments(implementation: Implementation, environment: str) -> list[str]:
    """The build arguments that the toolset gives; ``environment`` is the run's ``--results-environment``."""
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
    """What stands behind ``docker``; raises UsageError for a command that no shell can split.

    ``limits`` are compose.yaml's variables; ``database_host`` an address of a PostgreSQL that exists.
    """
    entry = implementation.entry
    nofile = min(NOFILE, int(limits.get("TFB_NOFILE", 20_000)))
    given = ["run", "--detach", "--init", "--pull", "never", "--network", network, "--network-alias", "tfb-server"]
    given += [*labels, "--ulimit", f"nofile={nofile}:{nofile}", "--sysctl", "net.core.somaxconn=65535"]
    given += ["--cpuset-cpus", limits.get("TFB_SERVER_CPUS", "")]
    bounds = Limits(memory_bytes=int(limits["TFB_SERVER_MEMORY"]), pids=int(limits["TFB_SERVER_PIDS"]))
    given += bounds.flags
    if database_host:
        given += ["--add-host", f"tfb-database:{database_host}"]
    for privilege in implementation.allowed:
        given += PRIVILEGES[privilege]
    try:  # the toolset hands the string to the engine's client library, which splits it as a shell does
        return [*given, image, *shlex.split(entry.docker_cmd or "")]
    except ValueError as error:
        raise UsageError(f"docker_cmd {entry.docker_cmd!r}: {error}") from error
