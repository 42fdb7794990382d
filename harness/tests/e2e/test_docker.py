"""Everything that can go wrong with containers: a clear message, the rest measured, and nothing left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from harness.faults.scene import HEARS_INTERRUPTS, READY_SECONDS
from harness.host import process
from harness.measure.loadgen import Load
from harness.measure.loadgen.wrk import Wrk
from harness.paths import REPOSITORY
from harness.plan.discovery import scan
from harness.records.models import RunRecords
from harness.runtime import compose
from harness.runtime.database.embedded import free_port
from harness.runtime.docker import DockerRuntime
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.e2e.conftest import tfb
from harness.tests.e2e.fakes import Finished, Place

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(600)]

BUILD_SECONDS = 12  # instead of an hour
MEMORY_MIB = 48
SLEEP = "86397"  # seconds: so that a process of ours is known by its command line
PROGRAM = (
    f"{HEARS_INTERRUPTS}"
    "import runpy, harness.runtime.docker as docker, harness.runtime.readiness as readiness\n"
    f"docker.BUILD_SECONDS, readiness.READY_SECONDS = {BUILD_SECONDS}, {READY_SECONDS}\n"
    "runpy.run_module('harness', run_name='__main__', alter_sys=True)"
)
DOCKERFILE = 'FROM debian:trixie-slim\nCOPY server.pl /\nUSER nobody\nENTRYPOINT ["perl", "/server.pl"]\n'


class Containers(Place):
    """Implementations that are a few lines of Perl, which every Debian image has."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._before = self._found()

    def add(self, name: str, behaviour: str = "good", **local: object) -> None:
        """An implementation that behaves like that; ``dockerfile`` builds it instead of the usual one."""
        entry: dict[str, object] = {
            "language": "Perl",
            "json_url": "/json",
            "plaintext_url": "/plaintext",
            "docker_cmd": behaviour,
        }
        entry["local"] = {"run": ["false"]}  # written for this harness: without it, it would run as TechEmpower runs it
        self.write(name, json.dumps({"framework": name, "tests": [{"default": entry}]}))
        folder = self.frameworks / "Python" / name
        shutil.copy(Path(__file__).parent / "fake_server.pl", folder / "server.pl")
        (folder / f"{name}.dockerfile").write_text(str(local.get("dockerfile", DOCKERFILE)))

    def command(self, *arguments: str) -> list[str]:
        """The command line of a run here."""
        where = ["--frameworks", str(self.frameworks), "--rules", "tfb", "--results", str(self.results)]
        where += ["--runtime", "docker"]
        return [sys.executable, "-c", PROGRAM, *where, "--profile", str(self.profile), *arguments]

    def container(self, service: str) -> str:
        """Id of the running container of a service of the run here, or nothing."""
        kind = "ancestor=tfb/wrk" if service == "tfb-wrk" else f"label=com.docker.compose.service={service}"
        for path in self.results.glob("*"):
            mine = ("--filter", f"label={compose.RUN_LABEL}={path.name}", "--filter", kind)
            return next(iter(compose.ids("ps", *mine) or ()), "")
        return ""

    def left_behind(self) -> set[str]:
        """Containers and networks of the runs here, servers of these tests, and processes of builds that had to end."""
        return self._found() - self._before

    def _found(self) -> set[str]:
        found = {f"pid {p.pid}" for p in psutil.process_iter(["cmdline"]) if SLEEP in (p.info["cmdline"] or ())}
        for image in compose.images():
            name = image["Config"]["Labels"][compose.IMAGE_LABEL]
            if name.startswith("tfb/e2e-"):
                found.update(compose.ids("ps", "--all", "--filter", f"label={compose.IMAGE_LABEL}={name}") or ())
        for path in self.results.glob("*"):
            mine = ("--filter", f"label={compose.RUN_LABEL}={path.name}")
            found.update(compose.ids("ps", "--all", *mine) or (), compose.ids("network", "ls", *mine) or ())
        return found


