"""Docker runs: images, networks, CPU limits, broken images, and leftovers of killed runs."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from harness.host import ownership
from harness.paths import REPOSITORY
from harness.runtime.compose import OWNER_LABEL, RUN_LABEL
from harness.tests.e2e.conftest import tfb
from harness.tests.scene import PROGRAM, CommandResult, Scene, docker, new_scene

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(600)]

BUILD_SECONDS = 12  # time limit for a build, instead of an hour
MEMORY_MIB = 48
UPSTREAM = "FROM debian:trixie-slim\nCOPY server.pl /\nENV HOST=0.0.0.0 PORT=3000\n"
QUICK_BUILDS = f"import harness.runtime.docker as docker\ndocker.BUILD_SECONDS = {BUILD_SECONDS}\n{PROGRAM}"


@pytest.fixture(scope="module", autouse=True)
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build the images that take longer than BUILD_SECONDS in advance. Remove the tests' images afterwards."""
    words = ("--type", "json", "--profile", "smoke", "--duration", "1", "--runtime", "docker")
    completed = tfb("run", "express", *words, "--results", str(tmp_path_factory.mktemp("results")))
    assert completed.returncode == 0, completed.stderr
    yield
    if left := docker("image", "ls", "--quiet", "--filter", "reference=tfb/e2e-*").split():
        docker("image", "rm", "--force", *left)


@pytest.fixture(scope="module")
def gallery() -> Iterator[Scene]:
    """Run all misbehaving images and one well-behaved image together. Yield the finished run's scene."""
    with new_scene() as scene:
        for name in ("good", "exits-at-once", "never-listens", "out-of-memory", "dies-under-load"):
            scene.image(f"e2e-{name}", name)
        failing = "echo compiling && echo missing semicolon >&2 && exit 4"
        scene.image("e2e-build-fails", dockerfile=f"FROM debian:trixie-slim\nRUN {failing}\n")
        scene.image("e2e-build-hangs", dockerfile="FROM debian:trixie-slim\nRUN sleep 86397\n")
        scene.image("e2e-no-dockerfile")
        (scene.frameworks / "Python" / "e2e-no-dockerfile" / "e2e-no-dockerfile.dockerfile").unlink()
        words = scene.words("--test", "run", "--type", "json", "--test-container-memory", f"{MEMORY_MIB}m")
        scene.run([sys.executable, "-c", QUICK_BUILDS, *words], seconds=400).ends(1)
        yield scene


def test_broken_images_do_not_stop_the_others(gallery: Scene) -> None:
    assert gallery.why_failed("e2e-good") == "ok: "
    (trial,) = [trial for trial in gallery.records().trials if trial.implementation == "e2e-good"]
    assert trial.rankable
    assert trial.requests > 100
    assert trial.server.throttled_seconds == 0
    assert gallery.containers() == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exits-at-once", ("exit status 3", "cannot read its configuration", "log: ")),
        ("never-listens", ("Make it listen on the port in the environment variable PORT",)),
        ("out-of-memory", (f"out of memory: it reached the limit of {MEMORY_MIB} MiB (--test-container-memory)",)),
        ("dies-under-load", ("its container has exited: killed by SIGKILL (exit status 137)", "fake: dies-under-load")),
        ("build-fails", ("failed: building the image tfb/e2e-build-fails failed", "missing semicolon", "log: ")),
        ("build-hangs", (f"tfb/e2e-build-hangs was stopped after {BUILD_SECONDS} s",)),
        ("no-dockerfile", ("skipped: ", "e2e-no-dockerfile.dockerfile does not exist")),
    ],
)
def test_each_failure_has_a_message_and_no_result(gallery: Scene, name: str, words: tuple[str, ...]) -> None:
    gallery.failed(f"e2e-{name}", *words)


def test_the_image_of_a_good_build_is_recorded(gallery: Scene) -> None:
    (build,) = [i.build for i in gallery.records().info.implementations if i.name == "e2e-good"]
    assert (build.image, (build.image_digest or "")[:7]) == ("tfb/e2e-good", "sha256:")
    assert (build.image_bytes or 0) > 50e6


def struck(scene: Scene, strike: Callable[["subprocess.Popen[bytes]"], object]) -> CommandResult:
    """Start a run, call ``strike`` during a load, and assert that no container remains."""
    scene.image("e2e-one")
    answer = scene.struck(("--test", "e2e-one", "--type", "json"), scene.at("measure"), strike)
    assert scene.containers() == []
    return answer


