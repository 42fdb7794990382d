"""Attack: a configuration passes options to apt, or runs programs before the user has consented."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.plan.benchmark_config import LocalRun
from harness.provisioning import requirements, toolchain
from harness.provisioning.requirements import ToolRequirement
from harness.runtime.local import LocalRuntime
from harness.tests.doubles.implementations import implementation
from harness.tests.scene import Scene, script

REFUSED = (
    "curl-",
    "curl+",
    "-y",
    "--purge",
    "curl/stable",
    "curl=1",
    "../x.deb",
    "./x.deb",
    "a b",
    "a;b",
    "curl.",
    "é",
    "x\n",
)
NO_PACKAGES = ("Curl", "g__x", "curl++", "_x", "a")


def need(kind: str) -> ToolRequirement:
    return ToolRequirement(kind=kind, condition=">=0", required_by=("mine",), tool=None)


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put fake apt-get and apt-cache programs on PATH. Yield the file in which apt-get records its arguments."""
    noted = tmp_path / "noted"
    script(tmp_path / "apt-get", f'echo "$*" >> {noted}')
    known = 'case "$3" in nodejs|node-js|g++|wrk) printf "%s:\\n  Candidate: 99.1\\n" "$3" ;; esac'
    script(tmp_path / "apt-cache", known)
    script(tmp_path / "sudo", 'shift; exec "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(requirements, "_prevent_default_cluster", lambda: None)
    noted.touch()
    yield noted
    toolchain.forget_tools()


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_apt_would_interpret_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        LocalRun(requires={name: ">=0"}, run=("x",))


def test_a_configuration_with_such_a_name_is_named(scene: Scene) -> None:
    scene.add("removes", requires={"curl-": ">=0"})
    scene.tfb("list", "--frameworks", str(scene.frameworks)).says("benchmark_config.json", "requires")


@pytest.mark.parametrize("name", [*REFUSED, *NO_PACKAGES])
def test_no_other_name_reaches_apt(name: str, apt: Path, tmp_path: Path) -> None:
    notes = requirements.install_missing([need(name)], "yes", tmp_path / "log")
    assert apt.read_text() == "update\n"
    assert name in notes[0]
    assert requirements.missing_packages([need(name)]) == ()


@pytest.mark.parametrize("name", ["node.js", "nodejs.*", "node", "nodej", "lib.*", "no-such-thing"])
def test_inexact_package_names_are_not_installed(name: str, apt: Path, tmp_path: Path) -> None:
    requirements.install_missing(
        [ToolRequirement(kind=name, condition=">=0", required_by=(), tool=None)], "yes", tmp_path / "log"
    )
    assert "install" not in apt.read_text().replace("-- nodejs", "").replace("-- npm", "") or name == "node"


def test_apt_may_remove_nothing(apt: Path, tmp_path: Path) -> None:
    notes = requirements.install_missing([need("g++"), need("wrk")], "yes", tmp_path / "log")
    assert notes == ("installed g++", "installed wrk")
    flags = "install -y --no-install-recommends --no-remove --"
    assert apt.read_text().splitlines() == ["update", f"{flags} g++", f"{flags} wrk"]


@pytest.fixture
def crontab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a fake crontab on PATH. Yield the file in which it records its arguments, UID and working folder."""
    noted = tmp_path / "noted"
    noted.mkdir()
    noted.chmod(0o777)
    tmp_path.chmod(0o755)
    script(tmp_path / "bin" / "crontab", f'echo "$* $(id -u) $PWD" >> {noted}/calls; echo 1.2')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    toolchain.forget_tools()
    yield noted / "calls"
    toolchain.forget_tools()


def test_an_unknown_program_is_not_run_before_consent(crontab: Path, tmp_path: Path) -> None:
    known = implementation(tmp_path, local={"run": ["x"], "requires": {"crontab": ">=9"}})
    (found,) = requirements.tool_requirements([known], own_database=False, wrk=False, loads=False)
    assert (found.tool.program, found.tool.version) == (tmp_path / "bin" / "crontab", ())
    assert not crontab.exists()


@pytest.mark.parametrize(("condition", "status"), [(">=1", "ok"), (">=9", "skipped")])
def test_builds_check_versions_of_unknown_programs(condition: str, status: str, crontab: Path, tmp_path: Path) -> None:
    known = implementation(tmp_path, local={"run": ["x"], "requires": {"crontab": condition}})
    assert LocalRuntime(work=tmp_path).build(known, tmp_path / "log").status == status
    word, uid, cwd = crontab.read_text().split()
    assert (word, cwd) == ("--version", "/")  # version managers would read files in other working folders
    assert os.geteuid() != 0 or uid != "0"


@pytest.mark.parametrize("words", [("doctor",), ("list",), ("run", "--dry-run")])
def test_commands_that_only_look_run_no_unknown_program(words: tuple[str, ...], crontab: Path, scene: Scene) -> None:
    scene.add("crontab", requires={"crontab": ">=9"})
    path = {"PATH": f"{crontab.parent.parent}/bin:{os.environ['PATH']}"}
    scene.tfb(*words, "--frameworks", str(scene.frameworks), env=path)
    assert not crontab.exists()


def test_the_schema_restricts_tool_names() -> None:
    from harness.plan.benchmark_config import SCHEMA_FILE, json_schema

    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == json_schema()
