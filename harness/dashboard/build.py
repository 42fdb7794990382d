"""Builds the dashboard page with Vite if sources have changed. Uses a container if Node.js is missing or too old."""

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from harness.errors import BuildError, EnvironmentLacksError, TfbError
from harness.host.clock import heartbeat
from harness.host.git import Repository
from harness.host.process import run
from harness.paths import DOCKER, REPOSITORY
from harness.plain_text import printable
from harness.provisioning import advice, toolchain
from harness.provisioning.crates import source_digest
from harness.units import format_elapsed

WEB = Path(__file__).resolve().parent / "web"
MIN_NODE = (20, 19)
SOURCES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", ".npmrc", "src/**/*")
STAMP = "sources.sha256"  # file in dist/ with a digest of the sources from which the page was built
# The URL of a git remote, in any form that GitHub and similar hosts accept.
REMOTE_URL = re.compile(
    r"(?:https?://(?:[^@/]*@)?|ssh://git@|git@)(?P<host>[\w.-]+(?::\d+)?)[:/](?P<path>[\w./~-]+?)(?:\.git)?/?"
)


def ensure_built(web: Path = WEB) -> Path:
    """Build the page if necessary. Return the folder that contains index.html and assets/.

    Raises EnvironmentLacksError if neither Node.js nor Docker is available. Raises BuildError, with the end of the
    output, if a build command fails.
    """
    dist = web / "dist"
    if is_built(web):
        return dist
    digest = source_digest(web, SOURCES)
    commands = build_commands(web)
    _log(f"building the dashboard page, which takes one to two minutes ({'; '.join(map(shlex.join, commands))})")
    for command in commands:
        with heartbeat(partial(_report_progress, command), interval=10.0):
            done = run(command, seconds=600, cwd=web)
        if done.status != 0:
            end = "\n".join(done.stdout.splitlines()[-40:])
            raise BuildError(
                f"cannot build the dashboard page: {shlex.join(command)} exited with {done.status}:\n{end}"
            )
    (dist / STAMP).write_text(digest + "\n", encoding="ascii")
    return dist


def is_built(web: Path = WEB) -> bool:
    """Return whether the page has been built from the current sources."""
    stamp = web / "dist" / STAMP
    return stamp.is_file() and stamp.read_text(encoding="ascii").strip() == source_digest(web, SOURCES)


def _report_progress(command: Sequence[str], seconds: float) -> None:
    _log(f"{shlex.join(command)}: {format_elapsed(seconds)}")


def _log(text: str) -> None:
    print(f"tfb: {printable(text)}", file=sys.stderr, flush=True)


def build_commands(web: Path) -> list[list[str]]:
    """Return the build commands. They use Docker if this machine has no suitable Node.js.

    Raises EnvironmentLacksError if neither is available.
    """
    if npm_is_new_enough():
        # npm writes this copy of the lock file after an installation. If the copy is up to date, skip the installation.
        lock, installed = web / "package-lock.json", web / "node_modules" / ".package-lock.json"
        fresh = installed.is_file() and installed.stat().st_mtime >= lock.stat().st_mtime
        return [*([] if fresh else [["npm", "ci", "--no-fund", "--no-audit"]]), ["npm", "run", "build"]]
    if shutil.which("docker"):
        dockerfile, dist = str(DOCKER / "dashboard.dockerfile"), str(web / "dist")
        build = ["docker", "build", "--file", dockerfile, "--output", dist, str(web)]
        return [[str(DOCKER / "bootstrap-base")], build]
    version = ".".join(map(str, MIN_NODE))
    lacks_npm = shutil.which("npm") is None and toolchain.find_tool("node", f">={version}")
    missing = advice.describe_missing("npm", ">=0") if lacks_npm else advice.describe_missing("node", f">={version}")
    raise EnvironmentLacksError(
        f"cannot build the dashboard page, which needs Node.js {version} or newer with npm, or Docker: {missing}"
    )


def npm_is_new_enough() -> bool:
    """Return whether npm and a Node.js version supported by Vite are installed."""
    if not (shutil.which("npm") and shutil.which("node")):
        return False
    version = run(["node", "--version"], seconds=30).stdout.strip().lstrip("v").split(".")
    return len(version) >= 2 and version[0].isdigit() and tuple(map(int, version[:2])) >= MIN_NODE


@cache
def source_base() -> str | None:
    """Return the web address of the git remote ``origin``, such as ``https://host/owner/name``, or None if unknown."""
    try:
        done = Repository.containing(REPOSITORY).run("remote", "get-url", "origin", seconds=5)
    except TfbError:
        return None
    return web_address(done.text.strip()) if done.status == 0 else None


def web_address(remote: str) -> str | None:
    """Convert a git remote's URL to a web address without credentials. Return None if this is not possible."""
    match = REMOTE_URL.fullmatch(remote)
    return f"https://{match['host']}/{match['path']}" if match else None
