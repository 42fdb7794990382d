"""The same on Docker: containers killed or out of memory, an engine of no use, a harness that is killed."""

import signal
import subprocess
from collections.abc import Callable

import pytest

from harness.host import ownership
from harness.runtime.compose import OWNER_LABEL, RUN_LABEL
from harness.tests.scene import Answer, Scene, docker

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]
needs_engine = pytest.mark.docker

RUN = ("--test", "one", "--type", "json")
IMAGES_SECONDS = 400.0  # until a first run in a fresh engine has its images


@pytest.fixture
def containers(scene: Scene) -> Scene:
    """One implementation with an image of its own."""
    scene.image("one")
    return scene


def service(scene: Scene, name: str) -> str:
    return next(iter(scene.containers("--filter", f"label=com.docker.compose.service={name}")))


def struck(scene: Scene, strike: "Callable[[subprocess.Popen[bytes]], object]") -> Answer:
    """A run in which something happens under load; no container of it is left."""
    answer = scene.struck(RUN, scene.at("measure"), strike, within=IMAGES_SECONDS)
    assert scene.containers() == []
    return answer


@needs_engine
def test_what_the_end_of_postgres_s_container_took_is_measured_again(containers: Scene) -> None:
    answer = struck(containers, lambda _: docker("kill", service(containers, "tfb-database")))
    answer.ends(0).says("PostgreSQL", "measured again")
    assert containers.measured() == {"one"}


@needs_engine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_container(containers: Scene, number: signal.Signals) -> None:
    struck(containers, lambda run: run.send_signal(number)).ends(130)


@needs_engine
def test_containers_of_a_killed_run_are_named_by_doctor_and_removed_by_clean(containers: Scene) -> None:
    """A killed harness cannot remove them itself; those of one that lives, as this one, stay."""
    labels = ("--label", f"{RUN_LABEL}=alive", "--label", f"{OWNER_LABEL}={ownership.me()}")
    containers.struck(RUN, containers.at("measure"), lambda run: run.kill())
    alive = docker("run", "--detach", *labels, "debian:trixie-slim", "sleep", "600").split()[-1]
    containers.tfb("doctor").says("left by a run that was killed: container")
    containers.tfb("clean", "--leftovers", "--yes").ends(0)
    assert containers.containers() == []
    assert docker("rm", "--force", alive).strip() == alive


COMPOSE = 'case "$1 $2" in "compose version") echo 2.30; exit 0;; esac'
CLIENTS = {
    "it hangs": "sleep 600",
    "Cannot connect": "echo Cannot connect; exit 1",
    "permission denied": "echo permission denied; exit 1",
}


@pytest.mark.parametrize("says", CLIENTS)
def test_an_engine_that_is_of_no_use_is_told_apart_before_a_run(containers: Scene, says: str) -> None:
    """Hanging, stopped or forbidden: exit status 3, and a line that says what to do; nothing is written."""
    path = containers.program("docker", f"{COMPOSE}; {CLIENTS[says]}")
    containers.measure(*RUN, env=path).ends(3).says(says)
    assert list(containers.results.iterdir()) == []
