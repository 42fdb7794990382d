"""Requests that a service declares, random values for their placeholders, and expected responses."""

import csv
import io
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from harness.errors import ConfigError
from harness.plan import json_schema_limits
from harness.plan.profile import ConfigSection
from harness.plan.suggestions import name_file_in_errors
from harness.records import confined, safe_read

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

SERVICE_FILE = "tfb.toml"
MAX_REQUEST_FILE_BYTES = 16 << 20  # bytes in a CSV file, a body or a schema
MAX_TABLE_BYTES = 64 << 20  # bytes in the bodies of all prepared copies of a declared request
RESERVED_REQUEST_NAMES = ("all", "http", "load")  # names that have a different meaning on the command line
# Headers that the load generator sets.
GENERATOR_HEADERS = frozenset({"connection", "content-length", "transfer-encoding"})

RequestName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=60)]  # occurs in file names
FileName = Annotated[str, Field(min_length=1, max_length=1000)]
Header = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", max_length=200)]
Scalar = str | int | float | bool
ExactInteger = Annotated[int, Field(ge=-(2**53), le=2**53)]  # range in which floats represent all integers exactly
HeaderValue = Annotated[str, Field(pattern=r"^[\t\x20-\x7e]*$", max_length=16_384), AfterValidator(str.strip)]


