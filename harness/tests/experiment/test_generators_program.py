"""The loadgen program: the bytes that it sends, its protocol with tfb, and how it detects faulty servers."""

import base64
import json
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.experiment.generators import RESPONSES_FILE, LoadRun
from harness.experiment.generators.loadgen import Loadgen
from harness.experiment.generators.loadgen_output import parse_totals
from harness.experiment.generators.wrk import Wrk
from harness.paths import REPOSITORY, TOOLSET
from harness.provisioning import crates
from harness.records.loads import ClosedLoop
from harness.tests.doubles.http_double import ClientSession
from harness.tests.experiment.generator_servers import OK, ScriptedServer, tool

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")]


@pytest.fixture(scope="module")
def binary() -> str:
    return str(crates.loadgen_program())


def run(binary: str, url: str, *options: str) -> dict[str, Any]:
    """Run loadgen and return the last line of its output."""
    words = [binary, "--start-at-once", "--linger-seconds", "0.2", *options, url]
    output = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    assert len(parse_totals(output, url)) == 1
    last: dict[str, Any] = json.loads(output.splitlines()[-1])
    errors = last["errors"]
    lost = sum(errors[kind] for kind in ("write", "closed", "timeout", "framing", "dropped"))
    assert last["sent"] == last["received"] + lost + last["unfinished"]
    assert (
        last["received"]
        == last["successes"] + errors["status"] + errors["missing_value"]
        == sum(last["statuses"].values())
    )
    return last


def headers(words: Sequence[str]) -> list[str]:
    listed = list(words)
    return [listed[i + 1].split(":")[0] for i, word in enumerate(listed) if word == "--header"]


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is missing")
@pytest.mark.parametrize("depth", [1, 16])
def test_requests_are_identical_to_wrks(binary: str, depth: int, tmp_path: Path) -> None:
    load = ClosedLoop(connections=2, depth=depth)
    with ScriptedServer() as server:
        url = server.endpoint.url("/query?queries=20")
        requests_file = [
            LoadRun(url=url, host="tfb-server", accept="a/b,*/*;q=0.8", load=load, seconds=1, threads=1, seed=seed)
            for seed in range(100)
        ]
        command = ["wrk", *Wrk().arguments(requests_file[0], tmp_path)]
        subprocess.run(command, cwd=TOOLSET / "wrk", capture_output=True, check=True, timeout=30)
        theirs = [bytes(stream) for stream in server.streams if stream]
        end = theirs[0].index(b"\r\n\r\n")
        order = [line.split(b":")[0].decode() for line in theirs[0][:end].split(b"\r\n")[1:]]
        # wrk draws a new header order in each process. Find the seed with which loadgen uses the same order.
        drawn = (Loadgen().arguments(each, tmp_path) for each in requests_file)
        words = next(words for words in drawn if headers(words) == order)
        server.streams.clear()
        subprocess.run([binary, *words], input=b"go\n", capture_output=True, check=True, timeout=30)
        ours = [bytes(stream) for stream in server.streams if stream]
    request = theirs[0][: end + 4]
    assert len(request) == requests_file[0].request_bytes
    assert len(theirs) == len(ours) == 2
    for stream in (*theirs, *ours):
        request_count = len(stream) // len(request)
        assert stream == request * request_count
        assert request_count % depth == 0


def test_all_requests_are_counted_by_status(binary: str) -> None:
    statuses = [b"200 OK", b"204 No Content", b"404 Not Found", b"503 No"]

    def answer(number: int) -> bytes:
        if number == 50:
            return b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        status = statuses[number % 4]
        return b"HTTP/1.1 " + status + (b"\r\n\r\n" if b"204" in status else b"\r\nContent-Length: 1\r\n\r\nx")

    with ScriptedServer(answer) as server:
        total = run(binary, server.endpoint.url("/x"), "--connections", "4", "--rate", "400", "--duration", "1")
    assert total["due"] == total["sent"] == total["received"] + total["errors"]["framing"] > total["received"]
    assert set(total["statuses"]) == {"200", "204", "404", "503"}
    assert total["successes"] == total["statuses"]["200"] + total["statuses"]["204"] == total["latency"]["count"]


