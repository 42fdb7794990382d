"""Attack: a results folder is oversized or broken, or resources are exhausted. Commands must fail within seconds."""

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import cli
from harness.errors import Exit, StoreError
from harness.extras.site.site_pages import publish
from harness.host import interruption, memory
from harness.paths import REPOSITORY
from harness.plan.benchmark_config import NAME_BYTES
from harness.provisioning import toolchain
from harness.records import claims, reader, store
from harness.records.measurements import Latency
from harness.records.store import RunStore
from harness.runtime.database.embedded import embedded_database
from harness.tests.doubles import records

pytestmark = pytest.mark.timeout(300)
MOST_BYTES = 900 << 20  # memory limit of a command that reads records
LONG = "n" * 300
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives PostgreSQL a separate account")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The exit status, output and peak memory of a finished command."""

    status: int
    text: str
    peak_bytes: int


def tfb(*words: str, limits: Sequence[tuple[int, int]] = (), before: Sequence[str] = ()) -> Ended:
    """Run ``tfb`` under resource limits until it exits; ``before`` is a command prefix."""

    def limited() -> None:
        for limit, most in limits:
            resource.setrlimit(limit, (most, most))

    command = [*before, sys.executable, "-m", "harness", *words]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    child = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        preexec_fn=limited,  # noqa: PLW1509 - no thread of this process holds a lock that the child needs
    )
    assert child.stdout is not None
    text = child.stdout.read().decode(errors="replace")
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Ended(status=child.returncode, text=text, peak_bytes=used.ru_maxrss * 1024)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    records.write(tmp_path / "results", "one")
    return tmp_path / "results"


def sparse(folder: Path) -> None:
    os.truncate(folder / "trials.jsonl", 2 << 30)


def one_line(folder: Path) -> None:
    with (folder / "trials.jsonl").open("ab") as file:
        for _ in range(100):
            file.write(b"x" * (1 << 20))


