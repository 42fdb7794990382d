"""A run over machines on a real engine, which a context of the Docker client names as another machine's."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import ServerDiedError
from harness.extras.deployments import MachinesRuntime
from harness.plan.hosts import of_flags
from harness.runtime import OfSeveral, compose
from harness.runtime.choice import choose
from harness.runtime.database import connect
from harness.tests.doubles.implementations import implementation
from harness.tests.runtime.test_docker import settings
from harness.tests.scene import DOCKERFILE, SERVER

pytestmark = [pytest.mark.docker, pytest.mark.e2e, pytest.mark.timeout(900)]

WHERE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachinesRuntime]:
    """Of three machines that are this one: two contexts of its engine, which two clients need."""
    names = [f"tfb-test-{letter}-{os.getpid()}" for letter in "ab"]
    for name in names:
        done = compose.docker("context", "create", name, "--docker", f"host={WHERE}")
        assert done.status == 0, done.stdout
    one, two = (f"context:{name}=127.0.0.1" for name in names)
    wanted = settings(runtime="docker", hosts=of_flags(one, one, (one, two)), test_types=("json",))
    made = choose(wanted, (), tmp_path_factory.mktemp("machines"), run_id=f"machines-{os.getpid()}")
    assert isinstance(made, MachinesRuntime)
    yield made
    made.close()
    assert not compose.ids("ps", "--all", "--filter", f"label={compose.RUN_LABEL}={made.project.run_id}")
    compose.docker("context", "rm", "--force", *names)


def test_server_database_and_clients_work_together_and_leave_nothing(runtime: MachinesRuntime, tmp_path: Path) -> None:
    shutil.copy(SERVER, tmp_path / "server.pl")
    (tmp_path / "unit.dockerfile").write_text(DOCKERFILE)
    known = implementation(tmp_path, "unit", docker_cmd="good", local={"run": ["false"]})
    assert runtime.build(known, tmp_path / "build.log").status == "ok"
    with runtime.database() as shared, shared.own(known.name) as own:
        with connect(own.address) as connection:
            assert connection.execute(b"SELECT count(*) FROM fortune").fetchone() == (12,)
        with runtime.start(known, own.address, tmp_path / "log", ready_path="/json") as server:
            identity, before = server.meter.identity(), server.meter.read()
            connections = server.meter.connections(server.endpoint.port)
            command = ["-c", "6", "-t", "2", "-d", "2", server.endpoint.url("/plaintext")]
            with runtime.generator("wrk", command) as load:
                load.begin()
                counted = []
                while load.wait(0.3) is None:
                    counted.append(connections.read())
                assert load.wait(0) == 0, load.output()
                assert load.output().count("Requests/sec") == 2
            assert max(each.connections for each in counted if each) == 6
            assert isinstance(load, OfSeveral)
            assert [each.connections for each in load.begun()] == [3, 3]
            assert server.meter.read().cpu_seconds > before.cpu_seconds
            assert server.meter.identity() == identity
            stolen, every = server.meter.steal_ticks() or (0.0, 0.0)
            assert 0 <= stolen < every
            runtime.require_machines()
            (found,) = compose.ids("ps", "--filter", "label=com.docker.compose.service=tfb-server") or [""]
            compose.docker("kill", found)
            time.sleep(1.0)
            with pytest.raises(ServerDiedError, match=r"its container on context:\S+ is gone: killed by SIGKILL"):
                server.meter.require_alive()