@pytest.fixture(scope="module", autouse=True)
def images(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The images that a fresh machine does not build within BUILD_SECONDS: base, database, wrk, express."""
    logs = tmp_path_factory.mktemp("images")
    runtime = DockerRuntime(project=compose.Project(run_id="e2e-images", bridge=False), logs=logs)
    runtime.prepare()
    express = next(i for i in scan().implementations if i.name == "express")
    build = runtime.build(express, logs / "express.log")
    assert build.status == "ok", build.reason


@pytest.fixture
def place() -> Iterator[Containers]:
    root = Path(tempfile.mkdtemp(prefix="tfb-test-"))
    yield Containers(root)
    shutil.rmtree(root)
    remove_test_images()


def remove_test_images() -> None:
    """Images whose names only these tests give; the next run of them finds the layers in the build cache."""
    found = [i for i in compose.images() if i["Config"]["Labels"][compose.IMAGE_LABEL].startswith("tfb/e2e-")]
    compose.remove_images([name for image in found for name in image["RepoTags"] or [image["Id"]]])


# ---- one run of everything that fails by itself ----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Gallery:
    """One run of every misbehaving image beside a good one."""

    done: Finished
    records: RunRecords
    left: set[str]

    def reason(self, name: str) -> str:
        """Why an implementation's build or replicate failed."""
        build = next(i.build for i in self.records.info.implementations if i.name == name)
        assert build is not None
        if build.status != "ok":
            return f"{build.status}: {build.reason}"
        return next(f"{r.status}: {r.reason}" for r in self.records.replicates if r.implementation == name)


@pytest.fixture(scope="module")
def gallery() -> Iterator[Gallery]:
    root = Path(tempfile.mkdtemp(prefix="tfb-test-"))
    place = Containers(root)
    for name in ("good", "exits-at-once", "never-listens", "out-of-memory", "dies-under-load"):
        place.add(f"e2e-{name}", name)
    for name, command in (
        ("build-fails", "echo compiling && echo missing semicolon >&2 && exit 4"),
        ("build-hangs", f"sleep {SLEEP}"),
    ):
        place.add(f"e2e-{name}", dockerfile=f"FROM debian:trixie-slim\nRUN {command}\n")
    place.add("e2e-no-dockerfile")
    (place.frameworks / "Python" / "e2e-no-dockerfile" / "e2e-no-dockerfile.dockerfile").unlink()
    done = place.run("--test", "run", "--type", "json", "--test-container-memory", f"{MEMORY_MIB}m")
    yield Gallery(done=done, records=place.records(), left=place.left_behind())
    shutil.rmtree(root)
    remove_test_images()


def test_a_run_with_failures_exits_1_and_says_failed(gallery: Gallery) -> None:
    assert (gallery.done.status, gallery.records.info.status) == (1, "failed"), gallery.done.stderr
    assert "Traceback" not in gallery.done.stderr


def test_nothing_is_left_of_what_failed(gallery: Gallery) -> None:
    assert gallery.left == set()


def test_what_works_is_measured_beside_what_does_not(gallery: Gallery) -> None:
    assert gallery.reason("e2e-good") == "ok: "
    (sample,) = [s for s in gallery.records.samples if s.implementation == "e2e-good"]
    assert sample.rankable
    assert sample.requests > 100
    assert sample.server.throttled_seconds == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exits-at-once", ("exit status 3", "cannot read its configuration", "log: ")),
        (
            "never-listens",
            (f"no valid response within {READY_SECONDS} s", "does it listen on the port that PORT names?"),
        ),
        ("out-of-memory", (f"out of memory: it reached its limit of {MEMORY_MIB} MiB (--test-container-memory)",)),
        ("dies-under-load", ("its container is gone: killed by SIGKILL (exit status 137)", "fake: dies-under-load")),
        ("build-fails", ("failed: building the image tfb/e2e-build-fails failed", "missing semicolon", "log: ")),
        (
            "build-hangs",
            (f"tfb/e2e-build-hangs was not done after {BUILD_SECONDS} s and was stopped", f"sleep {SLEEP}"),
        ),
        ("no-dockerfile", ("skipped: ", "e2e-no-dockerfile.dockerfile does not exist")),
    ],
)
def test_each_failure_has_its_message_and_no_figure(gallery: Gallery, name: str, words: tuple[str, ...]) -> None:
    reason = gallery.reason(f"e2e-{name}")
    assert [word for word in words if word not in reason] == [], reason
    assert [s for s in gallery.records.samples if s.implementation == f"e2e-{name}" and s.rankable] == []
    assert any(name in problem for problem in gallery.records.info.problems)


