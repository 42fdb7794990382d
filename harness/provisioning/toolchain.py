"""Finds installed tools, their versions, and the Debian packages that provide them."""

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
PHP_FPM_FOLDERS = ("/usr/sbin",)
VERSION_FORMS = ("--version", "version", "-V", "-version")  # arguments that print a version, most common first
PROGRAM_NAMES = {"maven": "mvn"}  # tool -> main program, if the names differ
# Tool -> Debian packages, if the names differ. Some distributions lack some of these packages.
DEBIAN_PACKAGES = {
    "java": ("openjdk-{}-jdk-headless",),
    "node": ("nodejs", "npm"),
    "go": ("golang-go",),
    "python3": ("python3", "python3-venv"),
    "postgres": ("postgresql",),
    "php": ("php-cli",),
    "sshd": ("openssh-server",),
    "ip": ("iproute2",),
    "g++": ("g++",),
    "h2load": ("nghttp2-client",),
    "clang++": ("clang",),
}
# Debian package of a library -> interpreter and arguments that print the library's version.
LIBRARIES = {
    "php-apcu": ("php", "-r", "echo phpversion('apcu');"),
    "php-pgsql": ("php", "-r", "echo phpversion('pdo_pgsql');"),
    "ruby-sequel-pg": ("ruby", "-e", "puts Gem::Specification.find_by_name('sequel_pg').version"),
    "ruby-sinatra": ("ruby", "-e", "puts Gem::Specification.find_by_name('sinatra').version"),
}
# Debian package names that are safe arguments for apt. Names that end in ``-`` or ``+`` do not match, because apt
# treats the suffix as an instruction: ``curl-`` removes a package, and ``curl+`` installs one.
DEBIAN_PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9]")
# Programs that tfb may run without the user's consent to find their versions.
WELL_KNOWN_PROGRAMS = frozenset(
    (
        *("bun", "bundle", "bundler", "c++", "cabal", "cargo", "cc", "clang", "clang++", "clojure", "cmake"),
        *("composer", "crystal", "curl", "dart", "deno", "dmd", "docker", "dotnet", "dub", "dune", "elixir"),
        *("erl", "fpc", "g++", "gcc", "gem", "gfortran", "ghc", "git", "gleam", "go", "gradle", "groovy"),
        *("ip", "java", "javac", "julia", "kotlin", "kotlinc", "ldc2", "lein", "lua", "luajit", "luarocks"),
        *("make", "meson", "mix", "mono", "mvn", "nasm", "nginx", "nim", "nimble", "ninja", "node", "npm"),
        *("npx", "ocaml", "opam", "openresty", "perf", "perl", "php", "pip", "pip3", "pnpm", "postgres"),
        *("psql", "python", "python3", "racket", "rebar3", "ruby", "rustc", "sbcl", "sbt", "scala", "sshd"),
        *("stack", "swift", "unzip", "uv", "wget", "wrk", "yarn", "zig", "h2load"),
    )
)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """An installed tool: its version, main program and environment variables."""

    kind: str
    version: tuple[int, ...]  # empty if unknown, because tfb did not run the program
    program: Path
    env: Mapping[str, str] = field(default_factory=dict)  # variables that select this tool, for example JAVA_HOME

    @property
    def bin(self) -> Path:
        """Return the folder that contains the tool's programs."""
        return self.program.parent

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.version)) or 'unknown version'} ({self.program})"


def satisfies(version: tuple[int, ...], condition: str) -> bool:
    """Return whether a version satisfies a condition such as ``>=21`` or ``==17``.

    Compare only as many components as the condition has. A program's version is unknown until the user permits tfb to
    run it. An unknown version satisfies any condition, because the build checks the version again.
    """
    if not version:
        return True
    operator, required = condition[:2], tuple(int(part) for part in condition[2:].split("."))
    installed = (version + (0,) * len(required))[: len(required)]
    return installed >= required if operator == ">=" else installed == required


