"""The committed corpus and generated documents violate no target's contract."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.errors import StoreError
from harness.plain_text import is_printable, printable
from harness.records.reader import RunReader
from harness.tests.fuzz import streams, targets
from harness.tests.fuzz.seeds import CORPUS, MOST_BYTES
from harness.tests.fuzz.targets import TARGETS
from harness.verify import wire

GOOD = '{"duration_us": 1000000, "requests": 10, "bytes": 1000, "cpu_seconds": 0.1, "errors": {}}'
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(["framework", "tests", "default", "local", "run", "build", "env", "json_url", "port", "tags"])
configs = st.recursive(
    documents, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5), max_leaves=15
)
run_keys = st.sampled_from(["schema_version", "started_at", "machine", "implementations", "loads", "settings", "seed"])
noise = st.binary(max_size=300) | documents.map(lambda found: json.dumps(found).encode())


@pytest.mark.parametrize("name", TARGETS)
def test_committed_inputs_break_no_promise(name: str) -> None:
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    for path in inputs:
        TARGETS[name](path.read_bytes())


@pytest.mark.parametrize("excess", [-50, 50])
@pytest.mark.parametrize(
    ("begin", "limit", "end"),
    [
        (b"HTTP/1.1 204 No Content\r\nX: ", wire.MAX_HEAD_BYTES, b"\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0;", wire.MAX_LINE_BYTES, b"\r\n\r\n"),
    ],
)
def test_limits_hold_however_a_response_is_cut(begin: bytes, limit: int, end: bytes, excess: int) -> None:
    stream = begin + b"x" * (limit + excess - len(begin.rpartition(b"\r\n")[2])) + end
    results = [
        streams.read([stream[at : at + size] for at in range(0, len(stream), size)], "GET")[0]
        for size in (1000, 8192, 200_000)
    ]
    assert all(isinstance(each, wire.Response) == (excess < 0) for each in results)


def test_committed_inputs_are_small() -> None:
    assert all(path.stat().st_size <= MOST_BYTES for path in CORPUS.rglob("*") if path.is_file())


@quick
@given(data=noise | configs.map(lambda found: json.dumps(found).encode()))
def test_configuration_is_read_or_rejected(data: bytes) -> None:
    targets.configuration(data)


@quick
@given(data=st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode(errors="replace")))
def test_profile_is_read_or_rejected(data: bytes) -> None:
    targets.profile_file(data)


@quick
@given(document=st.dictionaries(run_keys, documents, max_size=6) | documents, lines=st.lists(noise, max_size=4))
def test_run_is_read_or_rejected(document: object, lines: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(document), encoding="utf-8")
    for name in ("trials.jsonl", "processes.jsonl", "verdicts.jsonl"):
        (tmp_path / name).write_bytes(b"\n".join(lines))
    try:
        records = RunReader(tmp_path).records()
    except StoreError as error:
        assert str(error).startswith("run.json")
    else:
        assert not any((records.trials, records.processes, records.verdicts))


@quick
@given(output=st.text(max_size=300) | documents.map(json.dumps))
@example(output="")
@example(output=GOOD[:40])
@example(output="{" + '"a":[' * 100_000)
@example(output=GOOD.replace("1000000", "1" * 10_000))
@example(output=GOOD.replace("1000000", "0"))
@example(output=GOOD.replace("1000000", "-5"))
@example(output=GOOD.replace("0.1", "1e999"))
@example(output=GOOD.replace("10,", f"{10**300},"))
@example(output='{"kind": "total"}\n' * 3)
@example(output="\x1b[2J\x00" * 100)
def test_generator_output_is_parsed_or_rejected(output: str) -> None:
    targets.generator(output.encode())


@quick
@given(text=st.text(max_size=200))
def test_printable_text_has_no_active_character(text: str) -> None:
    assert is_printable(printable(text))
