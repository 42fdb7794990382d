"""Replaces a Unix socket's folder, for example /run, with a private folder for each side.

The replacement applies to sockets with an absolute path, which the sides would otherwise share. tfb connects through
the private folder. The sides need private mount namespaces (see ``isolation``).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from harness.errors import UsageError
from harness.extras.gate.runtime import Services
from harness.host.process import Account, ReplacedFolder

UNIX = "unix:"
SHARED = (
    "service.listen: {listen}: the sides would share this socket, because tfb cannot give each side a separate view of "
    "{folder} on this machine. Sockets outside the service's folder require private mount namespaces. Run tfb as root, "
    'or let the service listen in its folder: listen = "unix:app.sock"'
)
NO_FOLDER = (
    "service.listen: {listen}: tfb cannot replace the folder / for each side. The socket must be in or below a folder "
    "that exists, for example /run. Create the socket's folder, or use another folder"
)


@dataclass(frozen=True, kw_only=True)
class SocketFolder:
    """A private folder ``own`` that a side's programs see at ``place``. ``name`` is the socket's path in the folder."""

    listen: str
    own: Path
    place: Path
    name: str


def socket_folders(services: Services, place: Path) -> Mapping[str, SocketFolder]:
    """Choose a private folder below ``place`` for each side whose Unix socket has an absolute path.

    Raises UsageError if a socket's folder cannot be replaced.
    """
    found = {}
    for side, (service, _) in services.items():
        if not service.listen:
            continue
        path = Path(service.listen.removeprefix(UNIX))
        if path.is_absolute():
            existing = next(each for each in path.parents if os.path.isdir(each))  # noqa: PTH112 - Path.is_dir raises PermissionError
            found[side] = SocketFolder(
                listen=service.listen, own=place / side, place=existing.resolve(), name=str(path.relative_to(existing))
            )
            if found[side].place == Path("/"):
                raise UsageError(NO_FOLDER.format(listen=service.listen))
    return found


def show_sockets(sockets: Mapping[str, SocketFolder], accounts: Mapping[str, Account]) -> Mapping[str, Account]:
    """Create the private folders. Return all accounts, changed so that a side's programs see the side's private folder.

    Raises UsageError for a side without a private mount namespace.
    """
    shown = dict(accounts)
    for side, folder in sockets.items():
        account = accounts.get(side)
        if account is None or not (account.enclosure or account.temporary):
            raise UsageError(SHARED.format(listen=folder.listen, folder=folder.place))
        folder.own.parent.mkdir(mode=0o700, exist_ok=True)  # only tfb may enter this folder
        parents = [folder.own, *(folder.own / each for each in reversed(PurePath(folder.name).parents[:-1]))]
        for each in parents:
            each.mkdir()
            os.chown(each, account.uid, account.gid)
        if enclosure := account.enclosure:
            account = replace(account, enclosure=replace(enclosure, private=(*enclosure.private, folder.own)))
        content = ReplacedFolder(place=folder.place, content=folder.own, without=folder.name)
        shown[side] = replace(account, replaced=content)
    return shown
