"""Requests that a service declares: what is asked, with values drawn by seed, and what a right answer is."""

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
MAX_REQUEST_FILE_BYTES = 16 << 20  # of a CSV file, a body or a schema
MAX_TABLE_BYTES = (
    64 << 20
)  # of all prepared requests of one declared one, which has fewer of them where its body is long
RESERVED_REQUEST_NAMES = ("all", "http", "load")  # names that no request can have
GENERATOR_HEADERS = frozenset({"connection", "content-length", "transfer-encoding"})  # the generator's own

RequestName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=60)]  # becomes a part of file names
FileName = Annotated[str, Field(min_length=1, max_length=1000)]
Header = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", max_length=200)]
Scalar = str | int | float | bool
ExactInteger = Annotated[int, Field(ge=-(2**53), le=2**53)]  # as a drawn float can tell them apart
HeaderValue = Annotated[str, Field(pattern=r"^[\t\x20-\x7e]*$", max_length=16_384), AfterValidator(str.strip)]


@dataclass(frozen=True, kw_only=True)
class RequestFiles:
    """The folder in which a service names files, and the repository that these may not leave."""

    folder: Path
    root: Path

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raise ConfigError for one outside the repository or no regular file."""
        with name_file_in_errors(self.folder / name):
            return confined.read(self.root, f"{self.folder.relative_to(self.root)}/{name}", MAX_REQUEST_FILE_BYTES)


class ValueSource(ConfigSection):
    """What ``{name}`` stands for: one of a list, a whole number of a range, or a cell of a column of a CSV file.

    Columns of one file are drawn together: a user's name comes with their own password.
    """

    list: tuple[Scalar, ...] = ()
    range: tuple[ExactInteger, ExactInteger] | None = None  # both included
    csv: FileName | None = None  # its first line names the columns
    column: str | None = None
    number: bool = False  # its cells are numbers, and not texts

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if [bool(self.list), self.range is not None, self.csv is not None].count(True) != 1:
            raise ValueError("one of list, range and csv says what is drawn")
        if (self.csv is None) != (self.column is None):
            raise ValueError("csv and column belong together")
        if self.number and self.csv is None:
            raise ValueError("number says what the cells of a csv file are")
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError(f"range {self.range[0]} to {self.range[1]} is empty")
        return self

    def all(self, files: "RequestFiles") -> Sequence[Scalar]:
        """Return the values to draw from, in order; raise ConfigError where the file lacks the column, or any row."""
        if self.range is not None:
            return range(self.range[0], self.range[1] + 1)
        if self.csv is None:
            return self.list
        text = files.read(self.csv).decode("utf-8-sig", "replace")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        if not rows or self.column not in rows[0]:
            columns = ", ".join(map(str, rows[0])) if rows else "no row below its first line"
            raise ConfigError(f"{files.folder / self.csv}: no column {self.column!r}: it has {columns}")
        cells = [row[self.column] or "" for row in rows]
        try:
            return [_number(cell) for cell in cells] if self.number else cells
        except ValueError as error:
            raise ConfigError(
                f"{files.folder / self.csv}: column {self.column!r}: not all are numbers: {error}"
            ) from error


class Expect(ConfigSection):
    """What a right answer is. Its ``json`` and ``body`` may hold ``{name}``, as the request that is answered does."""

    status: int = Field(default=200, ge=200, le=599)
    content_type: str | None = None  # with parameters only where they must be so
    json_schema: dict[str, JsonValue] | FileName | None = None  # as it stands, or a file that holds it
    subset: JsonValue = Field(
        default=None, alias="json"
    )  # every key given is there and equal; arrays are of one length
    body: str | None = None
    size: tuple[int, int] | None = None  # bytes of the body: least and most

    @cached_property
    def schema_validator(self) -> "Validator":
        """A validator of the schema, for schemas of this repository: others may take any time (``verify.schemas``)."""
        return json_schema_limits.schema_validator(self._schema)

    @cached_property
    def schema_text(self) -> bytes | None:
        """The schema as JSON text; None without one. All copies of a request share it."""
        return None if self.json_schema is None else json.dumps(self._schema, ensure_ascii=False).encode()

    @property
    def _schema(self) -> dict[str, JsonValue]:
        return self.json_schema if isinstance(self.json_schema, dict) else {}

    def read(self, files: "RequestFiles", request: str) -> "Expect":
        """Return the same with the schema that its file holds, checked.

        Raises ConfigError that names the file, the request and the keyword of the schema.
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
            raise ConfigError(f"{key}: should be an object, the schema (found {document!r:.60})")
        try:
            json_schema_limits.check_schema(document)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from error
        found = self.model_copy(update={"json_schema": document})
        _ = found.schema_text  # made once, and kept by all copies
        return found


