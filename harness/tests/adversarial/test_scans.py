"""Vulnerable dependencies, scripts and workflows fail the check, and audits that cannot run are reported."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.cli import scans
from harness.host import process

ADVISORY = {"id": 1, "url": "http://x", "title": "bad", "severity": "low", "vulnerable_versions": "<2.0.0"}
WORKFLOW = """name: x
on: pull_request_target
permissions: {}
jobs:
  x:
    runs-on: ubuntu-latest
    steps:
      - run: echo "${{ github.event.pull_request.title }}"
"""
Written = Callable[..., Path]


@pytest.fixture
def skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the file in which scans record skipped audits."""
    monkeypatch.setenv(scans.SKIPPED_VARIABLE, str(tmp_path / "skipped.jsonl"))
    return tmp_path / "skipped.jsonl"


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Written:
    """Let the scans read a new repository instead of tfb's. Return a function that adds files to it."""
    root = tmp_path / "repository"
    root.mkdir()
    process.run(["git", "init", "--quiet", str(root)], seconds=20.0)
    monkeypatch.setattr(scans, "REPOSITORY", root)

    def written(name: str, text: str) -> Path:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
        return root / name

    return written


def program(path: Path, *, prints: object = "", status: int = 0) -> Path:
    """Create a program that prints ``prints`` and exits with ``status``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = prints if isinstance(prints, str) else json.dumps(prints)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "outcome",
    [
        ({"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]}]}, 1, None),
        ({"dependencies": [{"name": "a", "version": "1", "vulns": []}]}, 0, None),
        ({"dependencies": [{"name": "a", "skip_reason": "not found"}]}, 0, "no advisory data for 1 of 1 packages"),
        ("ERROR: connection refused", 0, "connection refused"),
        ("{broken", 0, "{broken"),
    ],
)
def test_python_audits_fail_pass_or_stay_open(
    outcome: tuple[object, int, str | None],
    repository: Written,
    skipped: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    printed, status, reason = outcome
    repository("requirements.lock", "a==1\n")
    program(tmp_path / "bin" / "pip-audit", prints=printed, status=1)
    monkeypatch.setattr(scans, "BIN", tmp_path / "bin")
    assert scans.audit_python() == status
    assert skipped.exists() == (reason is not None)
    if reason is not None:
        what, why = json.loads(skipped.read_text())
        assert what == "vulnerabilities in requirements.lock"
        assert why.startswith(scans.NOT_JUDGED)
        assert reason in why


class Registry(BaseHTTPRequestHandler):
    """A package registry that supports only npm's audit request."""

    advisories: dict[str, Any] | None = None  # None: the registry rejects audit requests

    def do_POST(self) -> None:
        """Send a response like npm's bulk advisory endpoint."""
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(self.advisories or {}).encode()
        self.send_response(405 if self.advisories is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Suppress log messages."""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Registry]]:
    """Start the registry and make npm use it."""
    handler = type("OneRegistry", (Registry,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("npm_config_fetch_retries", "0")  # npm would wait ten seconds before each retry
        monkeypatch.setenv("npm_config_update_notifier", "false")
        yield handler
        server.shutdown()
        thread.join()


@pytest.mark.needs("npm", ">=7")
@pytest.mark.parametrize(("advisories", "status"), [({"a": [ADVISORY]}, 1), ({}, 0), (None, 0)])
def test_npm_audits_fail_pass_or_stay_open(
    advisories: dict[str, Any] | None,
    status: int,
    registry: type[Registry],
    repository: Written,
    skipped: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    registry.advisories = advisories
    packages = {
        "": {"name": "x", "version": "1.0.0", "dependencies": {"a": "1.0.0"}},
        "node_modules/a": {"version": "1.0.0"},
    }
    repository("harness/package.json", json.dumps(packages[""]))
    lock = {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": packages}
    repository("harness/package-lock.json", json.dumps(lock))
    assert scans.audit_npm() == status
    assert ("a: low: bad" in capsys.readouterr().out) == bool(status)
    assert skipped.exists() == (advisories is None)


@pytest.fixture
def cargo_audit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the path at which the scans expect cargo-audit."""
    monkeypatch.setenv("TFB_STATE", str(tmp_path / "state"))
    return tmp_path / "state" / "tools" / f"cargo-audit-{scans.CARGO_AUDIT}" / "bin" / "cargo-audit"


def test_a_vulnerable_crate_in_any_lock_fails(
    cargo_audit: Path, repository: Written, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(scans.RUST_ADVISORIES_COPY, "copy")
    one = {"advisory": {"id": "RUSTSEC-2020-0001"}, "package": {"name": "a", "version": "1.0.0"}}
    program(cargo_audit, prints={"vulnerabilities": {"list": [one]}}, status=1)
    repository("deep/er/Cargo.lock", "")
    assert scans.audit_rust() == 1
    assert "deep/er/Cargo.lock: a 1.0.0: RUSTSEC-2020-0001" in capsys.readouterr().out


def test_crates_are_not_judged_without_advisories(
    cargo_audit: Path, repository: Written, skipped: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository("Cargo.lock", "")
    real = process.run(["sh", "-c", "command -v git"], seconds=20.0).stdout.strip()
    refusing = program(tmp_path / "bin" / "git")
    refusing.write_text(f'#!/bin/sh\n[ "$1" != ls-remote ] || {{ echo unreachable; exit 128; }}\nexec {real} "$@"\n')
    monkeypatch.setenv("PATH", f"{refusing.parent}{os.pathsep}{os.environ['PATH']}")
    assert scans.audit_rust() == 0
    assert json.loads(skipped.read_text()) == ["vulnerabilities in Cargo.lock", "not judged: unreachable"]
    assert not cargo_audit.exists()


@pytest.mark.parametrize("name", ["script.sh", "script"])
def test_an_unquoted_variable_in_a_script_fails(
    name: str, repository: Written, capfd: pytest.CaptureFixture[str]
) -> None:
    repository(name, "#!/usr/bin/env bash\nrm -rf $1/*\n")
    repository("no script", "rm -rf $1/*\n")
    assert scans.shell() != 0
    said = capfd.readouterr().out
    assert f"In {name} line 2" in said
    assert "no script" not in said


def test_a_workflow_that_runs_a_title_fails(repository: Written, capfd: pytest.CaptureFixture[str]) -> None:
    repository(".github/workflows/x.yml", WORKFLOW)
    assert scans.workflows() != 0
    assert "template-injection" in capfd.readouterr().out


@pytest.mark.needs("go", ">=1.24")
def test_a_workflow_with_an_unknown_key_fails(repository: Written, capfd: pytest.CaptureFixture[str]) -> None:
    repository(".github/workflows/x.yml", WORKFLOW.replace("runs-on", "run-on"))
    assert scans.actionlint() != 0
    assert "run-on" in capfd.readouterr().out
