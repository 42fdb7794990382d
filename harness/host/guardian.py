"""Ends what the harness has started when the harness is killed: a script that waits for nothing else.

``python guardian.py MARK FOLDERS OWNER``: its standard input is a pipe from the harness. ``bye`` on it is an orderly
end; an end of file without it is a death. Then every process with MARK in its environment is killed (PostgreSQL by its
immediate shutdown, which gives its shared memory back), and scratch folders of that owner below FOLDERS are removed.
Not the parent-death signal of Linux: that reaches children alone, not theirs, and goes off when a mere thread ends.
"""

import os
import shutil
import signal
import sys
import time

ROUNDS = 40  # looks at all processes, a tenth of a second apart
POSTGRES = "postgres"


def marked(mark: bytes) -> list[int]:
    """Living processes whose environment has the mark."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - no import that costs memory
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                if mark not in b"\0" + file.read(1 << 20):
                    continue
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                if file.read().rpartition(b")")[2].split()[0] in b"ZX":
                    continue
        except OSError:
            continue
        found.append(int(name))
    return found


def is_postgres(pid: int) -> bool:
    """Whether it is one of PostgreSQL's."""
    try:
        with open(f"/proc/{pid}/comm") as file:  # noqa: PTH123
            return file.read().strip() == POSTGRES
    except OSError:
        return False


def end(mark: bytes) -> None:
    """Kill them until none is left; PostgreSQL has half of the time to end by itself."""
    asked = set()
    for number in range(ROUNDS):
        left = marked(mark)
        if not left:
            return
        for pid in left:
            how = signal.SIGKILL
            if is_postgres(pid) and number < ROUNDS // 2:
                if pid in asked:
                    continue
                asked.add(pid)
                how = signal.SIGQUIT
            try:
                os.kill(pid, how)
            except OSError:
                continue
        time.sleep(0.1)


def sweep(folders: str, owner: str) -> None:
    """Remove the owner's scratch folders."""
    for name in os.listdir(folders):  # noqa: PTH208
        path = f"{folders}/{name}"
        try:
            with open(f"{path}/owner") as file:  # noqa: PTH123
                mine = file.read(200).strip() == owner
        except OSError:
            continue
        if mine and name.startswith("tfb-"):
            shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    """Wait, and act when the harness has died."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    mark, folders, owner = sys.argv[1:]
    said = b""
    while part := os.read(0, 64):
        said += part
    if b"bye" not in said:
        end(b"\0" + mark.encode())
        sweep(folders, owner)


if __name__ == "__main__":
    main()
