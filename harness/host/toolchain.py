"""Finds the tools that a run needs: JDKs, Maven, Node, PostgreSQL's server, wrk; and names what is missing."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from harness.host import process

JVM_FOLDERS = ("/usr/lib/jvm", "/opt/java", "/opt/jdk", "/usr/java", "/Library/Java/JavaVirtualMachines")
POSTGRES_FOLDERS = ("/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt", "/usr/local/opt")


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool as found: its version, its main program and the folders that come first on PATH with it."""

    kind: str
    version: tuple[int, ...]
    program: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def bin(self) -> Path:
        """The folder of its programs."""
        return self.program.parent

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.version))} ({self.program})"


def satisfies(version: tuple[int, ...], condition: str) -> bool:
    """Whether a version meets ``>=21`` or ``==17``; compared to as many parts as the condition names."""
    operator, wanted = condition[:2], tuple(int(part) for part in condition[2:].split("."))
    have = (version + (0,) * len(wanted))[: len(wanted)]
    return have >= wanted if operator == ">=" else have == wanted


def find(kind: str, condition: str = ">=0") -> Tool | None:
    """The newest tool of a kind that satisfies the condition."""
    fitting = [tool for tool in found(kind) if satisfies(tool.version, condition)]
    return max(fitting, key=lambda tool: tool.version, default=None)


@cache
def found(kind: str) -> tuple[Tool, ...]:
    """All tools of a kind on this machine."""
    finder = FINDERS.get(kind, lambda: _on_path(kind, kind, "--version"))
    return tuple(finder())


def forget() -> None:
    """Look anew: something has been installed."""
    found.cache_clear()


def environment(tools: Iterable[Tool]) -> dict[str, str]:
    """The environment in which these tools come first."""
    chosen = list(tools)
    path = os.pathsep.join([*(str(tool.bin) for tool in chosen), os.environ.get("PATH", "")])
    extra = {key: value for tool in chosen for key, value in tool.env.items()}
    return {**os.environ, **extra, "PATH": path}


def _version(text: str) -> tuple[int, ...] | None:
    """The first dotted number of a text; Java's old ``1.8`` counts as 8."""
    match = re.search(r"(\d+(?:\.\d+)*)", re.sub(r"\x1b\[[\d;]*m", "", text))  # Maven colours its version
    if not match:
        return None
    parts = tuple(int(part) for part in match[1].split("."))
    return parts[1:] if parts[0] == 1 and len(parts) > 1 and parts[1] >= 5 else parts


def _on_path(kind: str, program: str, *arguments: str) -> list[Tool]:
    path = shutil.which(program)
    if path is None:
        return []
    output = process.run([path, *arguments], seconds=20).stdout
    version = _version(output)
    return [Tool(kind=kind, version=version, program=Path(path))] if version else []


def _jdks() -> list[Tool]:
    """JDKs (with a compiler) from JAVA_HOME, PATH and the usual folders."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if javac := shutil.which("javac"):
        homes.append(Path(javac).resolve().parent.parent)
    for folder in (*JVM_FOLDERS, str(Path.home() / ".sdkman/candidates/java")):
        for home in sorted(Path(folder).glob("*")):
            homes += [home, home / "Contents/Home"]
    jdks = {}
    for home in homes:
        if (home / "bin/javac").exists() and (version := _jdk_version(home)):
            jdks[home.resolve()] = Tool(
                kind="java", version=version, program=home / "bin/java", env={"JAVA_HOME": str(home)}
            )
    return list(jdks.values())


def _jdk_version(home: Path) -> tuple[int, ...] | None:
    """From the JDK's ``release`` file, which needs no start of a JVM."""
    try:
        match = re.search(r'^JAVA_VERSION="([^"]+)"', (home / "release").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return _version(match[1] if match else process.run([str(home / "bin/java"), "-version"], seconds=20).stdout)


def _postgres() -> list[Tool]:
    """PostgreSQL installations that can make and run a server: both ``initdb`` and ``postgres``."""
    folders = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
    for base in POSTGRES_FOLDERS:
        folders += sorted(Path(base).glob("*/bin"))
    tools = {}
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            version = _version(process.run([str(folder / "postgres"), "--version"], seconds=20).stdout)
            if version:
                program = (folder / "postgres").resolve()
                tools[program] = Tool(kind="postgres", version=version, program=program)
    return list(tools.values())


def _wrk() -> list[Tool]:
    """Wrk prints its version, and a usage, with exit status 1."""
    path = shutil.which("wrk")
    if path is None:
        return []
    version = _version(process.run([path, "--version"], seconds=20).stdout.replace("wrk debian/", "wrk "))
    return [Tool(kind="wrk", version=version or (0,), program=Path(path))]


def _chromium() -> list[Tool]:
    """Chromium or Chrome: the one that TFB_CHROMIUM names, one of the system, or one that Playwright has fetched."""
    named = [os.environ["TFB_CHROMIUM"]] if os.environ.get("TFB_CHROMIUM") else []
    fetched = sorted((Path.home() / ".cache/ms-playwright").glob("chromium-*/chrome-linux*/chrome"))
    for name in (*named, "chromium", "chromium-browser", "google-chrome", *map(str, fetched)):
        path = shutil.which(name)
        version = _version(process.run([path, "--version"], seconds=20).stdout) if path else None
        if path and version:  # Ubuntu's chromium-browser without a snap prints an advice and no version
            return [Tool(kind="chromium", version=version, program=Path(path), env={"TFB_CHROMIUM": path})]
    return []


FINDERS: dict[str, Callable[[], list[Tool]]] = {
    "chromium": _chromium,
    "java": _jdks,
    "maven": lambda: _on_path("maven", "mvn", "--version"),
    "node": lambda: _on_path("node", "node", "--version"),
    "npm": lambda: _on_path("npm", "npm", "--version"),
    "postgres": _postgres,
    "wrk": _wrk,
}


def packages(kind: str, condition: str) -> tuple[str, ...]:
    """The Debian packages that bring a tool; whether the distribution has them is apt's to say."""
    wanted = condition[2:].split(".")[0]
    match kind:
        case "java":
            return (f"openjdk-{wanted}-jdk-headless",)
        case "node":
            return ("nodejs", "npm")
        case "postgres":
            return ("postgresql",)
        case _:
            return (kind,)
