"""Checks for all test types' responses: status, framing, dates, content type, and no compression."""

import re
from collections.abc import Iterator
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.verification_record import WHOLE_SERVER, Outcome
from harness.verify.checks import ALL_TYPES, Finding, all_types_and_server, check, excerpt, exchange_check
from harness.verify.checks.evidence import Evidence, Exchange

# A correct Date header may be 2 s old: it is truncated to a second, and servers may update it only once per second. The
# limits add 1 s for late timers and, under load, another 5 s for a busy machine.
DATE_BEHIND_SECONDS = 3.0
DATE_BEHIND_UNDER_LOAD_SECONDS = 8.0
DATE_UNCHANGED_SECONDS = 4.0  # under load, Date must change within this time

_PARAMETER = re.compile(r"""[ \t]*;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([\w!#$%&'*+.^`|~-]+))""")
# Possessive quantifiers prevent backtracking, so matching takes linear time.
_CONTENT_TYPE = re.compile(rf"([^;]*+)((?:{_PARAMETER.pattern})*+)[ \t;]*")


@exchange_check("http.1", all_types_and_server, only_ok=False)
def answered(exchange: Exchange) -> Iterator[Finding]:
    """Require a valid response to every request within the time limit."""
    if exchange.response is None and exchange.error_kind != "short":  # length-exact reports short responses
        yield Finding(
            f"no response: {exchange.error}",
            expected="a response to every request",
            actual=exchange.error,
            accepted=not exchange.case.checked_by_techempower,
        )


@exchange_check("http.2", all_types_and_server, only_ok=False)
def status_ok(exchange: Exchange) -> Iterator[Finding]:
    """Require status 200 for declared URLs, unless the request expects a different status."""
    if exchange.response is not None and exchange.response.status != (status := exchange.case.expected_status):
        yield Finding(
            f"the response has status {exchange.response.status}. Respond to the declared URL with status {status}",
            expected=f"{status}",
            actual=f"{exchange.response.status} {exchange.response.reason}: {excerpt(exchange.response.body, 80)}",
            accepted=not exchange.case.checked_by_techempower,
        )


@exchange_check("http.3", all_types_and_server, only_ok=False)
def message_grammar(exchange: Exchange) -> Iterator[Finding]:
    """Find status lines and header lines that violate RFC 9112 but can still be parsed."""
    for violation in exchange.response.violations if exchange.response else ():
        yield Finding(violation, expected="an HTTP/1.1 message")


@exchange_check("http.4", all_types_and_server, only_ok=False)
def length_exact(exchange: Exchange) -> Iterator[Finding]:
    """Require that Content-Length or chunks delimit the body exactly."""
    if exchange.error_kind == "short":
        yield Finding(f"{exchange.error}", expected="as many bytes as declared")
    elif exchange.response is not None and exchange.response.framing == "close":
        yield Finding(
            "the body ends only when the connection closes. Declare the length of the body",
            expected="Content-Length or Transfer-Encoding: chunked",
        )
    elif exchange.unsolicited:
        yield Finding(
            "bytes follow the declared end of the body. Declare the exact length",
            expected="as many bytes as declared",
            actual=excerpt(exchange.unsolicited, 60),
        )


@exchange_check("http.5", all_types_and_server, only_ok=False)
def keep_alive(exchange: Exchange) -> Iterator[Finding]:
    """Find connections that the server closed although the client wanted to reuse them."""
    closed = exchange.closed or exchange.reconnected
    if exchange.response is not None and closed and exchange.response.framing != "close":
        yield Finding(
            "the server closed a keep-alive connection. Check the server's limits on requests per connection and on "
            "idle connections",
            expected="an open connection",
            actual=_describe_close(exchange),
        )


@exchange_check("http.6", all_types_and_server)
def server_header(exchange: Exchange) -> Iterator[Finding]:
    """Require a Server header."""
    if not exchange.header("server"):
        yield Finding("the response has no Server header. Add one", expected="Server: a name", actual="none")


@exchange_check("http.7", all_types_and_server)
def date_form(exchange: Exchange) -> Iterator[Finding]:
    """Require exactly one Date header in the IMF-fixdate form, the only form that RFC 9110 lets servers send."""
    dates = exchange.headers("date")
    if len(dates) != 1 or parse_date(dates[0]) is None:
        yield Finding(
            "the Date header is missing, repeated or not an IMF-fixdate. Send a single Date in the expected form",
            expected="Date: Sun, 06 Nov 1994 08:49:37 GMT",
            actual="; ".join(dates) or "none",
            accepted=bool(dates),
        )


