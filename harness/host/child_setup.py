"""Replaces a fork of the guardian by the requested program, with restricted privileges and file access.

This module imports only the standard library, because the guardian imports it.
"""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import struct
from collections.abc import Iterable, Sequence
from typing import Any

CAPABILITIES = {"dac_read_search": 2, "net_bind_service": 10}  # <linux/capability.h>
IGNORED_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)  # signals that the guardian ignores

_PR_SET_SECUREBITS, _NO_SETUID_FIXUP = 28, 1 << 2
_PR_SET_KEEPCAPS, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 8, 24, 38, 47
_AMBIENT_RAISE, _AMBIENT_CLEAR = 2, 4
_CAPABILITY_VERSION_3 = 0x20080522
# System calls; the numbers are the same on all architectures.
_LANDLOCK_CREATE, _LANDLOCK_ALLOW, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION, _PATH_BENEATH, _SCOPE_SIGNAL = 1, 1, 2
_REFER = 1 << 13  # right to move and link files between folders, which a domain denies by default
_REFER_SINCE, _SIGNALS_SINCE = 2, 6  # minimum ABI versions of Landlock: Linux 5.19 and 6.12
_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER = 1 << 17, 1 << 27, 1 << 28
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _RDONLY = 442, -100, 0x8000, 1  # Linux 5.12

libc = ctypes.CDLL(None, use_errno=True)


