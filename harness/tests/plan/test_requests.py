"""Tests for declared requests: valid keys, random values, and the requests that tfb sends."""

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from harness.errors import ConfigError
from harness.plan.requests import Expect, PreparedRequest, Request, prepare_requests
from harness.plan.testtypes import declared_test_types


def request(**keys: Any) -> Request:
    return Request.model_validate({"name": "one", "path": "/", **keys})


def prepared(folder: Path, count: int = 1000, **keys: Any) -> tuple[PreparedRequest, ...]:
    return prepare_requests(request(**keys), folder, 1, count)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "users.csv").write_text("user,password\nann b,1\nbob,2\ncid,3\n")
    (tmp_path / "body.bin").write_bytes(b"\0{id}\xff")
    (tmp_path / "schema.json").write_text('{"type": "object", "required": ["id"]}')
    (tmp_path / "bad.json").write_text('{"type": "objekt"}')
    return tmp_path


def test_request_is_parsed_from_toml(folder: Path) -> None:
    text = """
        name = "item"
        method = "PUT"
        path = "/items/{id}"
        headers = { X-User = "{user}" }
        json = { id = "{id}", tag = "n{id}", deep = [{ yes = true }] }
        values.id = { range = [3, 3] }
        values.user = { list = ["ann"] }
        expect = { status = 201, json = { id = "{id}" }, json_schema = "schema.json", size = [2, 99] }
    """
    (copy,) = prepare_requests(Request.model_validate(tomllib.loads(text)), folder, 1, 1)
    assert (copy.method, copy.target) == ("PUT", "/items/3")
    assert copy.body == b'{"id": 3, "tag": "n3", "deep": [{"yes": true}]}'
    assert (copy.expect.status, copy.expect.subset, copy.expect.size) == (201, {"id": 3}, (2, 99))
    assert copy.expect.json_schema == {"type": "object", "required": ["id"]}
    assert [error.message for error in copy.expect.schema_validator.iter_errors({})] == ["'id' is a required property"]
    assert copy.head("app:80").decode() == (
        "PUT /items/3 HTTP/1.1\r\nHost: app:80\r\nAccept: */*\r\nConnection: keep-alive\r\nX-User: ann\r\n"
        "Content-Type: application/json\r\nContent-Length: 47\r\n\r\n"
    )


def test_declared_header_replaces_the_default(folder: Path) -> None:
    (copy,) = prepared(folder, headers={"host": "shop.example", "ACCEPT": "text/csv"})
    assert copy.head("app:80").decode() == (
        "GET / HTTP/1.1\r\nConnection: keep-alive\r\nhost: shop.example\r\nACCEPT: text/csv\r\n\r\n"
    )


def test_values_are_uniform_and_determined_by_the_seed(folder: Path) -> None:
    declared = request(path="/{id}", values={"id": {"range": [1, 5]}})
    counts = Counter(copy.target for copy in prepare_requests(declared, folder, 1, 5000))
    assert sorted(counts) == [f"/{number}" for number in range(1, 6)]
    assert all(850 < count < 1150 for count in counts.values())
    assert (
        prepare_requests(declared, folder, 1, 50)
        == prepare_requests(declared, folder, 1, 50)
        != prepare_requests(declared, folder, 2, 50)
    )


def test_columns_are_drawn_from_the_same_row(folder: Path) -> None:
    values = {name: {"csv": "users.csv", "column": name} for name in ("user", "password")}
    copies = prepared(folder, path="/{user}", headers={"X-Key": "{password}"}, values=values)
    pairs = {(each.target, each.headers[0][1]) for each in copies}
    assert pairs == {("/ann%20b", "1"), ("/bob", "2"), ("/cid", "3")}


def test_cells_are_strings_unless_declared_as_numbers(folder: Path) -> None:
    values = {name: {"csv": "users.csv", "column": "password", "number": name == "n"} for name in ("n", "text")}
    (copy, *_) = prepared(folder, path="/", json={"n": "{n}", "text": "{text}"}, values=values)
    assert json.loads(copy.body) in [{"n": number, "text": str(number)} for number in (1, 2, 3)]


