"""Attack: runs and clean-up touch Docker resources that tfb did not create."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.host import ownership, process
from harness.plan.benchmark_config import LocalRun
from harness.runtime import NO_DATABASE, compose, images
from harness.runtime.compose import OWNER_LABEL, RUN_LABEL, Project
from harness.runtime.container import FOLLOWED_BYTES, Container
from harness.runtime.docker import DockerRuntime, image_tag
from harness.runtime.limits import Limits
from harness.tests.adversarial import engine
from harness.tests.adversarial.engine import BASE, docker, unique
from harness.tests.doubles.implementations import implementation

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

PERL = Path(__file__).parents[1] / "e2e" / "fake_server.pl"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Move tfb's state folder, which lists the images that tfb built, to a temporary folder."""
    monkeypatch.setenv("TFB_STATE", str(tmp_path / "state"))


@pytest.fixture
def volume() -> Iterator[str]:
    """Create a volume that belongs to the user and contains a file."""
    name = unique("acme-data")
    docker("volume", "create", name)
    docker("run", "--rm", "--volume", f"{name}:/data", BASE, "sh", "-c", "echo precious >/data/file")
    yield name
    docker("volume", "rm", "--force", name, check=False)


@pytest.fixture
def network() -> Iterator[str]:
    """Create a network that belongs to the user."""
    name = unique("acme-net")
    docker("network", "create", name)
    yield name
    docker("network", "rm", name, check=False)


def mounted(container: str) -> set[str]:
    """Return the names of a container's volumes."""
    return {each["Name"] for each in json.loads(engine.inspect("container", container, "{{json .Mounts}}"))}


def test_named_volumes_of_the_user_are_not_shared(tmp_path: Path, volume: str, network: str) -> None:
    text = f"""
services:
  web:
    image: {BASE}
    container_name: {volume}
    command: [sh, -c, "rm -f /data/file; sleep 600"]
    volumes: [data:/data, /anonymous]
    networks: [prod]
    depends_on: [store]
  store: {{image: "{BASE}", command: [sleep, "600"], volumes: ["data:/data"]}}
volumes: {{data: {{name: {volume}}}}}
networks: {{prod: {{name: {network}, ipam: {{config: [{{subnet: 10.213.7.0/24}}]}}}}}}
"""
    session, used = engine.session(tmp_path), []
    with ExitStack() as stack:
        for name in ("base", "base-copy", "head"):
            side = stack.enter_context(engine.side(name, {"compose.yaml": text}, session, tmp_path))
            container = stack.enter_context(side.started(tmp_path / f"{name}.log"))
            used.append(mounted(container))
            assert network not in engine.inspect("container", container, "{{json .NetworkSettings.Networks}}")
        assert volume not in set.union(*used)
        assert sum(map(len, used)) == len(set.union(*used)) == 6
    assert docker("run", "--rm", "--volume", f"{volume}:/data", BASE, "cat", "/data/file") == "precious"
    assert engine.inspect("network", network, "{{.Name}}") == network
    for kind in ("container", "network", "volume"):
        assert session.project.token not in docker(kind, "ls", *(["--all"] if kind == "container" else []))
    for each in set.union(*used):
        assert each not in docker("volume", "ls", "--quiet").split()


def test_a_build_takes_no_tag_of_the_user(tmp_path: Path) -> None:
    tag = f"{unique('acme/shop')}:1.0"
    docker("image", "tag", BASE, tag)
    text = f"services: {{web: {{build: {{context: ., tags: [{tag}]}}, image: '{tag}', command: [sleep, '600']}}}}"
    files = {"compose.yaml": text, "Dockerfile": f"FROM {tag}\nRUN echo head >/built\n"}
    try:
        before = engine.inspect("image", tag, "{{.Id}}")
        with engine.side("head", files, engine.session(tmp_path), tmp_path) as side:
            (own,) = side.tags
            with side.started(tmp_path / "log") as container:
                assert engine.inspect("container", container, "{{.Image}}") == side.tags[own]
        assert engine.inspect("image", tag, "{{.Id}}") == before
        assert docker("image", "ls", "--quiet", own) == ""
    finally:
        docker("image", "rm", tag)


