"""Everything that can go wrong with an implementation, a tool or the disk: a clear message, exit code, nothing lost."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.records.models import Outcome, RunRecords
from harness.tests.e2e.fakes import Finished, Place

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture
def place() -> Iterator[Place]:
    root = Path(tempfile.mkdtemp(prefix="tfb-test-"))
    root.chmod(0o755)
    yield Place(root)
    shutil.rmtree(root)


@dataclass(frozen=True, kw_only=True)
class Gallery:
    """One run of every misbehaving implementation beside a good one."""

    done: Finished
    records: RunRecords
    place: Place

    def reason(self, name: str) -> str:
        """Why an implementation's build or replicate failed."""
        build = next(i.build for i in self.records.info.implementations if i.name == name)
        assert build is not None
        if build.status != "ok":
            return f"{build.status}: {build.reason}"
        return next(f"{r.status}: {r.reason}" for r in self.records.replicates if r.implementation == name)

    def samples(self, name: str) -> int:
        """How many valid samples there are of it."""
        return len([s for s in self.records.samples if s.implementation == name and s.rankable])


@pytest.fixture(scope="module")
def gallery() -> Iterator[Gallery]:
    root = Path(tempfile.mkdtemp(prefix="tfb-test-"))
    root.chmod(0o755)
    place = Place(root)
    for name in (
        *("good", "exits-at-once", "never-listens", "answers-500", "dies-in-verification", "dies-under-load"),
        *("errors-under-load", "answers-slowly", "ignores-sigterm", "leaves-a-daemon", "prints-a-lot"),
    ):
        place.add(name, name)
    place.add("build-fails", build=["sh", "-c", "echo compiling; echo 'error: missing semicolon' >&2; exit 4"])
    place.add("no-such-program", run=["/no/such/program"])
    place.add("not-a-program", run=["./benchmark_config.json"])
    place.add("lacks-a-tool", requires={"cobol-machine": ">=7"})
    place.write("broken", '{"framework": "broken", "tests": [{"default": {"language": "C", "jsn_url": "/json"}}]}')
    done = place.run("--test", "run", "--type", "json")
    yield Gallery(done=done, records=place.records(), place=place)
    shutil.rmtree(root)


def test_a_run_with_failures_exits_1_and_says_failed(gallery: Gallery) -> None:
    assert (gallery.done.status, gallery.records.info.status) == (1, "failed"), gallery.done.stderr
    assert "Traceback" not in gallery.done.stderr


@pytest.mark.parametrize("name", ["good", "answers-slowly", "ignores-sigterm", "leaves-a-daemon", "prints-a-lot"])
def test_what_works_is_measured_beside_what_does_not(gallery: Gallery, name: str) -> None:
    assert gallery.reason(name) == "ok: "
    assert gallery.samples(name) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exits-at-once", ("the server ended (exit status 3)", "cannot read its configuration", "log: ")),
        (
            "never-listens",
            ("no valid response within ", "does it listen on the port that PORT names?"),
        ),
        ("answers-500", ("no valid response within ", "its last answer to /json was 500 'fake: no'")),
        ("dies-in-verification", ("the server ended (exit status 7)",)),
        ("dies-under-load", ("the server ended (killed by SIGKILL)", "fake: out of memory")),
        ("errors-under-load", ("json c8: errors",)),
        ("build-fails", ("failed: sh -c", "(exit status 4)", "error: missing semicolon", "log: ")),
        ("no-such-program", ("/no/such/program: not found",)),
        ("not-a-program", ("./benchmark_config.json: cannot be run: Permission denied",)),
        ("lacks-a-tool", ("skipped: needs cobol-machine >=7, which is not on this machine",)),
    ],
)
def test_each_failure_has_its_message_and_no_figure(gallery: Gallery, name: str, words: tuple[str, ...]) -> None:
    reason = gallery.reason(name)
    assert [word for word in words if word not in reason] == [], reason
    assert gallery.samples(name) == 0
    assert any(name in problem for problem in gallery.records.info.problems)


def test_a_server_that_dies_while_it_is_verified_costs_one_verdict_and_not_all(place: Place) -> None:
    place.add("dies-in-verification", "dies-in-verification")
    done = place.run("--mode", "verify", "--test", "dies-in-verification", "--type", "json", "--json")
    document = json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"verdicts"')))
    assert [verdict["test_type"] for verdict in document["verdicts"]] == ["http", "json"], done.stderr
    began = [problem.partition("verified: ")[0] for problem in document["problems"]]
    assert began == ["while http was ", "while json was "]  # each by a server of its own
    assert done.status == 1