@dataclass(frozen=True, kw_only=True)
class RequestFiles:
    """Access to the files that a service names, restricted to the service's repository."""

    folder: Path
    root: Path

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises ConfigError if it is outside the repository or not a regular file."""
        with name_file_in_errors(self.folder / name):
            return confined.read(self.root, f"{self.folder.relative_to(self.root)}/{name}", MAX_REQUEST_FILE_BYTES)


class ValueSource(ConfigSection):
    """The values of a placeholder ``{name}``: a list, a range of integers, or a column of a CSV file.

    Columns of a CSV file are drawn from the same row, so a user's name and password match.
    """

    list: tuple[Scalar, ...] = ()
    range: tuple[ExactInteger, ExactInteger] | None = None  # both limits are inclusive
    csv: FileName | None = None  # the first line contains the column names
    column: str | None = None
    number: bool = False  # True: cells are numbers; False: strings

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if [bool(self.list), self.range is not None, self.csv is not None].count(True) != 1:
            raise ValueError("give exactly one of list, range and csv")
        if (self.csv is None) != (self.column is None):
            raise ValueError("csv and column must be given together")
        if self.number and self.csv is None:
            raise ValueError("number requires csv")
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError(f"range {self.range[0]} to {self.range[1]} is empty: put the smaller number first")
        return self

    def all(self, files: "RequestFiles") -> Sequence[Scalar]:
        """Return all values in order. Raises ConfigError if the file lacks the column or has no rows."""
        if self.range is not None:
            return range(self.range[0], self.range[1] + 1)
        if self.csv is None:
            return self.list
        text = files.read(self.csv).decode("utf-8-sig", "replace")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        if not rows or self.column not in rows[0]:
            columns = ", ".join(map(str, rows[0])) if rows else "no rows"
            raise ConfigError(f"{files.folder / self.csv}: has no column {self.column!r}, only: {columns}")
        cells = [row[self.column] or "" for row in rows]
        try:
            return [_parse_number(cell) for cell in cells] if self.number else cells
        except ValueError as error:
            raise ConfigError(
                f"{files.folder / self.csv}: column {self.column!r}: {error}; number = true requires numbers"
            ) from error


class Expect(ConfigSection):
    """The expected response. ``json`` and ``body`` may contain the placeholders of the request."""

    status: int = Field(default=200, ge=200, le=599)
    content_type: str | None = None  # parameters are compared only if the expected type has parameters
    json_schema: dict[str, JsonValue] | FileName | None = None  # a schema, or the name of its file
    # The response must contain these members; arrays must have equal length.
    subset: JsonValue = Field(default=None, alias="json")
    body: str | None = None
    size: tuple[int, int] | None = None  # minimum and maximum number of bytes in the body

    @cached_property
    def schema_validator(self) -> "Validator":
        """The validator for a trusted schema. For untrusted schemas, use ``verify.response_schemas``."""
        return json_schema_limits.schema_validator(self._schema)

    @cached_property
    def schema_text(self) -> bytes | None:
        """The schema as JSON text, shared by all copies of a request. None without a schema."""
        return None if self.json_schema is None else json.dumps(self._schema, ensure_ascii=False).encode()

    @property
    def _schema(self) -> dict[str, JsonValue]:
        return self.json_schema if isinstance(self.json_schema, dict) else {}

    def read(self, files: "RequestFiles", request: str) -> "Expect":
        """Load and check the schema file, and return the expectation that contains the schema.

        Raises ConfigError that names the file, the request and the schema's keyword.
        """
        if self.json_schema is None:
            return self
        document: object = self.json_schema
        file = SERVICE_FILE
        if isinstance(document, str):
            file = document
            data = files.read(file)
            with name_file_in_errors(files.folder / file):
                document = safe_read.parse_json(data)
        key = f'{file}: request "{request}": expect.json_schema'
        if not isinstance(document, dict):
            raise ConfigError(f"{key}: must be an object (found {document!r:.60})")
        try:
            json_schema_limits.check_schema(document)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from error
        expect = self.model_copy(update={"json_schema": document})
        _ = expect.schema_text  # fill the cache before copies are made
        return expect


class Request(ConfigSection):
    """A declared request. Placeholders ``{name}`` in path, headers and body are replaced by random values."""

    name: RequestName
    method: Annotated[str, Field(pattern=r"^[A-Z]{1,20}$")] = "GET"
    path: Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=16_384)]
    headers: dict[Header, HeaderValue] = Field(default={})
    body: str | None = None
    body_file: FileName | None = None  # sent unchanged
    document: JsonValue = Field(default=None, alias="json")  # a string "{name}" is replaced by the value with its type
    values: dict[Annotated[str, Field(pattern=r"^\w+$")], ValueSource] = Field(default={})
    weight: float = Field(default=1.0, ge=0, le=1e6)  # weight in the overall result; 0: excluded
    expect: Expect = Expect()

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.name in RESERVED_REQUEST_NAMES:
            raise ValueError(f"name {self.name!r} is reserved: choose a different name")
        if [self.body, self.body_file, self.document].count(None) < 2:
            raise ValueError("give at most one of body, body_file and json")
        if reserved := GENERATOR_HEADERS & {name.lower() for name in self.headers}:
            raise ValueError(f"headers: the load generator sets {', '.join(sorted(reserved))}; remove it")
        unknown = {name for name in re.findall(r"\{(\w+)\}", self.path) if name not in self.values}
        if unknown:
            raise ValueError(f"path uses {{{min(unknown)}}}, but values does not define it: add values.{min(unknown)}")
        return self


@dataclass(frozen=True, kw_only=True)
class PreparedRequest:
    """A request with values for all placeholders, and the expected response. Host and Content-Length are missing."""

    request: str = ""  # name of the declared request
    target: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    expect: Expect = field(default_factory=Expect)

    def head(self, host: str) -> bytes:
        """Return the request line and headers. Declared headers replace default headers."""
        defaults = (("Host", host), ("Accept", "*/*"), ("Connection", "keep-alive"))
        declared = {name.lower() for name, _ in self.headers}
        remaining = tuple((name, value) for name, value in defaults if name.lower() not in declared)
        lines = [f"{name}: {value}" for name, value in (*remaining, *self.headers)]
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join((f"{self.method} {self.target} HTTP/1.1", *lines, "\r\n")).encode()


def prepare_requests(
    request: Request, folder: Path, seed: int, count: int, *, root: Path | None = None
) -> tuple[PreparedRequest, ...]:
    """Return copies of a declared request with random values, or a single copy if it has no placeholders.

    Args:
        request: The declared request.
        folder: Folder that the request's file names are relative to.
        seed: Seed of the random values.
        count: Number of copies. There are fewer if their bodies exceed ``MAX_TABLE_BYTES``.
        root: Folder that must contain all files; default: ``folder``.

    Raises:
        ConfigError: A file cannot be read, or lacks a column.
    """
    files = RequestFiles(folder=folder, root=root or folder)
    expect = request.expect.read(files, request.name)
    body = files.read(request.body_file) if request.body_file else None
    if not request.values:
        return (_fill_request(request, expect, body, {}),)
    pools = {name: values.all(files) for name, values in request.values.items()}
    dice = random.Random(f"{seed} {request.name}")
    prepared: list[PreparedRequest] = []
    size = 0
    while len(prepared) < count and size <= MAX_TABLE_BYTES:
        places: dict[str, float] = {}  # all columns of a file are taken from the same row
        drawn = {
            name: pool[int(places.setdefault(request.values[name].csv or f"{{{name}}}", dice.random()) * len(pool))]
            for name, pool in pools.items()
        }
        prepared.append(_fill_request(request, expect, body, drawn))
        size += len(prepared[-1].body)
    return tuple(prepared)


def _fill_request(request: Request, expect: Expect, body: bytes | None, drawn: Mapping[str, Scalar]) -> PreparedRequest:
    headers = {name: str(_fill(value, drawn)) for name, value in request.headers.items()}
    content_type = None
    if request.document is not None:
        body = json.dumps(_fill(request.document, drawn), ensure_ascii=False).encode()
        content_type = "application/json"
    elif request.body is not None:
        body = _fill_text(request.body, drawn).encode()
    if content_type and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = content_type
    for name, value in headers.items():
        if not re.fullmatch(r"[\t\x20-\x7e]*", value):
            raise ConfigError(
                f"request {request.name}: header {name}: {value!r:.80} contains characters that are invalid in a header"
            )
    if drawn and (expect.subset is not None or expect.body is not None):
        expected_body = None if expect.body is None else _fill_text(expect.body, drawn)
        expect = expect.model_copy(update={"subset": _fill(expect.subset, drawn), "body": expected_body})
    target = _fill_text(request.path, {name: _percent_encode(_to_text(value)) for name, value in drawn.items()})
    return PreparedRequest(
        request=request.name,
        target=target,
        method=request.method,
        headers=tuple(headers.items()),
        body=body or b"",
        expect=expect,
    )


def _fill(template: JsonValue, drawn: Mapping[str, Scalar]) -> JsonValue:
    """Replace placeholders in a document. A string that is exactly "{name}" becomes the value with its type."""
    if isinstance(template, dict):
        return {name: _fill(value, drawn) for name, value in template.items()}
    if isinstance(template, list):
        return [_fill(value, drawn) for value in template]
    if isinstance(template, str):
        match = re.fullmatch(r"\{(\w+)\}", template)
        return drawn[match[1]] if match and match[1] in drawn else _fill_text(template, drawn)
    return template


def _parse_number(cell: str) -> int | float:
    """Parse a number in JSON notation. Raises ValueError."""
    if not re.fullmatch(r"(?a)-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d{1,2})?", cell):
        raise ValueError(f"{cell!r:.40} is not a number")
    number: int | float = json.loads(cell)
    return number


def _fill_text(template: str, drawn: Mapping[str, Scalar]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: _to_text(drawn.get(match[1], match[0])), template)


def _to_text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _percent_encode(text: str) -> str:
    """Percent-encode all reserved characters of a path segment."""
    return re.sub(r"(?a)[^\w.~-]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text)
