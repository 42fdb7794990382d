"""Sends random requests for items of the data set, and checks the responses.

All test types whose responses contain items use this module.
"""

import random
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from harness.extras.protocols.data_set import COUNT, MAX_MULTIPLIER, VARIABLE, Item, expected_document, read_data_set
from harness.plan.requests import Expect, PreparedRequest
from harness.plan.testtypes import TestType
from harness.runtime import Server
from harness.verify.checks import Finding, check, excerpt, types_where
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant
from harness.verify.checks.verification_client import CONCURRENT_CONNECTIONS, Client, VerificationTask

DRAWN_REQUESTS = 5_000  # number of random requests that the load generator repeats
SEQUENTIAL_REQUESTS = {True: 60, False: 4}  # number of requests if the verification is thorough (True) or brief (False)
CONCURRENT_REQUESTS = {True: 240, False: 16}
FRESH_CONNECTIONS = 24  # number of new connections, each for two requests
TARGET = re.compile(r"/(\d+)\?m=(\d+)\Z")
ITEM_TYPES = types_where(lambda test_type: test_type.response_shape == "items")

HeaderPairs = tuple[tuple[str, str], ...]
_EXPECT = Expect()


@dataclass(kw_only=True)
class ItemsEvidence:
    """The data set that a server reads at startup, and tfb's observations of the server."""

    items: Sequence[Item]
    # Response times, in seconds, of a repeated request and of new requests for the same number of items.
    repeated: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)
    # For each TLS connection: TLS version, ALPN protocol, and whether the server presented tfb's certificate.
    tls: list[tuple[str, str, bool]] = field(default_factory=list)
    # HTTP/2 observations; None if tfb did not make the observation.
    passes_blocked: bool | None = None  # whether a stream gets a response while a different stream is blocked
    stream_limit: int | None = None  # SETTINGS_MAX_CONCURRENT_STREAMS
    pong: bool | None = None  # whether the server acknowledged PING
    tolerated: Sequence[str] | None = None  # violations after which the server did not close the connection


def item_request(
    server: Server, test_type: TestType, count: int, multiplier: int, more: HeaderPairs = ()
) -> PreparedRequest:
    """Return a request for ``count`` items. ``more`` contains additional headers."""
    url = server.implementation.urls[test_type.name]
    headers = (("Accept", test_type.accept), *more)
    return PreparedRequest(target=f"{url}{count}?m={multiplier}", headers=headers, expect=_EXPECT)


def draw_variants(
    server: Server, test_type: TestType, number: int, seed: int, more: HeaderPairs = ()
) -> list[QueryVariant]:
    """Return ``number`` requests with random item counts and random multipliers."""
    dice = random.Random(f"{seed} {test_type.name}")
    return [
        item_variant(item_request(server, test_type, dice.randint(1, COUNT), dice.randint(1, MAX_MULTIPLIER), more))
        for _ in range(number)
    ]


def item_variant(request: PreparedRequest) -> QueryVariant:
    """Wrap a drawn request in a query variant."""
    return QueryVariant(name="drawn", drawn=request)


class Observer(Protocol):
    """A function that gathers evidence specific to a test type, such as TLS parameters."""

    def __call__(self, task: VerificationTask, client: Client, evidence: ItemsEvidence, /) -> Sequence[Exchange]:
        """Add observations to ``evidence``. Return additional exchanges for the general checks."""


@dataclass(frozen=True, kw_only=True)
class ItemsVerification:
    """The verification of a test type whose responses contain items."""

    check_modules: Sequence[object]
    headers: HeaderPairs = ()  # additional headers of every request
    observer: Observer | None = None
    client: Callable[[VerificationTask], Client] = VerificationTask.load_client
    load: None = None

    @property
    def drawing(self) -> "ItemsVerification":
        """Return this object, which draws the requests of a load itself."""
        return self

    def gather(self, task: VerificationTask, evidence: Evidence) -> None:
        """Send requests with extreme item counts and multipliers, then random requests."""
        server, kind = task.server, task.test_type
        assert server.inputs is not None  # noqa: S101 - the test type declares the data set
        observations = ItemsEvidence(items=read_data_set(server.inputs.path(VARIABLE)))
        evidence.extension = observations
        client, seed = self.client(task), secrets.randbits(32)
        limits = [(1, 1), (COUNT, MAX_MULTIPLIER), (1, MAX_MULTIPLIER), (COUNT, 1), (2, 3)]
        cases = [item_variant(item_request(server, kind, *pair, self.headers)) for pair in limits]
        draw = partial(draw_variants, server, kind, more=self.headers)
        cases += draw(SEQUENTIAL_REQUESTS[task.thorough], seed)
        evidence.exchanges = client.send_in_order(cases)
        if any(exchange.response is None for exchange in evidence.exchanges):
            return
        evidence.concurrent = client.send_concurrently(
            draw(CONCURRENT_REQUESTS[task.thorough], seed + 1), CONCURRENT_CONNECTIONS
        )
        if task.thorough:
            evidence.exchanges += client.send_concurrently(draw(2 * FRESH_CONNECTIONS, seed + 2), FRESH_CONNECTIONS)
        if self.observer:
            evidence.exchanges += self.observer(task, client, observations)

    def draw(self, server: Server, test_type: TestType, seed: int) -> Sequence[PreparedRequest]:
        """Return random requests for a load."""
        variants = draw_variants(server, test_type, DRAWN_REQUESTS, seed, self.headers)
        return tuple(variant.drawn for variant in variants if variant.drawn)

    @contextmanager
    def observe(self, server: Server, seed: int) -> Iterator[ItemsEvidence]:
        """Yield evidence with the server's data set, which does not change during a load."""
        assert server.inputs is not None  # noqa: S101 - the test type declares the data set
        yield ItemsEvidence(items=read_data_set(server.inputs.path(VARIABLE)))


@check("items.1", ITEM_TYPES)
def items_exact(evidence: Evidence) -> Iterator[Finding]:
    """Require a document that contains only the requested items, their totals and the count."""
    observations = evidence.extension
    assert isinstance(observations, ItemsEvidence)  # noqa: S101 - ``gather`` and ``observe`` create it
    for exchange in evidence.ok_exchanges:
        match = TARGET.search(exchange.target)
        if match is None or isinstance(exchange.document, ValueError):
            continue  # json-valid reports invalid documents
        expected = expected_document(observations.items, int(match[1]), int(match[2]))
        for path, wanted, actual in _differences(expected, exchange.document, "$"):
            yield Finding(
                f"GET {exchange.target}: {path} is wrong. Compute the response from the file in DATASET",
                expected=excerpt(repr(wanted)),
                actual=excerpt(repr(actual)),
            )
            break


def _differences(expected: object, actual: object, path: str) -> Iterator[tuple[str, object, object]]:
    """Yield (path, expected value, actual value) for each difference between two documents."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in {**expected, **actual}:
            if key not in expected or key not in actual:
                yield f"{path}.{key}", expected.get(key, "no such key"), actual.get(key, "no such key")
            else:
                yield from _differences(expected[key], actual[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, pair in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(*pair, f"{path}[{index}]")
    elif type(expected) is not type(actual) or expected != actual:
        yield path, expected, actual
