"""tfb.toml: what it may say, and the sides that come of it."""

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


def test_a_service_becomes_an_implementation_with_a_test_type_for_each_request(tmp_path: Path) -> None:
    side = service.side(service.read(written(tmp_path, GOOD)), tmp_path, "base", seed=1)
    assert list(side.test_types) == ["item", "order"]
    assert side.ready_path == "/health"
    assert side.local
    assert side.local.run == ("sh", "-c", "exec env ./shop --port $PORT")
    assert side.local.build == (("sh", "-c", "make"),)
    assert {prepared.target for prepared in side.test_types["item"].requests} == {f"/items/{n}" for n in range(1, 10)}
    several = service.read(written(tmp_path, GOOD.replace('"./shop', '"cd bin && ./shop')))
    side = service.side(several, tmp_path, "base", seed=1)
    assert side.local
    assert side.local.run == ("sh", "-c", "cd bin && ./shop --port $PORT")  # which keep their shell


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('start = "./shop --port $PORT"', "", "service: Value error, one of start, dockerfile"),
        ('start = "./shop --port $PORT"', 'compose = "compose.yaml"', "belong together"),
        ('start = "./shop --port $PORT"', 'image = "shop"\npostgres = true', "by compose"),
        ("build =", "biuld =", "service.biuld: unknown key"),
        ('method = "POST"', 'verb = "POST"', "verb: unknown key"),
        ("[service]", "[service", "not valid TOML"),
        ("201", "99", "status"),
        ('name = "order"', 'name = "all"', "all"),
    ],
)
def test_a_broken_file_names_the_key_and_what_is_allowed(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError, match=r"tfb\.toml") as caught:
        service.read(written(tmp_path, GOOD.replace(old, new, 1)))
    assert said in str(caught.value)


def test_a_service_that_no_request_shows_to_be_up_needs_a_path_that_does(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tfb init"):  # which writes the file
        service.read(tmp_path)
    text = GOOD.replace('ready = "/health"\n', "")
    side = service.side(service.read(written(tmp_path, text)), tmp_path, "base", seed=1)
    assert side.ready_path.startswith("/items/")
    login = text.replace("[request.values]", "expect = { status = 401 }\n[request.values]")
    with pytest.raises(ConfigError, match=r"service\.ready"):
        service.side(service.read(written(tmp_path, login)), tmp_path, "base", seed=1)
