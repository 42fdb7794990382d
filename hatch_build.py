"""Builds the wheel: its dependencies from requirements.in, the dashboard's page and the load generator compiled in."""

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
    """What ./tfb needs, a line each."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the dependencies."""
        lines = (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
        metadata["dependencies"] = [line for line in lines if line and not line.startswith("#")]


class Build(BuildHookInterface):
    """Of this platform: needs npm and cargo."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the page and the program."""
        sys.path.insert(0, str(ROOT))
        from harness.paths import PREBUILT
        from harness.provisioning import crates

        place = ROOT / "harness" / "dashboard" / "build.py"  # alone: its package needs the web server
        spec = importlib.util.spec_from_file_location("page", place)
        page = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(page)
        page.ensure_built()
        program = crates.loadgen_program()
        inside = f"harness/_tree/toolset/{PREBUILT}/loadgen/{program.parent.name}/{program.name}"
        build_data["force_include"][str(program)] = inside
        for name in ("errors.py", "host/metering.py", "host/sockets.py"):  # once more, for the image of toolset/meter
            kept = program.parent / "meter" / name
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "harness" / name, kept)
            build_data["force_include"][str(kept)] = f"harness/_tree/harness/{name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
