"""Defines the privileges that servers may receive: ``--allow NAME=io_uring`` and ``--allow NAME=privileged``.

On the local runtime, servers can use io_uring unless the kernel forbids it. Docker's default seccomp profile blocks
io_uring, so containers need permission. Implementations receive it if the clone's latest commit declares
``"io_uring": true``, because committed code is reviewed. Other implementations need the user's consent.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import EnvironmentLacksError, UsageError
from harness.paths import DOCKER
from harness.plan.implementation import Implementation
from harness.plan.suggestions import suggest

logger = logging.getLogger("tfb.privileges")

IO_URING = "io_uring"
SECCOMP = DOCKER / "seccomp-io_uring.json"
PRIVILEGES: Mapping[str, Sequence[str]] = {  # name in --allow -> arguments for docker run
    IO_URING: ("--security-opt", f"seccomp={SECCOMP}"),
    "privileged": ("--privileged",),
}
IO_URING_SYSCTL = Path("/proc/sys/kernel/io_uring_disabled")  # since Linux 6.6; "0" permits io_uring to everyone


def parse_allow(arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse arguments such as ``NAME=io_uring,privileged``. Return privileges by implementation. Raises UsageError."""
    allowed: dict[str, tuple[str, ...]] = {}
    for argument in arguments:
        name, _, value = argument.partition("=")
        privileges = tuple(privilege for privilege in value.split(",") if privilege)
        if not name or not privileges:
            raise UsageError(f"--allow: {argument!r} does not have the form NAME=PRIVILEGE,…, for example faf=io_uring")
        for privilege in privileges:
            if privilege not in PRIVILEGES:
                raise UsageError(f"--allow {name}: unknown privilege {privilege!r}; {suggest(privilege, PRIVILEGES)}")
        allowed[name] = tuple(dict.fromkeys((*allowed.get(name, ()), *privileges)))
    return allowed


def require_usable(implementations: Sequence[Implementation], runtime: str, *, own_kernel: bool = True) -> None:
    """Raise an error if ``--allow`` names a privilege that cannot be granted.

    ``own_kernel`` states whether servers run on this machine's kernel. Raises UsageError if an implementation would not
    run in a privileged container, and EnvironmentLacksError if the kernel forbids io_uring.
    """
    for each in implementations:
        if "privileged" in each.allowed and (runtime == "local" or each.local is not None):
            where = (
                "runs without a container"
                if runtime == "local"
                else "has a local block, so its container is unprivileged"
            )
            raise UsageError(
                f"--allow {each.name}=privileged: {each.name} {where}. privileged applies only to containers of "
                "implementations without a local block. Remove it; io_uring is available to all implementations"
            )
    with_consent = [each.name for each in implementations if IO_URING in each.allowed]
    if with_consent and own_kernel and (value := io_uring_restriction()):
        raise EnvironmentLacksError(
            f"--allow {with_consent[0]}=io_uring: the kernel restricts io_uring (kernel.io_uring_disabled is {value}, "
            "but must be 0). Run sysctl kernel.io_uring_disabled=0 as root, or remove the flag"
        )


def warn_without_consent(implementations: Sequence[Implementation]) -> None:
    """Log a warning for each implementation that declares io_uring, but whose container may not use it."""
    for each in implementations:
        if each.entry.io_uring and IO_URING not in each.privileges:
            logger.warning(
                "%s declares io_uring, but not in this clone's latest commit, so the server may not use io_uring. To "
                "permit it, add --allow %s=io_uring",
                *(each.name, each.name),
            )


def io_uring_restriction() -> str:
    """Return the value of kernel.io_uring_disabled, or an empty string if the kernel permits io_uring to everyone."""
    try:
        value = IO_URING_SYSCTL.read_text(encoding="ascii").strip()
    except OSError:  # before Linux 6.6, and on other systems
        return ""
    return "" if value == "0" else value
