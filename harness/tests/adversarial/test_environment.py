"""Attack: builds and servers search their environment for the caller's secrets."""

import os
import sys
from pathlib import Path

import pytest

from harness.host import environment
from harness.runtime import DatabaseAddress
from harness.runtime.local import LocalRuntime
from harness.tests.doubles.implementations import implementation

SECRETS = {
    "GITHUB_TOKEN": "ghp_1",
    "ACTIONS_RUNTIME_TOKEN": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "NPM_TOKEN": "x",
    "NODE_AUTH_TOKEN": "x",
    "npm_config__authToken": "x",
    "npm_config_//registry.example/:_authToken": "x",
    "CARGO_REGISTRY_TOKEN": "x",
    "CARGO_REGISTRIES_MINE_TOKEN": "x",
    "PIP_CLIENT_CERT_PASSWORD": "x",
    "UV_PUBLISH_TOKEN": "x",
    "TWINE_PASSWORD": "x",
    "DATABASE_URL": "postgresql://user:secret@host/db",
    "PGPASSWORD": "x",
    "SSH_AUTH_SOCK": "/run/agent",
    "KUBECONFIG": "/root/.kube/config",
    "GIT_ASKPASS": "/run/askpass",
    "MY_SECRET": "x",
    "TFB_STATE": "/var/state",
}
STEERING = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSAFEPATH",
    "LD_PRELOAD",
    "BASH_ENV",
    "NODE_OPTIONS",
    "PERL5OPT",
    "RUBYOPT",
)
REGISTRIES = {
    "https_proxy": "http://user:secret@proxy:3128",
    "PIP_INDEX_URL": "https://user:secret@index.example/simple",
    "npm_config_registry": "https://npm.example",
    "GOPROXY": "https://go.example",
    "MAVEN_OPTS": "-Dhttps.proxyHost=proxy",
}
PLACES = {"JAVA_HOME": "/opt/java", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "SSL_CERT_FILE": "/etc/ssl/cert.pem"}
DATABASE = DatabaseAddress(host="10.0.0.1", port=5433)


@pytest.fixture(autouse=True)
def caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SECRETS, **dict.fromkeys(STEERING, ""), **REGISTRIES, **PLACES}.items():
        monkeypatch.setenv(name, value)


def test_servers_get_places_and_language_alone() -> None:
    variables = environment.server_environment()
    assert not set(variables) & {*SECRETS, *STEERING, *REGISTRIES}
    assert variables.items() >= PLACES.items()
    assert "PATH" in variables


def test_builds_get_registries_and_no_credentials() -> None:
    given = environment.build_environment()
    assert not set(given) & {*SECRETS, *STEERING}
    assert given.items() >= {**PLACES, **REGISTRIES}.items()


def test_the_caller_may_name_what_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFB_PASS_ENV", "NPM_TOKEN, DATABASE_URL")
    for given in (environment.build_environment(), environment.server_environment()):
        assert {name for name in given if name in SECRETS} == {"NPM_TOKEN", "DATABASE_URL"}


def test_a_name_is_matched_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATH_SECRET", "MY_PATH", "HOME_TOKEN", "CI_JOB_TOKEN", "LC_ALL\nGITHUB_TOKEN", "GOPROXY_PASSWORD"):
        monkeypatch.setenv(name, "x")
    assert not [
        name for name in environment.build_environment() if name.endswith(("SECRET", "TOKEN", "PASSWORD", "MY_PATH"))
    ]


def test_a_build_s_environment_holds_no_secret(tmp_path: Path) -> None:
    known = implementation(tmp_path, local={"run": ["x"], "build": [["sh", "-c", "env > seen"]]})
    build = LocalRuntime(work=tmp_path).build(known, tmp_path / "log")
    assert build.status == "ok"
    seen = {line.partition("=")[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert not seen & {*SECRETS, *STEERING}
    assert seen >= {"PATH", "https_proxy", "npm_config_registry"}


def test_a_server_s_environment_holds_no_secret(tmp_path: Path) -> None:
    """Inspect the environment of a real process for variables that are neither documented nor configured."""
    variables = {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    code = "import os, runpy; open(os.environ['SEEN'], 'w').write('\\n'.join(os.environ)); " + (
        "runpy.run_module('harness.tests.doubles.fake', run_name='__main__')"
    )
    local = {"run": [sys.executable, "-c", code], "env": {**variables, "SEEN": str(tmp_path / "seen")}}
    known = implementation(Path.cwd(), local=local)
    with LocalRuntime(work=tmp_path).start(known, DATABASE, tmp_path / "log", ready_path="/json"):
        seen = set((tmp_path / "seen").read_text().splitlines())
    assert not seen & {*SECRETS, *STEERING, *REGISTRIES} - {"PYTHONPATH"}
    assert seen >= {"PORT", "DBHOST", "JAVA_HOME"}


def test_server_output_is_readable_by_this_user_only(tmp_path: Path) -> None:
    known = implementation(tmp_path, local={"run": ["x"], "build": [["echo", "a secret"]]})
    LocalRuntime(work=tmp_path).build(known, tmp_path / "build.log")
    assert (tmp_path / "build.log").stat().st_mode & 0o777 == 0o600
