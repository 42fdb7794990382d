"""Only npm packages that the configuration names may run install scripts."""

import json
import tarfile
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.errors import ServerDiedError, StartError
from harness.plan.benchmark_config import LocalRun
from harness.runtime.install_scripts import HINT, script_hint
from harness.runtime.local import LocalRuntime
from harness.tests.doubles.implementations import implementation
from harness.tests.runtime.test_local import DATABASE
from harness.tests.scene import script

INSTALL = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--offline"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a folder that depends on a package with an install script."""
    package, folder = tmp_path / "package", tmp_path / "mine"
    package.mkdir()
    folder.mkdir()
    made = {"name": "native", "version": "1.0.0", "scripts": {"postinstall": "echo built > binding.node"}}
    (package / "package.json").write_text(json.dumps(made))
    with tarfile.open(folder / "native.tgz", "w:gz") as archive:
        archive.add(package, "package")
    (folder / "package.json").write_text(json.dumps({"dependencies": {"native": "file:native.tgz"}}))
    return folder


@pytest.mark.needs("npm", ">=8")
@pytest.mark.parametrize("named", [[], ["native"]])
def test_only_scripts_of_named_packages_run(project: Path, named: list[str]) -> None:
    use = ["sh", "-c", "test -e node_modules/native/package.json && touch second"]
    local = {"run": ["true"], "build": [INSTALL, use], "install_scripts": named}
    build = LocalRuntime(work=project).build(implementation(project, local=local), project / "log")
    assert (build.status, build.reason) == ("ok", "")
    assert (project / "node_modules/native/binding.node").exists() == bool(named)
    assert (project / "second").exists()


@pytest.mark.needs("npm", ">=8")
def test_missing_named_package_fails_the_build(project: Path) -> None:
    local = {"run": ["true"], "build": [INSTALL], "install_scripts": ["native", "other"]}
    build = LocalRuntime(work=project).build(implementation(project, local=local), project / "log")
    assert build.status == "failed"
    assert "local.install_scripts: no build command has installed other in node_modules" in build.reason


def test_bun_runs_scripts_of_bun_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    script(tmp_path / "bin" / "bun", f'echo "$PWD $* $npm_config_ignore_scripts" >> {calls}')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    folder = tmp_path / "mine"
    package = folder / "node_modules" / "native"
    package.mkdir(parents=True)
    (folder / "bun.lock").touch()
    scripts = {"postinstall": "x", "preinstall": "y", "test": "z"}
    (package / "package.json").write_text(json.dumps({"scripts": scripts}))
    local = {"run": ["true"], "build": [["true"]], "install_scripts": ["native"]}
    build = LocalRuntime(work=tmp_path).build(implementation(folder, local=local), tmp_path / "log")
    assert build.reason == ""
    expected = [f"{package} run --bun {name} false" for name in ("preinstall", "postinstall")]
    assert calls.read_text().splitlines() == expected


@pytest.mark.parametrize("name", ["../x", "-x", "@a/../b", "a b", "a/b", "", "@/x"])
def test_invalid_package_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="install_scripts"):
        LocalRun.model_validate({"run": ["x"], "install_scripts": [name]})


@pytest.mark.parametrize(
    ("command", "message", "hinted"),
    [
        (["npm", "ci"], "", True),
        (["sh", "-c", "cd web && bun install --frozen-lockfile"], "", True),
        (["pnpm", "build"], "", True),
        (["cargo", "build"], "npm", False),
        ([], "Error: Could not locate the bindings file. Tried:", True),
        ([], "Error: Cannot find module '../build/Release/uws_linux_x64_115.node'", True),
        ([], 'Error: The package "@esbuild/linux-x64" could not be found', True),
        ([], 'Could not load the "sharp" module using the linux-x64 runtime', True),
        ([], "Error: Cannot find module './app'", False),
    ],
)
def test_failure_without_script_gets_a_hint(command: list[str], message: str, hinted: bool, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    assert script_hint(tmp_path, message, command=command) == (f"\n{HINT}" if hinted else "")
    (tmp_path / "package.json").unlink()
    if not command:
        assert script_hint(tmp_path, message) == ""


def test_failing_builds_and_servers_show_the_hint(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    failing = implementation(tmp_path, local={"run": ["x"], "build": [["sh", "-c", "exit 3 # npm run build"]]})
    assert HINT in LocalRuntime(work=tmp_path).build(failing, tmp_path / "log").reason
    words = "echo Error: Cannot find native binding; exit 1"
    server = implementation(tmp_path, local={"run": ["sh", "-c", words]})
    with pytest.raises(ServerDiedError, match="install_scripts") as error:
        LocalRuntime(work=tmp_path).start(server, DATABASE, tmp_path / "server.log", ready_path="/").__enter__()
    assert f"local.run of {tmp_path}/benchmark_config.json" in str(error.value)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (["no-such-program"], "no-such-program: not found on PATH"),
        (["./absent"], "absent does not exist"),
        (["./plain"], "cannot run ./plain: Permission denied; run chmod +x"),
        (["./folder"], "cannot run ./folder: it is a folder"),
        (["./interpreter"], "the interpreter that its first line names does not exist"),
        (["./binary"], "Exec format error"),
    ],
)
def test_unrunnable_server_names_implementation_and_key(run: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    (tmp_path / "folder").mkdir()
    script(tmp_path / "interpreter", "").write_text("#!/no/such/shell\n")
    script(tmp_path / "binary", "").write_bytes(b"\x00\x01")
    one = implementation(tmp_path, local={"run": run})
    with pytest.raises(StartError, match=r"local\.run of .*benchmark_config\.json") as error:
        LocalRuntime(work=tmp_path).start(one, DATABASE, tmp_path / "log", ready_path="/").__enter__()
    assert message in str(error.value)
    assert str(error.value).startswith(f"{one.name}: ")
    other = implementation(tmp_path, local={"run": ["x"], "build": [run]})
    build = LocalRuntime(work=tmp_path).build(other, tmp_path / "build.log")
    assert "local.build of " in build.reason
    assert message in build.reason
