"""Generates the committed corpus from this project's files and messages: ``python -m harness.tests.fuzz.seeds``."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from harness.extras.orders.test_type import USE_CASES
from harness.paths import CONFIG_FILE, FRAMEWORKS, PROFILES, REPOSITORY
from harness.plan.scenarios import plan
from harness.records.store import RunStore
from harness.tests.doubles import records
from harness.tests.experiment import test_generators as outputs
from harness.tests.extras.gate.test_judge import judged, session
from harness.tests.plan.test_service import GOOD
from harness.tests.stats.test_published import BARE

CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES = 8192  # maximum size of a seed; longer seeds slow fuzzing down
PUBLISHED = REPOSITORY / "results" / "rounds" / "1"
LINES = ("trials.jsonl", "processes.jsonl", "verdicts.jsonl")
RESPONSES = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\nServer: x\r\n\r\nHello, World!",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nTrailer: x\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
)
REQUESTS = (
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 3,
    b"GET /delay HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\nGET /",
)
WRK = '{"duration_us": 1000000, "requests": 10, "bytes": 1000, "cpu_seconds": 0.1, "errors": {}}'
COMMANDS = (
    "--connections 64 --threads 2 --rate 500 --arrivals uniform --duration 2.5 --seed 9 --header Accept:a http://h/",
    "--requests r.jsonl --responses a --sample-share 0.5 --sample-limit 9 --timeout 8 --start-at-once http://h",
    "--scenario plan.json --spin 10 --drain-seconds 1 --linger-seconds 0 --connect-seconds 3 http://h:1",
)
TABLE = (
    b'{"head":"POST /x?y HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n","body_base64":"aGk=","status":201,"weight":1}\n'
    b'{"head":"HEAD / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n","body_base64":"","status":0,"weight":3}\n'
)


def main() -> None:
    """Rewrite the seeds of all targets. Inputs named ``found-*`` remain."""
    for name, inputs in seeds().items():
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("seed-*"):
            path.unlink()
        for data in inputs:
            if len(data) <= MOST_BYTES:
                digest = hashlib.sha256(data).hexdigest()[:12]
                (folder / f"seed-{digest}").write_bytes(data)


# HTTP/2 frames from a server: PING, a response with a body, and a response without one.
FRAMES = (
    b"\0\0\x08\x06\0\0\0\0\0tfb-ping"
    b"\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x03\0\x01\0\0\0\x01abc\0\0\x01\x01\x05\0\0\0\x03\x88"
)


def seeds() -> Mapping[str, Iterable[bytes]]:
    """Return the seeds of each target."""
    return {
        "loadgen-arguments": [command.replace(" ", "\0").encode() for command in COMMANDS],
        "configuration": [path.read_bytes() for path in sorted(FRAMEWORKS.glob(f"*/*/{CONFIG_FILE}"))[::4]],
        "dockerfile": [path.read_bytes() for path in sorted(FRAMEWORKS.glob("*/*/*.dockerfile"))[::4]],
        "documents": list(_documents()),
        "generator": list(_outputs()),
        "lines": [b"".join(_lines(name, 2)) for name in LINES] + [_run().split(b"\0")[1]],
        "order-answers": ["".join(f"{json.dumps(found)}\n" for found in _arrivals()).encode()],
        "profile": [path.read_bytes() for path in sorted(PROFILES.glob("*.toml"))],
        "loadgen-http2": [bytes([size, 7]) + FRAMES for size in (0, 7)],
        "loadgen-requests": [TABLE],
        "wire": [bytes([flag, 7]) + data for flag in (0, 1) for data in RESPONSES],
        "loadgen-response": [bytes([size, 7]) + data for size in (3, 7) for data in (*RESPONSES, RESPONSES[0] * 2)],
        "round-results": [json.dumps(found).encode() for found in BARE.values()],
        "run": [_run()],
        "loadgen-websocket": [bytes([size, 7]) + b"\x82\x03abc\x89\x00\x81\x01a\x88\x02\x03\xe8" for size in (0, 2)],
        "loadgen-scenario": [json.dumps(plan(USE_CASES, 8)).encode() + b'\0{"id": 7}\0[]'],
        "service": [f"{GOOD}\0id,name\n1,a\n2,b\n\0{{}}\0body".encode(), _service()],
        "upstream-requests": [bytes([size, 7]) + data for size in (2, 6) for data in REQUESTS],
    }


def _lines(name: str, count: int) -> Iterator[bytes]:
    """Yield the ``count`` shortest lines of a file of the published run."""
    (folder,) = (path.parent for path in PUBLISHED.glob("*/run.json"))
    yield from sorted((folder / name).read_bytes().splitlines(keepends=True), key=len)[:count]


def _run() -> bytes:
    """Return the files of a complete run, separated by NUL."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder) / "run", started_at=0.0)
        info = records.info()
        store.write_info(info)
        store.add_trial(records.trials()[0])
        store.add_process(records.process("fast", 0))
        store.add_verdict(records.verdict("fast", "json"))
        compact = json.dumps(json.loads((store.folder / "run.json").read_bytes())).encode()
        return b"\0".join((compact, *((store.folder / name).read_bytes() for name in LINES)))


def _documents() -> Iterator[bytes]:
    """Yield documents that users keep beside runs: claims, histories and sites."""
    whole = json.loads((PUBLISHED / "claims.json").read_bytes())
    shortest = min(whole["verdicts"].items(), key=lambda item: len(json.dumps(item[1])))
    claims = json.dumps({**whole, "verdicts": dict([shortest])})
    result = judged(session(np.random.default_rng(4), 1.2)).model_dump_json()
    yield f"{claims}\0{result}\n\0{{}}".encode()
    yield b'{}\0\0{"runs": []}'


def _outputs() -> Iterator[bytes]:
    """Yield sample outputs of the load generators."""
    yield WRK.encode()
    for loop in ("open", "closed"):
        yield outputs.printed(outputs.total(loop=loop)).encode()
    yield outputs.printed(outputs.played()).encode()


def _arrivals() -> Iterator[dict[str, object]]:
    """Yield a complete arrival of each use case in the load generator's output format."""
    variables = {
        "customer": 3,
        "card": "4" * 16,
        "order": 7,
        **{f"{k}{n}": n for k in ("card", "item", "quantity") for n in range(1, 9)},
    }
    for case in USE_CASES:
        steps = [
            {"operation": step.operation, "status": step.status, "received_ns": number, "body": '{"id": 7}'}
            for number, step in enumerate(case.steps, 1)
        ]
        yield {"use_case": case.name, "came_ns": 5, "order": 7, "variables": variables, "steps": steps}


def _service() -> bytes:
    """Return a tfb.toml whose requests use every kind of value, and the files that it names."""
    text = (
        '[service]\nimage = "shop"\nport = 80\n[[request]]\nname = "a"\npath = "/{x}/{y}"\nmethod = "PUT"\n'
        'body_file = "body.bin"\nheaders = { A = "{z}" }\nweight = 2.0\n'
        'values = { x = { csv = "data.csv", column = "id", number = true }, y = { list = ["a", 1, true] }, '
        "z = { range = [1, 3] } }\n"
        'expect = { json_schema = "schema.json", json = { id = "{x}" }, size = [1, 9], content_type = "text/html" }\n'
    )
    return f'{text}\0id,name\n1,a\n2.5,b\n\0{{"type": "object", "required": ["id"]}}\0body'.encode()


if __name__ == "__main__":
    main()
