"""Verification of the test type ``static``: content, media types, conditional requests and path traversal."""

import random
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.extras.protocols.items import HeaderPairs
from harness.extras.protocols.static_folder import (
    FOLLOW_SECONDS,
    MEDIA_TYPES,
    SECRET_FILE,
    SIZES,
    VARIABLE,
    Versions,
    change_file,
    changes,
    changing_files,
    extension,
    make_alternative,
    read_versions,
    settle,
)
from harness.plan.requests import Expect, PreparedRequest
from harness.plan.testtypes import TestType
from harness.runtime import Server, endpoint_of
from harness.verify.checks import Finding, check, exchange_check
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant
from harness.verify.checks.http import parse_date, parse_media_type
from harness.verify.checks.verification_client import CONCURRENT_CONNECTIONS, Client, VerificationTask

STATIC = frozenset({"static"})
ENCODINGS = ("Accept-Encoding", "br;q=1, gzip;q=0.8")  # the header that HttpArena's benchmark sends
DRAWN_REQUESTS = 2_000  # number of requests that the load generator repeats
CONDITIONAL_SHARE = 0.1  # share of requests with If-None-Match or If-Modified-Since
CONCURRENT_REQUESTS = {True: 120, False: 20}  # number of requests if the verification is thorough (True) or brief
# Paths that leave the folder or do not exist.
OUTSIDE = (
    *("../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt", "a/../../secret.txt"),
    *("..%5csecret.txt", "....//secret.txt", "%252e%252e%252fsecret.txt", "/etc/hostname", "no-such-file.css"),
)


@dataclass(kw_only=True)
class FilesEvidence:
    """Versions of all files, and responses to requests for paths outside the folder."""

    versions: Versions
    secret: bytes  # content of ``SECRET_FILE``, which no response may contain
    outside: list[Exchange] = field(default_factory=list)


def file_variant(
    server: Server, test_type: TestType, name: str, condition: HeaderPairs = (), *, plain: bool = False
) -> QueryVariant:
    """Return a request for a file. With a ``condition`` header, it expects status 304.

    If ``plain`` is set, the request has no Accept-Encoding header.
    """
    headers = (("Accept", "*/*"), *(() if plain else (ENCODINGS,)), *condition)
    target = f"{server.implementation.urls[test_type.name]}{name}"
    request = PreparedRequest(target=target, headers=headers, expect=_NOT_MODIFIED if condition else _OK)
    return QueryVariant(name="drawn", drawn=request)


_OK, _NOT_MODIFIED = Expect(), Expect(status=304)


def files_of(server: Server) -> FilesEvidence:
    """Read the current versions of the files that a server must serve."""
    assert server.inputs is not None  # noqa: S101 - the test type declares the folder
    folder = server.inputs.path(VARIABLE)
    return FilesEvidence(versions=read_versions(folder), secret=(folder.parent / SECRET_FILE).read_bytes())


def gather(task: VerificationTask, evidence: Evidence) -> None:
    """Request every file, change some files and request them again. Also request paths outside the folder."""
    server, kind, dice = task.server, task.test_type, random.Random()
    assert server.inputs is not None  # noqa: S101 - the test type declares the folder
    folder = server.inputs.path(VARIABLE)
    settle(folder)
    evidence.extension = files = files_of(server)
    client = task.load_client()
    first = client.send_in_order(file_variant(server, kind, name) for name in SIZES)
    evidence.exchanges = [
        *first,
        *client.send_in_order([file_variant(server, kind, name, plain=True) for name in SIZES]),
    ]
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    conditions = {_name(exchange): condition for exchange in first if (condition := _condition(exchange))}
    again = [file_variant(server, kind, name, condition) for name, condition in conditions.items()]
    evidence.exchanges += client.send_in_order(again)
    alternatives = {
        name: make_alternative(name, files.versions[name][0].content, dice)
        for name in changing_files(secrets.randbits(32))
    }
    changed = [name for name, contents in alternatives.items() if contents[""] != files.versions[name][0].content]
    for name in changed:
        change_file(folder, name, alternatives[name], files.versions)
    settle(folder)
    repeated = [file_variant(server, kind, name) for name in changed]
    evidence.exchanges += client.send_in_order(repeated)
    # An outdated validator must not result in 304.
    outdated = [file_variant(server, kind, name, conditions[name]) for name in changed if name in conditions]
    evidence.exchanges += client.send_in_order(_expecting_content(variant) for variant in outdated)
    names = dice.choices(list(SIZES), k=CONCURRENT_REQUESTS[task.thorough])
    evidence.concurrent = client.send_concurrently(
        [file_variant(server, kind, name) for name in names], CONCURRENT_CONNECTIONS
    )
    files.outside = client.send_in_order(file_variant(server, kind, name) for name in OUTSIDE)


def _expecting_content(variant: QueryVariant) -> QueryVariant:
    drawn = variant.drawn
    assert drawn is not None  # noqa: S101 - ``file_variant`` sets it
    return QueryVariant(name="drawn", drawn=PreparedRequest(target=drawn.target, headers=drawn.headers, expect=_OK))