def many_trials(folder: Path) -> None:
    whole = (folder / "trials.jsonl").read_bytes()
    with (folder / "trials.jsonl").open("ab") as file:
        for _ in range(60_000 // whole.count(b"\n")):
            file.write(whole)


def many_objections(folder: Path) -> None:
    """Write records that are small on disk but large in memory."""
    trial = json.loads(records.trials()[0].to_json())
    trial["validity"] = [{"name": "", "outcome": "pass", "value": 0, "threshold": 0}] * 20_000
    with (folder / "trials.jsonl").open("a", encoding="utf-8") as file:
        for number in range(60):
            file.write(json.dumps({**trial, "id": str(number)}, separators=(",", ":")) + "\n")


SIZES: dict[str, tuple[Callable[[Path], object], str]] = {
    "2 GiB": (sparse, "trials.jsonl: exceeds the size limit: it is 2.0 GiB"),
    "one line": (one_line, "trials.jsonl: line 13: longer than 16 MiB"),
    "60,000 trials": (many_trials, "trials.jsonl: exceeds the memory limit"),
    "large in memory": (many_objections, "trials.jsonl: exceeds the memory limit"),
    "verdicts": (lambda folder: os.truncate(folder / "verdicts.jsonl", 3 << 30), "verdicts.jsonl: exceeds the size"),
    "run.json": (lambda folder: os.truncate(folder / "run.json", 2 << 30), "run.json: cannot read the file: larger"),
    "deep": (lambda folder: (folder / "run.json").write_text('{"a":' * 400_000), "run.json: Invalid JSON: recursion"),
    "wide": (lambda folder: (folder / "run.json").write_text("[" + "[]," * 600_000), "run.json: contains more than"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "size"), [*(("report", size) for size in SIZES), ("compare", "2 GiB"), ("compare", "one line")]
)
def test_huge_results_end_in_a_message(results: Path, verb: str, size: str) -> None:
    make, message = SIZES[size]
    make(results / "one")
    ended = tfb(verb, *["one"] * (2 if verb == "compare" else 1), "--results", str(results))
    assert message in ended.text
    assert "Traceback" not in ended.text
    assert ended.status == (Exit.FAILED if verb == "report" or "run.json" in message else ended.status)
    assert ended.peak_bytes < MOST_BYTES * (2 if verb == "compare" else 1)


def test_reports_do_not_load_windows_and_histograms(results: Path) -> None:
    latency = Latency(
        basis="closed-loop, service time",
        mean=1.0,
        stdev=1.0,
        min=0.0,
        max=2.0,
        percentiles={"50": 1.0},
        histogram=tuple((number * 1e-6, number) for number in range(1000)),
    )
    whole = records.trials()[0].model_copy(update={"latency": latency})
    RunStore(results / "one", started_at=0.0).add_trial(whole)
    short = store.read_run(results / "one").trials[-1]
    assert short.latency is not None
    assert (short.latency.histogram, short.latency.percentiles) == ((), latency.percentiles)
    assert store.read_run(results / "one", with_series=True).trials[-1] == whole


@pytest.mark.parametrize("verb", ["report", "list"])
def test_very_many_runs_are_no_obstacle(tmp_path: Path, verb: str) -> None:
    for number in range(3000):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        (folder / "run.json").write_text(f'{{"schema_version": 4, "started_at": {number}.5}}')
    newest = records.info("a").model_copy(update={"started_at": 4000.0})
    records.stored(tmp_path / "a", newest, records.trials())
    started_at = time.monotonic()
    ended = tfb(verb, *(("--results", str(tmp_path)) if verb == "report" else ()))
    assert ended.status == Exit.OK
    assert time.monotonic() - started_at < 60


NAMED = {
    "report": ("report", LONG),
    "report a path": ("report", f"/{LONG}"),
    "report with NUL": ("report", "a\0b"),
    "compare": ("compare", LONG, "one"),
    "resume": ("run", "--resume", LONG),
    "resume a path": ("run", "--resume", f"x/{LONG}"),
    "output": ("report", "one", "--output", f"/{LONG}"),
    "site": ("report", "one", "--site", f"/{LONG}"),
    "frameworks": ("run", "--frameworks", LONG, "--dry-run"),
    "results": ("report", "one", "--results", LONG),
}


@pytest.mark.parametrize("what", NAMED)
def test_long_names_are_told(results: Path, capsys: pytest.CaptureFixture[str], what: str) -> None:
    words = NAMED[what]
    more = () if "--results" in words else ("--results", str(results))
    assert cli.main([*words, *more]) in (Exit.FAILED, Exit.USAGE, Exit.ENVIRONMENT)
    said = capsys.readouterr().err
    assert "internal error in tfb" not in said
    assert said.startswith("tfb: ")


def test_output_with_the_longest_name_is_written(results: Path, tmp_path: Path) -> None:
    target = tmp_path / ("p" * 250 + ".html")
    assert cli.main(["report", "one", "--output", str(target), "--results", str(results)]) == Exit.OK
    assert target.read_text(encoding="utf-8")


def test_a_long_name_does_not_stop_other_implementations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("good", "名" * 100):
        entry = {"language": "Python", "json_url": "/json", "local": {"run": ["true"]}}
        folder = tmp_path / "fw" / "Python" / ("good" if name == "good" else "long")
        folder.mkdir(parents=True)
        document = {"framework": name, "tests": [{"default": entry}]}
        (folder / "benchmark_config.json").write_text(json.dumps(document), encoding="utf-8")
    cli.main(["list", "--frameworks", str(tmp_path / "fw")])
    out, err = capsys.readouterr()
    assert "good" in out
    assert f"is 300 bytes long in UTF-8; at most {NAME_BYTES} are allowed" in err


def test_site_has_pages_of_long_names(tmp_path: Path) -> None:
    info = records.info("r" * 255)
    first, second = info.implementations
    info = info.model_copy(update={"implementations": (first.model_copy(update={"name": "名" * 300}), second)})
    trials = [each.model_copy(update={"implementation": "名" * 300}) for each in records.trials()[:6]]
    records.stored(tmp_path / "r" / info.run_id, info, trials)
    publish([tmp_path / "r" / info.run_id], tmp_path / "site", name="one", published_at=1e9)
    pages = sorted((tmp_path / "site" / "rounds" / "one").iterdir())
    assert [page.suffix for page in pages] == [".html", ".png"]


def test_link_of_a_site_is_only_a_link(tmp_path: Path) -> None:
    info = records.info('"><script>alert(1)<')
    records.stored(tmp_path / "r" / info.run_id, info, records.trials())
    publish([tmp_path / "r" / info.run_id], tmp_path / "site", name="one", published_at=1e9)
    assert "<script>alert" not in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


VERBS = [("report", "one"), ("compare", "one", "one"), ("run", "--resume", "one"), ("report", "one", "--html")]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_run_of_a_newer_version_is_named(
    results: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    path = results / "one" / "run.json"
    path.write_text(json.dumps({"schema_version": 9, "run_id": 5, "all": "is new"}))
    assert cli.main([*words, "--results", str(results)]) == Exit.FAILED
    said = capsys.readouterr().err
    assert "run one was recorded by a newer tfb (schema 9; this version reads up to 4). Update tfb" in said


def test_a_huge_version_number_is_shortened(tmp_path: Path) -> None:
    (tmp_path / claims.CLAIMS_FILE).write_text(f'{{"schema_version": {"9" * 400}, "verdicts": []}}')
    with pytest.raises(StoreError, match=rf"newer tfb \(schema {'9' * 20}; this"):
        claims.read_claims(tmp_path)


def test_infinity_in_recorded_settings_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    document = json.loads(records.info().to_json())
    document["settings"] = {"profile": {"maximum": math.inf}}
    (folder / "run.json").write_text(json.dumps(document))
    with pytest.raises(StoreError, match=r"run\.json: "):
        reader.RunReader(folder).records()


def test_verdicts_of_a_newer_version_are_named(tmp_path: Path) -> None:
    (tmp_path / claims.CLAIMS_FILE).write_text('{"schema_version": 7, "verdicts": []}')
    with pytest.raises(StoreError, match=r"recorded by a newer tfb \(schema 7; this version reads up to 2\)"):
        claims.read_claims(tmp_path)


@pytest.mark.parametrize("file", ["trials.jsonl", "processes.jsonl", "verdicts.jsonl"])
def test_a_broken_line_is_named_and_skipped(results: Path, file: str) -> None:
    path = results / "one" / file
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"broken\n", b"x" * (reader.MAX_LINE_BYTES + 5) + b"\n", *lines[2:]]))
    records = store.read_run(results / "one")
    assert [each for each in records.problems if f"{file}: line 3: " in each]
    assert [each for each in records.problems if f"{file}: line 4: longer than 16 MiB" in each]
    assert len(records.problems) == 2
    assert (len(records.trials), len(records.processes), len(records.verdicts)) == (12, 4, 4)