def test_the_image_of_a_good_build_is_recorded(gallery: Gallery) -> None:
    (build,) = [i.build for i in gallery.records.info.implementations if i.name == "e2e-good"]
    assert build is not None
    assert build.image == "tfb/e2e-good"
    assert (build.image_digest or "").startswith("sha256:")
    assert (build.image_bytes or 0) > 50e6


# ---- containers that are killed from outside -------------------------------------------------------------------------


def test_whatever_is_killed_in_a_measurement_costs_that_replicate_and_no_other(place: Containers) -> None:
    place.add("e2e-good")
    arguments = ("--test", "e2e-good", "--type", "json", "--replicates", "4", "--duration", "4")
    with place.stdout.open("wb") as output:
        run = subprocess.Popen(place.command(*arguments), env=place.environment, stdout=output, stderr=output)
    try:
        for block, victim in enumerate(("tfb-wrk", "tfb-database", "tfb-server"), 1):
            wait_until(partial(measuring, place, block), run)
            assert compose.docker("kill", place.container(victim)).status == 0
        assert run.wait(120) == 1, place.stdout.read_text()
    finally:
        run.terminate()  # nothing, once it has ended
        run.wait(30)
    records = place.records()
    # PostgreSQL is brought back, and what its death took is measured again.
    assert [r.status for r in records.replicates] == ["failed", "ok", "failed", "ok"]
    wrk, _, server, _ = (r.reason for r in records.replicates)
    assert "json: wrk failed (exit status 137)" in wrk
    assert "e2e-good: its container is gone: killed by SIGKILL (exit status 137)" in server
    assert "e2e-good is measured again" in place.stdout.read_text()
    assert [s.block for s in records.samples if s.rankable] == [1, 3]
    assert place.left_behind() == set()


def measuring(place: Containers, block: int) -> bool:
    """Whether wrk is at work on the measurement of this block, counted from 1."""

    def wrk() -> str:
        progress = place.progress()
        measures = progress.get("stage") == "measure" and progress.get("block") == block
        return place.container("tfb-wrk") if measures else ""

    first = wrk()
    if not first:
        return False
    time.sleep(0.5)  # the container of the warm-up may still be there for a moment
    return wrk() == first


def wait_until(condition: Callable[[], bool], run: "subprocess.Popen[bytes]") -> None:
    """Look often, for at most a minute, while the run goes on."""
    until = time.monotonic() + 60
    while not condition():
        assert run.poll() is None, "the run ended too early"
        assert time.monotonic() < until, "never got there"
        time.sleep(0.05)


def test_a_load_that_is_ended_early_gives_its_result_so_far(tmp_path: Path) -> None:
    runtime = DockerRuntime(project=compose.Project(run_id="e2e-early", bridge=False), logs=tmp_path)
    with ReferenceServer() as server, (tmp_path / "wrk").open("w+b") as output:
        url = server.endpoint.url("/json")
        load = Load(url=url, host="127.0.0.1", accept="*/*", seconds=60, connections=4, threads=1)
        with process.running(process.Child(runtime.wrk(Wrk().arguments(load)), stdout=output)) as child:
            until = time.monotonic() + 30
            while server.open_connections < load.connections and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(1)
            child.interrupt()
            assert child.wait(20) == 0
        output.seek(0)
        result = Wrk().result(load, output.read().decode())
    assert 0.9 < result.duration < 20
    assert result.requests > 10


# ---- interruption ----------------------------------------------------------------------------------------------------


def assert_all_is_gone(place: Containers, done: Finished, left: list[str]) -> None:
    assert done.status == 130, done.stderr
    assert done.seconds < 10
    assert left == []
    assert place.left_behind() == set()
    assert "Traceback" not in done.stderr
    assert place.records().info.status == "interrupted"


def test_ctrl_c_during_a_build_ends_the_build(place: Containers) -> None:
    place.add("e2e-build-hangs", dockerfile=f"FROM debian:trixie-slim\nRUN sleep {SLEEP}\n")
    done, left = place.interrupt(
        lambda: any("pid" in what for what in place.left_behind()), signal.SIGINT, "--test", "e2e-build-hangs"
    )
    until = time.monotonic() + 5  # BuildKit ends what nobody waits for, in its own time
    while place.left_behind() and time.monotonic() < until:
        time.sleep(0.1)
    assert_all_is_gone(place, done, left)