def _name(exchange: Exchange) -> str:
    return exchange.target.rpartition("/")[2]


def _condition(exchange: Exchange) -> HeaderPairs:
    """Return a conditional header that matches the response's ETag, or the Last-Modified date if there is no ETag."""
    if etag := exchange.header("etag"):
        return (("If-None-Match", etag),)
    modified = exchange.header("last-modified")
    return (("If-Modified-Since", modified),) if modified else ()


def draw(server: Server, test_type: TestType, seed: int) -> Sequence[PreparedRequest]:
    """Return random requests for a load. A tenth of them are conditional."""
    assert server.inputs is not None  # noqa: S101 - the test type declares the folder
    settle(server.inputs.path(VARIABLE))
    dice, changed = random.Random(f"{seed} {test_type.name}"), changing_files(seed)
    client = Client(endpoint_of(server, test_type), test_type, "")
    found = client.send_in_order(file_variant(server, test_type, name) for name in SIZES if name not in changed)
    conditions = {_name(exchange): condition for exchange in found if (condition := _condition(exchange))}
    requests = []
    for _ in range(DRAWN_REQUESTS):
        conditional = dice.random() < CONDITIONAL_SHARE and conditions
        name = dice.choice(list(conditions if conditional else SIZES))
        variant = file_variant(server, test_type, name, conditions[name] if conditional else ())
        requests += [variant.drawn] if variant.drawn else []
    return requests


@contextmanager
def observe(server: Server, seed: int) -> Iterator[FilesEvidence]:
    """Change files while the context is active. Yield evidence that records every version."""
    assert server.inputs is not None  # noqa: S101 - the test type declares the folder
    files = files_of(server)
    with changes(server.inputs.path(VARIABLE), files.versions, seed):
        yield files


def _files(evidence: Evidence) -> FilesEvidence:
    assert isinstance(evidence.extension, FilesEvidence)  # noqa: S101 - ``gather`` and ``observe`` create it
    return evidence.extension


@check("static.1", STATIC)
def file_exact(evidence: Evidence) -> Iterator[Finding]:
    """Require that the decoded body is the file's current content. A change must be visible within a second."""
    versions = _files(evidence).versions
    for exchange in evidence.ok_exchanges:
        name = _name(exchange)
        current = [v for v in versions[name] if v.since <= exchange.received_at and exchange.sent_at <= v.until]
        try:
            content = exchange.content
        except ValueError as error:
            yield Finding(
                f"GET {exchange.target}: {error}", expected="the file", actual="a body that cannot be decoded"
            )
            continue
        if all(content != version.content for version in current):
            is_old = any(content == version.content for version in versions[name])
            yield Finding(
                f"GET {exchange.target}: the body differs from the file. Serve changes within {FOLLOW_SECONDS:g} s",
                expected=f"{len(current[-1].content)} bytes" if current else "the file",
                actual=f"{len(content)} bytes{', the content of an old version' if is_old else ''}",
            )


@exchange_check("static.2", STATIC)
def file_type(exchange: Exchange) -> Iterator[Finding]:
    """Require the file's media type, even if the response is compressed."""
    values, expected = exchange.headers("content-type"), MEDIA_TYPES[extension(_name(exchange))]
    media, parameters = parse_media_type(values[0]) if len(values) == 1 else (None, {})
    if media not in expected or parameters.get("charset", "utf-8").lower() != "utf-8":
        yield Finding("wrong Content-Type", expected=" or ".join(expected), actual="; ".join(values) or "none")


@check("static.3", STATIC)
def validator_sent(evidence: Evidence) -> Iterator[Finding]:
    """Require a valid validator and, in compressed responses, ``Vary``. ``status-ok`` checks 304 responses."""
    for exchange in evidence.ok_exchanges:
        if not _condition(exchange):
            yield Finding(
                f"GET {exchange.target}: the response has no validator",
                expected="ETag or Last-Modified",
                actual="neither",
            )
        modified = exchange.header("last-modified")
        if modified and parse_date(modified) is None:
            yield Finding(
                f"GET {exchange.target}: Last-Modified is not an IMF-fixdate. Send the expected form",
                expected="Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
                actual=modified,
            )
        vary = ",".join(exchange.headers("vary")).lower()
        if exchange.header("content-encoding") and "accept-encoding" not in vary and "*" not in vary:
            yield Finding(
                f"GET {exchange.target}: Vary does not list Accept-Encoding",
                expected="Vary: Accept-Encoding",
                actual=vary or "none",
            )


@check("static.4", STATIC, lambda evidence: bool(_files(evidence).outside))
def folder_confined(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server rejects or redirects requests for paths that leave the folder or do not exist."""
    files = _files(evidence)
    for exchange in files.outside:
        status = exchange.response.status if exchange.response else None
        if files.secret in exchange.body or status is None or not 300 <= status < 500:
            yield Finding(
                f"GET {exchange.target}: the server must reject a path that leaves the folder or does not exist",
                expected="404",
                actual=f"{status or exchange.error}",
            )


load, drawing = None, sys.modules[__name__]
check_modules = (drawing,)
