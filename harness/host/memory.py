"""Says whether this process may take the memory that it needs, before libraries are loaded that would wait for it."""

import resource

# Address space of `./tfb report` is 290 MiB at its peak, where OpenBLAS has one thread. With less, OpenBLAS asks again
# and again for its buffers while it is loaded, and no signal ends it.
LEAST_BYTES = 400 << 20
LIMITS = {"ulimit -v": resource.RLIMIT_AS, "ulimit -d": resource.RLIMIT_DATA}


def shortage() -> str:
    """Return what is wrong with the limits of this process, and what to do; empty where they leave enough."""
    for name, limit in LIMITS.items():
        soft, hard = resource.getrlimit(limit)
        if resource.RLIM_INFINITY != soft < LEAST_BYTES:
            need = LEAST_BYTES >> 10
            how = (
                f"{name} {need}"
                if hard == resource.RLIM_INFINITY or hard >= LEAST_BYTES
                else "a shell without the limit"
            )
            return (
                f"this process may take {soft >> 20} MiB of memory ({name}), and needs {LEAST_BYTES >> 20} MiB. "
                f"Raise the limit ({how}) and try again"
            )
    return ""
