"""What every response must be, whatever its test type: answered, framed to the byte, dated, typed, uncompressed."""

import re
from collections.abc import Iterator
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.outcome import Outcome
from harness.verify.checks import ALL_TYPES, SERVER, Finding, check, each, everywhere, shown
from harness.verify.checks.evidence import Evidence, Exchange

# A Date names the second in which it was made and may be refreshed once a second: an honest one is up to 2 s behind.
# A further second is for a late timer, and five more while the generator has the machine to itself.
DATE_BEHIND_SECONDS = 3.0
DATE_BEHIND_UNDER_LOAD_SECONDS = 8.0
DATE_STANDS_SECONDS = 4.0  # in which it must have moved while a load is on

_PARAMETER = re.compile(r"""[ \t]*;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([\w!#$%&'*+.^`|~-]+))""")
_CONTENT_TYPE = re.compile(rf"([^;]*+)((?:{_PARAMETER.pattern})*+)[ \t;]*")  # possessive: linear in whatever came


@each("http.1", everywhere, good=False)
def answered(exchange: Exchange) -> Iterator[Finding]:
    """Every request is answered, in time and so that the answer can be read."""
    if exchange.response is None and exchange.error_kind != "short":  # else length-exact says so
        yield Finding(
            f"was not answered: {exchange.error}",
            expected="a response to every request",
            actual=exchange.error,
            accepted=not exchange.case.tried,
        )


@each("http.2", everywhere, good=False)
def status_ok(exchange: Exchange) -> Iterator[Finding]:
    """Every answer of a declared URL has status 200."""
    if exchange.response is not None and exchange.response.status != 200:
        yield Finding(
            f"status {exchange.response.status}",
            expected="200",
            actual=f"{exchange.response.status} {exchange.response.reason}: {shown(exchange.response.body, 80)}",
            accepted=not exchange.case.tried,
        )


@each("http.3", everywhere, good=False)
def message_grammar(exchange: Exchange) -> Iterator[Finding]:
    """Status line and header lines of an answer follow RFC 9112, also where it can be read all the same."""
    for violation in exchange.response.violations if exchange.response else ():
        yield Finding(violation, expected="an HTTP/1.1 message")


@each("http.4", everywhere, good=False)
def length_exact(exchange: Exchange) -> Iterator[Finding]:
    """Content-Length or chunks say where the body ends, and agree with the bytes that came."""
    if exchange.error_kind == "short":
        yield Finding(f"{exchange.error}", expected="as many bytes as declared")
    elif exchange.response is not None and exchange.response.framing == "close":
        yield Finding("the body ends with the connection", expected="Content-Length or Transfer-Encoding: chunked")
    elif exchange.stray:
        yield Finding(
            "bytes follow after the declared end of the body",
            expected="as many bytes as declared",
            actual=shown(exchange.stray, 60),
        )


@each("http.5", everywhere, good=False)
def keep_alive(exchange: Exchange) -> Iterator[Finding]:
    """Find connections that the server closed although the client wanted to keep them."""
    gone = exchange.closed or exchange.reconnected
    if exchange.response is not None and gone and exchange.response.framing != "close":
        yield Finding(
            "the connection was closed although keep-alive was asked for. Look for the server's limits of requests per "
            "connection and of idle connections",
            expected="an open connection",
            actual=_end_of(exchange),
        )


@each("http.6", everywhere)
def server_header(exchange: Exchange) -> Iterator[Finding]:
    """Every response names its server."""
    if not exchange.header("server"):
        yield Finding("no Server header", expected="Server: a name", actual="none")


@each("http.7", everywhere)
def date_form(exchange: Exchange) -> Iterator[Finding]:
    """Every response carries one Date in the one form that RFC 9110 lets a server send."""
    dates = exchange.headers("date")
    if len(dates) != 1 or parse_date(dates[0]) is None:
        yield Finding(
            "the Date header is missing, repeated or not an IMF-fixdate",
            expected="Date: Sun, 06 Nov 1994 08:49:37 GMT",
            actual="; ".join(dates) or "none",
            accepted=bool(dates),
        )


