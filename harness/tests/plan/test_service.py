"""Tests for tfb.toml and the implementations that it yields."""

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
    assert side.local.run == ("sh", "-c", "cd bin && ./shop --port $PORT")  # shell operators need a shell


@pytest.mark.parametrize(
    ("old", "new", "expected"),
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
def test_invalid_file_is_reported_with_its_key(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError, match=r"tfb\.toml") as caught:
        service.read_service(written(tmp_path, GOOD.replace(old, new, 1)))
    assert expected in str(caught.value)


def test_missing_file_names_the_verb_that_creates_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tfb init"):
        service.read_service(tmp_path)


WITHOUT_READY = GOOD.replace('ready = "/health"\n', "")
HOST = 'headers = { host = "shop.test", Authorization = "Bearer x" }\n[request.values]'


@pytest.mark.parametrize(
    ("text", "method", "target", "status", "headers"),
    [
        (GOOD, "GET", "/health", 200, {}),
        (GOOD.replace("[request.values]", HOST), "GET", "/health", 200, {"host": "shop.test"}),
        (WITHOUT_READY, "GET", "/items/", 200, {}),
        (
            WITHOUT_READY.replace("[request.values]", HOST),
            "GET",
            "/items/",
            200,
            {"host": "shop.test", "Authorization": "Bearer x"},
        ),
        (
            WITHOUT_READY.replace('method = "POST"', 'method = "HEAD"').replace("json = { quantity = 1 }", ""),
            "GET",
            "/items/",
            200,
            {},
        ),
    ],
)
def test_readiness_uses_a_declared_request(
    tmp_path: Path, text: str, method: str, target: str, status: int, headers: dict[str, str]
) -> None:
    file = service.read_service(written(tmp_path, text))
    ready = service.service_implementation(file, tmp_path, "base", 1, tmp_path).ready_request
    assert ready is not None
    assert (ready.method, ready.target.rstrip("0123456789"), ready.expect.status, dict(ready.headers)) == (
        method,
        target,
        status,
        headers,
    )


def test_readiness_without_get_uses_the_first_request(tmp_path: Path) -> None:
    text = """[service]
start = "./shop"
[[request]]
name = "order"
method = "POST"
path = "/orders"
json = { quantity = 1 }
expect = { status = 201 }
"""
    file = service.read_service(written(tmp_path, text))
    ready = service.service_implementation(file, tmp_path, "base", 1, tmp_path).ready_request
    assert ready is not None
    assert (ready.method, ready.target, ready.body, ready.expect.status) == ("POST", "/orders", b'{"quantity": 1}', 201)


COMMON = 'headers = { Authorization = "a", X-Team = "b" }\n'


def test_headers_of_the_service_apply_to_all_requests(tmp_path: Path) -> None:
    text = GOOD.replace("build =", COMMON + "build =").replace(
        'method = "POST"', 'method = "POST"\nheaders = { authorization = "own" }'
    )
    file = service.read_service(written(tmp_path, text))
    item, order = file.request
    assert item.headers == {"Authorization": "a", "X-Team": "b"}
    assert order.headers == {"X-Team": "b", "authorization": "own"}
    ready = service.service_implementation(file, tmp_path, "base", 1, tmp_path).ready_request
    assert ready is not None
    assert dict(ready.headers) == {"Authorization": "a", "X-Team": "b"}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("{ Connection = 'close' }", "the load generator sets connection"),
        ("{ Host = 'a', host = 'b' }", "Host and host are the same header"),
        ("{ 'X Y' = 'a' }", "service.headers"),
    ],
)
def test_headers_that_tfb_cannot_send_are_reported(tmp_path: Path, headers: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        service.read_service(written(tmp_path, GOOD.replace("build =", f"headers = {headers}\nbuild =")))
    assert expected in str(caught.value)


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