@check("http.8", all_types_and_server)
def date_now(evidence: Evidence) -> Iterator[Finding]:
    """Require that Date matches the time of the response."""
    behind = DATE_BEHIND_UNDER_LOAD_SECONDS if evidence.under_load else DATE_BEHIND_SECONDS
    for exchange in evidence.ok_exchanges:
        date = parse_date(exchange.header("date") or "")
        # The server may run on a different machine, with a clock that differs by up to a second.
        if date is not None and not exchange.sent_at - behind < date <= exchange.received_at + 1.0:
            yield Finding(
                f"GET {exchange.target}: Date is off by {date - exchange.received_at:+.1f} s. "
                "Send the current time in GMT",
                expected=formatdate(exchange.received_at, usegmt=True),
                actual=exchange.header("date"),
            )


@check(
    "http.9",
    all_types_and_server,
    lambda e: e.under_load or (e.test_type == WHOLE_SERVER and e.thorough and bool(e.exchanges)),
)
def date_moves(evidence: Evidence) -> Iterator[Finding]:
    """Require that Date changes over time."""
    allowed = DATE_UNCHANGED_SECONDS if evidence.under_load else DATE_BEHIND_SECONDS
    times_by_date: dict[str, list[float]] = {}
    for exchange in evidence.ok_exchanges:
        times_by_date.setdefault(exchange.header("date") or "", []).append(exchange.received_at)
    for date, times in times_by_date.items():
        unchanged = max(times) - min(times)
        # Under load, report an unchanged Date only if responses arrived in more than 4 different seconds. If there are
        # fewer, the machine may have stalled.
        observed = not evidence.under_load or len(set(map(int, times))) > allowed
        if date and unchanged > allowed and observed:
            yield Finding(
                f"Date did not change for {unchanged:.1f} s. Update it every second",
                expected="a Date that advances every second",
                actual=date,
            )


@check("http.10", ALL_TYPES)
def content_type(evidence: Evidence) -> Iterator[Finding]:
    """Require the test type's media type, with no charset other than UTF-8. HTML must declare the charset."""
    expected = TEST_TYPES[evidence.test_type].media_type
    if not expected:
        return  # the test type has a separate check
    for exchange in evidence.ok_exchanges:
        values = exchange.headers("content-type")
        media, parameters = parse_media_type(values[0]) if len(values) == 1 else (None, {})
        charset = parameters.get("charset", "utf-8" if expected != "text/html" else "missing").lower()
        if media != expected or charset != "utf-8" or parameters.keys() - {"charset"}:
            yield Finding(
                f"GET {exchange.target}: wrong Content-Type for {evidence.test_type}. Send the expected value",
                expected=expected if expected != "text/html" else "text/html; charset=utf-8",
                actual="; ".join(values) or "none",
            )


@exchange_check("http.11", all_types_and_server)
def no_compression(exchange: Exchange) -> Iterator[Finding]:
    """Find compressed responses to requests that do not accept compression."""
    coding = exchange.header("content-encoding")
    if coding is not None and coding.lower() != "identity" and not exchange.case.accepts_coding:
        yield Finding(
            "the body is compressed, but the request has no Accept-Encoding. Compress only on request",
            expected="no Content-Encoding",
            actual=coding,
        )


@exchange_check("http.12", all_types_and_server)
def no_state(exchange: Exchange) -> Iterator[Finding]:
    """Warn about cookies, because the tests have no sessions."""
    if cookie := exchange.header("set-cookie"):
        yield Finding(
            "the response sets a cookie. Disable sessions",
            expected="no Set-Cookie",
            actual=excerpt(cookie, 60),
            outcome=Outcome.WARN,
        )


@lru_cache(maxsize=64)
def parse_date(value: str) -> float | None:
    """Return the epoch seconds of an IMF-fixdate, or None for any other format."""
    try:
        seconds = parsedate_to_datetime(value).timestamp()
        return seconds if formatdate(seconds, usegmt=True) == value else None
    except (ValueError, OverflowError, TypeError, IndexError, OSError):
        return None


@lru_cache(maxsize=64)
def parse_media_type(value: str) -> tuple[str | None, dict[str, str]]:
    """Return the media type in lower case and the parameters, or (None, {}) for a malformed value."""
    match = _CONTENT_TYPE.fullmatch(value)
    if not match:
        return None, {}
    parameters = {name.lower(): quoted or token for name, quoted, token in _PARAMETER.findall(match[2])}
    return match[1].strip().lower(), parameters


def _describe_close(exchange: Exchange) -> str:
    """Describe whether the server announced that it would close the connection, and after how many requests."""
    announced = (exchange.header("connection") or "").lower() == "close"
    how = "Connection: close" if announced else "closed"
    requests = exchange.requests_on_connection
    return f"{how} after {requests} requests" if requests > 1 else how
