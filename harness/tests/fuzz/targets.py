"""Fuzz targets in Python. A target accepts any bytes, and fails only if the tested code violates its contract.

Undocumented exceptions and AssertionErrors are violations. If a target needs several files, its input contains them
separated by NUL.
"""

import atexit
import math
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from harness.errors import ConfigError, LoadError, StoreError, UsageError
from harness.experiment.generators import LoadRun
from harness.experiment.generators.loadgen import Loadgen
from harness.experiment.generators.wrk import Wrk
from harness.extras.gate import history
from harness.extras.orders import load as orders
from harness.extras.site.site_records import read_site as read_site
from harness.plain_text import is_printable, printable
from harness.plan import discovery, dockerfile, profile, service
from harness.records import claims
from harness.records.loads import ClosedLoop, OpenLoop, Scenario
from harness.records.reader import MAX_PROBLEMS, RunReader, read_lines
from harness.records.record import Record
from harness.records.run_records import ProcessRecord, RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord
from harness.stats import published
from harness.tests.fuzz import streams
from harness.verify import wire

Target = Callable[[bytes], None]
RecordT = TypeVar("RecordT", bound=Record)
MODELS: tuple[type[Record], ...] = (Trial, ProcessRecord, VerificationRecord)
MESSAGE_CHARACTERS = 10_000  # maximum length of an error message
RUNS = tuple(
    LoadRun(url="http://127.0.0.1:1/json", host="x", accept="*/*", load=load, seconds=1, threads=1, seed=1)
    for load in (ClosedLoop(connections=1), OpenLoop(rate=100.0, connections=1), Scenario(factor=1.0, connections=1))
)


@cache
def _folder() -> Path:
    """Create the folder for files that targets write. It is removed when the process exits."""
    folder = Path(tempfile.mkdtemp(prefix="tfb-fuzz-"))
    # If libFuzzer exits the process, this handler does not run. Then ``__main__`` removes the folder with TMPDIR.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _written(names: Sequence[str], data: bytes) -> Path:
    """Write the NUL-separated parts of ``data`` to files with these names. The last file gets the rest."""
    for name, part in zip(names, data.split(b"\0", len(names) - 1), strict=False):
        (_folder() / name).write_bytes(part)
    for name in names[data.count(b"\0") + 1 :]:
        (_folder() / name).unlink(missing_ok=True)
    return _folder()


def _require_message(error: Exception, named: str) -> None:
    """Assert that an error names the file, is short enough, and can be printed."""
    assert named in str(error)
    assert len(str(error)) < MESSAGE_CHARACTERS
    assert is_printable(printable(str(error)))


def _require_round_trip(record: RecordT) -> None:
    """Assert that a record is the same after writing and reading it."""
    assert type(record).model_validate_json(record.to_json()) == record


def run(data: bytes) -> None:
    """Check that a results folder can be read, or that the error names run.json."""
    names = ("run.json", "trials.jsonl", "processes.jsonl", "verdicts.jsonl", "progress.json")
    try:
        found: RunRecords = RunReader(_written(names, data)).records()
    except StoreError as error:
        _require_message(error, "run.json")
        return
    _require_round_trip(found.info)
    for records in (found.trials, found.processes, found.verdicts):
        for record in records:
            _require_round_trip(record)


def lines(data: bytes) -> None:
    """Check that records are the same whether reading starts at the first line or at a later one."""
    path = _written(("lines.jsonl",), data) / "lines.jsonl"
    for model in MODELS:
        problems: list[str] = []
        records = list(read_lines(path, model, problems))
        assert len(problems) <= MAX_PROBLEMS + 1
        for record in records:
            _require_round_trip(record)
        start = data.find(b"\n") + 1
        head, tail = data[:start].count(b"\n"), list(read_lines(path, model, [], start=start))
        assert tail == records[len(records) - len(tail) :]
        assert len(records) - len(tail) <= head


def round_results(data: bytes) -> None:
    """Check that a published results.json yields positive rates, or that the error names the file."""
    path = _written(("results.json",), data) / "results.json"
    try:
        round_ = published.read_round(path)
    except UsageError as error:
        _require_message(error, "results.json")
        return
    for rates in round_.rates.values():
        assert all(rate > 0 and math.isfinite(rate) for rate in rates.values())


