"""Turns a process forked by the guardian into the requested program, with restricted privileges and file access.

This module imports only the standard library, because the guardian imports it.
"""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import stat
import struct
from collections.abc import Iterable, Sequence
from typing import Any

CAPABILITIES = {"dac_read_search": 2, "net_bind_service": 10}  # <linux/capability.h>
IGNORED_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)  # the guardian ignores them

_PR_SET_SECUREBITS, _NO_SETUID_FIXUP = 28, 1 << 2
_PR_SET_KEEPCAPS, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 8, 24, 38, 47
_AMBIENT_RAISE, _AMBIENT_CLEAR = 2, 4
# System calls; the numbers are the same on all architectures.
_LANDLOCK_CREATE, _LANDLOCK_ALLOW, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION, _PATH_BENEATH, _SCOPE_SIGNAL = 1, 1, 2
_REFER = 1 << 13  # right to move and link files between folders; a Landlock domain denies it unless granted
_REFER_SINCE, _SIGNALS_SINCE = 2, 6  # minimum ABI versions of Landlock: Linux 5.19 and 6.12
_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER = 1 << 17, 1 << 27, 1 << 28
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _RDONLY = 442, -100, 0x8000, 1  # Linux 5.12

STABLE_HOME = "/tmp/tfb-home"  # noqa: S108 - a mount point in a private folder; the same path for all programs
KINDS = ("writable", "covered", "protected", "private", "hidden")  # kinds of folders in a mount namespace

libc = ctypes.CDLL(None, use_errno=True)


