"""What every response must be, whatever its test type: answered, framed to the byte, dated, typed, uncompressed."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Outcome
from harness.verify.checks import ALL_TYPES, SERVER, Finding, check, everywhere, shown
from harness.verify.checks.evidence import Evidence, Exchange

# A Date names the second in which it was made and may be refreshed once a second: an honest one is up to 2 s behind.
# A further second is for a late timer, and five more while the generator has the machine to itself.
DATE_BEHIND_SECONDS = 3.0
DATE_BEHIND_UNDER_LOAD_SECONDS = 8.0
DATE_AHEAD_SECONDS = 1.0  # clocks of two machines

_IMF_FIXDATE = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} "
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT"
)
_PARAMETER = re.compile(r"""[ \t]*;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([\w!#$%&'*+.^`|~-]+))""")


@check("http.1", everywhere)
def answered(evidence: Evidence) -> Iterator[Finding]:
    """Every request is answered, in time."""
    for exchange in evidence.all:
        if exchange.error_kind in ("refused", "closed", "silent"):
            yield Finding(
                message=f"GET {exchange.target} was not answered: {exchange.error}",
                expected="a response to every request",
                actual=exchange.error,
                accepted=not exchange.case.tried,
            )


@check("http.2", everywhere)
def status_ok(evidence: Evidence) -> Iterator[Finding]:
    """Every answer of a declared URL has status 200."""
    for exchange in evidence.all:
        if exchange.response is not None and exchange.response.status != 200:
            yield Finding(
                message=f"GET {exchange.target} answered with status {exchange.response.status}",
                expected="200",
                actual=f"{exchange.response.status} {exchange.response.reason}: {shown(exchange.response.body, 80)}",
                accepted=not exchange.case.tried,
            )


@check("http.3", everywhere)
def message_grammar(evidence: Evidence) -> Iterator[Finding]:
    """Status line, header lines and chunks follow RFC 9112."""
    for exchange in evidence.all:
        if exchange.error_kind == "grammar":
            yield Finding(message=f"GET {exchange.target}: {exchange.error}", expected="an HTTP/1.1 message")
        elif exchange.response is not None:
            for violation in exchange.response.violations:
                yield Finding(message=f"GET {exchange.target}: {violation}", expected="an HTTP/1.1 message")
            if exchange.response.version != "1.1":
                yield Finding(
                    message=f"GET {exchange.target} answered as HTTP/{exchange.response.version}",
                    expected="HTTP/1.1",
                    actual=f"HTTP/{exchange.response.version}",
                )


@check("http.4", everywhere)
def length_declared(evidence: Evidence) -> Iterator[Finding]:
    """The body's end is declared by Content-Length or chunks, not by closing the connection."""
    for exchange in evidence.all:
        if exchange.response is not None and exchange.response.framing == "close":
            yield Finding(
                message=f"GET {exchange.target}: neither Content-Length nor Transfer-Encoding: chunked",
                expected="Content-Length or chunked",
                actual="a body that ends with the connection",
            )


@check("http.4", everywhere)
def length_exact(evidence: Evidence) -> Iterator[Finding]:
    """Content-Length or chunks agree with the bytes that came."""
    for exchange in evidence.all:
        if exchange.error_kind == "short":
            yield Finding(message=f"GET {exchange.target}: {exchange.error}", expected="as many bytes as declared")
        elif exchange.stray:
            yield Finding(
                message=f"GET {exchange.target}: bytes follow after the declared end of the body",
                expected="as many bytes as declared",
                actual=shown(exchange.stray, 60),
            )


@check("http.5", everywhere)
def keep_alive(evidence: Evidence) -> Iterator[Finding]:
    """A connection stays open as long as the client wants it."""
    for exchange in evidence.all:
        gone = exchange.closed or exchange.reconnected
        if exchange.response is not None and gone and exchange.response.framing != "close":
            yield Finding(
                message=f"the connection was closed around GET {exchange.target} although keep-alive was asked for",
                expected="an open connection",
                actual="closed",
            )


@check("http.6", everywhere)
def server_header(evidence: Evidence) -> Iterator[Finding]:
    """Every response names its server."""
    for exchange in evidence.good:
        if not _header(exchange, "server"):
            yield Finding(message=f"GET {exchange.target}: no Server header", expected="Server: a name", actual="none")


@check("http.7", everywhere)
def date_form(evidence: Evidence) -> Iterator[Finding]:
    """Every response carries one Date in the one form that RFC 9110 lets a server send."""
    for exchange in evidence.good:
        dates = exchange.response.all("date") if exchange.response else []
        if len(dates) != 1 or parse_date(dates[0]) is None:
            yield Finding(
                message=f"GET {exchange.target}: the Date header is missing, repeated or not an IMF-fixdate",
                expected="Date: Sun, 06 Nov 1994 08:49:37 GMT",
                actual="; ".join(dates) or "none",
                accepted=len(dates) == 1,
            )


@check("http.8", everywhere)
def date_now(evidence: Evidence) -> Iterator[Finding]:
    """Date is the time of the response."""
    behind = DATE_BEHIND_UNDER_LOAD_SECONDS if evidence.under_load else DATE_BEHIND_SECONDS
    for exchange in evidence.good:
        date = parse_date(_header(exchange, "date") or "")
        if date is not None and not exchange.sent_at - behind < date <= exchange.received_at + DATE_AHEAD_SECONDS:
            yield Finding(
                message=f"GET {exchange.target}: Date is {date - exchange.received_at:+.1f} s off",
                expected=_http_date(exchange.received_at),
                actual=_header(exchange, "date"),
            )


@check("http.9", frozenset({SERVER}), lambda evidence: len(evidence.dates) > 1)
def date_moves(evidence: Evidence) -> Iterator[Finding]:
    """Date changes as time goes by."""
    (first_at, first), (last_at, last) = evidence.dates[0], evidence.dates[-1]
    if first == last:
        yield Finding(
            message=f"Date did not change within {last_at - first_at:.1f} s",
            expected="a Date that moves with the clock",
            actual=last,
        )


@check("http.10", ALL_TYPES)
def content_type(evidence: Evidence) -> Iterator[Finding]:
    """Content-Type is the test type's, in UTF-8."""
    wanted = TEST_TYPES[evidence.test_type].media_type
    for exchange in evidence.good:
        values = exchange.response.all("content-type") if exchange.response else []
        media, parameters = parse_media_type(values[0]) if len(values) == 1 else (None, {})
        charset = parameters.get("charset", "utf-8" if wanted != "text/html" else "not given").lower()
        if media != wanted or charset != "utf-8" or set(parameters) - {"charset"}:
            yield Finding(
                message=f"GET {exchange.target}: not the Content-Type of {evidence.test_type}",
                expected=wanted if wanted != "text/html" else "text/html; charset=utf-8",
                actual="; ".join(values) or "none",
            )


@check("http.11", everywhere)
def no_compression(evidence: Evidence) -> Iterator[Finding]:
    """Nothing is compressed that was not asked to be."""
    for exchange in evidence.good:
        coding = _header(exchange, "content-encoding")
        if coding is not None and coding.lower() != "identity":
            yield Finding(
                message=f"GET {exchange.target}: compressed although no Accept-Encoding was sent",
                expected="no Content-Encoding",
                actual=coding,
            )


@check("http.12", everywhere)
def no_state(evidence: Evidence) -> Iterator[Finding]:
    """No cookie is set: the tests have no sessions."""
    for exchange in evidence.good:
        if cookie := _header(exchange, "set-cookie"):
            yield Finding(
                message=f"GET {exchange.target}: sets a cookie",
                expected="no Set-Cookie",
                actual=shown(cookie, 60),
                outcome=Outcome.WARN,
            )


@lru_cache(maxsize=64)
def parse_date(value: str) -> float | None:
    """Epoch seconds of an IMF-fixdate, or None when it is none."""
    if not _IMF_FIXDATE.fullmatch(value):
        return None
    try:
        date = datetime.strptime(value, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    except ValueError:
        return None
    return date.timestamp() if date.strftime("%a") == value[:3] else None


def parse_media_type(value: str) -> tuple[str | None, dict[str, str]]:
    """Media type in lower case and its parameters; (None, {}) when it is no Content-Type."""
    media = value.partition(";")[0]
    rest = value[len(media) :]
    parameters: dict[str, str] = {}
    position = 0
    while position < len(rest):
        match = _PARAMETER.match(rest, position)
        if not match:
            return (media.strip().lower(), parameters) if not rest[position:].strip(" \t;") else (None, {})
        parameters[match[1].lower()] = match[2] if match[2] is not None else match[3]
        position = match.end()
    return media.strip().lower(), parameters


def _header(exchange: Exchange, name: str) -> str | None:
    return exchange.response.get(name) if exchange.response else None


def _http_date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")


CHECKS = (
    answered,
    status_ok,
    message_grammar,
    length_declared,
    length_exact,
    keep_alive,
    server_header,
    date_form,
    date_now,
    date_moves,
    content_type,
    no_compression,
    no_state,
)