def test_long_body_file_reduces_the_number_of_copies(folder: Path) -> None:
    (copy, *_) = prepared(folder, body_file="body.bin", path="/{id}", values={"id": {"list": [1]}})
    assert copy.body == b"\0{id}\xff"
    (folder / "long.bin").write_bytes(bytes(8 << 20))
    assert 1 < len(prepared(folder, body_file="long.bin", path="/{id}", values={"id": {"range": [1, 9]}})) < 12


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"name": "all"}, "is reserved: choose a different name"),
        ({"name": "a/b"}, "String should match pattern"),
        ({"path": "/{id}"}, "path uses {id}, but values does not define it"),
        ({"body": "a", "json": {}}, "one of body, body_file and json"),
        ({"headers": {"Content-Length": "3"}}, "the load generator sets content-length"),
        ({"headers": {"X-A": "b\r\nX-C: d"}}, "String should match pattern"),
        ({"values": {"id": {}}}, "give exactly one of list, range and csv"),
        ({"values": {"id": {"list": [1], "range": [1, 2]}}}, "give exactly one of list, range and csv"),
        ({"values": {"id": {"range": [2, 1]}}}, "range 2 to 1 is empty"),
        ({"values": {"id": {"range": [1, 2**63]}}}, "less than or equal to 9007199254740992"),
        ({"values": {"id": {"csv": "a.csv"}}}, "csv and column must be given together"),
        ({"values": {"id": {"range": [1, 2], "number": True}}}, "number requires csv"),
    ],
)
def test_invalid_combination_of_keys_is_explained(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        request(**keys)
    assert message in str(raised.value)


@pytest.mark.parametrize("cell", ["null", "true", "NaN", "1e999", "01", "{}", ""])
def test_invalid_number_is_explained(folder: Path, cell: str) -> None:
    values = {"n": {"csv": "odd.csv", "column": "n", "number": True}}
    (folder / "odd.csv").write_text("n,text\n1.5,a\n-2e3,b\n", encoding="utf-8")
    bodies = {copy.body for copy in prepared(folder, path="/", json="{n}", values=values)}
    assert bodies == {b"1.5", b"-2000.0"}
    (folder / "odd.csv").write_text(f"n,text\n1.5,a\n{cell},b\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"'n': .* is not a number; number = true requires numbers"):
        prepared(folder, path="/", json="{n}", values=values)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"body_file": "none"}, "none: cannot read the file: No such file"),
        ({"values": {"id": {"csv": "users.csv", "column": "id"}}}, "has no column 'id'; columns: user, password"),
        ({"expect": {"json_schema": "bad.json"}}, "json_schema: $.type: 'objekt' is not valid"),
        ({"expect": {"json_schema": "users.csv"}}, "users.csv: not valid JSON"),
        ({"expect": {"json_schema": "body.bin"}}, "body.bin: not "),
        (
            {"headers": {"X": "{x}"}, "values": {"x": {"list": ["a\r\nB: c"]}}},
            "must contain only printable ASCII characters",
        ),
    ],
)
def test_unsuitable_file_is_reported_by_name(folder: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        prepared(folder, **keys)
    assert message in str(raised.value)


def test_schema_does_not_fetch_references(folder: Path) -> None:
    elsewhere = {"$ref": "http://127.0.0.1:9/schema.json"}
    with pytest.raises(Exception, match="Unresolvable"):
        Expect(json_schema=elsewhere).schema_validator.is_valid({})


def test_each_request_is_a_test_type(folder: Path) -> None:
    often = request(name="often", path="/{id}", values={"id": {"range": [1, 9]}}, weight=3)
    test_types = declared_test_types((often, request(name="seldom")), folder, 1)
    assert [(name, len(kind.requests) > 1) for name, kind in test_types.items()] == [("often", True), ("seldom", False)]