def exec_program(request: dict[str, Any], files: list[int]) -> None:
    """Replace this process with the requested program. ``files`` become stdin, stdout and stderr. Raises OSError."""
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
    elif request["temporary"]:
        enter_temporary_namespace(**request["temporary"])
    if request["replaced"]:
        replace_folder(**request["replaced"])
    os.chdir(_encode(request["cwd"]))
    if request["uid"] is not None or request["isolated"]:
        _call(libc.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if request["isolated"] and not enter_landlock_domain() and request["enclosure"]:
        # Without Landlock, the program could reach hidden files through the /proc/PID/root of other processes.
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if request["uid"] is not None:
        drop_privileges(request["uid"], request["gid"], [CAPABILITIES[right] for right in request["rights"]])
    command = [_encode(argument) for argument in request["command"]]
    environment = {_encode(key): _encode(value) for key, value in request["env"].items()}
    os.execvpe(command[0], command, environment)  # noqa: S606


def drop_privileges(uid: int, gid: int, capabilities: list[int]) -> None:
    """Switch permanently to an account and drop supplementary groups. Keep only the given capabilities."""
    if os.geteuid() == 0:
        # Make access(2) honour capabilities, because gcc uses access(2) to find the linker. Some containers forbid this
        # prctl call, so ignore errors.
        libc.prctl(_PR_SET_SECUREBITS, _NO_SETUID_FIXUP, 0, 0, 0)
        for capability in range(64):
            if capability not in capabilities and libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                break  # the kernel has no capability with this number
        os.setgroups([])
    _call(libc.prctl, _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    mask = sum(1 << capability for capability in capabilities)
    # capset(2) takes _LINUX_CAPABILITY_VERSION_3 and the effective, permitted and inheritable sets: first the low 32
    # bits of each set, then the high 32 bits.
    header, low, high = (ctypes.c_uint32 * 2)(0x20080522, 0), mask & 0xFFFFFFFF, mask >> 32
    _call(libc.capset, header, (ctypes.c_uint32 * 6)(low, low, low, high, high, high))
    _call(libc.prctl, _PR_CAP_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    for capability in capabilities:
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
    """Allow renames and links between all folders, so that the Landlock domain does not restrict file access."""
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        # struct landlock_path_beneath_attr, packed: allowed_access (64 bits), parent_fd (32 bits).
        beneath = ctypes.create_string_buffer(struct.pack("=Qi", _REFER, root), 12)
        _call(libc.syscall, _LANDLOCK_ALLOW, rules, _PATH_BENEATH, beneath, 0)
    finally:
        os.close(root)


def enter_mount_namespace(folders: dict[str, list[str]], home: str, overlay: str) -> None:
    """Enter a mount namespace with a mostly read-only file system.

    Args:
        folders: Paths by kind. "writable": folders that the program may write to. "covered": temporary folders in
            which the program's changes are private. "protected": subfolders of writable folders that remain read-only.
            "private": writable folders that only this program uses. "hidden": folders and sockets that appear empty.
        home: A folder in which overlayfs redirects changes to ``overlay``, or an empty string.
        overlay: A folder with the subfolders ``changes``, ``work``, ``empty`` and ``temporary``.

    Raises:
        OSError: The kernel does not permit the namespaces or mounts.
    """
    _enter_user_namespace()
    _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE)
    writable, covered, protected, private, hidden = map(folders.__getitem__, KINDS)
    descriptors = _open_folders((*writable, *protected, *private, overlay))  # open them before mounts hide them
    _cover(covered, f"{overlay}/temporary")
    unlocked = [*_cover_shared_memory(covered), *writable, *covered, *private]
    for path in (*writable, *protected, overlay):
        if path in descriptors and path != _SHARED_MEMORY:
            with contextlib.suppress(FileNotFoundError):
                _bind(descriptors[path], path)
    if home:
        _mount_overlay(home, overlay)
        unlocked.append(home)
    for path in private:
        _bind(descriptors[path], path)
    for path in hidden:
        empty = f"{overlay}/empty" if os.path.isdir(path) else "/dev/null"  # noqa: PTH112
        _mount(_encode(empty), _encode(path), None, _MS_BIND)
    _lock_all_but(unlocked, optional=writable)
    for descriptor in descriptors.values():
        os.close(descriptor)


def enter_temporary_namespace(covered: list[str], shared: list[str], staging: str, home: str) -> None:
    """Enter mount and IPC namespaces in which changes to temporary folders are private. Requires root.

    Args:
        covered: Temporary folders. Their content stays visible, but the program's changes are private.
        shared: Folders below ``covered`` in which changes are visible to all programs.
        staging: An empty folder, where the tmpfs that receives the changes is mounted.
        home: The program's home, which also appears as ``STABLE_HOME``.

    Raises:
        OSError: The kernel does not permit the namespaces or mounts.
    """
    _call(libc.unshare, _CLONE_NEWNS | _CLONE_NEWIPC)
    _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE)
    folders = _open_folders((*shared, home))
    _cover(covered, staging)
    _cover_shared_memory(covered)
    if home in folders and os.path.dirname(STABLE_HOME) in covered:  # noqa: PTH120
        if os.path.islink(STABLE_HOME) or os.path.isfile(STABLE_HOME):  # noqa: PTH113, PTH114
            os.unlink(STABLE_HOME)  # noqa: PTH108 - only the overlay changes
        os.makedirs(STABLE_HOME, exist_ok=True)  # noqa: PTH103
        _bind(folders[home], STABLE_HOME)
    for path, folder in folders.items():
        _bind(folder, path)
        os.close(folder)


def replace_folder(place: str, content: str, without: str) -> None:
    """Mount ``content`` over ``place`` in this mount namespace, but keep the entries of ``place`` visible.

    Args:
        place: The folder to mount over.
        content: The folder to mount, in which the program creates its socket. It must not be in an overlay, because
            clients outside the namespace connect to the socket.
        without: Path of the socket, relative to ``content``. If ``place`` has an entry with the same name as the first
            component of this path, hide that entry.

    Raises:
        OSError: The kernel does not permit the mounts.
    """
    os.makedirs(_encode(place), exist_ok=True)  # noqa: PTH103 - may be missing, because /dev/shm is empty here
    target, flags = _encode(place), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    former, folder = os.open(target, flags), os.open(_encode(content), flags)
    below = b"/proc/self/fd/%d" % former
    names = [name for name in os.listdir(below) if name != _encode(without).partition(b"/")[0]]  # noqa: PTH208
    _bind(folder, place)
    for name in names:
        source, shown = b"%s/%s" % (below, name), b"%s/%s" % (target, name)
        with contextlib.suppress(OSError):  # the entry was removed, or a program has created an entry with this name
            mode = os.lstat(source).st_mode
            if stat.S_ISLNK(mode):
                os.symlink(os.readlink(source), shown)  # noqa: PTH115, PTH211
                continue
            with contextlib.suppress(FileExistsError):  # an earlier program created this mount point in ``content``
                if stat.S_ISDIR(mode):
                    os.mkdir(shown)  # noqa: PTH102
                else:
                    os.close(os.open(shown, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            _mount(source, shown, None, _MS_BIND | _MS_REC)
    for descriptor in (former, folder):
        os.close(descriptor)


def _cover_shared_memory(covered: Sequence[str]) -> list[str]:
    """Mount an empty tmpfs over /dev/shm, unless it is missing or in ``covered``. Return the mounted folders."""
    if _SHARED_MEMORY in covered or not os.path.isdir(_SHARED_MEMORY):  # noqa: PTH112
        return []
    _mount(b"tmpfs", _SHARED_MEMORY.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=1777")
    return [_SHARED_MEMORY]


def _cover(paths: Sequence[str], staging: str) -> None:
    """Mount an overlay over each temporary folder, so that changes stay in memory. Sockets remain usable."""
    if not paths:
        return
    _mount(b"tmpfs", _encode(staging), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=0755,size=25%")
    memory = os.open(_encode(staging), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)  # an overlay may hide the path
    for number, path in enumerate(paths):
        sockets = dict[str, int]()
        for socket_path in _sockets(path):
            with contextlib.suppress(OSError):  # the socket's program may have exited
                sockets[socket_path] = os.open(socket_path, os.O_PATH | os.O_CLOEXEC)
        upper, work = f"/proc/self/fd/{memory}/upper{number}", f"/proc/self/fd/{memory}/work{number}"
        for folder in (upper, work):
            os.mkdir(folder)  # noqa: PTH102
        os.chmod(upper, 0o1777)  # noqa: PTH101, S103 - as in /tmp
        options = ",".join((f"lowerdir={path}", f"upperdir={upper}", f"workdir={work}", "userxattr"))
        _mount(b"overlay", _encode(path), b"overlay", _MS_NOSUID | _MS_NODEV, _encode(options))
        for socket_path, descriptor in sockets.items():  # the overlay made the sockets unusable, so mount the originals
            with contextlib.suppress(FileNotFoundError):
                _bind(descriptor, socket_path)
            os.close(descriptor)
    os.close(memory)


def _sockets(folder: str) -> list[str]:
    """Return the Unix sockets in a folder and in the subfolders that all users may open.

    Private subfolders are omitted, because their sockets (for example ssh-agent's) give access to the user's programs.
    """
    paths = []
    for place in (folder, *(each.path for each in _entries(folder) if _is_open_folder(each))):
        for each in _entries(place):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(each.stat(follow_symlinks=False).st_mode):
                    paths.append(each.path)
    return paths[:200]


def _is_open_folder(entry: "os.DirEntry[str]") -> bool:
    with contextlib.suppress(OSError):
        return entry.is_dir(follow_symlinks=False) and bool(entry.stat(follow_symlinks=False).st_mode & stat.S_IXOTH)
    return False


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _enter_user_namespace() -> None:
    """Enter new user, mount and IPC namespaces. The process keeps its uid and gid."""
    uid, gid = os.geteuid(), os.getegid()
    _call(libc.unshare, _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWIPC)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(text)


def _open_folders(paths: Iterable[str]) -> dict[str, int]:
    """Open the folders and return descriptors by path. Skip folders that another tfb process has removed."""
    folders: dict[str, int] = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            folders[path] = os.open(_encode(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return folders


def _bind(folder: int, path: str) -> None:
    """Bind-mount an open folder or socket at ``path``. The new mount can be made read-only or writable separately.

    The descriptor remains valid even if an overlay hides the original path.
    """
    if path.startswith(f"{_SHARED_MEMORY}/") and not os.path.lexists(path):
        os.makedirs(_encode(path), exist_ok=True)  # noqa: PTH103
    _mount(b"/proc/self/fd/%d" % folder, _encode(path), None, _MS_BIND | _MS_REC)


def _mount_overlay(home: str, overlay: str) -> None:
    lower, upper = _encode(home), _encode(overlay)
    options = b"lowerdir=%s,upperdir=%s/changes,workdir=%s/work,userxattr" % (lower, upper, upper)
    _mount(b"overlay", lower, b"overlay", 0, options)


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    _call(libc.mount, source, target, kind, ctypes.c_ulong(flags), options)


def _lock_all_but(paths: Sequence[str], *, optional: Sequence[str]) -> None:
    """Make all mounts read-only except ``paths``. Do not fail if a path in ``optional`` cannot be made writable."""
    _set_read_only("/", True)
    for path in paths:
        try:
            _set_read_only(path, False)
        except OSError:
            if path not in optional:
                raise


def _set_read_only(path: str, on: bool) -> None:
    """If ``on``, make a mount and all mounts below it read-only. Otherwise, make a single mount writable."""
    attributes = (ctypes.c_uint64 * 4)(_RDONLY if on else 0, 0 if on else _RDONLY, 0, 0)  # struct mount_attr
    size = ctypes.sizeof(attributes)
    _call(libc.syscall, _MOUNT_SETATTR, _AT_FDCWD, _encode(path), _AT_RECURSIVE if on else 0, attributes, size)


def _call(function: Any, *arguments: object) -> None:  # noqa: ANN401 - a function of libc
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _encode(text: str) -> bytes:
    """Return the bytes of a string from a spawn request, in which each character represents a byte."""
    return text.encode("latin-1")