@check("http.8", everywhere)
def date_now(evidence: Evidence) -> Iterator[Finding]:
    """Date is the time of the response."""
    behind = DATE_BEHIND_UNDER_LOAD_SECONDS if evidence.under_load else DATE_BEHIND_SECONDS
    for exchange in evidence.good:
        date = parse_date(exchange.header("date") or "")
        # Clocks of two machines differ by a second.
        if date is not None and not exchange.sent_at - behind < date <= exchange.received_at + 1.0:
            yield Finding(
                f"GET {exchange.target}: Date is {date - exchange.received_at:+.1f} s off",
                expected=formatdate(exchange.received_at, usegmt=True),
                actual=exchange.header("date"),
            )


@check("http.9", everywhere, lambda e: e.under_load or (e.test_type == SERVER and e.thorough and bool(e.exchanges)))
def date_moves(evidence: Evidence) -> Iterator[Finding]:
    """Date changes as time goes by, also while a load is on."""
    allowed = DATE_STANDS_SECONDS if evidence.under_load else DATE_BEHIND_SECONDS
    seen: dict[str, list[float]] = {}
    for exchange in evidence.good:
        seen.setdefault(exchange.header("date") or "", []).append(exchange.received_at)
    for date, times in seen.items():
        stood = max(times) - min(times)
        # Of a load in so many different seconds: of a machine that stood still in between nothing is known.
        watched = not evidence.under_load or len(set(map(int, times))) > allowed
        if date and stood > allowed and watched:
            message = f"Date stood still for {stood:.1f} s"
            yield Finding(message, expected="a Date that moves with the clock", actual=date)


@check("http.10", ALL_TYPES)
def content_type(evidence: Evidence) -> Iterator[Finding]:
    """Content-Type is the test type's, in UTF-8."""
    wanted = TEST_TYPES[evidence.test_type].media_type
    for exchange in evidence.good:
        values = exchange.headers("content-type")
        media, parameters = parse_media_type(values[0]) if len(values) == 1 else (None, {})
        charset = parameters.get("charset", "utf-8" if wanted != "text/html" else "not given").lower()
        if media != wanted or charset != "utf-8" or parameters.keys() - {"charset"}:
            yield Finding(
                f"GET {exchange.target}: not the Content-Type of {evidence.test_type}",
                expected=wanted if wanted != "text/html" else "text/html; charset=utf-8",
                actual="; ".join(values) or "none",
            )


@each("http.11", everywhere)
def no_compression(exchange: Exchange) -> Iterator[Finding]:
    """Nothing is compressed that was not asked to be."""
    coding = exchange.header("content-encoding")
    if coding is not None and coding.lower() != "identity":
        yield Finding("compressed although no Accept-Encoding was sent", expected="no Content-Encoding", actual=coding)


@each("http.12", everywhere)
def no_state(exchange: Exchange) -> Iterator[Finding]:
    """No cookie is set: the tests have no sessions."""
    if cookie := exchange.header("set-cookie"):
        yield Finding("sets a cookie", expected="no Set-Cookie", actual=shown(cookie, 60), outcome=Outcome.WARN)


@lru_cache(maxsize=64)
def parse_date(value: str) -> float | None:
    """Epoch seconds of an IMF-fixdate, or None when it is none."""
    try:
        seconds = parsedate_to_datetime(value).timestamp()
        return seconds if formatdate(seconds, usegmt=True) == value else None
    except (ValueError, OverflowError, TypeError, IndexError, OSError):
        return None


@lru_cache(maxsize=64)
def parse_media_type(value: str) -> tuple[str | None, dict[str, str]]:
    """Media type in lower case and its parameters; (None, {}) when it is no Content-Type."""
    match = _CONTENT_TYPE.fullmatch(value)
    if not match:
        return None, {}
    parameters = {name.lower(): quoted or token for name, quoted, token in _PARAMETER.findall(match[2])}
    return match[1].strip().lower(), parameters


def _end_of(exchange: Exchange) -> str:
    """Return how the server announced the end of the connection, and after how many requests it came."""
    announced = (exchange.header("connection") or "").lower() == "close"
    how = "Connection: close" if announced else "closed"
    return f"{how} after {exchange.requests} requests" if exchange.requests > 1 else how
