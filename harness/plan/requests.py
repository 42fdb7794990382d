"""A service's declared requests: random values for their placeholders, and the expected responses."""

import csv
import io
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, WithJsonSchema, model_validator

from harness.errors import ConfigError
from harness.plan import json_schema_limits
from harness.plan.profile import ConfigSection
from harness.plan.suggestions import name_file_in_errors
from harness.records import confined, safe_read
from harness.records.verification_record import WHOLE_SERVER

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}  # unit -> seconds
NUMBER = r"(?a)(\d{1,9}(?:\.\d{1,9})?) ?"


def _parse_percent(value: object) -> object:
    match = re.fullmatch(rf"{NUMBER}%", value) if isinstance(value, str) else None
    if match is None or not 0 < float(match[1]) <= 100:
        raise ValueError(f'give a percentage above 0 and at most 100, such as "5%" (found {value!r:.40})')
    return float(match[1]) / 100


def _parse_duration(value: object) -> object:
    match = re.fullmatch(rf"{NUMBER}(us|µs|ms|s)", value) if isinstance(value, str) else None
    if match is None or not float(match[1]):
        raise ValueError(f'give a duration above 0, such as "300us", "20ms" or "1.5s" (found {value!r:.40})')
    return float(match[1]) * UNITS[match[2]]


# Percentages such as "5%" are read as 0.05, and durations such as "20ms" as 0.02 s.
Percentage = Annotated[float, BeforeValidator(_parse_percent), Field(gt=0, le=1), WithJsonSchema({"type": "string"})]
Duration = Annotated[float, BeforeValidator(_parse_duration), Field(gt=0), WithJsonSchema({"type": "string"})]


SERVICE_FILE = "tfb.toml"
MAX_REQUEST_FILE_BYTES = 16 << 20  # maximum size of a CSV file, a body or a schema in bytes
MAX_TABLE_BYTES = 64 << 20  # maximum total bytes of a declared request's prepared bodies
TOKEN = "{token}"  # noqa: S105 - placeholder for the login token in headers
RESERVED_REQUEST_NAMES = ("all", WHOLE_SERVER, "load")  # names with other meanings in flags and verdicts
# Headers that the load generator sets.
GENERATOR_HEADERS = frozenset({"connection", "content-length", "transfer-encoding"})

RequestName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=60)]  # becomes part of file names
FileName = Annotated[str, Field(min_length=1, max_length=1000)]
Header = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", max_length=200)]
Scalar = str | int | float | bool
ExactInteger = Annotated[int, Field(ge=-(2**53), le=2**53)]  # floats represent integers in this range exactly
HeaderValue = Annotated[str, Field(pattern=r"^[\t\x20-\x7e]*$", max_length=16_384), AfterValidator(str.strip)]


