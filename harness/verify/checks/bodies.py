"""The bodies of json, plaintext and rows: valid, an object or an array, exact keys, integers in range."""

import json
from collections.abc import Iterator

from harness.verify.checks import GREETING_TYPES, JSON_TYPES, QUERY_TYPES, ROW_TYPES, Finding, each, shown
from harness.verify.checks.evidence import HIGHEST_ID, HIGHEST_NUMBER, Exchange, sound_row

GREETING = "Hello, World!"
KEYS = {"id", "randomNumber"}


@each("json.1", JSON_TYPES)
def json_valid(exchange: Exchange) -> Iterator[Finding]:
    """The body is one JSON text in UTF-8."""
    if isinstance(exchange.parsed, ValueError):
        yield Finding(f"{exchange.parsed}", expected="a JSON text in UTF-8", actual=shown(exchange.body))


@each("json.2", frozenset({"json"}))
def json_message(exchange: Exchange) -> Iterator[Finding]:
    """The document is one object with the one key ``message``, spelt so."""
    document = exchange.parsed
    if not isinstance(document, ValueError) and document != {"message": GREETING}:
        yield Finding(
            "not the object of the json test",
            expected='{"message":"Hello, World!"}',
            actual=shown(exchange.body),
            accepted=_same_words(document),
        )


def _same_words(document: object) -> bool:
    """The message in any case, perhaps beside other strings: TechEmpower's verification folds all, and takes it."""
    if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
        return False
    folded = {str(key).lower(): value.lower() for key, value in document.items()}
    return len(folded) == len(document) and folded.get("message") == GREETING.lower()


@each("plaintext.1", GREETING_TYPES)
def plaintext_body(exchange: Exchange) -> Iterator[Finding]:
    """The body is exactly the greeting."""
    if exchange.body != GREETING.encode():
        yield Finding(
            "not the greeting",
            expected=GREETING,
            actual=shown(exchange.body),
            accepted=GREETING.lower().encode() in exchange.body.lower(),
        )


@each("rows.1", ROW_TYPES)
def rows_are_objects(exchange: Exchange) -> Iterator[Finding]:
    """A single row is an object, several are an array of objects, also when it is an array of one."""
    document = exchange.parsed
    wanted = dict if exchange.case.count is None else list
    if isinstance(document, ValueError):
        return  # the check json-valid says so
    if not isinstance(document, wanted) or not all(isinstance(item, dict) for item in exchange.items):
        yield Finding(
            f"not {'an object' if wanted is dict else 'an array of objects'}",
            expected='{"id":…,"randomNumber":…}' if wanted is dict else '[{"id":…,"randomNumber":…},…]',
            actual=shown(exchange.body),
            accepted=wanted is dict and [*map(type, exchange.items)] == [dict],  # in an array
        )


@each("rows.2", ROW_TYPES)
def rows_exact(exchange: Exchange) -> Iterator[Finding]:
    """A row has the keys ``id`` and ``randomNumber``, spelt so, and no other; both are JSON integers in range."""
    for item in exchange.items:
        if not isinstance(item, dict):
            continue  # the check rows-are-objects says so
        row = sound_row(item)
        if row is None or item.keys() != KEYS or {*map(type, item.values())} != {int}:
            yield Finding(
                "a row is another object than asked for",
                expected=f'{{"id":1..{HIGHEST_ID},"randomNumber":1..{HIGHEST_NUMBER}}}, both integers',
                actual=shown(json.dumps(item, ensure_ascii=False)),
                accepted=row is not None,
            )


@each("count.1", QUERY_TYPES)
def count_exact(exchange: Exchange) -> Iterator[Finding]:
    """As many rows as were asked for; outside 1..500 and where there is no number, the nearest bound or one."""
    case, document = exchange.case, exchange.parsed
    if isinstance(document, list) and len(document) not in (case.count, case.or_count):
        yield Finding(
            f"({case.name}) wrong number of rows",
            expected=f"{case.count}" + (f" or {case.or_count}" if case.or_count else ""),
            actual=f"{len(document)}",
            accepted=not case.tried,
        )
