"""Finds the tools that a run needs, by the version that each prints; and names the packages of what is missing."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from glob import glob
from pathlib import Path

from harness.errors import TfbError
from harness.host import accounts, process
from harness.host import environment as environments

JVM_FOLDERS = ("/usr/lib/jvm", "/opt/java", "/opt/jdk", "/usr/java")
POSTGRES_FOLDERS = ("/usr/lib/postgresql", "/usr/pgsql")
VERSION_FORMS = ("--version", "version", "-V", "-version")  # how programs are asked for their version, commonest first
PROGRAMS = {"maven": "mvn"}  # where the name of a tool is not that of its program
# The Debian packages that bring a tool whose name is not theirs; whether the distribution has them is apt's to say.
PACKAGES = {
    "java": ("openjdk-{}-jdk-headless",),
    "node": ("nodejs", "npm"),
    "go": ("golang-go",),
    "python3": ("python3", "python3-venv"),
    "postgres": ("postgresql",),
    "php": ("php-cli",),
    "sshd": ("openssh-server",),
    "ip": ("iproute2",),
    "g++": ("g++",),
    "clang++": ("clang",),
}
# Debian's grammar of a package name. What apt reads otherwise is refused: ``curl-`` removes a package, ``curl+``
# installs one, a name with a dot that no package has is a regular expression.
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9]")
# Programs whose version may be asked for before anybody has consented to run what a configuration names. Others are
# only looked for until then.
KNOWN = frozenset(
    (
        *("bun", "bundle", "bundler", "c++", "cabal", "cargo", "cc", "clang", "clang++", "clojure", "cmake"),
        *("composer", "crystal", "curl", "dart", "deno", "dmd", "docker", "dotnet", "dub", "dune", "elixir"),
        *("erl", "fpc", "g++", "gcc", "gem", "gfortran", "ghc", "git", "gleam", "go", "gradle", "groovy"),
        *("ip", "java", "javac", "julia", "kotlin", "kotlinc", "ldc2", "lein", "lua", "luajit", "luarocks"),
        *("make", "meson", "mix", "mono", "mvn", "nasm", "nginx", "nim", "nimble", "ninja", "node", "npm"),
        *("npx", "ocaml", "opam", "openresty", "perf", "perl", "php", "pip", "pip3", "pnpm", "postgres"),
        *("psql", "python", "python3", "racket", "rebar3", "ruby", "rustc", "sbcl", "sbt", "scala", "sshd"),
        *("stack", "swift", "unzip", "uv", "wget", "wrk", "yarn", "zig"),
    )
)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool as found: its version, its main program and the folders that come first on PATH with it."""

    kind: str
    version: tuple[int, ...]  # empty: the program has not been run
    program: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def bin(self) -> Path:
        """The folder of its programs."""
        return self.program.parent

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.version)) or 'version not asked for'} ({self.program})"


def satisfies(version: tuple[int, ...], condition: str) -> bool:
    """Return whether a version meets ``>=21`` or ``==17``, compared to as many parts as the condition names.

    An unknown version does: the condition is checked again when the program may be run.
    """
    if not version:
        return True
    operator, wanted = condition[:2], tuple(int(part) for part in condition[2:].split("."))
    have = (version + (0,) * len(wanted))[: len(wanted)]
    return have >= wanted if operator == ">=" else have == wanted


def find(kind: str, condition: str = ">=0", *, consented: bool = False) -> Tool | None:
    """Return the newest tool of a kind that satisfies the condition; ``consented``: any program may be run for that."""
    tools = found(kind, consented=consented or PROGRAMS.get(kind, kind) in KNOWN)
    fits = (tool for tool in tools if satisfies(tool.version, condition))
    return max(fits, key=lambda tool: tool.version, default=None)


@cache
def found(kind: str, *, consented: bool) -> tuple[Tool, ...]:
    """Return all tools of a kind on this machine, with their versions if their programs may be run."""
    if kind in FINDERS:
        return tuple(FINDERS[kind]())
    return tuple(_on_path(kind) if consented else _not_run(kind))


def forget() -> None:
    """Look anew: something has been installed."""
    found.cache_clear()


