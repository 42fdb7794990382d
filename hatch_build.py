"""Build hooks for the wheel: dependencies, project URLs, the built dashboard page and the load generators."""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent


class Metadata(MetadataHookInterface):
    """A hook that adds the dependencies in requirements.in and the GitHub project URLs to the wheel's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the dependencies and, in GitHub Actions, the project URLs."""
        lines = (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
        metadata["dependencies"] = [line for line in lines if line and not line.startswith("#")]
        repository = os.environ.get("GITHUB_REPOSITORY")
        source = f"https://github.com/{repository}"
        pages = {"Source": source, "Issues": f"{source}/issues", "Changelog": f"{source}/blob/main/CHANGELOG.md"}
        metadata["urls"] = pages if repository else {}


class Build(BuildHookInterface):
    """A hook that builds the dashboard page and the load generators for the wheel. It needs npm and cargo."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the built page and the compiled load generators."""
        sys.path.insert(0, str(ROOT))
        from harness.paths import PREBUILT
        from harness.provisioning import crates

        module = ROOT / "harness" / "dashboard" / "build.py"  # load only this file: the package imports the web server
        spec = importlib.util.spec_from_file_location("page", module)
        page = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(page)
        page.ensure_built()
        for crate in ("websocket-witness", "loadgen"):
            program = crates.ensure_built(crate, crate)
            target = f"harness/_tree/toolset/{PREBUILT}/{crate}/{program.parent.name}/{program.name}"
            build_data["force_include"][str(program)] = target
        for name in ("errors.py", "host/metering.py", "host/sockets.py"):  # docker/meter.dockerfile needs them
            copied = program.parent / "meter" / name
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "harness" / name, copied)
            build_data["force_include"][str(copied)] = f"harness/_tree/harness/{name}"
        commit = program.parent / "COMMIT"
        if (ROOT / ".git").exists() and shutil.which("git"):  # a source distribution has no git history
            described = subprocess.run(
                ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"),
                check=False, capture_output=True, text=True, cwd=ROOT,
            )  # fmt: skip
            if described.returncode == 0:
                commit.write_text(described.stdout, encoding="utf-8")
                build_data["force_include"][str(commit)] = "harness/_tree/COMMIT"
        build_data["pure_python"] = False
        build_data["infer_tag"] = False
        libc, version = platform.libc_ver()
        system = f"manylinux_{version.replace('.', '_')}" if libc == "glibc" else "linux"  # PyPI rejects the tag linux
        build_data["tag"] = f"py3-none-{system}_{platform.machine()}"
