"""Faulty servers, tools and databases are reported, and do not affect other implementations."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence

import psutil
import pytest

from harness.tests.scene import Scene, new_scene, started_by

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300)]

LOG_BYTES = 25 << 20
RUN = ("--test", "one", "two", "--type", "json")


HOSTILE: Mapping[str, Sequence[str]] = {
    "without end": ("endless-body", "endless-header", "endless-chunks"),
    "too slow": ("drips", "silent", "stops-itself"),
    "far too large": ("promises-a-petabyte", "gzip-bomb", "brotli-bomb", "many-values", "deep-json"),
    "no HTTP": ("garbage", "resets", "huge-number"),
    "for a terminal or a log": ("escape-header", "escape-log", "big-log", "one-line-log"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_responses_do_not_affect_other_servers(scene: Scene, kind: str) -> None:
    """Endless, huge, compressed, broken or missing responses fail in bounded time, memory and disk space."""
    scene.add("good")
    for name in HOSTILE[kind]:
        scene.add(name, name)
    answer = scene.measure("--test", "good", *HOSTILE[kind], "--type", "json", "--mode", "verify", seconds=250)
    answer.ends(1).says("good: verified", *HOSTILE[kind])
    assert [name for name in HOSTILE[kind] if f"{name}: verified" in answer.text] == []
    assert [path for path in scene.root.rglob("*.log") if path.stat().st_size > LOG_BYTES] == []


@pytest.fixture(scope="module")
def gallery() -> Iterator[Scene]:
    """Yield a finished run of all faulty implementations and a good one."""
    with new_scene() as scene:
        for name in (
            *("good", "exits-at-once", "never-listens", "answers-500", "dies-in-verification", "dies-under-load"),
            *("errors-under-load", "floods-under-load", "answers-slowly", "ignores-sigterm", "leaves-a-daemon"),
            "prints-a-lot",
        ):
            scene.add(name, name)
        scene.add("build-fails", build=["sh", "-c", "echo compiling; echo 'error: missing semicolon' >&2; exit 4"])
        scene.add("no-such-program", run=["/no/such/program"])
        scene.add("not-a-program", run=["./benchmark_config.json"])
        scene.add("lacks-a-tool", requires={"cobol-machine": ">=7"})
        scene.write("broken", b'{"framework": "broken", "tests": [{"default": {"language": "C", "jsn_url": "/json"}}]}')
        scene.measure("--test", "run", "--type", "json", seconds=250).ends(1)
        yield scene


WORKING = ("good", "answers-slowly", "ignores-sigterm", "leaves-a-daemon", "prints-a-lot")


def test_working_servers_are_measured_despite_failing_ones(gallery: Scene) -> None:
    """The run has the status "failed", but contains trials of the working implementations."""
    assert gallery.records().info.status == "failed"
    assert set(WORKING) <= gallery.measured()
    assert {name: gallery.why_failed(name) for name in WORKING} == dict.fromkeys(WORKING, "ok: ")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exits-at-once", ("the server ended (exit status 3)", "cannot read its configuration", "log: ")),
        ("never-listens", ("Make it listen on the port in the environment variable PORT",)),
        ("answers-500", ("500 'fake: no'",)),
        ("dies-in-verification", ("the server ended (exit status 7)",)),
        ("dies-under-load", ("the server ended (killed by SIGKILL)", "fake: out of memory")),
        ("errors-under-load", ("json c8: errors",)),
        ("floods-under-load", ("json c8: ",)),
        ("build-fails", ("failed: sh -c", "(exit status 4)", "error: missing semicolon", "log: ")),
        ("no-such-program", ("/no/such/program: not found",)),
        ("not-a-program", ("cannot run ./benchmark_config.json: Permission denied",)),
        ("lacks-a-tool", ("skipped: needs cobol-machine >=7: not found on PATH; ",)),
    ],
)
def test_each_failure_has_a_message_and_no_result(gallery: Scene, name: str, words: tuple[str, ...]) -> None:
    gallery.failed(name, *words)


def test_no_process_outlives_its_run(gallery: Scene) -> None:
    remaining = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(gallery.root) in str(process.environ()):
                remaining.append(process.cmdline())
    assert remaining == []
    assert list(gallery.scratch.iterdir()) == []


def test_occupied_port_is_reported_with_its_process(scene: Scene) -> None:
    scene.add("good")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = scene.measure("--test", "good", "--type", "json", "--server-port", port)
    answer.ends(1).says(f"port {port} is taken by", f"(pid {os.getpid()})")


def test_hanging_tool_affects_only_implementations_that_require_it(scene: Scene) -> None:
    path = scene.program("hangs", "sleep 600")
    scene.add("good")
    scene.add("bad", requires={"hangs": ">=1"})
    words = ("--test", "good", "bad", "--type", "json", "--mode", "verify")
    scene.measure(*words, env=path).ends(1).says("good: verified", "bad", "hangs")
    # Without the tool on PATH, the failure is immediate.
    assert "good" not in scene.measure(*words, "--quiet").ends(1).says("bad", "hangs").stdout


@pytest.mark.parametrize("says", ["no Lua", "\x1b[2J" + "[" * 100_000], ids=["words", "controls"])
def test_unexpected_output_of_a_load_generator_is_reported(scene: Scene, says: str) -> None:
    """The message quotes a limited part of the output, and the run goes on."""
    words = scene.root / "says"
    words.write_text(says, encoding="utf-8")
    path = scene.program("wrk", f'case "$1" in --version) echo "wrk 4.2.0 [epoll]"; exit 1;; esac; cat {words}; exit 2')
    scene.add("good")
    answer = scene.measure("--test", "good", "--type", "json", "--generator", "wrk", env=path)
    answer.ends(1).says("wrk failed (exit status 2)")
    (process,) = scene.records().processes
    assert process.status == "failed"
    assert len(process.reason) < 10_000


def test_postgres_start_failure_is_reported_with_its_log(scene: Scene) -> None:
    scene.add("good")
    scene.program("initdb", 'while [ "$1" != -D ]; do shift; done; mkdir "$2"')
    version = '[ "$1" = --version ] && { echo "postgres (PostgreSQL) 99.1"; exit; }'
    path = scene.program("postgres", f'{version}; echo "FATAL: no shared memory"; exit 1')
    answer = scene.measure("--test", "good", "--type", "json", env=path)
    answer.ends(1).says("PostgreSQL exited immediately (exit status 1)", "FATAL: no shared memory")
    assert list(scene.scratch.iterdir()) == []
    assert scene.records().info.status == "failed"


def postmaster(harness: int) -> psutil.Process:
    ours = [process for process in started_by(harness) if process.info["name"] == "postgres"]
    return next(process for process in ours if process.ppid() not in {other.pid for other in ours})


def kill_worker(first: psutil.Process) -> None:
    next(child for child in first.children() if "background writer" in " ".join(child.cmdline())).kill()


def kill_all(first: psutil.Process) -> None:
    for process in (*first.children(recursive=True), first):
        with contextlib.suppress(psutil.NoSuchProcess):  # the others may exit once the first is killed
            process.kill()


DEATHS: Mapping[str, Callable[[psutil.Process], object]] = {
    "first process killed": psutil.Process.kill,
    "all killed": kill_all,
    "a worker killed": kill_worker,
    "stopped": psutil.Process.terminate,
}


@pytest.mark.parametrize(
    ("design", "how"), [*(("interleaved", how) for how in DEATHS), ("techempower", "first process killed")]
)
def test_measurements_are_repeated_after_postgres_dies(scene: Scene, design: str, how: str) -> None:
    """tfb restarts PostgreSQL on the same port with the initial data, and measures every implementation again."""
    scene.profile.write_text(f'design = "{design}"\n{scene.profile.read_text(encoding="utf-8")}', encoding="utf-8")
    for name in ("one", "two"):
        scene.add(name)
    answer = scene.struck(RUN, scene.at("measure"), lambda run: DEATHS[how](postmaster(run.pid)))
    answer.ends(0).says("PostgreSQL", "measured again")
    assert scene.measured() == {"one", "two"}
