"""Checks of the test type ``json-compressed``: responses are compressed on request, and for each request anew."""

import random
from collections.abc import Iterator, Sequence
from statistics import median

from harness.extras.protocols.data_set import COUNT, MAX_MULTIPLIER
from harness.extras.protocols.items import ItemsEvidence, item_request, item_variant
from harness.verify.checks import Finding, check, exchange_check
from harness.verify.checks.evidence import Evidence, Exchange
from harness.verify.checks.verification_client import Client, ReconnectingConnection, VerificationTask

COMPRESSED = frozenset({"json-compressed"})
HEADERS = (("Accept-Encoding", "gzip, br"),)
CODINGS = ("gzip", "br")
MIN_BYTES = 2_048  # servers need not compress smaller documents
LARGEST_SHARE = 0.6  # maximum size of a compressed body, relative to the document; gzip's fastest level reaches 0.3
PLAIN_HEADERS = ((), (("Accept-Encoding", "identity"),))  # requests that must receive no compressed response
PAIRS = 120  # pairs of a repeated and a new request
FASTER = 0.85  # repeated requests take at least this share of the time of new requests, unless results are reused
CHANCE = 1e-6  # probability with which chance alone may explain a difference


def observe_compression(task: VerificationTask, client: Client, evidence: ItemsEvidence) -> Sequence[Exchange]:
    """Send requests without compression. A thorough verification also compares repeated and new requests."""
    server, kind = task.server, task.test_type
    plain = [item_variant(item_request(server, kind, COUNT, 7, headers)) for headers in PLAIN_HEADERS]
    exchanges = client.send_in_order(plain)
    if not task.thorough:
        return exchanges
    dice = random.Random()
    multipliers = dice.sample(range(1, MAX_MULTIPLIER + 1), PAIRS + 1)
    cases = [item_variant(item_request(server, kind, COUNT, m, HEADERS)) for m in multipliers]
    with ReconnectingConnection(client) as connection:
        for case in [cases[0]] * 5:  # a server may store the result of the first requests
            connection.send(case)
        for case in cases[1:]:
            # The order within a pair is random, so that it does not influence the comparison.
            first = dice.random() < 0.5
            for is_new in (first, not first):
                exchange = connection.send(case if is_new else cases[0])
                times = evidence.new if is_new else evidence.repeated
                times.append(exchange.received_at - exchange.sent_at)
    return exchanges


@exchange_check("compressed.1", COMPRESSED)
def coding_used(exchange: Exchange) -> Iterator[Finding]:
    """Require gzip or br for responses to requests that accept both, except for small documents."""
    codings = exchange.headers("content-encoding")
    if not exchange.case.accepts_coding or isinstance(exchange.document, ValueError):
        return  # json-valid reports bodies that cannot be decoded
    size = len(exchange.content)
    if codings and size > MIN_BYTES and len(exchange.body) > LARGEST_SHARE * size:
        yield Finding(
            f"the coded body of {size} bytes is hardly smaller. Compress it",
            expected=f"at most {LARGEST_SHARE * size:.0f} bytes",
            actual=f"{len(exchange.body)} bytes",
        )
    if codings not in (["gzip"], ["br"]) and (codings or size > MIN_BYTES):
        yield Finding(
            f"a body of {size} bytes is not compressed. Compress bodies above {MIN_BYTES} bytes on request",
            expected="Content-Encoding: gzip or br",
            actual="; ".join(codings) or "none",
        )


@exchange_check("compressed.2", COMPRESSED)
def vary_given(exchange: Exchange) -> Iterator[Finding]:
    """Require that compressed responses name Accept-Encoding in Vary, so that caches keep both variants apart."""
    names = {name.strip().lower() for value in exchange.headers("vary") for name in value.split(",")}
    if exchange.header("content-encoding") and not names & {"accept-encoding", "*"}:
        yield Finding(
            "Vary does not name Accept-Encoding. Add it to compressed responses",
            expected="Vary: Accept-Encoding",
            actual=", ".join(sorted(names)) or "none",
        )


def _samples(evidence: Evidence) -> tuple[Sequence[float], Sequence[float]]:
    """Return the times of new and of repeated requests."""
    observations = evidence.extension
    return (observations.new, observations.repeated) if isinstance(observations, ItemsEvidence) else ((), ())


@check("compressed.3", COMPRESSED, lambda evidence: bool(_samples(evidence)[0]))
def compressed_anew(evidence: Evidence) -> Iterator[Finding]:
    """Require that repeated requests are not faster than new requests, as they are if a server reuses results."""
    from scipy.stats import mannwhitneyu  # imported here, because the import takes seconds and 80 MiB

    new, repeated = _samples(evidence)
    share = median(repeated) / median(new)
    chance = float(mannwhitneyu(repeated, new, alternative="less").pvalue)
    if share < FASTER and chance < CHANCE:
        yield Finding(
            "responses to repeated requests take less time than others. Serialise and compress each response anew",
            expected=f"{median(new) * 1e6:.0f} µs, as for new requests",
            actual=f"{median(repeated) * 1e6:.0f} µs",
        )