def find_tool(kind: str, condition: str = ">=0", *, consented: bool = False) -> Tool | None:
    """Return the newest tool that satisfies the condition, or None. ``consented`` permits running unknown programs."""
    tools = installed_tools(kind, consented=consented or PROGRAM_NAMES.get(kind, kind) in WELL_KNOWN_PROGRAMS)
    fits = (tool for tool in tools if satisfies(tool.version, condition))
    return max(fits, key=lambda tool: tool.version, default=None)


@cache
def installed_tools(kind: str, *, consented: bool) -> tuple[Tool, ...]:
    """Return all installed tools of a kind.

    If ``consented`` is false, find a program on PATH without running it, so its version is unknown. Libraries and the
    kinds in ``FINDERS`` do not need consent.
    """
    if kind in LIBRARIES:
        return tuple(_library(kind))
    if kind in FINDERS:
        return tuple(FINDERS[kind]())
    return tuple(_on_path(kind) if consented else _not_run(kind))


def forget_tools() -> None:
    """Forget which tools are installed, for example after an installation."""
    installed_tools.cache_clear()


def tool_environment(tools: Iterable[Tool], base: Mapping[str, str]) -> dict[str, str]:
    """Return ``base`` with the tools' variables added and their folders at the start of PATH."""
    tools = list(tools)
    path = os.pathsep.join([*(str(tool.bin) for tool in tools), base.get("PATH", os.defpath)])
    extra = {key: value for tool in tools for key, value in tool.env.items()}
    return {**base, **extra, "PATH": path}


def debian_packages(kind: str, condition: str) -> tuple[str, ...]:
    """Return the Debian packages that contain a tool, or an empty tuple if no package can have the tool's name."""
    major_version = condition[2:].split(".")[0]
    if kind in DEBIAN_PACKAGES:
        return tuple(name.format(major_version) for name in DEBIAN_PACKAGES[kind])
    return (kind,) if DEBIAN_PACKAGE_NAME.fullmatch(kind) else ()


def parse_version(text: str, name: str = "") -> tuple[int, ...] | None:
    """Parse the version in a program's output. Return None if there is no number.

    Prefer a dotted number after the tool's name, then any dotted number, then any number. For example, the version of
    elixir in ``Erlang/OTP 27 Elixir 1.18.2`` is 1.18.2. In ``perl 5, version 36 (v5.36.0)``, it is 5.36.0.
    """
    named = rf"(?<![\w.]){re.escape(name)}(?![a-z]).*?(\d+(?:\.\d+)+)"
    dotted = r"(\d+(?:\.\d+)+)"
    match = (name and re.search(named, text, re.IGNORECASE)) or re.search(dotted, text) or re.search(r"(\d+)", text)
    # Shorten the parts, because int() rejects very long numbers.
    return tuple(int(part[:9]) for part in match[1].split(".")) if match else None


def _run_for_version(program: Path | str, *arguments: str) -> process.CompletedCommand | None:
    """Run a program with arguments that print a version. Return None if it cannot run or does not exit.

    The program receives no secrets. It runs in /, because files in other folders could make rustup and pyenv run other
    programs.
    """
    try:
        return process.run(  # on a busy machine, a JVM can take seconds to start
            [str(program), *arguments],
            seconds=20.0,
            cwd=Path("/"),
            env=environments.build_environment(),
            account=_account(program),
        )
    except TfbError:
        return None


def _account(program: Path | str) -> process.Account | None:
    """Return an unprivileged account if tfb is root and the program is unknown, otherwise None (tfb's account)."""
    if os.geteuid() != 0 or Path(program).name in WELL_KNOWN_PROGRAMS or accounts.account_obstacle():
        return None
    uid = accounts.server_group()
    return process.Account(name="unprivileged", uid=uid, gid=uid, rights=(accounts.READ_CAPABILITY,))


def _version_of(program: Path | str) -> tuple[int, ...] | None:
    completed = _run_for_version(program, "--version")
    return parse_version(completed.stdout) if completed else None


def _not_run(kind: str) -> Iterator[Tool]:
    """Yield the program found on PATH without running it, so its version is unknown."""
    if path := shutil.which(PROGRAM_NAMES.get(kind, kind)):
        yield Tool(kind=kind, version=(), program=Path(path))