def exec_program(request: dict[str, Any], files: list[int]) -> None:
    """Replace this process with the requested program. ``files`` become stdin, stdout and stderr.

    Raises OSError if the program cannot be executed.
    """
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    for number in (*IGNORED_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    resource.setrlimit(resource.RLIMIT_NOFILE, tuple(request["nofile"]))
    if request["cpus"]:
        os.sched_setaffinity(0, request["cpus"])
    if request["enclosure"]:
        enter_mount_namespace(**request["enclosure"])
    os.chdir(_encode(request["cwd"]))
    if request["uid"] is not None or request["isolated"]:
        _call(libc.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if request["isolated"] and not enter_landlock_domain() and request["enclosure"]:
        # Without Landlock, the program could access files outside through the /proc/PID/root of other processes.
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if request["uid"] is not None:
        drop_privileges(request["uid"], request["gid"], [CAPABILITIES[right] for right in request["rights"]])
    command = [_encode(argument) for argument in request["command"]]
    environment = {_encode(key): _encode(value) for key, value in request["env"].items()}
    os.execvpe(command[0], command, environment)  # noqa: S606


def drop_privileges(uid: int, gid: int, kept: list[int]) -> None:
    """Change permanently to an account without supplementary groups. Keep only the capabilities in ``kept``."""
    if os.geteuid() == 0:
        # Capabilities must apply to access(2), because gcc uses it to find the linker. Some containers forbid the call.
        libc.prctl(_PR_SET_SECUREBITS, _NO_SETUID_FIXUP, 0, 0, 0)
        for capability in range(64):
            if capability not in kept and libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                break  # the kernel has no further capabilities
        os.setgroups([])
    _call(libc.prctl, _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    mask = sum(1 << capability for capability in kept)
    # struct __user_cap_data_struct[2]: effective, permitted and inheritable, with the low 32 bits first.
    header, low, high = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), mask & 0xFFFFFFFF, mask >> 32
    _call(libc.capset, header, (ctypes.c_uint32 * 6)(low, low, low, high, high, high))
    _call(libc.prctl, _PR_CAP_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    for capability in kept:
        _call(libc.prctl, _PR_CAP_AMBIENT, _AMBIENT_RAISE, capability, 0, 0)


def enter_landlock_domain() -> bool:
    """Enter a Landlock domain. Return whether the kernel supports Landlock.

    A process in the domain cannot trace processes outside the domain, or read their memory or environment. Since Linux
    6.12, it cannot signal them either. Access to files does not change.
    """
    version = libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)
    if version < _REFER_SINCE:
        return False
    # struct landlock_ruleset_attr: handled_access_fs, handled_access_net, scoped. At least one field must be nonzero.
    fields = (0, 0, _SCOPE_SIGNAL) if version >= _SIGNALS_SINCE else (_REFER,)
    attributes = (ctypes.c_uint64 * len(fields))(*fields)
    rules = libc.syscall(_LANDLOCK_CREATE, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    if rules < 0:
        return False
    try:
        if version < _SIGNALS_SINCE:
            _allow_refer(rules)
        return bool(libc.syscall(_LANDLOCK_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow_refer(rules: int) -> None:
    """Allow renames and links everywhere, so that the domain does not restrict access to files."""
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        # struct landlock_path_beneath_attr, packed: allowed_access (64 bits), parent_fd (32 bits).
        beneath = ctypes.create_string_buffer(struct.pack("=Qi", _REFER, root), 12)
        _call(libc.syscall, _LANDLOCK_ALLOW, rules, _PATH_BENEATH, beneath, 0)
    finally:
        os.close(root)


def enter_mount_namespace(
    writable: list[str], protected: list[str], private: list[str], hidden: list[str], home: str, overlay: str
) -> None:
    """Enter a mount namespace with a mostly read-only file system.

    Args:
        writable: Folders that the program may write to.
        protected: Subfolders of writable folders that remain read-only.
        private: Writable folders that only this program uses.
        hidden: Folders and sockets that appear empty.
        home: A folder with changes that go to ``overlay`` (overlayfs), or an empty string.
        overlay: A folder with the subfolders ``changes``, ``work`` and ``empty``.

    Raises:
        OSError: The kernel refuses.
    """
    _enter_user_namespace()
    _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE)
    folders = _open_folders((*writable, *protected, *private, overlay))  # before mounts cover them
    for path in (*writable, *protected, overlay):
        if path in folders:
            with contextlib.suppress(FileNotFoundError):
                _bind(folders[path], path)
    unlocked = [*writable, *private]
    if home:
        _mount_overlay(home, overlay)
        unlocked.append(home)
    for path in private:
        _bind(folders[path], path)
    for path in hidden:
        empty = f"{overlay}/empty" if os.path.isdir(path) else "/dev/null"  # noqa: PTH112
        _mount(_encode(empty), _encode(path), None, _MS_BIND)
    if os.path.isdir(_SHARED_MEMORY):  # noqa: PTH112
        _mount(b"tmpfs", _SHARED_MEMORY.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=1777")
        unlocked.append(_SHARED_MEMORY)
    _lock_all_but(unlocked, optional=writable)
    for descriptor in folders.values():
        os.close(descriptor)


def _enter_user_namespace() -> None:
    """Enter user, mount and IPC namespaces. The user keeps uid and gid."""
    uid, gid = os.geteuid(), os.getegid()
    _call(libc.unshare, _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWIPC)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(text)


def _open_folders(paths: Iterable[str]) -> dict[str, int]:
    """Open the folders that exist. Other tfb processes may have removed some of them."""
    folders: dict[str, int] = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            folders[path] = os.open(_encode(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return folders


def _bind(folder: int, path: str) -> None:
    """Mount an open folder at the same path, so that the folder has separate mount flags."""
    _mount(b"/proc/self/fd/%d" % folder, _encode(path), None, _MS_BIND | _MS_REC)


def _mount_overlay(home: str, overlay: str) -> None:
    lower, upper = _encode(home), _encode(overlay)
    options = b"lowerdir=%s,upperdir=%s/changes,workdir=%s/work,userxattr" % (lower, upper, upper)
    _mount(b"overlay", lower, b"overlay", 0, options)


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    _call(libc.mount, source, target, kind, ctypes.c_ulong(flags), options)


def _lock_all_but(paths: Sequence[str], *, optional: Sequence[str]) -> None:
    """Make all mounts read-only except ``paths``. In a container, ``optional`` paths may remain read-only."""
    _set_read_only("/", True)
    for path in paths:
        try:
            _set_read_only(path, False)
        except OSError:
            if path not in optional:
                raise


def _set_read_only(path: str, on: bool) -> None:
    """Make a mount and all mounts below it read-only, or make a single mount writable."""
    attributes = (ctypes.c_uint64 * 4)(_RDONLY if on else 0, 0 if on else _RDONLY, 0, 0)  # struct mount_attr
    size = ctypes.sizeof(attributes)
    _call(libc.syscall, _MOUNT_SETATTR, _AT_FDCWD, _encode(path), _AT_RECURSIVE if on else 0, attributes, size)


def _call(function: Any, *arguments: object) -> None:  # noqa: ANN401 - a function of libc
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _encode(text: str) -> bytes:
    """Encode text from a request, in which each character represents a byte."""
    return text.encode("latin-1")
