"""The web address of this repository's source, for links from an implementation to its folder."""

import re
from pathlib import Path

from harness.errors import TfbError
from harness.host.process import run
from harness.paths import REPOSITORY as ROOT

REMOTE = re.compile(
    r"(?:https?://(?:[^@/]*@)?|ssh://git@|git@)(?P<host>[\w.-]+(?::\d+)?)[:/](?P<path>[\w./~-]+?)(?:\.git)?/?"
)


def source_base(root: Path = ROOT) -> str | None:
    """``https://host/owner/name`` of the remote ``origin``, or None."""
    try:
        done = run(["git", "-C", str(root), "remote", "get-url", "origin"], seconds=5)
    except TfbError:
        return None
    return web_address(done.stdout.strip()) if done.status == 0 else None


def web_address(remote: str) -> str | None:
    """The web address of a git remote; credentials in it are dropped."""
    match = REMOTE.fullmatch(remote)
    return f"https://{match['host']}/{match['path']}" if match else None