ANY = [("list",), ("report",), ("run", "--dry-run"), ("--list-tests",), ("doctor",), ("--version",)]


@pytest.mark.parametrize("words", ANY, ids=" ".join)
@pytest.mark.parametrize("limit", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_too_little_memory_is_named_within_seconds(words: tuple[str, ...], limit: int) -> None:
    started_at = time.monotonic()
    ended = tfb(*words, limits=[(limit, 200_000 << 10)])
    assert ended.status == Exit.FAILED
    assert "memory is limited to 195 MiB" in ended.text
    assert time.monotonic() - started_at < 30


def test_least_memory_is_enough(results: Path) -> None:
    ended = tfb("report", "one", "--results", str(results), limits=[(resource.RLIMIT_AS, memory.MIN_BYTES)])
    assert ended.status == Exit.OK, ended.text


def test_endless_imports_are_ended_by_the_kernel() -> None:
    code = (
        "from harness.host import interruption\n"
        "interruption.LOADING_CPU_SECONDS = 0.3\n"
        "interruption.install_handlers(lambda: None, lambda: None)\n"
        "with interruption.held_while_loading():\n"
        "    while True: sum(range(10_000_000))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    completed = subprocess.run([sys.executable, "-c", code], env=environment, check=False, timeout=60)
    assert completed.returncode == -signal.SIGPROF


def test_loading_leaves_no_timer() -> None:
    with interruption.held_while_loading(), interruption.held_while_loading():
        assert signal.getitimer(signal.ITIMER_PROF)[0] > 0
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0


def test_user_s_threads_of_openblas_are_overruled() -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OPENBLAS_NUM_THREADS": "64"}
    code = "import harness, os; print(os.environ['OPENBLAS_NUM_THREADS'])"
    completed = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    assert completed.stdout == "1\n"


@ROOT
def test_folder_that_postgresql_may_not_enter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = toolchain.find_tool("postgres")
    if tool is None:
        pytest.skip("PostgreSQL is missing")
    closed = tmp_path / "closed"
    (closed / "tmp").mkdir(parents=True)
    closed.chmod(0o700)
    monkeypatch.setattr("tempfile.tempdir", str(closed / "tmp"))
    with (
        pytest.raises(Exception, match=r"may not enter .* which is part of TMPDIR. Set TMPDIR"),
        embedded_database(tool, tmp_path / "database.log"),
    ):
        pass
    shutil.rmtree(closed)
