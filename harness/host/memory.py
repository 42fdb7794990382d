"""Checks this process's memory limits before it loads libraries, because OpenBLAS hangs if memory is short."""

import resource

# `./tfb report` needs up to 290 MiB of address space, with a single OpenBLAS thread. With less memory, OpenBLAS retries
# allocations forever while it is being loaded. Meanwhile, Python cannot handle signals.
MIN_BYTES = 400 << 20
LIMITS = {"ulimit -v": resource.RLIMIT_AS, "ulimit -d": resource.RLIMIT_DATA}


def describe_shortage() -> str:
    """Return a message that names the limit to raise, or an empty string if this process may use enough memory."""
    for name, limit in LIMITS.items():
        soft, hard = resource.getrlimit(limit)
        if resource.RLIM_INFINITY != soft < MIN_BYTES:
            need = MIN_BYTES >> 10
            how = (
                f"Run {name} {need}"
                if hard == resource.RLIM_INFINITY or hard >= MIN_BYTES
                else "Open a shell without this limit"
            )
            return (
                f"memory is limited to {soft >> 20} MiB ({name}), but tfb needs {MIN_BYTES >> 20} MiB. "
                f"{how}, then try again"
            )
    return ""
