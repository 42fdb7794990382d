"""Explains which tools are missing, and how to install them."""

import re
import shutil
from functools import cache

from harness.errors import TfbError
from harness.host import process
from harness.plain_text import printable
from harness.provisioning import toolchain

DOWNLOAD_PAGES = {  # for tools that distributions lack or package only in old versions
    "bun": "https://bun.sh",
    "cargo": "https://rustup.rs",
    "crystal": "https://crystal-lang.org/install",
    "dart": "https://dart.dev/get-dart",
    "deno": "https://deno.com",
    "dotnet": "https://dotnet.microsoft.com/download",
    "elixir": "https://elixir-lang.org/install.html",
    "erl": "https://www.erlang.org/downloads",
    "ghc": "https://www.haskell.org/ghcup",
    "gleam": "https://gleam.run/getting-started/installing",
    "go": "https://go.dev/dl",
    "gradle": "https://gradle.org/install",
    "h2load": "https://nghttp2.org",
    "java": "https://adoptium.net",
    "julia": "https://julialang.org/downloads",
    "kotlin": "https://kotlinlang.org",
    "maven": "https://maven.apache.org/download.cgi",
    "mix": "https://elixir-lang.org/install.html",
    "nim": "https://nim-lang.org/install.html",
    "node": "https://nodejs.org",
    "npm": "https://nodejs.org",
    "php": "https://www.php.net/downloads",
    "pnpm": "https://pnpm.io/installation",
    "postgres": "https://www.postgresql.org/download",
    "python3": "https://www.python.org/downloads",
    "ruby": "https://www.ruby-lang.org/en/downloads",
    "rustc": "https://rustup.rs",
    "sbt": "https://www.scala-sbt.org/download",
    "swift": "https://www.swift.org/install",
    "wrk": "https://github.com/wg/wrk",
    "yarn": "https://yarnpkg.com/getting-started/install",
    "zig": "https://ziglang.org/download",
}


def describe_missing(kind: str, condition: str) -> str:
    """Describe the required version, the installed version and the remedy. Omit the final full stop."""
    return f"{describe_requirement(kind, condition)}: {describe_installed(kind)}; {suggest_remedy(kind, condition)}"


def describe_requirement(kind: str, condition: str) -> str:
    """Return the tool and the required version, for example ``go >=1.25``. Omit the version if any version fits."""
    return kind if condition == ">=0" else f"{kind} {condition}"


def describe_installed(kind: str) -> str:
    """Return the newest installed version and the program's path, or ``not found on PATH``."""
    tool = toolchain.find_tool(kind)
    if tool:
        return f"found {tool}"
    program = toolchain.PROGRAM_NAMES.get(kind, kind)
    path = shutil.which(program)
    if path and kind == "java":
        return f"found only {path}, without javac, but a JDK is required"
    return f"found {path}, which prints no version" if path else "not found on PATH"


def suggest_remedy(kind: str, condition: str) -> str:
    """Return the command that installs a tool, or the download page if apt has no suitable version."""
    names = toolchain.debian_packages(kind, condition)
    if not names:
        return f"no Debian package can have this name: install the tool from {download_page(kind)}"
    if shutil.which("apt-get") is None:
        return f"install it with this system's package manager, or from {download_page(kind)}"
    if available_from_apt(kind, condition):
        return f"install it: apt-get install {' '.join(names)}"
    versions = [(name, version) for name in names if (version := apt_version(name))]
    reason = f"apt has only {versions[0][0]} {versions[0][1]}" if versions else f"apt has no package {' '.join(names)}"
    return f"{reason}: install it from {download_page(kind)}"


def available_from_apt(kind: str, condition: str) -> bool:
    """Return whether apt has all of a tool's packages, with a suitable version of the first package."""
    names = toolchain.debian_packages(kind, condition)
    versions = [apt_version(name) for name in names]
    if not names or None in versions:
        return False
    numbers = parse_upstream_version(str(versions[0]))
    return numbers is not None and toolchain.satisfies(numbers, condition)


def download_page(kind: str) -> str:
    """Return where to download a tool: a web address, or advice if tfb knows none."""
    return DOWNLOAD_PAGES.get(kind, f"the project's site, and add {toolchain.PROGRAM_NAMES.get(kind, kind)} to PATH")


@cache
def apt_version(package: str) -> str | None:
    """Return the version that apt would install, or None if no package has exactly this name."""
    try:
        policy = process.run(["apt-cache", "policy", "--", package], seconds=60).stdout
    except TfbError:
        return None
    match = re.search(rf"^{re.escape(package)}:\n(?:  .*\n)*?  Candidate: (\S+)$", policy, re.MULTILINE)
    return printable(match[1]) if match and match[1] != "(none)" else None


def parse_upstream_version(version: str) -> tuple[int, ...] | None:
    """Parse the upstream part of a Debian version. For example, ``2:1.19~1`` is 1.19 and ``15+248`` is 15."""
    match = re.match(r"(?:\d+:)?(\d{1,9}(?:\.\d{1,9})*)", version)
    return tuple(map(int, match[1].split("."))) if match else None