@pytest.fixture
def built(tmp_path: Path) -> Iterator[tuple[DockerRuntime, str, str]]:
    """Build an image; yield the runtime, the image tag and the image ID."""
    name = unique("adversarial")
    (tmp_path / f"{name}.dockerfile").write_text(
        f'FROM {BASE}\nRUN echo {name} >/name\nCOPY fake_server.pl /\nCMD ["perl", "/fake_server.pl"]\n'
    )
    shutil.copy(PERL, tmp_path)
    subject = implementation(tmp_path, name, local=LocalRun(run=("false",)))
    runtime = DockerRuntime(project=Project(run_id=unique("run"), bridge=False), logs=tmp_path)
    build = runtime.build(subject, tmp_path / "build.log")
    assert build.status == "ok", build.reason
    yield runtime, image_tag(subject), str(build.image_digest)
    runtime.close()
    docker("image", "rm", image_tag(subject), str(build.image_digest), check=False)


def test_clean_removes_only_the_tag_of_tfb(built: tuple[DockerRuntime, str, str]) -> None:
    runtime, tag, identity = built
    users, derived = f"{unique('acme/shop')}:1.0", unique("tfb/derived")
    docker("image", "tag", tag, users)
    docker("image", "tag", tag, f"{tag}:backup")
    docker("build", "--quiet", "--tag", derived, "-", given=f"FROM {tag}\nLABEL a=b\n")
    nameless = docker("build", "--quiet", "-", given=f"FROM {tag}\nLABEL c=d\n")
    try:
        runtime.close()
        assert [image.name for image in images.own_images()] == [f"{tag}:latest"]
        assert images.remove_images([image.name for image in images.own_images()]) == []
        assert images.own_images() == []
        for name in (users, f"{tag}:backup"):
            assert engine.inspect("image", name, "{{.Id}}") == identity
        assert docker("image", "inspect", derived, nameless)
    finally:
        docker("image", "rm", users, f"{tag}:backup", derived, nameless, check=False)


def test_images_of_the_user_are_not_leftovers(built: tuple[DockerRuntime, str, str]) -> None:
    runtime, tag, identity = built
    runtime.close()
    docker("image", "tag", BASE, tag)
    # The tag now refers to a different image, so the built image has no tag.
    assert [(image.name, tag in image.description) for image in images.own_images()] == [(identity, True)]
    assert images.remove_tag(tag, identity) == []
    assert engine.inspect("image", tag, "{{.Id}}") == engine.inspect("image", BASE, "{{.Id}}")


def test_builds_keep_existing_tags_of_the_user(tmp_path: Path) -> None:
    name = unique("adversarial")
    (tmp_path / f"{name}.dockerfile").write_text(f"FROM {BASE}\n")
    docker("image", "tag", BASE, f"tfb/{name}")
    try:
        runtime = DockerRuntime(project=Project(run_id="x", bridge=False), logs=tmp_path)
        build = runtime.build(implementation(tmp_path, name, local=LocalRun(run=("false",))), tmp_path / "build.log")
        assert build.status == "failed"
        assert "tfb did not build it" in build.reason
        assert engine.inspect("image", f"tfb/{name}", "{{.Id}}") == engine.inspect("image", BASE, "{{.Id}}")
    finally:
        docker("image", "rm", f"tfb/{name}")


def test_servers_start_from_the_image_just_built(built: tuple[DockerRuntime, str, str], tmp_path: Path) -> None:
    """Between build and start, another run moves the tag to a different image and removes the built image."""
    runtime, tag, identity = built
    docker("image", "rm", tag)
    docker("image", "tag", BASE, tag)
    made = implementation(tmp_path, tag.removeprefix("tfb/"), local=LocalRun(run=("false",)))
    with runtime.start(made, NO_DATABASE, tmp_path / "server.log", ready_path="/json") as server:
        container = server.program.identity().partition("@")[0]
        assert engine.inspect("container", container, "{{.Image}}") == identity
        for limit in ("PidsLimit", "Memory", "MemorySwap"):
            assert int(engine.inspect("container", container, f"{{{{.HostConfig.{limit}}}}}")) > 0


