"""The Docker runtime without an engine: names, refusals, what containers are told, and how they ended."""

import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import EnvironmentLacksError, UsageError
from harness.host import process, provision
from harness.host.ownership import start_of
from harness.host.process import CommandTimeoutError
from harness.plan import profile
from harness.plan.benchmark_config import TestEntry
from harness.plan.config import Settings
from harness.plan.discovery import Implementation
from harness.plan.hosts import of_flags
from harness.runtime import DatabaseAddress, choice, compose, container
from harness.runtime.compose import Project
from harness.runtime.database.embedded import free_port
from harness.runtime.docker import DockerRuntime, image_tag, listener, require_files

OWN = DatabaseAddress(host="127.0.0.1", port=40123, admin_user="tfb_admin", admin_password="x")
OTHER = DatabaseAddress(host="10.0.0.9", port=5432)


def named(name: str) -> Implementation:
    entry = TestEntry.model_validate({"language": "C", "json_url": "/json"})
    return Implementation(name=name, variant="default", framework="x", folder=Path(), maintainers=(), entry=entry)


def settings(**values: Any) -> Settings:
    known = {"command": (), "profile": profile.load("smoke"), "seed": 1, "results_name": "", "results_environment": ""}
    return Settings(**{**known, **values})


def runtime(*, bridge: bool) -> DockerRuntime:
    return DockerRuntime(project=Project(run_id="20260101-000000", bridge=bridge), logs=Path())


@pytest.mark.parametrize(
    ("name", "tag"), [("express", "tfb/express"), ("Vert.x Web@base", "tfb/vert.x-web-base"), ("c#", "tfb/c")]
)
def test_the_image_is_named_after_the_implementation(name: str, tag: str) -> None:
    assert image_tag(named(name)) == tag


def test_too_few_files_are_refused_before_wrk_runs_with_fewer_sockets() -> None:
    require_files("wrk's container", 1124, 1024)
    with pytest.raises(EnvironmentLacksError, match="wrk's container may open 1123 files, 1024 connections need 1124"):
        require_files("wrk's container", 1123, 1024)


def test_on_host_networking_the_server_is_told_where_the_database_listens() -> None:
    told = runtime(bridge=False)._database_for_server(OWN)
    assert (told["TFB_DATABASE_ADDRESS"], told["TFB_DATABASE_PORT"]) == ("127.0.0.1", "40123")


@pytest.mark.parametrize("bridge", [False, True])
def test_a_server_is_told_the_role_of_its_own_copy_of_the_database_on_every_network(bridge: bool) -> None:
    copy = replace(OWN, name="hello_world_of_a", user="benchmarkdbuser_of_a", password="secret")
    told = runtime(bridge=bridge)._database_for_server(copy)
    names = ("TFB_DATABASE_NAME", "TFB_DATABASE_USER", "TFB_DATABASE_PASSWORD")
    assert [told[name] for name in names] == ["hello_world_of_a", "benchmarkdbuser_of_a", "secret"]


def test_on_a_bridge_the_runs_own_database_goes_by_its_name_and_another_by_its_address() -> None:
    inner = runtime(bridge=True)._database_for_server
    told = inner(OWN)
    assert (told["TFB_DATABASE_ADDRESS"], told["TFB_DATABASE_INNER_PORT"]) == ("tfb-database", "5432")
    assert "TFB_DATABASE_PORT" not in told  # the port that this machine has for it
    assert inner(OTHER)["TFB_DATABASE_ADDRESS"] == "10.0.0.9"


THREE = of_flags("app", "db", ("c1", "c2"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hosts": THREE, "test_types": ("order",)}, "--type order does not go together with other machines"),
        ({"hosts": THREE, "order": "duet"}, "--order duet does not go together with other machines"),
        ({"hosts": THREE, "runtime": "local"}, "--runtime local does not go together with other machines"),
        ({"hosts": THREE, "network_mode": "bridge"}, "--network-mode bridge does not go together with other machines"),
        ({"order": "duet"}, "--order duet runs two servers at once: it needs --runtime local"),
        ({"container_memory": "lots"}, "--test-container-memory: 'lots' is not a size such as 512m or 2g"),
        (
            {"network_mode": "bridge", "hosts": of_flags(None, "postgresql://localhost", ())},
            "localhost:5432 is the container",
        ),
        ({"cpuset_cpus": "4095"}, "--cpuset-cpus: CPU 4095 is not among those that may be used here"),
    ],
)
def test_what_containers_cannot_do_is_refused_before_anything_is_built(
    values: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(choice, "engine", lambda: "26.1")
    with pytest.raises(UsageError, match=message):
        choice.choose(settings(**{"runtime": "docker", **values}), (), tmp_path, run_id="x")


def test_without_an_engine_auto_means_local_and_docker_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def absent() -> str:
        raise EnvironmentLacksError("no Docker engine answers")

    monkeypatch.setattr(choice, "engine", absent)
    monkeypatch.setattr(provision, "needs", lambda *_, **__: ())
    told: list[str] = []
    assert choice.choose(settings(runtime="auto"), (), tmp_path, run_id="x", tell=told.append).name == "local"
    assert told == ["local"]
    with pytest.raises(EnvironmentLacksError):
        choice.choose(settings(runtime="docker"), (), tmp_path, run_id="x")


def test_which_runtime_was_chosen_is_told_before_its_images_are_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[str] = []
    monkeypatch.setattr(choice, "engine", lambda: "26.1")
    monkeypatch.setattr(choice, "clear_containers", lambda _: None)
    monkeypatch.setattr(DockerRuntime, "prepare", lambda _: done.append("images"))
    choice.choose(settings(runtime="auto"), (), tmp_path, run_id="x", tell=done.append)
    assert done == ["docker", "images"]


def state(**values: Any) -> dict[str, Any]:
    known = {"Running": False, "OOMKilled": False, "ExitCode": 0, "Error": ""}
    return {"State": {**known, **values}, "HostConfig": {"Memory": values.pop("Memory", 0)}}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "it was removed"),
        (state(ExitCode=3), "exit status 3"),
        (state(ExitCode=137), "killed by SIGKILL (exit status 137)"),
        (state(ExitCode=127, Error="no such file"), "exit status 127 no such file"),
        (state(ExitCode=137, OOMKilled=True), "out of memory: the machine has no more"),
        (
            state(ExitCode=137, OOMKilled=True, Memory=64 << 20),
            "out of memory: it reached its limit of 64 MiB (--test-container-memory)",
        ),
    ],
)
def test_how_a_container_ended_is_said_in_words(
    found: dict[str, Any] | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "inspect", lambda _kind, _name: found)
    assert container.ended("4f2a") == words


