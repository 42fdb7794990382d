"""TechEmpower's verification as its toolset did it (snapshot 57d92fb), so that what it lets through is computed.

Written anew from a reading of its ``toolset`` folder, with its rules and severities, including what they do not look
at. One thing differs, and changes no outcome here: the wait between two requests ends as soon as Date has changed, and
once it has, later requests to the same server do not wait (there it is three seconds each time).
"""

import difflib
import gzip
import http.client
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser
from typing import Any

from harness.runtime import DatabaseAddress, Endpoint
from harness.verify.checks.statement_counts import NotCountedError, StatementCounts, counting
from harness.verify.checks.tables import tables

Problem = tuple[str, str]  # severity, message

TIMEOUT = 15.0
SIEGE_TIMEOUT = 20.0
HEADER_WAIT = 3.0
CONCURRENCY = 512
QUERIES = 20
MAX = 500
MARGIN = 1.05
MINIMUM_URL = {"json": 5, "plaintext": 10, "db": 3, "query": 9, "fortune": 9, "update": 8, "cached-query": 15}
CONTENT_TYPES = {
    "json": r"^application/json(; ?charset=(UTF|utf)-8)?$",
    "html": r"^text/html; ?charset=(UTF|utf)-8$",
    "plaintext": r"^text/plain(; ?charset=(UTF|utf)-8)?$",
}
# (suffix, expected rows, the severity of a violation)
QUERY_CASES = (("2", 2, "fail"), ("0", 1, "fail"), ("foo", 1, "fail"), ("501", MAX, "warn"), ("", 1, "fail"))
FORTUNES = (
    "<!doctype html><html><head><title>Fortunes</title></head><body><table>"
    "<tr><th>id</th><th>message</th></tr>"
    "<tr><td>11</td><td>&lt;script&gt;alert(&quot;This should not be displayed in a browser alert box.&quot;);"
    "&lt;/script&gt;</td></tr>"
    "<tr><td>4</td><td>A bad random number generator: 1, 1, 1, 1, 1, 4.33e+67, 1, 1, 1</td></tr>"
    "<tr><td>5</td><td>A computer program does what you tell it to do, not what you want it to do.</td></tr>"
    "<tr><td>2</td><td>A computer scientist is someone who fixes things that aren&apos;t broken.</td></tr>"
    "<tr><td>8</td><td>A list is only as strong as its weakest link. — Donald Knuth</td></tr>"
    "<tr><td>0</td><td>Additional fortune added at request time.</td></tr>"
    "<tr><td>3</td><td>After enough decimal places, nobody gives a damn.</td></tr>"
    "<tr><td>7</td><td>Any program that runs right is obsolete.</td></tr>"
    "<tr><td>10</td><td>Computers make very fast, very accurate mistakes.</td></tr>"
    "<tr><td>6</td><td>Emacs is a nice operating system, but I prefer UNIX. — Tom Christaensen</td></tr>"
    "<tr><td>9</td><td>Feature: A bug with seniority.</td></tr>"
    "<tr><td>1</td><td>fortune: No such file or directory</td></tr>"
    "<tr><td>12</td><td>フレームワークのベンチマーク</td></tr>"
    "</table></body></html>"
)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Verification:
    """One test type of one server."""

    endpoint: Endpoint
    test_type: str
    url: str
    database: DatabaseAddress | None
    timeout: float = TIMEOUT
    problems: list[Problem] = field(default_factory=list)
    date_moves: bool = False

    def outcome(self) -> str:
        """pass, warn or fail; a server that fails is not benchmarked, one that warns is."""
        try:
            self.problems = [*self.minimum_url(), *getattr(self, self.test_type.replace("-", "_"))()]
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.problems = [("fail", f"{type(error).__name__}: {error}")]
        severities = {severity for severity, _ in self.problems}
        return "fail" if "fail" in severities else "warn" if "warn" in severities else "pass"

    # ---- requests, as the requests library makes them ----------------------------------------------------------------

    def get(self, url: str) -> Answer:
        connection = http.client.HTTPConnection(self.endpoint.host, self.endpoint.port, timeout=self.timeout)
        try:
            connection.request("GET", url, headers={"Accept-Encoding": "gzip, deflate", "Connection": "keep-alive"})
            response = connection.getresponse()
            body = response.read()
            headers = {name.lower(): value for name, value in response.getheaders()}
        finally:
            connection.close()
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return Answer(response.status, headers, body)

    def minimum_url(self) -> Iterator[Problem]:
        if len(self.url) < MINIMUM_URL[self.test_type]:
            yield "fail", f"Route for {self.url} must be at least {MINIMUM_URL[self.test_type]} characters"

    def headers(self, answer: Answer, url: str, should_be: str) -> Iterator[Problem]:
        for name in ("server", "date", "content-type"):
            if not answer.headers.get(name):
                yield "fail", f"Required response header missing: {name}"
        if "content-length" not in answer.headers and "transfer-encoding" not in answer.headers:
            yield "fail", "Required response size header missing"
        if date := answer.headers.get("date"):
            try:
                datetime.strptime(date, "%a, %d %b %Y %H:%M:%S %Z")
            except ValueError:
                yield "warn", f"Invalid Date header, found {date!r}"
            until = time.monotonic() + HEADER_WAIT
            second = self.get(url).headers.get("date")
            while second == date and not self.date_moves and time.monotonic() < until:
                time.sleep(0.1)
                second = self.get(url).headers.get("date")
            self.date_moves |= second != date
            if not self.date_moves:
                yield "fail", f"Invalid Cached Date. Found {date!r} on both requests"
        content_type = answer.headers.get("content-type", "")
        if content_type and not re.match(CONTENT_TYPES[should_be], content_type):
            yield "fail", f"Invalid Content-Type header, found {content_type!r}"

    # ---- test types --------------------------------------------------------------------------------------------------

    def json(self) -> Iterator[Problem]:
        answer = self.get(self.url)
        document, problems = self.basic_body(answer)
        yield from problems
        if not problems:
            yield from self.hello_world(document)
            yield from self.headers(answer, self.url, "json")

    def hello_world(self, document: Any) -> Iterator[Problem]:
        document = {k.lower(): v for k, v in document.items()}
        if "message" not in document:
            yield "fail", "Missing required key: message"
            return
        if len(document) > 1:
            yield "warn", "Too many JSON key/value pairs"
        if not isinstance(document["message"], str):
            yield "fail", "Expected message to be a string"
        elif document["message"].lower() != "hello, world!":
            yield "fail", "Expected message of 'hello, world!'"

    def plaintext(self) -> Iterator[Problem]:
        answer = self.get(self.url)
        if answer.status != 200 or not answer.body:
            yield "fail", "No response"
            return
        body = answer.body.decode("utf-8", "replace").lower()
        if "hello, world!" not in body:
            yield "fail", "Could not find 'Hello, World!' in response"
        elif len(body) > len("hello, world!"):
            yield "warn", "Server is returning more data than is required"
        yield from self.headers(answer, self.url, "plaintext")

    def db(self) -> Iterator[Problem]:
        answer = self.get(self.url)
        document, problems = self.basic_body(answer)
        yield from problems
        if problems:
            return
        if isinstance(document, list):
            yield "warn", "Response is a JSON array. Expected JSON object"
            document = document[0]
        if not isinstance(document, dict):
            yield "fail", "Response contained something other than a JSON object"
            return
        yield from self.random_number(document, "fail")
        yield from self.headers(answer, self.url, "json")
        yield from self.counted("world", 1, 1)

    def query(self) -> Iterator[Problem]:
        yield from self.query_cases()
        yield from self.counted("world", QUERIES, QUERIES)

    def cached_query(self) -> Iterator[Problem]:
        yield from self.query_cases()

    def update(self) -> Iterator[Problem]:
        before = self.world()
        yield from self.query_cases()
        after = self.world()
        changed = sum(after[key] != value for key, value in before.items())
        if changed == 0:
            yield "fail", "No items were updated in the database."
        elif changed <= MAX * 0.9:
            yield "fail", f"Only {changed} items were updated in the database out of roughly {MAX} expected."
        elif changed <= MAX * 0.95:
            yield "warn", f"There may have been an error updating the database: only {changed} changed."
        yield from self.counted("world", 2 * QUERIES, QUERIES, QUERIES)

    def fortune(self) -> Iterator[Problem]:
        answer = self.get(self.url)
        parser = FortuneParser()
        parser.feed(answer.body.decode("utf-8", "replace"))
        page, wanted = "".join(parser.body), normalised(FORTUNES)
        if page != wanted:
            diff = "\n".join(difflib.unified_diff(wanted.split("<tr>"), page.split("<tr>"), lineterm=""))
            yield "fail", f"Invalid fortune page: {diff[:200]}"
        yield from self.headers(answer, self.url, "html")
        yield from self.counted("fortune", 1, 12)

    # ---- rows --------------------------------------------------------------------------------------------------------

    def basic_body(self, answer: Answer) -> tuple[Any, list[Problem]]:
        if answer.status != 200:
            return None, [("fail", f"Expected response status code 200, got {answer.status}")]
        if not answer.body:
            return None, [("fail", "No response")]
        return self.document(answer)

    def document(self, answer: Answer) -> tuple[Any, list[Problem]]:
        try:
            return json.loads(answer.body.decode("utf-8", "replace")), []
        except ValueError as error:
            return None, [("fail", f"Invalid JSON: {error}")]

    def query_cases(self) -> Iterator[Problem]:
        yield from self.basic_body(self.get(f"{self.url}2"))[1]
        for suffix, expected, severity in QUERY_CASES:
            answer = self.get(f"{self.url}{suffix}")
            yield from self.random_numbers(answer, expected, severity)
            yield from self.headers(answer, f"{self.url}{suffix}", "json")

    def random_numbers(self, answer: Answer, expected: int, severity: str) -> Iterator[Problem]:
        document, problems = self.document(answer)
        yield from problems
        if problems:
            return
        if not isinstance(document, list):
            yield severity, "Top-level JSON is an object, not an array"
            yield from self.random_number(document, severity)
            return
        if any(not isinstance(item, dict) for item in document):
            yield severity, "Not all items in the JSON array were JSON objects"
        if len(document) != expected:
            yield severity, f"JSON array length of {len(document)} != expected length of {expected}"
        bad = 0
        for item in document:
            problems = list(self.random_number(item, severity)) if isinstance(item, dict) else []
            yield from problems
            bad += bool(problems)
            if bad == 5:
                return

    def random_number(self, document: dict[str, Any], severity: str) -> Iterator[Problem]:
        document = {k.lower(): v for k, v in document.items()}
        missing = {"id", "randomnumber"} - document.keys()
        for key in missing:
            yield severity, f"Response object was missing required key: {key}"
        if len(document) > 2:
            yield "warn", "An extra key(s) was included with the db object"
        if missing or len(document) > 2:
            return
        try:
            if not 1 <= int(document["id"]) <= 10_000:
                yield "warn", "Response key id should be between 1 and 10,000"
        except TypeError:
            yield severity, "Response key 'id' does not map to an integer"
        try:
            if int(document["randomnumber"]) > 10_000:
                yield "warn", "Response key `randomNumber` is over 10,000"
        except TypeError:
            yield severity, "Response key 'randomnumber' does not map to an integer"

    def world(self) -> dict[tuple[str, int], int]:
        if self.database is None:
            return {}
        with tables(self.database) as view:
            return {(name, i): number for name, table in view.world().tables.items() for i, number in table.items()}

    # ---- statements --------------------------------------------------------------------------------------------------

    def counted(self, table: str, queries: int, rows: int, updates: int = 0) -> Iterator[Problem]:
        """Each of CONCURRENCY clients sends one request; expected numbers are for one."""
        if self.database is None:
            return
        url = f"{self.url}{QUERIES}" if self.test_type in ("query", "update") else self.url
        try:
            with counting(self.database, lambda counts: False) as counter:
                failed = self._siege(url)
        except NotCountedError:
            return
        counts = counter.counts or StatementCounts(statements=())
        if failed:
            yield "fail", f"{failed} failed transactions"
        named = [s for s in counts.statements if s.names(table)]
        calls = sum(s.calls for s in named)
        read = sum(s.rows for s in named if "select" in s.text.lower())
        written = sum(s.rows for s in named if "update" in s.text.lower())
        expected = queries * CONCURRENCY
        if updates:
            bulk = (QUERIES + 1) * CONCURRENCY
            if bulk * 0.999 <= calls <= bulk * 1.001:
                expected = bulk
        yield from self.margin("executed queries", calls, expected)
        yield from self.margin("rows read", read, rows * CONCURRENCY)
        if updates:
            yield from self.margin("rows updated", written, updates * CONCURRENCY)

    def margin(self, what: str, came: int, expected: int) -> Iterator[Problem]:
        if came < expected:
            yield "fail", f"Only {came} {what} in the database out of roughly {expected} expected."
        elif came > expected * MARGIN:
            yield "warn", f"{came} {what} in the database instead of {expected} expected."

    def _siege(self, url: str) -> int:
        """One request on each of so many connections, all open at once; how many failed."""
        lines = [
            http.client.HTTPConnection(self.endpoint.host, self.endpoint.port, timeout=SIEGE_TIMEOUT)
            for _ in range(CONCURRENCY)
        ]
        failed = 0
        for step in (lambda line: line.connect(), lambda line: line.request("GET", url), _read_good):
            for line in lines:
                try:
                    step(line)
                except (OSError, http.client.HTTPException):
                    failed += 1
        for line in lines:
            line.close()
        return failed