def test_a_broken_file_is_named_with_its_test_and_what_it_lacks(gallery: Gallery) -> None:
    (problem,) = [p for p in gallery.records.info.problems if "Python/broken" in p]
    assert "Python/broken/benchmark_config.json: tests.default: names no URL" in problem


def test_errors_under_load_are_kept_but_not_ranked(gallery: Gallery) -> None:
    (sample,) = [s for s in gallery.records.samples if s.implementation == "errors-under-load"]
    assert sample.errors.status > 0
    assert sample.throughput == pytest.approx((sample.requests - sample.errors.status) / sample.duration)
    assert [g.name for g in sample.gates if g.outcome is Outcome.FAIL and g.name != "probe"] == ["errors"]


def test_a_server_that_ignores_sigterm_and_a_daemon_are_killed(gallery: Gallery) -> None:
    log = gallery.place.log()
    assert "ignored SIGTERM" in log
    assert "outlived its parents" in log


def test_no_scratch_folder_is_left(gallery: Gallery) -> None:
    assert list(gallery.place.scratch.iterdir()) == []


def test_a_taken_port_names_the_process_that_holds_it(place: Place) -> None:
    place.add("good")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = place.run("--test", "good", "--type", "json", "--server-port", str(port))
    assert done.status == 1
    (replicate,) = place.records().replicates
    assert f"port {port} is taken by " in replicate.reason
    assert f"(pid {os.getpid()})" in replicate.reason


def test_without_wrk_the_exit_code_is_3_and_the_message_has_the_command(place: Place) -> None:
    place.add("good")
    bin_folder = place.scratch.parent / "bin"
    bin_folder.mkdir()
    (bin_folder / "apt-get").symlink_to("/bin/false")
    done = place.run("--test", "good", environment={"PATH": str(bin_folder)})
    assert done.status == 3
    assert done.stderr.strip().splitlines()[-1] == "tfb: missing: wrk >=4.1. To install: apt-get install wrk"
    assert list(place.results.iterdir()) == []  # a run that never began leaves nothing


def test_a_failing_wrk_is_reported_with_what_it_printed(place: Place) -> None:
    place.add("good")
    program(place, "wrk", 'case "$1" in --version) echo "wrk 4.2.0 [epoll]"; exit 1;; esac; echo "no Lua"; exit 2')
    done = place.run("--test", "good", "--type", "json", environment=first_on_path(place))
    assert done.status == 1
    (replicate,) = place.records().replicates
    assert "json: wrk failed (exit status 2)" in replicate.reason
    assert "no Lua" in replicate.reason


def test_a_postgres_that_does_not_start_is_reported_with_its_last_words(place: Place) -> None:
    place.add("good")
    program(place, "initdb", 'while [ "$1" != -D ]; do shift; done; mkdir "$2"')
    program(
        place,
        "postgres",
        '[ "$1" = --version ] && { echo "postgres (PostgreSQL) 99.1"; exit; }; echo "FATAL: no shared memory"; exit 1',
    )
    done = place.run("--test", "good", "--type", "json", environment=first_on_path(place))
    assert done.status == 1
    assert "PostgreSQL ended at once (exit status 1)" in done.stderr
    assert "FATAL: no shared memory" in done.stderr
    assert list(place.scratch.iterdir()) == []
    assert place.records().info.status == "failed"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_loses_nothing_that_was_measured(place: Place) -> None:
    place.add("good")
    place.results.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place.results)], check=True)
    filler = place.results / "filler"
    try:
        run = subprocess.Popen(
            place.command("--test", "good", "--type", "json", "--replicates", "2", "--seed", "5"),
            env=place.environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        while run.poll() is None and not any(f.stat().st_size for f in place.results.glob("*/samples.jsonl")):
            run.poll()
            os.sched_yield()
        fill(filler)
        stderr = run.communicate(timeout=120)[1]
        assert run.returncode == 1
        assert "Traceback" not in stderr
        assert "No space left on device" in stderr.strip().splitlines()[-1]
        kept = place.records()
        assert kept.samples
        assert kept.problems == ()
        filler.unlink()
        resumed = place.run("--resume", "latest")
        assert resumed.status == 0, resumed.stderr
        records = place.records()
        assert sorted(s.block for s in records.samples) == [0, 1]
        assert records.info.status == "complete"
    finally:
        subprocess.run(["umount", str(place.results)], check=True)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue


def program(place: Place, name: str, code: str) -> None:
    """A shell script in a folder of the test's own."""
    folder = place.scratch.parent / "bin"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{code}\n")
    path.chmod(0o755)


def first_on_path(place: Place) -> dict[str, str]:
    """The environment in which those come first."""
    return {"PATH": f"{place.scratch.parent / 'bin'}:{os.environ['PATH']}"}
