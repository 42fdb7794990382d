"""Hooks of the wheel's build: dependencies from requirements.in, the built dashboard and the load generator."""

import importlib.util
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent


class Metadata(MetadataHookInterface):
    """The dependencies of the wheel, from requirements.in."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the dependencies."""
        lines = (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
        metadata["dependencies"] = [line for line in lines if line and not line.startswith("#")]


class Build(BuildHookInterface):
    """The build of a wheel for this platform, which needs npm and cargo."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the built page and the compiled load generator."""
        sys.path.insert(0, str(ROOT))
        from harness.paths import PREBUILT
        from harness.provisioning import crates

        module = ROOT / "harness" / "dashboard" / "build.py"  # alone: its package imports the web server
        spec = importlib.util.spec_from_file_location("page", module)
        page = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(page)
        page.ensure_built()
        program = crates.loadgen_program()
        target = f"harness/_tree/toolset/{PREBUILT}/loadgen/{program.parent.name}/{program.name}"
        build_data["force_include"][str(program)] = target
        for name in ("errors.py", "host/metering.py", "host/sockets.py"):  # copies for the image of toolset/meter
            copied = program.parent / "meter" / name
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "harness" / name, copied)
            build_data["force_include"][str(copied)] = f"harness/_tree/harness/{name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