def test_ctrl_c_during_a_measurement_leaves_no_container(place: Containers) -> None:
    place.add("e2e-good")
    done, left = place.interrupt(
        lambda: measuring(place, 1), signal.SIGINT, "--test", "e2e-good", "--type", "json", "--duration", "8"
    )
    assert_all_is_gone(place, done, left)
    assert [r.status for r in place.records().replicates] == ["interrupted"]


def test_debug_mode_shows_the_log_as_it_comes(place: Containers) -> None:
    place.add("e2e-good")

    def logged() -> bool:
        return place.stdout.exists() and "fake: good" in place.stdout.read_text()

    port = free_port()
    arguments = ("--mode", "debug", "--test", "e2e-good", "--server-port", str(port))
    done, left = place.interrupt(logged, signal.SIGINT, *arguments)
    assert (done.status, left, place.left_behind()) == (130, [], set())
    assert f"http://127.0.0.1:{port}/json" in done.stdout


# ---- the engine ------------------------------------------------------------------------------------------------------


def test_without_an_engine_the_exit_code_is_3_and_the_message_has_the_next_step(place: Containers) -> None:
    place.add("e2e-good")
    done = place.run("--test", "e2e-good", environment={"DOCKER_HOST": "unix:///nonexistent/docker.sock"})
    assert done.status == 3
    assert done.stderr.strip().splitlines()[-1].endswith("toolset/provision/docker-engine start")
    assert "no Docker engine answers" in done.stderr
    assert list(place.results.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="becoming another user needs root")
def test_a_socket_that_refuses_this_user_is_told_apart_from_no_engine(place: Containers) -> None:
    place.add("e2e-good")
    folder = place.scratch.parent / "bin"
    folder.mkdir()
    program = folder / "docker"
    nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"
    program.write_text(f'#!/bin/sh\nHOME=/ exec {nobody} {compose.client()} "$@"\n')
    program.chmod(0o755)
    folder.parent.chmod(0o755)
    done = place.run("--test", "e2e-good", environment={"PATH": f"{folder}:{os.environ['PATH']}"})
    assert done.status == 3
    assert "permission denied" in done.stderr
    assert "add it to the group docker" in done.stderr


NOWHERE = "no-such-machine.invalid"


def test_a_machine_that_ssh_does_not_reach_is_named_before_anything_is_built(place: Containers) -> None:
    place.add("e2e-good")
    elsewhere = [word for flag in ("--server-host", "--database-host", "--client-host") for word in (flag, NOWHERE)]
    done = place.run("--test", "e2e-good", *elsewhere)
    assert done.status == 3
    assert NOWHERE in done.stderr


# ---- images ----------------------------------------------------------------------------------------------------------


def test_an_image_keeps_its_id_until_its_source_changes_and_force_rm_removes_it(place: Containers) -> None:
    place.add("e2e-good")
    server = place.frameworks / "Python" / "e2e-good" / "server.pl"
    server.write_text(f"{server.read_text()}# an image that nobody else has: {uuid4()}\n")

    def verify(*more: str) -> str:
        done = place.run("--mode", "verify", "--test", "e2e-good", "--type", "json", *more)
        assert done.status == 0, done.stdout + done.stderr
        found = compose.inspect("image", "tfb/e2e-good")
        return str(found["Id"]) if found else ""

    first = verify()
    assert verify() == first
    server.write_text(server.read_text() + "# another line\n")
    second = verify()
    assert second not in ("", first)
    assert compose.inspect("image", first) is None, "a build leaves no image without a name behind"
    dry = tfb("clean", "--dry-run", seconds=60)
    assert (dry.returncode, "tfb/e2e-good:latest" in dry.stdout) == (0, True)
    assert verify("--force-rm") == ""
    assert compose.inspect("image", "debian:trixie-slim") is not None


# ---- a real implementation -------------------------------------------------------------------------------------------


def test_on_a_bridge_and_one_cpu_express_has_one_worker_and_all_is_measured(place: Containers) -> None:
    where = ("--frameworks", str(REPOSITORY / "frameworks"), "--network-mode", "bridge", "--cpuset-cpus", "0")
    done = place.run("--test", "express", "--type", "json", "db", *where)
    assert done.status == 0, done.stderr
    records = place.records()
    assert [(s.test_type, s.rankable, s.errors.total) for s in records.samples] == [("json", True, 0), ("db", True, 0)]
    for sample in records.samples:
        assert len(sample.server.pids) == 3  # tini, the primary and one worker
        assert sample.requests > 100
