"""Attack: a pull request's compose file requests host privileges or shares data with another side."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import TfbError, UsageError
from harness.extras.gate import cli
from harness.extras.gate.compose_files import require_confined
from harness.extras.gate.compose_model import Separation, separate_model
from harness.extras.gate.container_sides import ContainedSide, make_contained_side, parse_allow
from harness.extras.gate.runtime import find_repository_copy
from harness.host import ownership
from harness.runtime.limits import Limits
from harness.tests.adversarial import engine
from harness.tests.doubles.repositories import repository

LIMITS = Limits(memory_bytes=1 << 30, pids=100)


def given(top: Path, **more: Any) -> Separation:
    own = {"project": "tfb-x-base", "service": "web", "root": top, "labels": {"org.tfb.run": "x"}, "limits": LIMITS}
    return Separation(**{**own, **more})


def model(web: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "x", "services": {"web": {"image": "shop:1", **web}}, **more}


def bind(source: Path | str, **more: Any) -> dict[str, Any]:
    return {"volumes": [{"type": "bind", "source": str(source), "target": "/data", **more}]}


@pytest.mark.parametrize(
    ("web", "key"),
    [
        ({"privileged": True}, "privileged"),
        ({"pid": "host"}, "pid"),
        ({"ipc": "host"}, "ipc"),
        ({"uts": "host"}, "uts"),
        ({"cgroup": "host"}, "cgroup"),
        ({"userns_mode": "host"}, "userns_mode"),
        ({"network_mode": "host"}, "network_mode"),
        ({"cap_add": ["SYS_ADMIN"]}, "cap_add"),
        ({"devices": [{"source": "/dev/sda", "target": "/dev/sda"}]}, "devices"),
        ({"device_cgroup_rules": ["c 1:3 mr"]}, "device_cgroup_rules"),
        ({"gpus": [{"count": -1}]}, "gpus"),
        ({"security_opt": ["seccomp:unconfined"]}, "security_opt"),
        ({"security_opt": ["no-new-privileges:false"]}, "security_opt"),
        ({"cgroup_parent": "/"}, "cgroup_parent"),
        ({"runtime": "other"}, "runtime"),
        ({"oom_score_adj": -1000}, "oom_score_adj"),
        ({"oom_kill_disable": True}, "oom_kill_disable"),
        ({"credential_spec": {"file": "x"}}, "credential_spec"),
        (bind("/etc", read_only=True), "volumes"),
        (bind("/var/run/docker.sock", read_only=True), "volumes"),
        ({"build": {"context": "TOP", "network": "host"}}, "build.network"),
        ({"build": {"context": "TOP", "privileged": True}}, "build.privileged"),
        ({"build": {"context": "TOP", "ssh": ["default"]}}, "build.ssh"),
        ({"build": {"context": "TOP", "entitlements": ["network.host"]}}, "build.entitlements"),
        ({"post_start": [{"command": ["id"], "privileged": True}]}, "privileged"),
    ],
)
def test_rights_need_a_consent_that_names_them(tmp_path: Path, web: dict[str, Any], key: str) -> None:
    if "build" in web:
        web = {"build": {**web["build"], "context": str(tmp_path)}}
    with pytest.raises(UsageError, match=rf"services\.web\.{key}: .*--allow web={key}"):
        separate_model(model(web), given(tmp_path))
    with pytest.raises(UsageError):
        separate_model(model(web), given(tmp_path, allowed=parse_allow([f"other={key}"])))
    for consent in (f"web={key}", key):
        own = separate_model(model(web), given(tmp_path, allowed=parse_allow([consent])))
        assert own["services"]["web"]


@pytest.mark.parametrize(
    ("web", "more", "key"),
    [
        (bind("/home"), {}, "volumes"),
        (bind("TOP/../other"), {}, "volumes"),
        (bind("TOP/link"), {}, "volumes"),
        (bind("TOP/link/.."), {}, "volumes"),
        (bind("TOP/data", bind={"propagation": "shared"}), {}, "volumes"),
        ({"volumes": [{"type": "npipe", "source": "x", "target": "/x"}]}, {}, "volumes"),
        ({"volumes_from": ["container:shop-db-1"]}, {}, "volumes_from"),
        ({"network_mode": "container:shop-db-1"}, {}, "network_mode"),
        ({"pid": "container:shop-db-1"}, {}, "pid"),
        ({"ipc": "container:shop-db-1"}, {}, "ipc"),
        ({"external_links": ["shop-db-1"]}, {}, "external_links"),
        ({"provider": {"type": "./run"}}, {}, "provider"),
        ({"use_api_socket": True}, {}, "use_api_socket"),
        ({"no_such_key": 1}, {}, "no_such_key"),
        ({"image": "--privileged"}, {}, "image"),
        ({"scale": 2}, {}, "scale"),
        ({"deploy": {"replicas": 500}}, {}, "scale"),
        ({"deploy": {"resources": {"reservations": {"devices": [{"count": 1}]}}}}, {}, "deploy"),
        ({"networks": {"default": {"ipv4_address": "10.1.0.2"}}}, {}, "ipv4_address"),
        ({"networks": {"n": None}}, {"networks": {"n": {"name": "prod", "external": True}}}, "external"),
        ({}, {"networks": {"default": {"name": "prod", "external": True}}}, "external"),
        ({"networks": {"n": None}}, {"networks": {"n": {"driver": "macvlan"}}}, "driver"),
        (
            {"networks": {"n": None}},
            {"networks": {"n": {"driver_opts": {"com.docker.network.bridge.name": "docker0"}}}},
            "driver_opts",
        ),
        (
            {"volumes": [{"type": "volume", "source": "v", "target": "/v"}]},
            {"volumes": {"v": {"name": "prod", "external": True}}},
            "external",
        ),
        (
            {"volumes": [{"type": "volume", "source": "v", "target": "/v"}]},
            {"volumes": {"v": {"driver_opts": {"type": "none", "o": "bind", "device": "/home"}}}},
            "driver_opts",
        ),
        ({"secrets": [{"source": "s"}]}, {"secrets": {"s": {"file": "/etc/shadow"}}}, "file"),
        ({"secrets": [{"source": "s"}]}, {"secrets": {"s": {"file": "TOP/link/shadow"}}}, "file"),
        ({"secrets": [{"source": "s"}]}, {"secrets": {"s": {"environment": "GITHUB_TOKEN"}}}, "environment"),
        ({"secrets": [{"source": "s"}]}, {"secrets": {"s": {"external": True}}}, "external"),
        ({"configs": [{"source": "c"}]}, {"configs": {"c": {"file": "/etc/shadow"}}}, "file"),
        ({"build": {"context": "/etc"}}, {}, "context"),
        ({"build": {"context": "TOP/link"}}, {}, "context"),
        ({"build": {"context": "https://example.org/x.git"}}, {}, "context"),
        ({"build": {"context": "TOP", "dockerfile": "../../etc/passwd"}}, {}, "dockerfile"),
        ({"build": {"context": "TOP", "dockerfile": "link/passwd"}}, {}, "dockerfile"),
        ({"build": {"context": "TOP", "additional_contexts": {"x": "/home"}}}, {}, "additional_contexts"),
        ({"build": {"context": "TOP", "output": "/home"}}, {}, "output"),
        ({}, {"models": {"m": {}}}, "models"),
    ],
)
def test_what_cannot_be_separated_is_refused_by_name(
    tmp_path: Path, web: dict[str, Any], more: dict[str, Any], key: str
) -> None:
    """--allow cannot permit these keys, because the sides would still share a resource."""
    (tmp_path / "link").symlink_to("/etc")
    whole = eval(repr(model(web, **more)).replace("TOP", str(tmp_path)))  # noqa: S307 - evaluates the literals above
    nothing: dict[str, frozenset[str]] = {}
    for allowed in (nothing, parse_allow(["volumes,privileged,network_mode,pid,ipc"])):
        with pytest.raises(UsageError, match=key):
            separate_model(whole, given(tmp_path, allowed=allowed))


def test_each_side_has_names_of_its_own(tmp_path: Path) -> None:
    web = {
        "container_name": "shop-web",
        "ports": [{"target": 80, "published": "80"}],
        "labels": {"traefik.enable": "true", "org.tfb.owner": "me"},
        "network_mode": "bridge",
        "volumes": [{"type": "volume", "source": "data", "target": "/data"}],
        "environment": {"A": "1", "GITHUB_TOKEN": None},
        "logging": {"driver": "syslog", "options": {"syslog-address": "tcp://192.0.2.1"}},
        "pull_policy": "always",
        "profiles": ["dev"],
    }
    subnet = {"name": "prod", "ipam": {"config": [{"subnet": "10.1.0.0/16"}]}}
    whole = model(
        web, networks={"default": subnet}, volumes={"data": {"name": "shop-data"}, "unused": {"external": True}}
    )
    separated = separate_model(whole, given(tmp_path))
    server = separated["services"]["web"]
    assert not {"container_name", "ports", "network_mode", "profiles"} & set(server)
    assert server["labels"] == {"org.tfb.run": "x"}
    assert server["environment"] == {"A": "1"}
    assert server["logging"]["driver"] == "json-file"
    assert server["pull_policy"] == "never"
    assert separated["volumes"] == {"data": {"name": "tfb-x-base_data", "labels": {"org.tfb.run": "x"}}}
    assert separated["networks"]["default"]["name"] == "tfb-x-base_default"
    assert "ipam" not in separated["networks"]["default"]


@pytest.mark.parametrize(
    ("web", "memory", "pids"),
    [
        ({}, "1073741824", 100),
        ({"mem_limit": "4096000000", "pids_limit": -1}, "1073741824", 100),
        ({"mem_limit": "64000000", "pids_limit": 7}, "64000000", 7),
        ({"deploy": {"resources": {"limits": {"memory": "64000000", "pids": 9}}}}, "64000000", 9),
    ],
)
def test_each_container_is_bounded(tmp_path: Path, web: dict[str, Any], memory: str, pids: int) -> None:
    server = separate_model(model(web), given(tmp_path))["services"]["web"]
    assert (server["mem_limit"], server["memswap_limit"], server["pids_limit"]) == (memory, memory, pids)


def test_a_mount_below_a_writable_one_is_refused(tmp_path: Path) -> None:
    """A container could replace the mount point with a link, and the next start would follow it."""
    (tmp_path / "init").mkdir()
    inner = {"type": "bind", "source": str(tmp_path / "init"), "target": "/init", "read_only": True}
    for read_only in (True, False):
        outer = {"type": "bind", "source": str(tmp_path), "target": "/app", "read_only": read_only}
        whole = model({"volumes": [outer, inner]})
        if read_only:
            assert separate_model(whole, given(tmp_path))
        else:
            with pytest.raises(UsageError, match="a container could replace"):
                separate_model(whole, given(tmp_path))


def test_builds_keep_no_tag_and_no_cache(tmp_path: Path) -> None:
    build = {
        "context": str(tmp_path),
        "tags": ["acme/shop:1.0"],
        "cache_to": ["type=local,dest=/home"],
        "labels": {"org.tfb.image": "acme/shop"},
        "args": {"TOKEN": None, "A": "1"},
    }
    own = separate_model(model({"build": build}), given(tmp_path))["services"]["web"]["build"]
    assert own == {"context": str(tmp_path), "args": {"A": "1"}}


def test_unknown_consents_are_refused() -> None:
    for wrong in ("web=priviledged", "web=", "=privileged", "", "nothing"):
        with pytest.raises(UsageError, match="--allow"):
            parse_allow([wrong])
    assert parse_allow(["web=pid,ipc", "web=uts", "privileged"]) == {
        "web": {"pid", "ipc", "uts"},
        "": {"privileged"},
    }


SERVICES = "services: {web: {image: x}}\n"


@pytest.mark.parametrize(
    "text",
    [
        "services: {web: {image: x, env_file: ../secret.env}}",
        "services: {web: {image: x, env_file: [{path: /etc/passwd, required: false}]}}",
        "services: {web: {image: x, env_file: ['${WHERE}/secret.env']}}",
        "services: {web: {image: x, env_file: link/secret.env}}",
        "services: {web: {image: x, label_file: ../secret.env}}",
        "services: {web: {extends: {file: ../other.yaml, service: web}}}",
        "services: {web: {extends: {file: inner/extends.yaml, service: web}}}",
        "include: [../other.yaml]",
        "include: [{path: inner/ok.yaml, env_file: ../secret.env}]",
        "include: [{path: inner/ok.yaml, project_directory: ..}]",
        "include: ['https://github.com/x/y.git']",
        "include: ['git@github.com:x/y.git']",
        "include: ['oci://example.org/x']",
        "include: [inner/includes.yaml]",
        'services: {web: {image: x, "env\\u005Ffile": ../secret.env}}',
        "x: &a [../secret.env]\nservices: {web: {image: x, env_file: *a}}",
        "x: &a {env_file: ../secret.env}\nservices: {web: {<<: *a, image: x}}",
        "services: {web: {image: x, env_file: !override [../secret.env]}}",
        f"{SERVICES}---\nservices: {{web: {{env_file: ../secret.env}}}}",
        "services: {web: {image: x, env_file: inner/link/../../../secret.env}}",
        "a: &a [*a]\nservices: [",
        "\t@",
    ],
)
def test_a_compose_file_reads_no_file_outside(tmp_path: Path, text: str) -> None:
    top = tmp_path / "side"
    (top / "inner").mkdir(parents=True)
    (tmp_path / "secret.env").write_text("A=1")
    (tmp_path / "other.yaml").write_text(SERVICES)
    (top / "inner" / "ok.yaml").write_text(SERVICES)
    (top / "inner" / "extends.yaml").write_text("services: {web: {image: x, env_file: ../../secret.env}}")
    (top / "inner" / "includes.yaml").write_text("include: [../../other.yaml]")
    (top / "link").symlink_to(tmp_path)
    (top / "inner" / "link").symlink_to(top / "inner" / "deep" / "deeper")
    (top / "compose.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"(compose|extends|includes)\.yaml"):
        require_confined(top / "compose.yaml", top)


def test_files_of_the_repository_may_be_read(tmp_path: Path) -> None:
    top = tmp_path / "side"
    (top / "app" / "deep").mkdir(parents=True)
    (top / ".env").write_text("A=1")
    (top / "common.yaml").write_text("include: [compose.yaml]\n")
    (top / "app" / "compose.yaml").write_text(
        "include: [../common.yaml]\nx: &a [*a]\nservices: {web: {image: x, env_file: [../.env, deep/missing.env]}}\n"
    )
    require_confined(top / "app" / "compose.yaml", top)


def test_compose_files_linked_outside_are_refused(tmp_path: Path) -> None:
    (tmp_path / "side").mkdir()
    (tmp_path / "other.yaml").write_text(SERVICES)
    (tmp_path / "side" / "compose.yaml").symlink_to(tmp_path / "other.yaml")
    with pytest.raises(UsageError, match="outside"):
        require_confined(tmp_path / "side" / "compose.yaml", tmp_path / "side")


def test_named_pipes_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "compose.yaml")
    with pytest.raises(UsageError, match="compose"):
        require_confined(tmp_path / "compose.yaml", tmp_path)


ROOT, DEEP = "", "app"
SERVICE = '[service]\n{way}\n[[request]]\nname = "a"\npath = "/"\n'
COMPOSED = SERVICE.format(way='compose = "compose.yaml"\nservice = "web"')


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the scratch folder of a comparison."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with ownership.make_scratch_folder("gate") as folder:
        yield folder


def head(place: Path, inside: str, **files: str) -> ContainedSide:
    """Prepare to compare a repository with itself and return head's side. ``inside`` is the service's folder."""
    shop = repository(place.parent / "shop", **{f"{inside}/{name}".lstrip("/"): text for name, text in files.items()})
    session = cli.prepare(shop / inside, "HEAD", "HEAD", place, seed=1)
    service, folder = session.services["head"]
    assert (place / "base" / inside / "tfb.toml").is_file()
    return make_contained_side("head", service, folder, find_repository_copy(folder), engine.session(place.parent))


@pytest.mark.parametrize("inside", [ROOT, DEEP, "tfb-scratch-x/app"])
def test_each_side_has_its_own_copy(place: Path, inside: str) -> None:
    for name in ("base", "base-copy", "head"):
        (place / name / inside).mkdir(parents=True)
        assert find_repository_copy(place / name / inside) == place / name
    elsewhere = place.parent.parent / "tfb-scratch-gate-elsewhere" / "head"
    assert find_repository_copy(elsewhere / inside) == elsewhere / inside


@pytest.mark.docker
@pytest.mark.parametrize("inside", [ROOT, DEEP])
@pytest.mark.parametrize(
    "web",
    [
        {"build": "UP/base"},
        {"build": {"context": "UP/base", "dockerfile": "Dockerfile"}},
        {"build": {"context": ".", "dockerfile": "UP/base/Dockerfile"}},
        {"build": {"context": ".", "additional_contexts": {"other": "UP/base"}}},
        {"image": "x", "volumes": ["UP/base:/data"]},
        {"image": "x", "volumes": ["UP/base-copy:/data:ro"]},
        {"image": "x", "volumes": ["UP:/data:ro"]},
        {"image": "x", "env_file": "UP/base/.env"},
        {"image": "x", "secrets": ["other"]},
        {"extends": {"file": "UP/base/compose.yaml", "service": "web"}},
    ],
    ids=lambda web: json.dumps(web, separators=(",", ":")),
)
def test_head_uses_no_file_of_base(place: Path, inside: str, web: dict[str, Any]) -> None:
    up = "../.." if inside else ".."
    text = json.dumps({"services": {"web": web}, "secrets": {"other": {"file": "UP/base/tfb.toml"}}})
    with pytest.raises(UsageError, match=r"outside|lies in|on this machine"):
        head(place, inside, tfb__toml=COMPOSED, compose__yaml=text.replace("UP", up))


@pytest.mark.docker
@pytest.mark.parametrize("inside", [ROOT, DEEP])
def test_head_uses_no_dockerfile_of_base(place: Path, inside: str) -> None:
    up = "../.." if inside else ".."
    inner = f"{up}/base/{inside}/Dockerfile"
    with pytest.raises(TfbError, match="leads out"):
        head(place, inside, tfb__toml=SERVICE.format(way=f'dockerfile = "{inner}"'), Dockerfile="FROM scratch\n")


@pytest.mark.docker
def test_head_uses_files_above_it_in_its_copy(place: Path) -> None:
    web = {"build": {"context": "..", "dockerfile": "app/Dockerfile"}, "volumes": ["../data:/data:ro"]}
    files = {"tfb__toml": COMPOSED, "compose__yaml": json.dumps({"services": {"web": web}}), "Dockerfile": "FROM x\n"}
    (own,) = head(place, DEEP, **files).model["services"].values()
    assert own["build"]["context"] == str(place / "head")
    assert own["volumes"][0]["source"] == str(place / "head" / "data")


def test_aliases_that_grow_without_end_are_refused(tmp_path: Path) -> None:
    """Docker Compose would expand these aliases for minutes and exhaust the memory."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefg", "bcdefgh", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    lines.append("services: {}")
    (tmp_path / "compose.yaml").write_text("\n".join(lines))
    with pytest.raises(UsageError, match="aliases"):
        require_confined(tmp_path / "compose.yaml", tmp_path)
    (tmp_path / "compose.yaml").write_text("x: &x {a: [1, 2]}\nservices: {web: *x, db: {<<: *x}}\n")
    require_confined(tmp_path / "compose.yaml", tmp_path)
