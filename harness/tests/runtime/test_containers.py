"""The Docker runtime on a real engine: an image of a few lines of Perl, the run's PostgreSQL, and nothing left."""

import json
import os
import shutil
from pathlib import Path

import pytest

from harness.plan.discovery import Implementation
from harness.runtime import compose
from harness.runtime.compose import Project
from harness.runtime.docker import DockerRuntime, image_tag
from harness.runtime.readiness import get
from harness.tests.doubles.implementations import implementation
from harness.tests.scene import DOCKERFILE, SERVER

pytestmark = [pytest.mark.docker, pytest.mark.e2e, pytest.mark.timeout(900)]

# As TechEmpower's folders do: a port and a name of the database of its own choice.
UPSTREAM = 'FROM debian:trixie-slim\nCOPY server.pl /\nENV HOST=0.0.0.0 PORT=3000\nCMD ["perl", "/server.pl"]\n'


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


def test_an_upstream_folder_finds_the_database_by_its_name_on_a_network_of_the_run_s(tmp_path: Path) -> None:
    project = Project(run_id=f"bridge-{os.getpid()}", bridge=True)
    theirs = DockerRuntime(project=project, logs=tmp_path, alone=True)
    theirs.prepare()
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
        compose.remove_images([image_tag(known)])
    assert not compose.ids("network", "ls", "--filter", f"label={compose.RUN_LABEL}={project.run_id}")
