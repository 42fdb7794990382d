"""Attack: a tfb.toml contains invalid or expensive JSON Schemas."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import cli
from harness.errors import ConfigError, Exit
from harness.plan.requests import Request, prepare_requests
from harness.verify.response_schemas import SchemaValidator

SECONDS = 40.0  # wall-clock limit on a busy machine; the CPU time is limited to two seconds


def nested(levels: int, keyword: str = "properties") -> dict[str, Any]:
    """Return a schema with the given nesting depth."""
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {keyword: {"a": schema} if keyword == "properties" else schema}
    return schema


REFUSED: dict[str, tuple[Any, str]] = {
    "a wrong type": ({"type": "objekt"}, "$.type: 'objekt' is not valid"),
    "a wrong keyword's value": ({"properties": {"a": {"minLength": "5"}}}, "minLength: '5' is not of type 'integer'"),
    "no regular expression": ({"properties": {"a": {"pattern": "(["}}}, "pattern: '([' is not a regular expression"),
    "a huge repetition": ({"pattern": "a{99999999999}"}, "pattern: 'a{99999999999}' is not a regular expression"),
    "an expression of a dialect": ({"pattern": r"\p{L}+"}, "is not a regular expression that Python accepts"),
    "a long expression": ({"pattern": "a|" * 5_000}, "more than 2,000 characters"),
    "a key's expression": ({"patternProperties": {"*a": {}}}, "patternProperties: '*a' is not a regular expression"),
    "a reference to nowhere": ({"items": {"$ref": "#/$defs/item"}}, "$ref: '#/$defs/item' is not in the schema"),
    "a reference to the network": (
        {"$ref": "http://127.0.0.1:9/s"},
        "'http://127.0.0.1:9/s' is remote, and tfb does not fetch",
    ),
    "a reference to a file": ({"$ref": "file:///etc/passwd"}, "'file:///etc/passwd' is remote, and tfb does not fetch"),
    "a relative reference": ({"$ref": "other.json"}, "$ref: 'other.json' is not in the schema"),
    "a reference to no schema": ({"$ref": "#/title", "title": "x"}, "'#/title' is not a schema"),
    "a hidden schema's value": ({"$ref": "#/x/y", "x": {"y": {"pattern": 5}}}, "$.pattern: 5 is not of type 'string'"),
    "a hidden schema's expression": ({"$ref": "#/x/y", "x": {"y": {"pattern": "("}}}, "pattern: '(' is not a regular"),
    "itself": ({"$ref": "#"}, "refers to itself for the same value"),
    "itself through others": (
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"not": {"$ref": "#/$defs/a"}}]}}},
        "refers to itself for the same value",
    ),
    "an unknown dialect": ({"$schema": "http://127.0.0.1:9/dialect"}, "$schema: unknown dialect"),
    "a number as dialect": ({"$schema": 5}, "$schema: unknown dialect 5"),
    "a huge allOf": ({"allOf": [{"type": "integer"}] * 20_000}, "more than"),
    "a huge enum": ({"enum": [{"a": number} for number in range(5_000)]}, "more than 1,000 entries"),
    "very many properties": ({"properties": {f"p{number}": {} for number in range(50_000)}}, "more than 20,000 values"),
    "too many levels": (nested(60), "nested more than 100 levels deep"),
    "a bad anchor": ({"$anchor": "1 x"}, "$['$anchor']"),
    "a list": ([], "must be an object"),
}


def read(folder: Path, schema: Any) -> None:
    """Read a request whose response must match a schema."""
    (folder / "schema.json").write_text(json.dumps(schema))
    request = Request.model_validate({"name": "item", "path": "/", "expect": {"json_schema": "schema.json"}})
    prepare_requests(request, folder, 1, 1)


@pytest.mark.parametrize("kind", REFUSED)
def test_bad_schemas_are_named_when_read(kind: str, tmp_path: Path) -> None:
    schema, words = REFUSED[kind]
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, schema)
    assert str(raised.value).startswith('schema.json: request "item": expect.json_schema: ')
    assert words in str(raised.value)


@pytest.mark.parametrize("levels", [30, 49])
def test_a_deep_schema_is_read_or_refused(levels: int, tmp_path: Path) -> None:
    for keyword in ("properties", "not", "items"):
        try:
            read(tmp_path, nested(levels, keyword))
        except ConfigError as error:
            assert "nested too deep" in str(error)  # noqa: PT017 - either is right


def test_a_bad_schema_ends_compare_with_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "tfb.toml").write_text(
            '[service]\nurl = "http://127.0.0.1:9"\n[[request]]\nname = "item"\npath = "/"\n'
            '[request.expect.json_schema]\n"$ref" = "#/nowhere"\n'
        )
    words = ["compare", "--service", f"{tmp_path}/head", "--base", f"dir:{tmp_path}/base"]
    code, told = cli.main([*words, "--head", f"dir:{tmp_path}/head"]), capsys.readouterr().err
    assert code == Exit.USAGE, told
    assert "tfb.toml: request \"item\": expect.json_schema: $ref: '#/nowhere' is not in the schema" in told


@pytest.fixture
def judge() -> Iterator[SchemaValidator]:
    found = SchemaValidator()
    yield found
    found.close()


DOUBLING = {f"a{number}": {"allOf": [{"$ref": f"#/$defs/a{number + 1}"}] * 2} for number in range(40)}
EXPENSIVE: dict[str, tuple[Any, Any]] = {
    "nested repetition": ({"pattern": "^(a+)+$"}, "a" * 60 + "!"),
    "nested repetition of a key": ({"patternProperties": {"^(a|aa)+$": False}}, {"a" * 60 + "!": 1}),
    "distinct objects": ({"uniqueItems": True}, [{"a": number} for number in range(20_000)]),
    "doubling references": ({"$ref": "#/$defs/a0", "$defs": {**DOUBLING, "a40": {"type": "integer"}}}, 1),
    "every alternative": ({"items": {"anyOf": [{"const": number} for number in range(900)]}}, [899] * 100_000),
}


@pytest.mark.parametrize("kind", EXPENSIVE)
def test_an_expensive_schema_is_given_up(kind: str, judge: SchemaValidator) -> None:
    schema, document = (json.dumps(part).encode() for part in EXPENSIVE[kind])
    started_at = time.monotonic()
    found = [judge.find_mismatch(schema, document + b" " * number) for number in range(100)]
    assert time.monotonic() - started_at < SECONDS
    told = {wrong.message if wrong else "fits" for wrong in found}
    assert told == {"the comparison with the schema takes more than 2 s of CPU time. Simplify the schema"}


def test_other_schemas_still_work_after_a_timeout(judge: SchemaValidator) -> None:
    assert judge.find_mismatch(b'{"pattern": "^(a+)+$"}', b'"' + b"a" * 60 + b'!"') is not None
    assert judge.find_mismatch(b'{"type": "integer"}', b"1") is None
    found = judge.find_mismatch(b'{"type": "integer"}', b'"x"')
    assert (found and found.message, found and found.actual) == (
        "$ does not match the schema. Correct the service or the schema",
        "'x'",
    )


def test_memory_of_a_comparison_is_bounded(judge: SchemaValidator) -> None:
    schema = json.dumps({"pattern": "^(" + "(a?){500}" * 2 + "){500}$"}).encode()
    started_at = time.monotonic()
    judge.find_mismatch(schema, json.dumps("a" * 500_000).encode())
    assert time.monotonic() - started_at < SECONDS
    assert judge.find_mismatch(b"{}", b"1") is None


@pytest.mark.parametrize("document", ["[" * 5_000 + "]" * 5_000, "1" * 5_000, '{"a": NaN}', '"\\ud800"', "{", ""])
def test_documents_that_python_rejects_get_a_result(document: str, judge: SchemaValidator) -> None:
    judge.find_mismatch(b'{"type": "object"}', document.encode())
    assert judge.find_mismatch(b'{"type": "integer"}', b"1") is None  # the validator's child process is still usable


def test_many_answers_share_one_child(judge: SchemaValidator) -> None:
    schema = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}}).encode()
    judge.find_mismatch(schema, b"{}")
    started_at = time.monotonic()
    assert all(judge.find_mismatch(schema, b'{"id": %d}' % number) is None for number in range(2_000))
    assert time.monotonic() - started_at < 20  # with a new child process for each response, this would take minutes