def _on_path(kind: str) -> Iterator[Tool]:
    """Yield the program on PATH with the version that it prints."""
    program = PROGRAM_NAMES.get(kind, kind)
    path = shutil.which(program)
    for form in VERSION_FORMS if path else ():
        completed = _run_for_version(str(path), form)
        if completed is None:
            return  # a program that hangs would probably also hang with other arguments
        version = parse_version(completed.stdout, program)
        # wrk prints the version and usage, but exits with status 1
        if version and (completed.status == 0 or kind == "wrk"):
            yield Tool(kind=kind, version=version, program=Path(str(path)))
            return


def _library(kind: str) -> Iterator[Tool]:
    """Yield a library if the interpreter finds it, with the library's version and the interpreter's path."""
    interpreter, *arguments = LIBRARIES[kind]
    path = shutil.which(interpreter)
    completed = _run_for_version(path, *arguments) if path else None
    version = parse_version(completed.stdout) if completed and completed.status == 0 else None
    if path and version:
        yield Tool(kind=kind, version=version, program=Path(path))


def _php_fpm() -> Iterator[Tool]:
    """Yield the installed versions of PHP-FPM. Debian appends PHP's version to the program's name."""
    folders = (*os.environ.get("PATH", "").split(os.pathsep), *PHP_FPM_FOLDERS)
    programs = {path.resolve() for folder in folders if folder for path in Path(folder).glob("php-fpm*")}
    for program in sorted(path for path in programs if os.access(path, os.X_OK)):
        if version := _version_of(program):
            yield Tool(kind="php-fpm", version=version, program=program)


def _jdks() -> Iterator[Tool]:
    """Yield the JDKs found through JAVA_HOME, on PATH and in the usual folders."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if javac := shutil.which("javac"):
        homes.append(Path(javac).resolve().parent.parent)
    homes += [home for folder in JVM_FOLDERS for home in sorted(Path(folder).glob("*"))]
    homes += map(Path, sorted(glob(os.path.expanduser("~/.sdkman/candidates/java/*"))))  # noqa: PTH111, PTH207
    jdks = {home.resolve(): home for home in reversed(homes) if os.access(home / "bin/javac", os.X_OK)}
    for home in jdks.values():
        with suppress(OSError):  # the file ``release``, which contains the version, is missing
            text = (home / "release").read_text(encoding="utf-8", errors="replace")
            match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
            if version := parse_version(match[1] if match else ""):
                yield Tool(kind="java", version=version, program=home / "bin/java", env={"JAVA_HOME": str(home)})


def _postgres() -> Iterator[Tool]:
    """Yield the PostgreSQL installations that contain both ``initdb`` and ``postgres``."""
    folders = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
    for base in POSTGRES_FOLDERS:
        folders += sorted(Path(base).glob("*/bin"))
    programs = [folder / "postgres" for folder in folders if os.access(folder / "initdb", os.X_OK)]
    for program in dict.fromkeys(path.resolve() for path in programs if os.access(path, os.X_OK)):
        if version := _version_of(program):
            yield Tool(kind="postgres", version=version, program=program)


def _chromium() -> Iterator[Tool]:
    """Yield the first Chromium or Chrome found through TFB_CHROMIUM, on PATH or in Playwright's downloads."""
    configured = os.environ.get("TFB_CHROMIUM", "")
    downloaded = glob(os.path.expanduser("~/.cache/ms-playwright/chromium-*/chrome-linux*/chrome"))  # noqa: PTH111, PTH207
    for name in (configured, "chromium", "chromium-browser", "google-chrome", *downloaded):
        path = shutil.which(name)
        version = _version_of(path) if path else None
        if path and version:  # Ubuntu's chromium-browser prints no version unless the snap is installed
            yield Tool(kind="chromium", version=version, program=Path(path), env={"TFB_CHROMIUM": path})
            return


FINDERS: dict[str, Callable[[], Iterator[Tool]]] = {
    "chromium": _chromium,
    "java": _jdks,
    "php-fpm": _php_fpm,
    "postgres": _postgres,
}
