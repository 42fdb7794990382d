"""Disables npm packages' install scripts in local builds, except for the packages in ``local.install_scripts``."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.errors import BuildError
from harness.host import process
from harness.paths import CONFIG_FILE
from harness.plain_text import printable
from harness.plan.benchmark_config import LocalRun
from harness.records import safe_read

# Disables install scripts, unless a build command enables them: npm ci --ignore-scripts=false.
SCRIPTS_OFF = {"npm_config_ignore_scripts": "true"}
SCRIPTS_ON = {"npm_config_ignore_scripts": "false"}
SCRIPTS = ("preinstall", "install", "postinstall")  # in the order in which npm runs them
HINT = (
    "Install scripts of npm packages are disabled in local builds. If a package needs its script, add the package to "
    f'"local": {{"install_scripts": ["PACKAGE"]}} in {CONFIG_FILE} or, for Bun, to trustedDependencies in package.json'
)
_INSTALLERS = re.compile(r"(?<![\w-])(?:npm|npx|pnpm|yarn|bun|bunx)(?![\w-])")
# Messages about a missing native module that an install script would have built or downloaded.
_MISSING = re.compile(
    r"could not locate the bindings file|cannot find native binding|no native build was found"
    r"|failed to load native binding|native module not found|compiled against a different node"
    r"|cannot find module ['\"][^'\"\n]*(?:\.node|build/Release|prebuild|linux-(?:x64|arm64))"
    r"|node-gyp-build|could not load the [\"'].{1,80}[\"'] module|needs? to be installed|install script|postinstall"
    r"|the package [\"']@esbuild/|(?:executable|binary|engine) .{0,80}(?:not found|does not exist)",
    re.IGNORECASE,
)


def script_hint(folder: Path, output: str, *, command: Sequence[str] = ()) -> str:
    """Return a hint if a disabled install script may be why ``command`` or the server failed, otherwise ""."""
    installs = bool(_INSTALLERS.search(" ".join(command)))
    packaged = (folder / "package.json").exists() or any(folder.glob("*/package.json"))
    return f"\n{HINT}" if installs or (packaged and _MISSING.search(output)) else ""


class InstallScriptPolicy:
    """The packages whose install scripts a build may run."""

    def __init__(
        self, local: LocalRun, folder: Path, environment: Mapping[str, str], log: Path, seconds: float
    ) -> None:
        self._remaining = list(local.install_scripts)
        self._folder, self._log, self._seconds = folder, log, seconds
        self._environment = {**environment, **SCRIPTS_ON}

    def run(self) -> None:
        """Run the scripts of allowed packages installed since the last call. Raises BuildError if a script fails."""
        for name in list(self._remaining):
            for home in self._homes():
                if (home / "node_modules" / name / "package.json").is_file():
                    self._remaining.remove(name)
                    self._run(name, home)
                    break

    def require_all(self) -> None:
        """Raise BuildError if the build commands have not installed every package in ``local.install_scripts``."""
        if self._remaining:
            raise BuildError(
                f"{self._folder / CONFIG_FILE}: local.install_scripts: no build command has installed "
                f"{', '.join(self._remaining)} in node_modules. Correct or remove these names"
            )

    def _homes(self) -> Iterator[Path]:
        """Yield the implementation's folder, and the folders directly below it that contain node_modules."""
        yield self._folder
        yield from sorted(path.parent for path in self._folder.glob("*/node_modules"))

    def _run(self, name: str, home: Path) -> None:
        for command, place in self._commands(name, home):
            done = process.run(command, seconds=self._seconds, cwd=place, env=self._environment, log=self._log)
            if done.status:
                how = process.describe_status(done.status)
                raise BuildError(
                    f"the install script of {name} (local.install_scripts) failed ({how}):\n"
                    f"{process.tail(self._log)}\nlog: {self._log}"
                )

    def _commands(self, name: str, home: Path) -> list[tuple[list[str], Path]]:
        """Return the commands that run a package's scripts, each with the folder to run it in."""
        path = self._environment.get("PATH")
        if (home / "pnpm-lock.yaml").exists() and shutil.which("pnpm", path=path):
            return [(["pnpm", "rebuild", name], home)]
        uses_bun = (home / "bun.lock").exists() or (home / "bun.lockb").exists()
        if not uses_bun and shutil.which("npm", path=path):
            return [(["npm", "rebuild", "--ignore-scripts=false", "--foreground-scripts", name], home)]
        package = home / "node_modules" / name
        run = ["bun", "run", "--bun"] if shutil.which("bun", path=path) else ["npm", "run", "--ignore-scripts=false"]
        return [([*run, script], package) for script in _scripts(package)]


def _scripts(package: Path) -> list[str]:
    """Return a package's install scripts. Raises BuildError if package.json cannot be read."""
    path = package / "package.json"
    try:
        document = json.loads(safe_read.read(path, safe_read.MAX_TEXT_BYTES))
        scripts = document.get("scripts") or {}
        return [script for script in SCRIPTS if scripts.get(script)]
    except (OSError, ValueError, AttributeError) as error:
        raise BuildError(f"cannot read {path}: {printable(str(error))}") from error