def test_the_engine_is_given_time_to_notice_that_a_process_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [state(Running=True), state(Running=True), state(ExitCode=1)]
    monkeypatch.setattr(container, "inspect", lambda _kind, _name: answers.pop(0))
    assert container.ended("4f2a") == "exit status 1"


def test_a_process_is_known_by_its_number_and_start_time() -> None:
    assert start_of(os.getpid()) == start_of(os.getpid()) != start_of(1)
    assert start_of(4_000_000) is None


def test_a_listener_on_a_fixed_port_is_named_and_a_free_port_has_none() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        assert (listener(server.getsockname()[1]) or "").endswith(f"(pid {os.getpid()})")
    assert listener(free_port()) is None


Answer = Callable[..., process.Completed]


def engine_that_prints(text: str, status: int = 0) -> Answer:
    return lambda *_, **__: process.Completed(status=status, stdout=text, seconds=0.0)


def test_ids_are_picked_out_of_warnings_and_a_failed_listing_is_not_an_empty_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compose, "docker", engine_that_prints(f"WARNING: a\n{'4f' * 32}\nsha256:{'a0' * 32}\n"))
    assert compose.ids("ps") == ["4f" * 32, f"sha256:{'a0' * 32}"]
    monkeypatch.setattr(compose, "docker", engine_that_prints("", status=1))
    assert compose.ids("ps") is None


def test_disk_is_told_as_the_engine_words_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        compose, "docker", engine_that_prints("Images\t1.08GB\nContainers\t0B\nLocal Volumes\t0B\nBuild Cache\t5.8GB\n")
    )
    assert compose.disk() == "1.08GB of images and 5.8GB of build cache"


def test_an_image_that_lost_its_name_is_called_by_what_it_was() -> None:
    image = {"Id": "sha256:" + "4f" * 32, "RepoTags": [], "Config": {"Labels": {compose.IMAGE_LABEL: "tfb/express"}}}
    assert compose.image_name(image) == "4f4f4f4f4f4f, was tfb/express"
    assert compose.image_name({**image, "RepoTags": ["tfb/express:latest"]}) == "tfb/express:latest"


def test_a_generator_that_waits_for_go_keeps_its_input_and_has_the_image_of_its_name() -> None:
    words = list(runtime(bridge=False).load("tfb/loadgen", ["--rate", "5"], interactive=True))
    assert "--interactive" in words
    assert words[-3:] == ["tfb/loadgen", "--rate", "5"]
    assert "--interactive" not in runtime(bridge=False).wrk(["-c", "1"])
    with pytest.raises(EnvironmentLacksError, match="the load generator hey has no image"):
        runtime(bridge=False).generator("/usr/bin/hey", [])


def test_an_engine_that_does_not_answer_at_the_end_is_said_and_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def hangs(_: Project) -> None:
        raise CommandTimeoutError("docker ps: still running after 60 s, stopped")

    monkeypatch.setattr(Project, "remove_all", hangs)
    runtime(bridge=False).close()
    assert "docker ps: still running after 60 s" in caplog.text
    assert "./tfb clean --leftovers" in caplog.text


def test_an_engine_that_hangs_is_waited_for_long_once_until_it_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def run(command: list[str], *, seconds: float) -> process.Completed:
        waited.append(seconds)
        if "hangs" in command:
            raise CommandTimeoutError("still running")
        return process.Completed(status=0, stdout="", seconds=0.0)

    monkeypatch.setattr(compose, "client", lambda: "docker")
    monkeypatch.setattr(process, "run", run)
    for word in ("hangs", "hangs", "answers", "answers"):
        with contextlib.suppress(CommandTimeoutError):
            compose.docker(word)
    assert waited == [60.0, 5.0, 5.0, 60.0]