@dataclass(frozen=True, kw_only=True)
class RequestFiles:
    """A reader for the files named in a tfb.toml. Files must be inside ``root``, the service's repository."""

    folder: Path
    root: Path

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises ConfigError if it is outside the repository or not a regular file."""
        with name_file_in_errors(self.folder / name):
            return confined.read(self.root, f"{self.folder.relative_to(self.root)}/{name}", MAX_REQUEST_FILE_BYTES)


class ValueSource(ConfigSection):
    """A placeholder's values: a list, a range, or a CSV column.

    Placeholders that use the same file take their values from the same row.
    """

    list: tuple[Scalar, ...] = ()  # possible values
    range: tuple[ExactInteger, ExactInteger] | None = None  # smallest and largest integer, both inclusive
    csv: FileName | None = None  # CSV file with the column names in the first line
    column: str | None = None  # column of the CSV file; placeholders with the same file use the same row
    number: bool = False  # whether to send the column's values as numbers instead of strings

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
        """Return all values in order. Raises ConfigError if the column is missing or the file has no rows."""
        if self.range is not None:
            return range(self.range[0], self.range[1] + 1)
        if self.csv is None:
            return self.list
        text = files.read(self.csv).decode("utf-8-sig", "replace")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        if not rows or self.column not in rows[0]:
            columns = ", ".join(map(str, rows[0])) if rows else "none"
            raise ConfigError(f"{files.folder / self.csv}: has no column {self.column!r}; columns: {columns}")
        cells = [row[self.column] or "" for row in rows]
        try:
            return [_parse_number(cell) for cell in cells] if self.number else cells
        except ValueError as error:
            raise ConfigError(
                f"{files.folder / self.csv}: column {self.column!r}: {error}; number = true requires numbers"
            ) from error


class Expect(ConfigSection):
    """The expected response. ``json`` and ``body`` may contain the request's placeholders."""

    status: int = Field(default=200, ge=200, le=599)  # expected status
    # Expected media type. Parameters such as charset are compared only if they are given here.
    content_type: str | None = None
    # JSON Schema for the body, or the name of a file that contains the schema.
    json_schema: dict[str, JsonValue] | FileName | None = None
    # Members that the JSON response must contain, possibly among others. Arrays must have the same length.
    subset: JsonValue = Field(default=None, alias="json")
    body: str | None = None  # complete expected body
    size: tuple[int, int] | None = None  # minimum and maximum number of bytes in the body

    @cached_property
    def schema_validator(self) -> "Validator":
        """Validator for a trusted schema. For untrusted schemas, use ``verify.response_schemas``."""
        return json_schema_limits.schema_validator(self._schema)

    @cached_property
    def schema_text(self) -> bytes | None:
        """The schema as JSON text, shared by all copies of a request. None if there is no schema."""
        return None if self.json_schema is None else json.dumps(self._schema, ensure_ascii=False).encode()

    @property
    def _schema(self) -> dict[str, JsonValue]:
        return self.json_schema if isinstance(self.json_schema, dict) else {}

    def read(self, files: "RequestFiles", request: str) -> "Expect":
        """Return a copy with the schema itself instead of the file name. Raises ConfigError for an invalid schema."""
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
        _ = expect.schema_text  # cache the text now, so that all copies share it
        return expect


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers unchanged. Raises ValueError for headers that the load generator sets, and for duplicates."""
    names = [name.lower() for name in headers]
    if reserved := GENERATOR_HEADERS.intersection(names):
        raise ValueError(f"headers: the load generator sets {', '.join(sorted(reserved))}; remove it")
    if repeated := [name for name in headers if names.count(name.lower()) > 1]:
        raise ValueError(f"headers: {' and '.join(repeated)} are the same header: remove one of them")
    return dict(headers)


Headers = Annotated[dict[Header, HeaderValue], AfterValidator(check_headers)]


class RequestWithHeaders(ConfigSection):
    """Base class for requests that inherit the service's headers."""

    headers: Headers = Field(default={})  # request headers

    def with_headers(self, headers: Mapping[str, str]) -> Self:
        """Return the request with the given headers added, except for headers that it already declares."""
        own = {name.lower() for name in self.headers}
        further = {name: value for name, value in headers.items() if name.lower() not in own}
        return self.model_copy(update={"headers": {**further, **self.headers}}) if further else self


class Request(RequestWithHeaders):
    """A declared request. Placeholders ``{name}`` in path, headers and body are replaced by random values."""

    name: RequestName  # request name in the verdict
    method: Annotated[str, Field(pattern=r"^[A-Z]{1,20}$")] = "GET"  # method in capital letters
    path: Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=16_384)]  # path and query; {name} is a placeholder
    headers: Headers = Field(default={})  # request headers
    body: str | None = None  # text of the body; may contain placeholders
    body_file: FileName | None = None  # file to send as the body, without replacing placeholders
    # JSON document to send as the body. A string that is only "{name}" becomes the value, which may be a number.
    document: JsonValue = Field(default=None, alias="json")
    # Values for the placeholders, drawn by a seeded random generator.
    values: dict[Annotated[str, Field(pattern=r"^\w+$")], ValueSource] = Field(default={})
    weight: float = Field(default=1.0, ge=0, le=1e6)  # weight in the overall result; 0 excludes the request
    expect: Expect = Expect()  # the expected response
    # Changes up to this percentage, such as "5%", count as unchanged. Default: `--threshold`.
    threshold: Percentage | None = None
    budget_p99: Duration | None = None  # head's maximum p99 response time in trials at a fixed rate, such as "20ms"
    budget_cpu: Duration | None = None  # head's maximum CPU time per request, such as "300us"

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.name in RESERVED_REQUEST_NAMES:
            raise ValueError(f"name {self.name!r} is reserved: choose a different name")
        if [self.body, self.body_file, self.document].count(None) < 2:
            raise ValueError("give at most one of body, body_file and json")
        unknown = {name for name in re.findall(r"\{(\w+)\}", self.path) if name not in self.values}
        if unknown:
            raise ValueError(f"path uses {{{min(unknown)}}}, but values does not define it: add values.{min(unknown)}")
        return self


class Login(RequestWithHeaders):
    """A request that tfb sends once to each process. A value from the response replaces ``{token}`` in headers."""

    method: Annotated[str, Field(pattern=r"^[A-Z]{1,20}$")] = "POST"  # method in capital letters
    path: Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=16_384)]  # path and query
    headers: Headers = Field(default={})  # request headers
    body: str | None = None  # text to send
    document: JsonValue = Field(default=None, alias="json")  # JSON document to send
    field: str | None = None  # path of the token in a JSON response, such as data.access_token
    cookie: str | None = None  # name of the cookie that contains the token
    status: Annotated[int, Field(ge=200, le=599)] | None = None  # expected status; default: 200 to 399

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if (self.field is None) == (self.cookie is None):
            raise ValueError("give exactly one of field and cookie")
        if self.body is not None and self.document is not None:
            raise ValueError("give at most one of body and json")
        return self

    def prepare(self) -> "PreparedRequest":
        """Return the request, ready to send, with the header ``Connection: close``."""
        fields = {"name": "login", "path": "/", "body": self.body, "json": self.document, "method": self.method}
        request = Request.model_validate(fields).model_copy(update={"path": self.path, "headers": self.headers})
        prepared = _fill_request(request, Expect(), None, {})
        return replace(prepared, headers=(*prepared.headers, ("Connection", "close")))


