"""The Docker runtime on a real engine: images of a few lines of Perl, the run's PostgreSQL, and nothing left behind."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.host import ownership
from harness.plan.discovery import Implementation
from harness.runtime import DatabaseAddress, compose
from harness.runtime.compose import Project
from harness.runtime.docker import DockerRuntime
from harness.runtime.readiness import get
from harness.tests.doubles.implementations import implementation
from harness.tests.host.test_leftovers import dead
from harness.tests.scene import DOCKERFILE, SERVER

pytestmark = [pytest.mark.docker, pytest.mark.e2e, pytest.mark.timeout(900)]

# As TechEmpower's folders do: a port and a name of the database of its own choice.
UPSTREAM = 'FROM debian:trixie-slim\nCOPY server.pl /\nENV HOST=0.0.0.0 PORT=3000\nCMD ["perl", "/server.pl"]\n'


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerRuntime]:
    logs = tmp_path_factory.mktemp("containers")
    made = DockerRuntime(project=Project(run_id=f"test-{os.getpid()}", bridge=False), logs=logs)
    made.prepare()
    yield made
    made.close()
    assert not compose.ids("ps", "--all", "--filter", f"label={compose.RUN_LABEL}={made.project.run_id}")
    found = [i for i in compose.images() if i["Config"]["Labels"][compose.IMAGE_LABEL].startswith("tfb/unit-")]
    compose.remove_images([name for image in found for name in image["RepoTags"] or [image["Id"]]])


def built(runtime: DockerRuntime, folder: Path, dockerfile: str = DOCKERFILE) -> Implementation:
    """An implementation whose image has been built; ``UPSTREAM`` is a folder that knows nothing of this harness."""
    name = f"unit-{folder.name}".replace("_", "-")
    entry: dict[str, object] = {"port": 3000, "database": "postgres"}
    entry |= {} if dockerfile == UPSTREAM else {"docker_cmd": "good", "local": {"run": ["false"]}}
    shutil.copy(SERVER, folder / "server.pl")
    (folder / f"{name}.dockerfile").write_text(dockerfile)
    known = implementation(folder, name, **entry)
    build = runtime.build(known, folder / "build.log")
    assert build.status == "ok", build.reason
    assert build.image_bytes
    return known


ADDRESS = DatabaseAddress(host="127.0.0.1", port=1)


def test_a_server_answers_is_metered_and_is_gone_afterwards(runtime: DockerRuntime, tmp_path: Path) -> None:
    known = built(runtime, tmp_path)
    log = tmp_path / "log"
    with runtime.start(known, ADDRESS, log, ready_path="/json") as server:
        identity, before = server.meter.identity(), server.meter.read()
        connections = server.meter.connections(server.endpoint.port)
        command = ["-c", "4", "-t", "1", "-d", "1", server.endpoint.url("/plaintext")]
        with runtime.generator("wrk", command) as load:
            load.begin()
            counted = [connections.read()]
            while load.wait(0.2) is None:
                counted.append(connections.read())
        connections.close()
        assert load.wait(0) == 0, load.output()
        assert max(each.connections for each in counted if each) == 4
        assert server.meter.read().cpu_seconds > before.cpu_seconds
        assert (server.meter.identity(), 0 < server.startup_time < 60) == (identity, True)
        other = runtime.project
        assert compose.ids("ps", "--filter", f"label={compose.RUN_LABEL}={other.run_id}")
    assert "fake: good" in log.read_text()
    assert not compose.ids("ps", "--all", "--filter", f"label={compose.RUN_LABEL}={runtime.project.run_id}")


def test_an_upstream_folder_finds_the_database_by_its_name_on_a_network_of_the_run_s(
    runtime: DockerRuntime, tmp_path: Path
) -> None:
    project = Project(run_id=f"bridge-{os.getpid()}", bridge=True)
    theirs = DockerRuntime(project=project, logs=tmp_path, alone=True)
    known = built(theirs, tmp_path, dockerfile=UPSTREAM)
    try:
        with theirs.database() as shared, shared.own(known.name) as own:
            assert not theirs.side_by_side
            with theirs.start(known, own.address, tmp_path / "log", ready_path="/json") as server:
                status, body = get(server.endpoint, "/json", seconds=5)
                assert (status, json.loads(body)) == (200, {"message": "Hello, World!"})
                of_this_run = ("--filter", f"label={compose.RUN_LABEL}={project.run_id}")
                found = compose.ids("ps", *of_this_run, "--filter", "label=com.docker.compose.service=tfb-server")
                (container,) = found or [""]
                looked = compose.docker("exec", container, "getent", "hosts", "tfb-database")
                assert looked.status == 0, looked.stdout
    finally:
        theirs.close()
    assert not compose.ids("network", "ls", "--filter", f"label={compose.RUN_LABEL}={project.run_id}")


def test_containers_of_a_dead_harness_are_named_and_removed_and_a_living_one_s_stay(runtime: DockerRuntime) -> None:
    started = []
    for owner in (dead(), ownership.me()):
        labels = ("--label", f"{compose.RUN_LABEL}=left-{os.getpid()}", "--label", f"{compose.OWNER_LABEL}={owner}")
        done = compose.docker("run", "--detach", *labels, "debian:trixie-slim", "sleep", "600")
        started.append(done.stdout.strip().splitlines()[-1])
    try:
        mine = [each for each in compose.leftovers() if f"left-{os.getpid()}" in each.name]
        assert [(each.kind, each.certain) for each in mine] == [("container", True)]
        mine[0].remove()
        left = compose.ids("ps", "--all", "--filter", f"label={compose.RUN_LABEL}=left-{os.getpid()}")
        assert left == [started[1]]
    finally:
        compose.docker("container", "rm", "--force", *started)