def _read_good(line: http.client.HTTPConnection) -> None:
    response = line.getresponse()
    response.read()
    if response.status != 200:
        raise http.client.HTTPException(f"status {response.status}")


class FortuneParser(HTMLParser):
    """Normalises a page: attributes and some elements are dropped, character references unified."""

    IGNORED = ("meta", "link", "script", "thead", "tbody")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.body: list[str] = []

    def handle_decl(self, decl: str) -> None:
        self.body.append(f"<!{decl.lower()}>")

    def handle_charref(self, name: str) -> None:
        value = int(name[1:], 16) if name[0] in "xX" else int(name)
        self.body.append({39: "&apos;", 34: "&quot;", 60: "&lt;", 62: "&gt;"}.get(value, chr(value)))

    def handle_entityref(self, name: str) -> None:
        self.body.append("—" if name == "mdash" else f"&{name};")

    def handle_data(self, data: str) -> None:
        if data.strip():
            text = data.strip("\r\n\t").replace("'", "&apos;").replace('"', "&quot;").replace(">", "&gt;")
            self.body.append(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag.lower() not in self.IGNORED:
            self.body.append(f"<{tag.lower()}>")

    def handle_endtag(self, tag: str) -> None:
        if tag.lower() not in self.IGNORED:
            self.body.append(f"</{tag.lower()}>")


def normalised(page: str) -> str:
    parser = FortuneParser()
    parser.feed(page)
    return "".join(parser.body)