def environment(tools: Iterable[Tool], base: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with these tools first on its PATH."""
    chosen = list(tools)
    path = os.pathsep.join([*(str(tool.bin) for tool in chosen), base.get("PATH", os.defpath)])
    extra = {key: value for tool in chosen for key, value in tool.env.items()}
    return {**base, **extra, "PATH": path}


def packages(kind: str, condition: str) -> tuple[str, ...]:
    """Return the Debian packages that bring a tool; none if its name is not that of a package."""
    wanted = condition[2:].split(".")[0]
    if kind in PACKAGES:
        return tuple(name.format(wanted) for name in PACKAGES[kind])
    return (kind,) if PACKAGE.fullmatch(kind) else ()


def version_in(text: str, name: str = "") -> tuple[int, ...] | None:
    """The version in what a program printed.

    The first dotted number after the tool's own name, else the first dotted one, else the first: ``Erlang/OTP 27
    Elixir 1.18.2`` is 1.18.2 of elixir, ``This is perl 5, version 36 (v5.36.0)`` is 5.36.0 of perl.
    """
    named = rf"(?<![\w.]){re.escape(name)}(?![a-z]).*?(\d+(?:\.\d+)+)"
    dotted = r"(\d+(?:\.\d+)+)"
    match = (name and re.search(named, text, re.IGNORECASE)) or re.search(dotted, text) or re.search(r"(\d+)", text)
    # No version has a number of more digits.
    return tuple(int(part[:9]) for part in match[1].split(".")) if match else None


def _asked(program: Path | str, form: str) -> process.Completed | None:
    """Return what a program prints that is asked for its version; None if it does not end or cannot be run.

    It gets no secrets, and no files of the current folder: rustup and pyenv would run what such files name.
    """
    try:
        # A version that starts a JVM on a busy machine.
        return process.run(
            [str(program), form], seconds=20.0, cwd=Path("/"), env=environments.for_builds(), account=_account(program)
        )
    except TfbError:
        return None


def _account(program: Path | str) -> process.Account | None:
    """Return the account for a program that only a configuration names: no one's if tfb is root."""
    if os.geteuid() != 0 or Path(program).name in KNOWN or accounts.obstacle():
        return None
    number = accounts.group()
    return process.Account(name="no one", uid=number, gid=number, rights=(accounts.READS,))


def _version_of(program: Path | str) -> tuple[int, ...] | None:
    answer = _asked(program, "--version")
    return version_in(answer.stdout) if answer else None


def _not_run(kind: str) -> Iterator[Tool]:
    """Yield the program on PATH, without running it."""
    if path := shutil.which(PROGRAMS.get(kind, kind)):
        yield Tool(kind=kind, version=(), program=Path(path))


def _on_path(kind: str) -> Iterator[Tool]:
    """The program on PATH, asked in the usual forms; a form that it refuses (by its exit status) says nothing."""
    program = PROGRAMS.get(kind, kind)
    path = shutil.which(program)
    for form in VERSION_FORMS if path else ():
        answer = _asked(str(path), form)
        if answer is None:
            return  # it took the word for something else and runs on: not asked again
        version = version_in(answer.stdout, program)
        if version and (answer.status == 0 or kind == "wrk"):  # which prints a usage, too, with exit status 1
            yield Tool(kind=kind, version=version, program=Path(str(path)))
            return


def _jdks() -> Iterator[Tool]:
    """JDKs (with a compiler) from JAVA_HOME, PATH and the usual folders."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if javac := shutil.which("javac"):
        homes.append(Path(javac).resolve().parent.parent)
    homes += [home for folder in JVM_FOLDERS for home in sorted(Path(folder).glob("*"))]
    homes += map(Path, sorted(glob(os.path.expanduser("~/.sdkman/candidates/java/*"))))  # noqa: PTH111, PTH207
    known = {home.resolve(): home for home in reversed(homes) if os.access(home / "bin/javac", os.X_OK)}
    for home in known.values():
        with suppress(OSError):  # the file ``release`` tells it without a start of a JVM
            text = (home / "release").read_text(encoding="utf-8", errors="replace")
            match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
            if version := version_in(match[1] if match else ""):
                yield Tool(kind="java", version=version, program=home / "bin/java", env={"JAVA_HOME": str(home)})


def _postgres() -> Iterator[Tool]:
    """PostgreSQL installations that can make and run a server: both ``initdb`` and ``postgres``."""
    folders = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
    for base in POSTGRES_FOLDERS:
        folders += sorted(Path(base).glob("*/bin"))
    programs = [folder / "postgres" for folder in folders if os.access(folder / "initdb", os.X_OK)]
    for program in dict.fromkeys(path.resolve() for path in programs if os.access(path, os.X_OK)):
        if version := _version_of(program):
            yield Tool(kind="postgres", version=version, program=program)


def _chromium() -> Iterator[Tool]:
    """Chromium or Chrome: the one that TFB_CHROMIUM names, one of the system, or one that Playwright has fetched."""
    named = os.environ.get("TFB_CHROMIUM", "")
    fetched = glob(os.path.expanduser("~/.cache/ms-playwright/chromium-*/chrome-linux*/chrome"))  # noqa: PTH111, PTH207
    for name in (named, "chromium", "chromium-browser", "google-chrome", *fetched):
        path = shutil.which(name)
        version = _version_of(path) if path else None
        if path and version:  # Ubuntu's chromium-browser without a snap prints an advice and no version
            yield Tool(kind="chromium", version=version, program=Path(path), env={"TFB_CHROMIUM": path})
            return


FINDERS: dict[str, Callable[[], Iterator[Tool]]] = {
    "chromium": _chromium,
    "java": _jdks,
    "postgres": _postgres,
}
