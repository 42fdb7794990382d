"""Tests of tfb.toml, and of the implementations made from it."""

from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.plan import service

GOOD = """
[service]
name = "shop"
build = "make"
start = "./shop --port $PORT"
ready = "/health"
[[request]]
name = "item"
path = "/items/{id}"
[request.values]
id = { range = [1, 9] }
[[request]]
name = "order"
method = "POST"
path = "/orders"
json = { quantity = 1 }
expect = { status = 201 }
"""


def written(folder: Path, text: str) -> Path:
    (folder / service.FILE).write_text(text, encoding="utf-8")
    return folder


def test_each_request_becomes_a_test_type(tmp_path: Path) -> None:
    side = service.service_implementation(service.read_service(written(tmp_path, GOOD)), tmp_path, "base", 1, tmp_path)
    assert list(side.test_types) == ["item", "order"]
    assert side.ready_path == "/health"
    assert side.local.run == ("sh", "-c", "exec env ./shop --port $PORT")
    assert side.local.build == (("sh", "-c", "make"),)
    assert {prepared.target for prepared in side.test_types["item"].requests} == {f"/items/{n}" for n in range(1, 10)}
    several = service.read_service(written(tmp_path, GOOD.replace('"./shop', '"cd bin && ./shop')))
    side = service.service_implementation(several, tmp_path, "base", 1, tmp_path)
    assert side.local.run == ("sh", "-c", "cd bin && ./shop --port $PORT")  # operators require a shell


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('start = "./shop --port $PORT"', "", "service: give exactly one of start, dockerfile"),
        ('start = "./shop --port $PORT"', 'compose = "compose.yaml"', "must be given together"),
        ('start = "./shop --port $PORT"', 'image = "shop"\npostgres = true', "compose file"),
        ("build =", "biuld =", "service.biuld: unknown key"),
        ('method = "POST"', 'verb = "POST"', "verb: unknown key"),
        ("[service]", "[service", "not valid TOML"),
        ("201", "99", "status"),
    ],
)
def test_invalid_file_is_reported_with_its_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError, match=r"tfb\.toml") as caught:
        service.read_service(written(tmp_path, GOOD.replace(old, new, 1)))
    assert said in str(caught.value)


def test_readiness_uses_a_plain_get_or_any_response(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tfb init"):  # tfb init creates the file
        service.read_service(tmp_path)
    text = GOOD.replace('ready = "/health"\n', "")
    login = text.replace("[request.values]", 'headers = { Authorization = "Bearer x" }\n[request.values]')
    for written_as, at_200 in ((GOOD, True), (text, True), (login, False)):
        side = service.service_implementation(
            service.read_service(written(tmp_path, written_as)), tmp_path, "base", 1, tmp_path
        )
        assert side.ready_at_200 is at_200
    assert side.ready_path.startswith("/items/")


@pytest.mark.parametrize("command", ["exec ./shop", "cd bin\nexec ./shop", ". ./settings && ./shop"])
def test_shell_is_kept_only_where_required(tmp_path: Path, command: str) -> None:
    text = GOOD.replace('"./shop --port $PORT"', f'"""{command}"""')
    side = service.service_implementation(service.read_service(written(tmp_path, text)), tmp_path, "base", 1, tmp_path)
    assert side.local.run == ("sh", "-c", command)


def test_all_versions_read_the_same_request_files(tmp_path: Path) -> None:
    text = GOOD.replace("range = [1, 9]", 'csv = "ids.csv", column = "id"')
    (tmp_path / "ids.csv").write_text("id\n7\n", encoding="utf-8")
    side = service.service_implementation(
        service.read_service(written(tmp_path, text)), tmp_path / "base", "base", 1, tmp_path
    )
    assert {prepared.target for prepared in side.test_types["item"].requests} == {"/items/7"}