def test_simultaneous_runs_do_not_interfere(tmp_path: Path) -> None:
    first, second = (Project(run_id="20260101-000000", bridge=False) for _ in range(2))
    assert first.name != second.name
    marks = {RUN_LABEL: first.run_id, OWNER_LABEL: "1.1.1.1"}
    other_container = docker("run", "--detach", *compose.label_flags(marks), BASE, "sleep", "600")
    own_container = docker("run", "--detach", *first.labels(), BASE, "sleep", "600")
    try:
        first.remove_all()
        assert own_container not in docker("ps", "--all", "--quiet", "--no-trunc")
        assert other_container in docker("ps", "--quiet", "--no-trunc")
        assert ownership.owner_state("1.1.1.1") == "unknown"  # ``./tfb clean`` keeps other machines' resources
        assert all(
            not leftover.is_certain for leftover in compose.engine_leftovers() if other_container[:12] in leftover.name
        )
    finally:
        docker("rm", "--force", other_container, own_container, check=False)


def test_volumes_of_killed_sessions_are_leftovers(tmp_path: Path) -> None:
    pid, _, rest = ownership.own_identity().split(".", 2)
    name = f"tfb-{unique('killed')}_data"
    marks = {RUN_LABEL: "killed", OWNER_LABEL: f"{pid}.1.{rest}"}
    docker("volume", "create", *compose.label_flags(marks), name)
    try:
        (found,) = [each for each in compose.engine_leftovers() if name in each.name]
        assert (found.kind, found.is_certain) == ("volume", True)
        found.remove()
        assert name not in docker("volume", "ls", "--quiet").split()
    finally:
        docker("volume", "rm", "--force", name, check=False)


def test_container_logs_cannot_fill_the_disk(tmp_path: Path) -> None:
    """tfb reads the log only after the container has exited, and must still find the last line."""
    project = Project(run_id=unique("log"), bridge=False)
    floods = "yes 0123456789012345678901234567890123456789 | head -c 120000000; echo the last line; sleep 600"
    started = docker(
        "run", "--detach", *project.labels(), *Limits(memory_bytes=128 << 20, pids=50).flags, BASE, "sh", "-c", floods
    )
    log = tmp_path / "server.log"
    try:
        container = Container("flood", started, log)
        until = time.monotonic() + 120
        while "the last line" not in docker("logs", "--tail", "1", started) and time.monotonic() < until:
            assert log.stat().st_size <= FOLLOWED_BYTES
            time.sleep(0.2)
        container.require_alive()
        assert log.stat().st_size > process.MAX_LOG_BYTES
        container.stop()
        assert log.stat().st_size <= FOLLOWED_BYTES
        assert "the last line" in log.read_text(errors="replace")[-100_000:]
    finally:
        project.remove_all()


def test_a_fork_bomb_stays_in_its_container(tmp_path: Path) -> None:
    bomb = "for i in $(seq 200); do sleep 60 & done 2>&1; echo done; sleep 60"
    text = f"services: {{web: {{image: '{BASE}', command: [bash, -c, {json.dumps(bomb.replace('$', '$$'))}]}}}}"
    with (
        engine.side("head", {"compose.yaml": text}, engine.session(tmp_path), tmp_path) as side,
        side.started(tmp_path / "log") as container,
    ):
        assert engine.inspect("container", container, "{{.HostConfig.PidsLimit}}") == "64"
        assert engine.inspect("container", container, "{{.HostConfig.Memory}}") == str(256 << 20)
        assert (
            engine.inspect("container", container, "{{.HostConfig.LogConfig.Config}}") == "map[max-file:1 max-size:20m]"
        )
        until = time.monotonic() + 60
        while "retry" not in docker("logs", container) and time.monotonic() < until:
            time.sleep(0.2)
        assert len(docker("top", container, "-eo", "pid").splitlines()) <= 66
