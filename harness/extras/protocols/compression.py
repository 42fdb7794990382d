"""Checks that servers of the test type ``json-compressed`` compress on request, and do not reuse compressed bodies."""

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
MIN_BYTES = 2_048  # servers need not compress smaller documents
LARGEST_SHARE = 0.6  # maximum ratio of compressed to original size; gzip's fastest level reaches 0.3
PLAIN_HEADERS = ((), (("Accept-Encoding", "identity"),))  # with these headers, the response must not be compressed
PAIRS = 120  # number of pairs, each of which is a repeated request and a new request
FASTER = 0.85  # below this ratio of response times (repeated / new), the server is assumed to reuse results
CHANCE = 1e-6  # significance level for the comparison of response times


def observe_compression(task: VerificationTask, client: Client, evidence: ItemsEvidence) -> Sequence[Exchange]:
    """Send requests that do not accept compression.

    In a thorough verification, also measure the response times of repeated requests and new requests.
    """
    server, kind = task.server, task.test_type
    plain = [item_variant(item_request(server, kind, COUNT, 7, headers)) for headers in PLAIN_HEADERS]
    exchanges = client.send_in_order(plain)
    if not task.thorough:
        return exchanges
    dice = random.Random()
    multipliers = dice.sample(range(1, MAX_MULTIPLIER + 1), PAIRS + 1)
    cases = [item_variant(item_request(server, kind, COUNT, m, HEADERS)) for m in multipliers]
    with ReconnectingConnection(client) as connection:
        for case in [cases[0]] * 5:  # a server that caches responses now caches this response
            connection.send(case)
        for case in cases[1:]:
            # Randomise the order within each pair, so that it does not bias the comparison.
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
            f"the compressed body is hardly smaller than the document of {size} bytes. Compress it",
            expected=f"at most {LARGEST_SHARE * size:.0f} bytes",
            actual=f"{len(exchange.body)} bytes",
        )
    if codings not in (["gzip"], ["br"]) and (codings or size > MIN_BYTES):
        yield Finding(
            f"a body of {size} bytes is not compressed. If the request accepts it, compress bodies above "
            f"{MIN_BYTES} bytes",
            expected="Content-Encoding: gzip or br",
            actual="; ".join(codings) or "none",
        )


@exchange_check("compressed.2", COMPRESSED)
def vary_given(exchange: Exchange) -> Iterator[Finding]:
    """Require that ``Vary`` lists Accept-Encoding in compressed responses, so that caches distinguish the variants."""
    names = {name.strip().lower() for value in exchange.headers("vary") for name in value.split(",")}
    if exchange.header("content-encoding") and not names & {"accept-encoding", "*"}:
        yield Finding(
            "Vary does not list Accept-Encoding. Add it to compressed responses",
            expected="Vary: Accept-Encoding",
            actual=", ".join(sorted(names)) or "none",
        )


def _samples(evidence: Evidence) -> tuple[Sequence[float], Sequence[float]]:
    """Return the response times of new requests and of repeated requests, in seconds."""
    observations = evidence.extension
    return (observations.new, observations.repeated) if isinstance(observations, ItemsEvidence) else ((), ())


@check("compressed.3", COMPRESSED, lambda evidence: bool(_samples(evidence)[0]))
def compressed_anew(evidence: Evidence) -> Iterator[Finding]:
    """Check that repeated requests are not faster than new requests. If they are, the server reuses results."""
    from scipy.stats import mannwhitneyu  # imported here, because the import takes seconds and 80 MiB

    new, repeated = _samples(evidence)
    share = median(repeated) / median(new)
    chance = float(mannwhitneyu(repeated, new, alternative="less").pvalue)
    if share < FASTER and chance < CHANCE:
        yield Finding(
            "repeated requests are faster than new requests. Serialise and compress each response anew",
            expected=f"{median(new) * 1e6:.0f} µs, as for new requests",
            actual=f"{median(repeated) * 1e6:.0f} µs",
        )
