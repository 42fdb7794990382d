"""The generator itself: its bytes, its words, and that it sees what a server does wrong."""

import base64
import json
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.measure.loadgen import Load, build
from harness.measure.loadgen.own import Own, Report, read
from harness.measure.loadgen.wrk import Wrk
from harness.paths import TOOLSET
from harness.tests.measure.loadgen.servers import OK, scripted, tool

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing"),
]

ACCEPT = "application/json,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7"


@pytest.fixture(scope="module")
def loadgen() -> str:
    return str(build.loadgen())


def run(loadgen: str, url: str, *options: str) -> Report:
    words = [loadgen, "--start-at-once", "--linger-seconds", "0.2", *options, url]
    return read(subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout, url)


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is missing")
@pytest.mark.parametrize("depth", [1, 16])
def test_its_bytes_are_those_of_wrk(loadgen: str, depth: int) -> None:
    with scripted() as server:
        url = f"http://127.0.0.1:{server.port}/query?queries=20"
        load = Load(url=url, host="tfb-server", accept=ACCEPT, seconds=1, connections=2, threads=1, pipeline=depth)
        subprocess.run(
            ["wrk", *Wrk().arguments(load)], cwd=TOOLSET / "wrk", capture_output=True, check=True, timeout=30
        )
        theirs = [bytes(stream) for stream in server.streams if stream]
        end = theirs[0].index(b"\r\n\r\n")
        order = [line.split(b":")[0].decode() for line in theirs[0][:end].split(b"\r\n")[1:]]
        # wrk's order of headers is another in each of its processes: ours is told the one that it had this time.
        words = next(
            words for seed in range(100) if (words := Own(seed=seed).arguments(load)) and headers(words) == order
        )
        server.streams.clear()
        subprocess.run([loadgen, *words], capture_output=True, check=True, timeout=30)
        ours = [bytes(stream) for stream in server.streams if stream]
    request = theirs[0][: end + 4]
    assert len(theirs) == len(ours) == 2
    for stream in (*theirs, *ours):
        whole = len(stream) // len(request)
        assert stream == request * whole
        assert whole % depth == 0


def headers(words: Sequence[str]) -> list[str]:
    listed = list(words)
    return [listed[i + 1].split(":")[0] for i, word in enumerate(listed) if word == "--header"]


def test_every_request_is_accounted_for_and_the_answers_are_counted_by_status(loadgen: str) -> None:
    statuses = [b"200 OK", b"204 No Content", b"404 Not Found", b"503 No"]

    def answer(number: int) -> bytes:
        status = statuses[number % 4]
        return b"HTTP/1.1 " + status + (b"\r\n\r\n" if b"204" in status else b"\r\nContent-Length: 1\r\n\r\nx")

    with scripted(answer) as server:
        total = run(loadgen, server.url, "--connections", "4", "--rate", "400", "--duration", "1").total
    assert total.sent == total.received == sum(total.statuses.values())
    assert set(total.statuses) == {"200", "204", "404", "503"}
    assert total.successes == total.statuses["200"] + total.statuses["204"]
    assert total.errors.status == total.statuses["404"] + total.statuses["503"]
    assert total.latency is not None
    assert total.latency.count == total.successes


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"", "closed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "framing"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", "body"),
    ],
)
def test_a_wrong_answer_is_an_error_of_its_kind_and_no_success(loadgen: str, answer: bytes, fault: str) -> None:
    with scripted(lambda number: answer if number == 3 else OK) as server:
        options = ("--connections", "2", "--rate", "100", "--duration", "1", "--expect-body", "ok")
        total = run(loadgen, server.url, *options).total
    faults = total.errors.model_dump()
    assert faults.pop(fault) >= 2
    assert not any(faults.values())
    assert total.successes == total.sent - getattr(total.errors, fault) > 0
    assert total.reconnects == total.connections_opened - 2 == (0 if fault in {"length", "body"} else total.reconnects)


def test_a_connection_that_never_answers_is_hung_and_what_is_left_is_unfinished(loadgen: str) -> None:
    with scripted(lambda _: None) as server:
        options = ("--connections", "2", "--duration", "1", "--timeout", "0.4", "--drain-seconds", "0.1")
        total = run(loadgen, server.url, *options).total
    assert total.connections_hung == total.errors.timeout > 0
    assert total.unfinished > 0
    assert total.sent == total.errors.timeout + total.unfinished
    assert total.received == 0


