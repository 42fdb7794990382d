"""New folders in ``frameworks/`` break no other test. These tests run in a copy of the project."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.paths import CONFIG_FILE, REPOSITORY

NOT_COPIED = {"node_modules", "target", "dist", "build", "__pycache__", "results", "mutants"}
READS = re.compile(r"own_implementations|own_folders|FRAMEWORKS\b|\bscan_folders\(\)|cli\.main\(\[\"list|--dry-run")
USUAL = "not simulation and not gallery and not fault and not adversarial and not e2e and not docker"
README = """# {name}

[nowhere](no/such/page.md), `./tfb no-such-verb --no-such-flag`, `python -m harness.no_such_module`, turns and guests.
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a repository with a copy of the project, without built or downloaded files."""
    for part in (".github", "harness", "config", "docker", "docs", "toolset", "frameworks", "results"):
        for root, folders, files in os.walk(REPOSITORY / part):
            folders[:] = [name for name in folders if name not in NOT_COPIED and not name.startswith(".")]
            target = tmp_path / Path(root).relative_to(REPOSITORY)
            target.mkdir(parents=True, exist_ok=True)
            for name in files:
                shutil.copy2(Path(root, name), target / name)
    for path in REPOSITORY.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy2(path, tmp_path / path.name)
    for words in ("init --quiet", "add --all", "-c user.name=tfb -c user.email=tfb@example.org commit --quiet -m Copy"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    return tmp_path


def run(clone: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(clone)}
    environment = {key: value for key, value in environment.items() if not key.startswith(("PYTEST_", "COV_"))}
    return subprocess.run(
        [sys.executable, *command],
        check=False, capture_output=True, text=True, cwd=clone, env=environment, timeout=900,
    )  # fmt: skip


def odd(clone: Path) -> None:
    """Create folders with unusual but valid contents."""
    document = json.loads((clone / "frameworks" / "Elixir" / "added" / CONFIG_FILE).read_text())
    (entry,) = document["tests"][0].values()
    tagged = {**entry, "tags": ["core", "antipattern"], "display_name": "Ünusual", "dockerfile": "none.dockerfile"}
    tests = {"default": tagged, "Variant 1": {**tagged, "port": 9}, "z": {**tagged, "tags": ["broken"], "local": None}}
    upstream = {key: value for key, value in entry.items() if key != "local"}
    for place, name, made in (
        ("C++", "0-first of all", [tests]),
        ("Zig", "~last", None),
        ("Java", "upstream", [{"default": {**upstream, "database": "MySQL"}}]),
    ):
        folder = clone / "frameworks" / place / name.strip("~")
        folder.mkdir(parents=True)
        framework = {"framework": name.strip("~"), "maintainers": ["octocat", ""], "tests": made or [tests]}
        (folder / CONFIG_FILE).write_text(json.dumps(framework))
        (folder / "README.md").write_text(README.format(name=name))
    (clone / "frameworks" / "Nim").mkdir()
    (clone / "frameworks" / "Nim" / "empty").mkdir()


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_new_folders_break_no_test_of_the_project(clone: Path) -> None:
    for words in (
        "added --blank --language Elixir", "another-copy --from express", "a-copy --language go", "b --from axum",
        "mine-too --from resteasy",
    ):  # fmt: skip
        completed = run(clone, "-m", "harness", "new", *words.split())
        assert completed.returncode == 0, completed.stderr
    odd(clone)
    tests = clone / "harness" / "tests"
    chosen = [
        str(path.relative_to(clone))
        for path in sorted(tests.glob("**/test_*.py"))
        if path.name != Path(__file__).name and READS.search(path.read_text(encoding="utf-8"))
    ]
    assert {"test_command_line.py", "test_process_conduct.py", "test_docs.py", "test_new.py"} <= {
        Path(each).name for each in chosen
    }
    completed = run(clone, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", USUAL, *chosen)
    assert completed.returncode == 0, completed.stdout[-5000:] + completed.stderr[-2000:]
    collected = run(clone, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "harness/tests/e2e")
    assert collected.returncode == 0, collected.stdout[-3000:]