def test_a_lost_database_container_is_replaced(scene: Scene) -> None:
    database = "label=com.docker.compose.service=tfb-database"
    answer = struck(scene, lambda _: docker("kill", *scene.containers("--filter", database)))
    answer.ends(0).says("PostgreSQL", "measured again")
    assert scene.measured() == {"e2e-one"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_container(scene: Scene, number: signal.Signals) -> None:
    struck(scene, lambda run: run.send_signal(number)).ends(130)


def test_clean_removes_containers_of_killed_runs(scene: Scene) -> None:
    """``./tfb clean`` removes the containers of a killed run and keeps those of an active run."""
    scene.image("e2e-one")
    labels = ("--label", f"{RUN_LABEL}=alive", "--label", f"{OWNER_LABEL}={ownership.own_identity()}")
    scene.struck(("--test", "e2e-one", "--type", "json"), scene.at("measure"), lambda run: run.kill())
    alive = docker("run", "--detach", *labels, "debian:trixie-slim", "sleep", "600").split()[-1]
    scene.tfb("doctor").says("left by a killed run: container")
    scene.tfb("clean", "--leftovers", "--yes").ends(0)
    assert scene.containers() == []
    assert docker("rm", "--force", alive).strip() == alive


def test_ctrl_c_during_a_build_ends_the_build(scene: Scene) -> None:
    scene.image("e2e-slow", dockerfile=f"FROM debian:trixie-slim\nRUN sleep 86397 # {uuid4()}\n")
    answer = scene.struck(("--test", "e2e-slow"), scene.at("building"), lambda run: run.send_signal(signal.SIGINT))
    answer.ends(130)
    found = subprocess.run(["pgrep", "-f", "sleep 86397"], capture_output=True, text=True, check=False)
    assert found.stdout.split() == []


def test_debug_mode_shows_the_log_as_it_comes(scene: Scene) -> None:
    scene.image("e2e-good")
    words = ("--mode", "debug", "--test", "e2e-good")
    answer = scene.struck(words, lambda: "fake: good" in scene.log(), lambda run: run.send_signal(signal.SIGINT))
    answer.ends(130).says("/json")


def test_images_are_rebuilt_only_when_sources_change(scene: Scene) -> None:
    scene.image("e2e-own")
    server = scene.frameworks / "Python" / "e2e-own" / "server.pl"
    server.write_text(f"{server.read_text()}# an image that nobody else has: {uuid4()}\n")

    def verified(*more: str) -> str:
        scene.measure("--mode", "verify", "--test", "e2e-own", "--type", "json", *more, seconds=200).ends(0)
        return docker("image", "inspect", "--format", "{{.Id}}", "tfb/e2e-own")

    first = verified()
    assert verified() == first
    server.write_text(server.read_text() + "# another line\n")
    assert verified() not in ("", first)
    docker("image", "rm", first)  # ``./tfb clean`` would also remove the images of other runs
    dry = tfb("clean", "--dry-run", seconds=60)
    assert (dry.returncode, "tfb/e2e-own:latest" in dry.stdout) == (0, True)
    assert verified("--force-rm") == ""


def test_verify_rejects_root_and_ignored_sigterm(scene: Scene) -> None:
    """The other implementation, e2e-good, has no root privileges and stops on SIGTERM, so it passes."""
    scene.image("e2e-good")
    stubborn = json.dumps(["sh", "-c", "trap '' TERM; perl /server.pl; true"])
    scene.image("e2e-root", dockerfile=f"FROM debian:trixie-slim\nCOPY server.pl /\nCMD {stubborn}\n")
    folder = scene.frameworks / "Python" / "e2e-root"
    config = folder / "benchmark_config.json"
    config.write_text(config.read_text().replace('"docker_cmd": "good", ', ""))

    def verified(name: str) -> CommandResult:
        where = ("--frameworks", str(scene.frameworks), "--rules", "tfb", "--runtime", "docker")
        return scene.tfb("verify", name, *where, "--type", "json", "--strict", "--no-install", seconds=200)

    verified("e2e-root").ends(1).says("runs as root in the container", "does not stop after SIGTERM")
    answer = verified("e2e-good")
    assert "as root" not in answer.stdout + answer.stderr
    assert "SIGTERM" not in answer.stdout + answer.stderr


def test_upstream_folders_reach_the_database_by_name(scene: Scene) -> None:
    """Like TechEmpower's folders, this one chooses its own port and has no ``local`` block."""
    name, entry = "e2e-upstream", {"language": "Perl", "json_url": "/json", "port": 3000, "database": "postgres"}
    starts = "getent hosts tfb-database && exec perl /server.pl"
    scene.image(name, dockerfile=f"{UPSTREAM}CMD {json.dumps(['sh', '-c', starts])}\n")
    scene.write(name, json.dumps({"framework": name, "tests": [{"default": entry}]}).encode())
    scene.measure("--test", name, "--type", "json", seconds=200).ends(0)
    assert scene.measured() == {name}
    assert scene.containers() == []
    assert scene.folder().name not in docker("network", "ls", "--format", "{{.Labels}}")


def test_express_runs_on_one_cpu_and_a_bridge(scene: Scene) -> None:
    scene.runtime, scene.frameworks = "docker", REPOSITORY / "frameworks"
    words = ("--test", "express", "--type", "json", "db", "--network-mode", "bridge", "--cpuset-cpus", "0")
    scene.measure(*words, seconds=400).ends(0)
    trials = scene.records().trials
    assert sorted((t.test_type, t.rankable, t.errors.total) for t in trials) == [("db", True, 0), ("json", True, 0)]
    for trial in trials:
        assert len(trial.server.pids) == 3  # tini, the main process and a worker
        assert trial.requests > 100