def test_answers_nobody_asked_for_are_counted(loadgen: str) -> None:
    with scripted(lambda _: OK + OK) as server:
        total = run(loadgen, server.url, "--connections", "2", "--rate", "50", "--duration", "1").total
    assert total.unasked_responses == total.received == total.sent
    assert total.unasked_bytes == len(OK) * total.sent


def test_bodies_in_chunks_are_read_whole_when_pipelined(loadgen: str) -> None:
    with tool(build.reference_server(), "--chunked") as (port, _):
        options = ("--connections", "8", "--depth", "16", "--duration", "0.5", "--expect-body", "Hello, World!")
        total = run(loadgen, f"http://127.0.0.1:{port}/", *options).total
    assert total.successes == total.sent
    assert total.received > 1000


def test_all_answers_are_written_out_when_asked(loadgen: str, tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    requests.write_text("".join(json.dumps({"target": f"/{name}"}) + "\n" for name in "abc"))
    samples = tmp_path / "samples"
    with scripted() as server:
        options = ("--rate", "60", "--duration", "1", "--sample-rate", "1", "--sample-file", str(samples))
        total = run(loadgen, server.url, "--requests", str(requests), *options).total
        asked = [line.split()[1].decode() for line in bytes(server.streams[-1]).split(b"\r\n") if b"GET" in line]
    written = [json.loads(line) for line in samples.read_text().splitlines()]
    assert len(written) == total.sampled == total.received == total.sent
    assert [entry["target"] for entry in written] == asked
    assert [entry["sequence"] for entry in written] == list(range(total.sent))
    assert {base64.b64decode(entry["body_base64"]) for entry in written} == {b"ok"}
    assert all(entry["intended_ns"] <= entry["sent_ns"] < entry["received_ns"] for entry in written)


def test_it_waits_for_go_and_ends_on_sigint_with_its_results(loadgen: str) -> None:
    with scripted() as server:
        command = [loadgen, "--connections", "3", "--rate", "100", server.url]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdin is not None
        assert child.stdout is not None
        first = child.stdout.readline()
        assert json.loads(first)["connections"] == 3
        assert not any(server.streams)
        said = time.monotonic_ns()
        child.stdin.write("go\n")
        child.stdin.flush()
        second = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        rest, _ = child.communicate(timeout=20)
    report = read(first + second + rest, server.url)
    assert child.returncode == 0
    assert report.total.stopped_by == "asked"
    assert report.total.start_ns > said
    assert sum(interval.sent for interval in report.intervals) == report.total.sent == report.total.received > 0


def test_connections_are_made_at_the_start_where_that_is_asked(loadgen: str) -> None:
    with scripted() as server:
        total = run(loadgen, server.url, "--connections", "5", "--connect-at-go", "--duration", "0.5").total
        assert len(server.streams) == total.connections_opened == 5
    assert total.sent == total.received == total.successes > 5
    assert not any(total.errors.model_dump().values())


def test_a_load_ends_when_nobody_reads_its_lines_any_more(loadgen: str) -> None:
    with scripted() as server:
        command = [loadgen, "--start-at-once", "--rate", "100", "--interval", "0.1", server.url]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.wait(timeout=20) == 1
        assert child.stderr is not None
        assert b"standard output" in child.stderr.read()
        child.stderr.close()


def test_nobody_says_go_and_there_is_no_load(loadgen: str) -> None:
    with scripted() as server:
        done = subprocess.run(
            [loadgen, server.url], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
        )
        assert done.returncode == 3
        assert not any(server.streams)


def test_connections_that_cannot_be_established_are_no_load(loadgen: str) -> None:
    with socket.socket() as taken:  # bound, so that nobody else gets the port, and not listening
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        command = [loadgen, "--start-at-once", "--connect-seconds", "0.3", "--duration", "1", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 4
    assert json.loads(done.stdout)["ready"] is False
    assert "0 of 1 connections" in done.stderr


def test_the_upstream_counts_every_call_and_answers_none_too_early(loadgen: str) -> None:
    with tool(build.upstream(), "--delay-ms", "20") as (port, say):
        url = f"http://127.0.0.1:{port}/value"
        total = run(loadgen, url, "--connections", "200", "--duration", "1").total
        stats = say("stats")
        say("reset")
        after = say("stats")
    assert stats is not None
    assert stats["calls"] == total.received == total.successes
    assert stats["max_concurrent"] == 200
    assert stats["in_flight"] == 0
    assert total.service is not None
    assert total.service.min_ns >= 20_000_000 * 0.999
    assert after is not None
    assert (after["calls"], after["sum"]) == (0, 0)
