"""The witnesses for HTTP/2 and WebSocket."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from wsproto.events import Event

from harness.errors import LoadError
from harness.experiment.generators import LoadGenerator, LoadResult, LoadRun
from harness.experiment.generators.h2load import URLS_FILE, H2load
from harness.experiment.generators.registry import GENERATORS, needed_generators, witness
from harness.experiment.generators.websocket_witness import WebSocketWitness
from harness.host import process
from harness.plan.plan import Candidate, Plan
from harness.plan.profile import load_profile
from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import LoadProtocol
from harness.records.loads import ClosedLoop, Load, OpenLoop
from harness.runtime.local import LocalRuntime
from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.rogues import every
from harness.tests.extras.protocols.stream_server import StreamServer

SUMMARY = """\
finished in 2.00s, 7376.50 req/s, 3.88MB/s
requests: 14760 total, 14768 started, 14760 done, 14753 succeeded, 7 failed, 4 errored, 2 timeout
status codes: 14753 2xx, 0 3xx, 0 4xx, 3 5xx
traffic: 7.77MB (8143692) total, 72.39KB (74132) headers (space savings 95.12%), 7.44MB (7803808) data
                     min         max         mean         sd        +/- sd
time for request:      428us     18.09ms      2.16ms      1.37ms    83.13%
0m0.010000s 0m0.020000s
1m0.250000s 0m0.500000s
"""


def load_run(
    url: str, protocol: LoadProtocol, load: Load | None = None, requests: Sequence[PreparedRequest] = ()
) -> LoadRun:
    load = load or ClosedLoop(connections=4, depth=4)
    return LoadRun(
        url=url,
        host="h",
        accept="application/json",
        load=load,
        seconds=1.2,
        threads=8,
        seed=1,
        protocol=protocol,
        requests=requests,
    )


def test_a_summary_of_h2load_is_read(tmp_path: Path) -> None:
    result = H2load().result(load_run("http://h/", "http2"), SUMMARY)
    assert (result.requests, result.bytes, result.cpu_seconds) == (14_756, 8_143_692, 60.75)
    assert (result.errors.status, result.errors.read, result.errors.timeout) == (3, 2, 2)
    assert result.duration == pytest.approx(14_753 / 7_376.5)
    both = H2load().result(load_run("http://h/", "http2"), SUMMARY + SUMMARY)
    assert (both.requests, len(both.parts)) == (2 * 14_756, 2)


def test_h2load_without_a_connection_is_an_error() -> None:
    output = re.sub(
        r"^requests: .*$",
        "requests: 0 total, 0 started, 0 done, 0 succeeded, 0 failed, 0 errored, 0 timeout",
        SUMMARY,
        flags=re.MULTILINE,
    )
    result = H2load().result(load_run("http://h/", "http2"), output.replace("7376.50 req/s", "0.00 req/s"))
    assert (result.requests, result.errors.connect, result.duration) == (0, 4, 2.0)


@pytest.mark.parametrize("output", ["", "h2load: command not found", SUMMARY.replace("traffic", "tariff")])
def test_unreadable_output_of_h2load_is_an_error(output: str) -> None:
    with pytest.raises(LoadError, match="h2load printed no result for http://h/"):
        H2load().result(load_run("http://h/", "http2"), output)


def test_h2load_requests_all_urls_in_drawn_order(tmp_path: Path) -> None:
    requests = [PreparedRequest(method="GET", target=f"/json/{number}", headers=(), body=b"") for number in range(50)]
    arguments = H2load().arguments(load_run("https://h:1/json/", "http2", requests=requests), tmp_path)
    urls = (tmp_path / URLS_FILE).read_text(encoding="utf-8").split()
    assert sorted(urls) == sorted(f"https://h:1/json/{number}" for number in range(50))
    assert urls != [f"https://h:1/json/{number}" for number in range(50)]
    flags = dict(zip(arguments[::2], arguments[1::2], strict=False))
    assert (flags["-c"], flags["-m"], flags["-t"], flags["-D"]) == ("4", "4", "4", "2")


@pytest.mark.parametrize("generator", [H2load(), WebSocketWitness()], ids=lambda generator: generator.name)
@pytest.mark.parametrize(
    ("load", "protocol"),
    [
        (ClosedLoop(connections=4), "http1"),
        (ClosedLoop(connections=4, close_after=10), "http2"),
        (ClosedLoop(connections=4, close_after=10), "websocket"),
        (OpenLoop(connections=4, rate=10.0), "http2"),
        (OpenLoop(connections=4, rate=10.0), "websocket"),
    ],
)
def test_witnesses_refuse_loads_of_other_kinds(
    generator: LoadGenerator, load: Load, protocol: LoadProtocol, tmp_path: Path
) -> None:
    with pytest.raises(LoadError, match="supports only closed loops"):
        generator.arguments(load_run("http://h/", protocol, load), tmp_path)


def test_each_protocol_has_an_independent_witness() -> None:
    assert [witness("loadgen", name) for name in ("json", "http2", "websocket")] == [
        "wrk",
        "h2load",
        "websocket-witness",
    ]
    assert witness("wrk", "json") == "loadgen"


@pytest.mark.parametrize(
    ("profile", "types", "needed"),
    [
        ("quick", ("json", "db"), {"loadgen", "wrk"}),
        ("quick", ("json", "http2"), {"loadgen", "wrk", "h2load"}),
        ("techempower", ("websocket",), {"loadgen", "wrk", "websocket-witness"}),
        ("smoke", ("http2", "websocket"), {"loadgen", "wrk"}),  # without witnesses
        ("latency", ("http2", "websocket"), {"loadgen", "wrk"}),  # this design has none
    ],
)
def test_only_needed_witnesses_are_prepared(profile: str, types: tuple[str, ...], needed: set[str]) -> None:
    candidate = Candidate(
        implementation="a", jit=False, test_types={name: (ClosedLoop(connections=4),) for name in types}
    )
    assert needed_generators(Plan(candidates=(candidate,), profile=load_profile(profile))) == needed


class SomeWrong(StreamServer):
    """Returns a different message for every tenth message."""

    def echo(self, session: ClientSession, message: str | bytes) -> Iterator[Event]:
        return super().echo(session, message[::-1] if every(self, 10) else message)


@pytest.mark.e2e
class TestRealWitnesses:
    def run(self, name: str, url: str, protocol: LoadProtocol, folder: Path) -> LoadResult:
        generator = GENERATORS[name](LocalRuntime(work=folder))
        run = load_run(url, protocol)
        output = process.run([generator.program, *generator.arguments(run, folder)], seconds=60.0).stdout
        return generator.result(run, output)

    def test_h2load_measures_both_forms_of_http2(self, tmp_path: Path) -> None:
        with StreamServer() as server:
            for scheme, variable in (("http", "H2C_PORT"), ("https", "HTTPS_PORT")):
                url = f"{scheme}://127.0.0.1:{server.inputs.ports[variable]}/json/3?m=2"
                result = self.run("h2load", url, "http2", tmp_path)
                assert (result.requests > 100, result.errors.total, result.cpu_seconds > 0) == (True, 0, True)

    def test_the_websocket_witness_compares_echoes(self, tmp_path: Path) -> None:
        for kind, differ in ((StreamServer, False), (SomeWrong, True)):
            with kind() as server:
                result = self.run(
                    "websocket-witness", f"http://127.0.0.1:{server.endpoint.port}/ws", "websocket", tmp_path
                )
            assert result.requests > 100
            assert (result.errors.status > 0, result.errors.total - result.errors.status) == (differ, 0)