def test_closed_idle_connections_are_reopened_on_demand(binary: str) -> None:
    class Impatient(ScriptedServer):
        def converse(self, line: socket.socket, session: ClientSession) -> None:
            line.settimeout(0.25)
            with suppress(TimeoutError):
                super().converse(line, session)

    with Impatient() as server:
        options = ("--connections", "8", "--rate", "2", "--arrivals", "uniform", "--duration", "2")
        total = run(binary, server.endpoint.url("/x"), *options)
    assert (total["received"], total["connections_opened"]) == (4, 8 + 3)


def test_a_closed_loop_survives_early_responses_and_closes(binary: str, tmp_path: Path) -> None:
    class Early(ScriptedServer):
        def converse(self, line: socket.socket, session: ClientSession) -> None:
            line.recv(65_536)
            line.sendall(OK)
            line.shutdown(socket.SHUT_WR)
            time.sleep(0.1)

    request = {
        "head": "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        "body_base64": base64.b64encode(bytes(16_000_000)).decode(),
    }
    (tmp_path / "requests.jsonl").write_text(json.dumps({**request, "status": 200, "weight": 1.0}))
    options = ("--connections", "2", "--duration", "1", "--requests", str(tmp_path / "requests.jsonl"))
    with Early() as server:
        assert run(binary, server.endpoint.url("/"), *options)["received"] > 2


def test_unsolicited_responses_are_counted(binary: str) -> None:
    with ScriptedServer(lambda _: OK + OK) as server:
        total = run(binary, server.endpoint.url("/x"), "--connections", "2", "--rate", "50", "--duration", "1")
    assert total["unsolicited_responses"] == total["received"] == total["sent"]
    assert total["unsolicited_bytes"] == len(OK) * total["sent"]


def test_all_responses_are_written_on_request(binary: str, tmp_path: Path) -> None:
    requests_file = tmp_path / RESPONSES_FILE
    with ScriptedServer(lambda number: OK.replace(b"ok", b"%02d" % (number % 100))) as server:
        total = run(
            binary, server.endpoint.url("/x"), "--rate", "60", "--duration", "1", "--responses", str(requests_file)
        )
    written = [json.loads(line) for line in requests_file.read_text().splitlines()]
    assert len(written) == total["sampled"] == total["received"] == total["sent"]
    assert [entry["sequence"] for entry in written] == list(range(total["sent"]))
    assert [int(base64.b64decode(entry["body_base64"])) for entry in written] == list(range(total["sent"]))
    assert {(entry["target"], entry["status"], entry["size_bytes"]) for entry in written} == {("/x", 200, len(OK))}
    assert {tuple(map(tuple, entry["headers"])) for entry in written} == {(("Content-Length", "2"),)}
    assert all(entry["intended_ns"] <= entry["sent_ns"] < entry["received_ns"] for entry in written)


def test_an_unexpected_status_is_an_error(binary: str, tmp_path: Path) -> None:
    requests_file = (
        ("GET /a HTTP/1.1", b"", 404, False),
        ("POST /b HTTP/1.1", b"x\0y", 0, True),
    )
    table = tmp_path / "requests.jsonl"
    with ScriptedServer() as server:  # sends 200 in response to every request
        for line, body, status, good in requests_file:
            request = {"head": f"{line}\r\nHost: a\r\n\r\n", "body_base64": base64.b64encode(body).decode()}
            table.write_text(json.dumps({**request, "status": status, "weight": 1.0}))
            total = run(binary, server.endpoint.url("/"), "--duration", "0.1", "--requests", str(table))
            assert (total["successes"] == total["received"] > 0) is good
            assert (total["errors"]["status"] == 0) is good
        assert server.streams[-1].startswith(b"POST /b HTTP/1.1\r\nHost: a\r\n\r\nx\0yPOST /b")


