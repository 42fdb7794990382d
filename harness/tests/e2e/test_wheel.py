"""The wheel is built, installed into an empty environment, and used outside the clone by the steps of the action."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.paths import REPOSITORY
from harness.tests.e2e.test_gate_runs import git, shop

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.needs("cargo", ">=1.85"),
    pytest.mark.needs("npm", ">=10"),
    pytest.mark.timeout(600),
]
__all__ = ["shop"]


def steps(path: Path) -> list[str]:
    """Return the ``run`` script of each step of a composite action."""
    found = re.findall(r"^ +run: (?:\|\n((?: {8}.*\n)+)|(.+)\n)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [textwrap.dedent(block) or line for block, line in found]


def sh(text: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-e", "-c", text], check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=500
    )


def test_the_action_gives_a_verdict_outside_the_clone(shop: Path, tmp_path: Path) -> None:
    git(shop, "commit", "-q", "--allow-empty", "-m", "a change")
    install, _, compare = steps(REPOSITORY / "action.yml")
    inputs = {"BASE": "HEAD~1", "SERVICE": ".", "THRESHOLD": "5", "TIME": "25s", "STRICT": "false"}
    environment = {
        **{name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "npm_", "CARGO"))},
        **inputs,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_ACTION_PATH": str(REPOSITORY),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(Path.home() / ".cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
    }
    done = sh(install, shop, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    done = sh(f'"{tmp_path}/tfb/bin/tfb" --version', tmp_path, environment)
    assert done.stdout.startswith("tfb "), done.stderr
    done = sh(compare, shop, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("**")
    assert "| root |" in summary