def configuration(data: bytes) -> None:
    """Check that benchmark_config.json can be read, strictly or leniently, or that the error names the file."""
    path = _written(("benchmark_config.json",), data) / "benchmark_config.json"
    for foreign in (False, True):
        try:
            config, warnings, problems = discovery.read_config(path, lenient=foreign)
        except ConfigError as error:
            _require_message(error, str(path))
            continue
        assert all(is_printable(printable(text)) for text in (*warnings, *problems))
        for implementation in config:
            assert "/" not in implementation.name
            assert implementation.urls
            assert implementation.ready_path.startswith("/")
            assert implementation.dockerfile.is_relative_to(path.parent)
            _require_round_trip(implementation.info())


def service_file(data: bytes) -> None:
    """Check that a tfb.toml and the files that it names can be read, or that the error has a valid message."""
    folder = _written((service.FILE, "data.csv", "schema.json", "body.bin"), data)
    try:
        found = service.read_service(folder)
        side = service.service_implementation(found, folder, "base", 1, folder)
    except ConfigError as error:
        _require_message(error, "")
        return
    assert side.ready_path.startswith("/")
    for kind in side.test_types.values():
        for prepared in kind.requests[:3]:
            streams.require_head(prepared.head("host:1"))


def profile_file(data: bytes) -> None:
    """Check that a profile can be read, or that the error names the file."""
    path = _written(("mine.toml",), data) / "mine.toml"
    try:
        profile.load_profile(str(path))
    except ConfigError as error:
        _require_message(error, "mine.toml")


def response(data: bytes) -> None:
    """Check that responses are the same however the stream is split, and that they respect the size limits."""
    if len(data) < 2:
        return
    method = "HEAD" if data[0] & 1 else "GET"
    dice = random.Random(data[1])
    whole, pieces = (streams.read(stream, method) for stream in ([data[2:]], streams.cut(data[2:], dice)))
    assert whole == pieces
    for parsed in whole:
        if isinstance(parsed, wire.Response):
            assert len(parsed.body) <= wire.MAX_BODY_BYTES
            assert parsed.size >= len(parsed.body)


def generator(data: bytes) -> None:
    """Check that a load generator's output yields a result, or an error with a short message."""
    text = data.decode("utf-8", "replace")
    for generator_type in (Wrk(), Loadgen()):
        for run_ in RUNS:
            try:
                result = generator_type.result(run_, text)
            except LoadError as error:
                assert len(str(error)) < 2000
            else:
                assert 0 < result.duration < 1e9
                assert 0 <= result.requests < 1e15


def dockerfile_text(data: bytes) -> None:
    """Check that any Dockerfile's base images are found in bounded time."""
    for image in dockerfile.base_images(data.decode("utf-8", "replace")):
        assert not any(character.isspace() for character in image)


def documents(data: bytes) -> None:
    """Check that claims.json, a history and site.json can be read, or that the error is a documented one."""
    folder = _written((claims.CLAIMS_FILE, history.FILE, "site.json"), data)
    with suppress(StoreError):
        _require_round_trip(claims.read_claims(folder))
    with suppress(UsageError):
        for result in history.read_history(folder / history.FILE):
            list(history.request_lines([result], next(iter(result.requests)).request if result.requests else ""))
    with suppress(StoreError):
        read_site(folder)


def order_answers(data: bytes) -> None:
    """Check that a scenario's recorded responses can be read, or that the error names the file."""
    path = _written(("responses.jsonl",), data) / "responses.jsonl"
    try:
        list(orders.read(path))
    except LoadError as error:
        _require_message(error, "responses.jsonl")


TARGETS: Mapping[str, Target] = {
    "configuration": configuration,
    "dockerfile": dockerfile_text,
    "documents": documents,
    "generator": generator,
    "lines": lines,
    "order-answers": order_answers,
    "profile": profile_file,
    "round-results": round_results,
    "run": run,
    "service": service_file,
    "wire": response,
}
