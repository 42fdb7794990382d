"""Services on Unix sockets, with HTTPS or with large responses start, pass verification and can be measured."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.experiment.generators import LoadRun
from harness.experiment.generators.loadgen import Loadgen
from harness.extras.gate.runtime import ServiceRuntime
from harness.plan.service import FILE, ServiceFile, read_service, service_implementation
from harness.plan.testtypes import TestType
from harness.provisioning import crates
from harness.records.loads import ClosedLoop
from harness.records.verification_record import Outcome
from harness.runtime import NO_DATABASE, Server
from harness.verify.checks.evidence import Sampling
from harness.verify.verifier import Verifier

SERVER = """
import http.server, os, socketserver, ssl, sys
kind, size = sys.argv[1], int(sys.argv[2])

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1
    def do_GET(self):
        self.send_response(200)
        self.send_header("X-Host", self.headers["Host"])
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(b"x" * size)
    def address_string(self): return "client"
    def log_message(self, *_): pass

class Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

if kind.startswith("unix"):
    server = Unix("app.sock", Handler)
else:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler)
if kind.endswith("tls"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if kind == "oldtls": context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain("cert.pem", "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
"""
CERTIFY = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 3 -subj /CN=shop.test"
WITH_TLS = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing")
KINDS = (
    "http",
    "unix",
    pytest.param("tls", marks=WITH_TLS),
    pytest.param("oldtls", marks=WITH_TLS),
    pytest.param("unixtls", marks=WITH_TLS),
)
MIB = 1 << 20


@contextmanager
def started(folder: Path, kind: str, size: int = 100) -> Iterator[tuple[Server, TestType]]:
    """Start a service with a single request, whose response has ``size`` bytes."""
    (folder / "app.py").write_text(SERVER, encoding="utf-8")
    if kind.endswith("tls"):
        subprocess.run(CERTIFY.split(), cwd=folder, check=True, capture_output=True, timeout=60)
    document = {
        "service": {
            "start": f"{sys.executable} -u app.py {kind} {size}",
            "tls": kind.endswith("tls"),
            "listen": "unix:app.sock" if kind.startswith("unix") else None,
        },
        "request": [{"name": "root", "path": "/", "expect": {"size": [size, size]}}],
    }
    file = ServiceFile.model_validate(document)
    implementation = service_implementation(file, folder, "x", 1, folder)
    runtime = ServiceRuntime(work=folder, services={"x": (file.service, folder)}, contained_sides={})
    with runtime.start(implementation, NO_DATABASE, folder / "log", ready_path="/") as server:
        yield server, implementation.test_types["root"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_works_on_every_transport(kind: str, tmp_path: Path) -> None:
    for _ in range(2):  # the second process replaces the first process's socket
        with started(tmp_path, kind) as (server, root):
            verdict = Verifier().verify_test_type(server, root, None, process=0, thorough=True, loads=())
            assert (verdict.outcome, verdict.results) == (Outcome.PASS, verdict.results)
            assert server.endpoint.url("/").startswith("https" if kind.endswith("tls") else "http:")


@pytest.mark.parametrize("kind", ["http", pytest.param("tls", marks=WITH_TLS), "unix"])
@pytest.mark.parametrize("size", [MIB + 1, 16 * MIB])
def test_large_responses_pass_verification(kind: str, size: int, tmp_path: Path) -> None:
    with started(tmp_path, kind, size) as (server, root):
        verdict = Verifier().verify_test_type(server, root, None, process=0, thorough=True, loads=())
        assert verdict.outcome is Outcome.PASS, verdict.results


def test_responses_above_the_limit_fail_verification(tmp_path: Path) -> None:
    with started(tmp_path, "http", 16 * MIB + 1) as (server, root):
        verdict = Verifier().verify_test_type(server, root, None, process=0, thorough=False, loads=())
    assert "exceeds the limit of 16 MiB" in next(each.message for each in verdict.results if each.outcome == "fail")


@pytest.mark.e2e
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "connections"), [(100, 8), (300_000, 4), (16 * MIB, 2)])
def test_the_load_generator_reads_every_transport(kind: str, size: int, connections: int, tmp_path: Path) -> None:
    with started(tmp_path, kind, size) as (server, root):
        run = LoadRun(
            url=server.endpoint.url("/"),
            host=server.endpoint.authority,
            unix=server.endpoint.unix.checked_path() if server.endpoint.unix else "",
            accept="*/*",
            load=ClosedLoop(connections=connections),
            seconds=1.0,
            threads=1,
            seed=1,
            requests=root.requests,
            sampling=Sampling(share=1.0, max_responses=50, max_bytes=48 * MIB),
        )
        words = [str(crates.loadgen_program()), "--start-at-once", *Loadgen().arguments(run, tmp_path)]
        completed = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    result = Loadgen().result(run, completed.stdout)
    assert result.requests > 0
    assert result.errors.total == 0
    answers = [json.loads(line) for line in (tmp_path / "responses.jsonl").read_text(encoding="utf-8").splitlines()]
    assert answers
    assert {len(each["body_base64"]) // 4 * 3 - each["body_base64"].count("=") for each in answers} == {size}
    hosts = {value for each in answers for name, value in each["headers"] if name == "X-Host"}
    assert hosts == {server.endpoint.authority}


@pytest.mark.parametrize(
    "keys",
    [
        'start = "x"\nlisten = "unix:../app.sock"',
        'start = "x"\nlisten = "unix:/run/../app.sock"',
        'image = "x"\nlisten = "unix:app.sock"',
        'start = "x"\nlisten = "app.sock"',
    ],
)
def test_a_socket_that_sides_would_share_is_refused(keys: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(f'[service]\n{keys}\n[[request]]\nname = "root"\npath = "/"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="listen"):
        read_service(tmp_path)