def test_sigint_ends_a_load_with_results(binary: str) -> None:
    with ScriptedServer() as server:
        command = [binary, "--connections", "3", "--rate", "100", server.endpoint.url("/x")]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdin is not None
        assert child.stdout is not None
        ready = json.loads(child.stdout.readline())
        assert (ready["kind"], ready["ready"], ready["connections"]) == ("ready", True, 3)
        assert not any(server.streams)
        go_sent_at = time.monotonic_ns()
        child.stdin.write("go\n")
        child.stdin.flush()
        while not any(server.streams):
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        total = json.loads(child.communicate(timeout=20)[0])
    assert child.returncode == 0
    assert total["kind"] == "total"
    assert total["start_ns"] > go_sent_at
    assert total["sent"] == total["received"] > 0


def test_a_suspended_generator_reports_the_actual_load_time(binary: str) -> None:
    came: list[int] = []
    with ScriptedServer(lambda _: came.append(time.monotonic_ns()) or OK) as server:  # type: ignore[func-returns-value]
        command = [binary, "--start-at-once", "--duration", "1", server.endpoint.url("/x")]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        while not came:
            time.sleep(0.01)
        child.send_signal(signal.SIGSTOP)
        time.sleep(2)
        child.send_signal(signal.SIGCONT)
        total = json.loads(child.communicate(timeout=20)[0].splitlines()[-1])
    assert total["seconds"] > 1.5
    assert came[-1] < total["start_ns"] + 1e9


@pytest.mark.parametrize(
    ("listening", "options", "status", "expected"),
    [
        (True, (), 3, ""),
        (True, ("--start-at-once", "--responses", "/nowhere/answers"), 1, "--responses /nowhere/answers"),
        (False, ("--start-at-once", "--connect-seconds", "0.3"), 4, "0 of 1 connections"),
    ],
    ids=["nobody says go", "a file cannot be written", "nobody answers"],
)
def test_invalid_loads_are_refused(
    binary: str, listening: bool, options: Sequence[str], status: int, expected: str
) -> None:
    # ``taken`` reserves a port without a server.
    with ScriptedServer() as server, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = server.endpoint.url("/x") if listening else f"http://127.0.0.1:{taken.getsockname()[1]}/"
        command = [binary, "--duration", "1", *options, url]
        completed = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
        )
        assert completed.returncode == status
        assert not any(server.streams)
    assert expected in completed.stderr


def test_the_upstream_counts_calls_and_keeps_delays(binary: str) -> None:
    with tool(crates.upstream_program(), "--delay-ms", "20") as (port, say):
        total = run(binary, f"http://127.0.0.1:{port}/value", "--connections", "200", "--duration", "1")
        stats = say("stats")
    assert stats is not None
    assert stats["calls"] == total["received"] == total["successes"]
    assert (stats["max_concurrent"], stats["in_flight"]) == (200, 0)
    assert total["service"]["min_ns"] >= 20_000_000 * 0.999


def test_every_field_is_documented(binary: str, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "load-generator.md").read_text()
    plan = tmp_path / "plan.json"
    step = {"name": "a", "method": "GET", "path": "/x", "status": 200}
    plan.write_text(json.dumps({"use_cases": [{"name": "u", "rate": 100.0, "steps": [step]}]}))
    with ScriptedServer() as server:
        url = server.endpoint.url("")
        command = [binary, "--start-at-once", "--duration", "0.5", "--scenario", str(plan), url]
        output = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["kind"] for line in lines] == ["ready", "total"]
    total = lines[-1]
    documents = [*lines, total["errors"], total["in_time"], total["latency"], *total["operations"], *total["use_cases"]]
    assert {name for document in documents for name in document if f"`{name}`" not in page} == set()