@dataclass(frozen=True, kw_only=True)
class PreparedRequest:
    """A request without placeholders, and the expected response. ``headers`` omits Host and Content-Length."""

    request: str = ""  # declared request's name
    target: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    expect: Expect = field(default_factory=Expect)

    def with_token(self, token: str) -> "PreparedRequest":
        """Return the request with a login's token in the headers."""
        return replace(self, headers=tuple((name, value.replace(TOKEN, token)) for name, value in self.headers))

    def head(self, host: str, *, connection: str = "keep-alive") -> bytes:
        """Return the request line and headers. Declared headers replace default headers."""
        defaults = (("Host", host), ("Accept", "*/*"), ("Connection", connection))
        declared = {name.lower() for name, _ in self.headers}
        remaining = tuple((name, value) for name, value in defaults if name.lower() not in declared)
        lines = [f"{name}: {value}" for name, value in (*remaining, *self.headers)]
        if "transfer-encoding" not in declared and (self.body or self.method in ("POST", "PUT", "PATCH")):
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join((f"{self.method} {self.target} HTTP/1.1", *lines, "\r\n")).encode()


def prepare_requests(
    request: Request, folder: Path, seed: int, count: int, *, root: Path | None = None
) -> tuple[PreparedRequest, ...]:
    """Return ``count`` copies of a declared request with random values, or a single copy if it has no placeholders.

    Return fewer copies if their bodies exceed ``MAX_TABLE_BYTES``. Files must be in ``root`` (default: ``folder``).
    Raises ConfigError if a file cannot be read or a column is missing.
    """
    files = RequestFiles(folder=folder, root=root or folder)
    expect = request.expect.read(files, request.name)
    body = files.read(request.body_file) if request.body_file else None
    if not request.values:
        return (_fill_request(request, expect, body, {}),)
    pools = {name: values.all(files) for name, values in request.values.items()}
    rng = random.Random(f"{seed} {request.name}")
    prepared: list[PreparedRequest] = []
    size = 0
    while len(prepared) < count and size <= MAX_TABLE_BYTES:
        fractions: dict[str, float] = {}  # CSV file or placeholder -> relative position of the drawn value, from 0 to 1
        drawn = {
            name: pool[int(fractions.setdefault(request.values[name].csv or f"{{{name}}}", rng.random()) * len(pool))]
            for name, pool in pools.items()
        }
        prepared.append(_fill_request(request, expect, body, drawn))
        size += len(prepared[-1].body)
    return tuple(prepared)


def _fill_request(
    request: Request, expect: Expect, body: bytes | None, values: Mapping[str, Scalar]
) -> PreparedRequest:
    headers = {name: str(_fill(value, values)) for name, value in request.headers.items()}
    content_type = None
    if request.document is not None:
        body = json.dumps(_fill(request.document, values), ensure_ascii=False).encode()
        content_type = "application/json"
    elif request.body is not None:
        body = _fill_text(request.body, values).encode()
    if content_type and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = content_type
    for name, value in headers.items():
        if not re.fullmatch(r"[\t\x20-\x7e]*", value):
            raise ConfigError(
                f"request {request.name}: header {name}: {value!r:.80} must contain only printable ASCII characters"
            )
    if values and (expect.subset is not None or expect.body is not None):
        expected_body = None if expect.body is None else _fill_text(expect.body, values)
        expect = expect.model_copy(update={"subset": _fill(expect.subset, values), "body": expected_body})
    target = _fill_text(request.path, {name: _percent_encode(_to_text(value)) for name, value in values.items()})
    return PreparedRequest(
        request=request.name,
        target=target,
        method=request.method,
        headers=tuple(headers.items()),
        body=body or b"",
        expect=expect,
    )


def _fill(template: JsonValue, values: Mapping[str, Scalar]) -> JsonValue:
    """Replace placeholders in a document. A string that is only "{name}" becomes the value, which may be a number."""
    if isinstance(template, dict):
        return {name: _fill(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [_fill(value, values) for value in template]
    if isinstance(template, str):
        match = re.fullmatch(r"\{(\w+)\}", template)
        return values[match[1]] if match and match[1] in values else _fill_text(template, values)
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
    """Percent-encode all characters except the unreserved characters of RFC 3986."""
    return re.sub(r"(?a)[^\w.~-]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text)