class Request(ConfigSection):
    """One kind of request of a service. ``{name}`` in path, headers and body stands for a value that is drawn."""

    name: RequestName
    method: Annotated[str, Field(pattern=r"^[A-Z]{1,20}$")] = "GET"
    path: Annotated[str, Field(pattern=r"^/[!-~]*$", max_length=16_384)]
    headers: dict[Header, HeaderValue] = Field(default={})
    body: str | None = None
    body_file: FileName | None = None  # sent as it is
    document: JsonValue = Field(default=None, alias="json")  # a text that is one {name} becomes what the value is
    values: dict[Annotated[str, Field(pattern=r"^\w+$")], ValueSource] = Field(default={})
    weight: float = Field(default=1.0, ge=0, le=1e6)  # share in what is said of all; 0: none
    expect: Expect = Expect()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.name in RESERVED_REQUEST_NAMES:
            raise ValueError(f"name {self.name!r} has a meaning of its own: another one")
        if [self.body, self.body_file, self.document].count(None) < 2:
            raise ValueError("one of body, body_file and json is the body")
        if taken := GENERATOR_HEADERS & {name.lower() for name in self.headers}:
            raise ValueError(f"headers: {', '.join(sorted(taken))} is set by the load generator")
        unknown = {name for name in re.findall(r"\{(\w+)\}", self.path) if name not in self.values}
        if unknown:
            raise ValueError(f"path has {{{min(unknown)}}}, of which values say nothing")
        return self


@dataclass(frozen=True, kw_only=True)
class PreparedRequest:
    """One request as it is sent, but for Host and Content-Length, and what its right answer is."""

    request: str = ""  # name of the declared one
    target: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    expect: Expect = field(default_factory=Expect)

    def head(self, host: str) -> bytes:
        """Request line and headers, its own in place of those that every request has."""
        always = (("Host", host), ("Accept", "*/*"), ("Connection", "keep-alive"))
        own = {name.lower() for name, _ in self.headers}
        usual = tuple((name, value) for name, value in always if name.lower() not in own)
        lines = [f"{name}: {value}" for name, value in (*usual, *self.headers)]
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join((f"{self.method} {self.target} HTTP/1.1", *lines, "\r\n")).encode()


def prepare_requests(
    request: Request, folder: Path, seed: int, count: int, *, root: Path | None = None
) -> tuple[PreparedRequest, ...]:
    """Return ``count`` requests drawn by seed, or one request where nothing is drawn.

    Files are named in ``folder`` and may not leave ``root`` (None: ``folder``). Raises ConfigError for a file that
    cannot be read or lacks what the request needs.
    """
    files = RequestFiles(folder=folder, root=root or folder)
    expect = request.expect.read(files, request.name)
    body = files.read(request.body_file) if request.body_file else None
    if not request.values:
        return (_prepared(request, expect, body, {}),)
    pools = {name: values.all(files) for name, values in request.values.items()}
    dice = random.Random(f"{seed} {request.name}")
    made: list[PreparedRequest] = []
    size = 0
    while len(made) < count and size <= MAX_TABLE_BYTES:
        places: dict[str, float] = {}  # one for all columns of a file
        drawn = {
            name: pool[int(places.setdefault(request.values[name].csv or f"{{{name}}}", dice.random()) * len(pool))]
            for name, pool in pools.items()
        }
        made.append(_prepared(request, expect, body, drawn))
        size += len(made[-1].body)
    return tuple(made)


def _prepared(request: Request, expect: Expect, body: bytes | None, drawn: Mapping[str, Scalar]) -> PreparedRequest:
    headers = {name: str(_filled(value, drawn)) for name, value in request.headers.items()}
    kind = None
    if request.document is not None:
        body, kind = json.dumps(_filled(request.document, drawn), ensure_ascii=False).encode(), "application/json"
    elif request.body is not None:
        body = _text(request.body, drawn).encode()
    if kind and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = kind
    for name, value in headers.items():
        if not re.fullmatch(r"[\t\x20-\x7e]*", value):
            raise ConfigError(f"request {request.name}: header {name}: {value!r:.80} cannot stand in a header")
    if drawn and (expect.subset is not None or expect.body is not None):
        said = None if expect.body is None else _text(expect.body, drawn)
        expect = expect.model_copy(update={"subset": _filled(expect.subset, drawn), "body": said})
    target = _text(request.path, {name: _escaped(_spelt(value)) for name, value in drawn.items()})
    return PreparedRequest(
        request=request.name,
        target=target,
        method=request.method,
        headers=tuple(headers.items()),
        body=body or b"",
        expect=expect,
    )


def _filled(template: JsonValue, drawn: Mapping[str, Scalar]) -> JsonValue:
    """A document with its values: a text that is one ``{name}`` becomes the value, whatever its type."""
    if isinstance(template, dict):
        return {name: _filled(value, drawn) for name, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, drawn) for value in template]
    if isinstance(template, str):
        whole = re.fullmatch(r"\{(\w+)\}", template)
        return drawn[whole[1]] if whole and whole[1] in drawn else _text(template, drawn)
    return template


def _number(cell: str) -> int | float:
    """As JSON spells it; raises ValueError for anything else."""
    if not re.fullmatch(r"(?a)-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d{1,2})?", cell):
        raise ValueError(f"{cell!r:.40} is none")
    found: int | float = json.loads(cell)
    return found


def _text(template: str, drawn: Mapping[str, Scalar]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: _spelt(drawn.get(found[1], found[0])), template)


def _spelt(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    """For a path: all but unreserved characters as bytes in percent notation."""
    return re.sub(r"(?a)[^\w.~-]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)
