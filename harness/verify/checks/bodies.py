"""Checks for json, plaintext and row bodies: valid JSON, exact keys, integers in range, and the number of rows."""

import json
from collections.abc import Iterator

from harness.verify.checks import (
    GREETING_TYPES,
    JSON_TYPES,
    QUERY_TYPES,
    ROW_TYPES,
    Finding,
    excerpt,
    exchange_check,
)
from harness.verify.checks.evidence import HIGHEST_NUMBER, Exchange, parse_row
from harness.verify.checks.statement_counts import HIGHEST_ID

GREETING = "Hello, World!"
ROW_KEYS = {"id", "randomNumber"}


@exchange_check("json.1", JSON_TYPES)
def json_valid(exchange: Exchange) -> Iterator[Finding]:
    """Require valid JSON, encoded in UTF-8."""
    if isinstance(exchange.document, ValueError):
        yield Finding(f"{exchange.document}", expected="a JSON text in UTF-8", actual=excerpt(exchange.body))


@exchange_check("json.2", frozenset({"json"}))
def json_message(exchange: Exchange) -> Iterator[Finding]:
    """Require an object with the single key ``message``."""
    document = exchange.document
    if not isinstance(document, ValueError) and document != {"message": GREETING}:
        yield Finding(
            "the body is not the JSON object that the json test expects. Return exactly the expected key and value",
            expected='{"message":"Hello, World!"}',
            actual=excerpt(exchange.body),
            accepted=_is_greeting_in_any_case(document),
        )


def _is_greeting_in_any_case(document: object) -> bool:
    """Return whether TechEmpower accepts a document. TechEmpower's verification ignores case and additional keys."""
    if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
        return False
    lowercased = {str(key).lower(): value.lower() for key, value in document.items()}
    return len(lowercased) == len(document) and lowercased.get("message") == GREETING.lower()


@exchange_check("plaintext.1", GREETING_TYPES)
def plaintext_body(exchange: Exchange) -> Iterator[Finding]:
    """Require a body that consists of exactly the greeting."""
    if exchange.body != GREETING.encode():
        yield Finding(
            "the body is not the greeting. Return exactly the expected bytes",
            expected=GREETING,
            actual=excerpt(exchange.body),
            accepted=GREETING.lower().encode() in exchange.body.lower(),
        )


@exchange_check("rows.1", ROW_TYPES)
def rows_are_objects(exchange: Exchange) -> Iterator[Finding]:
    """Require an array of objects if the request specifies a number of rows, even 1. Otherwise, require an object."""
    document = exchange.document
    if isinstance(document, ValueError):
        return  # json-valid reports this problem
    is_single = exchange.case.count is None
    if not isinstance(document, dict if is_single else list) or not all(
        isinstance(item, dict) for item in exchange.row_objects
    ):
        yield Finding(
            f"the body is not {'an object' if is_single else 'an array of objects'}. Return rows in the expected form",
            expected='{"id":…,"randomNumber":…}' if is_single else '[{"id":…,"randomNumber":…},…]',
            actual=excerpt(exchange.body),
            accepted=is_single
            and [*map(type, exchange.row_objects)] == [dict],  # TechEmpower accepts an array with a single object
        )


@exchange_check("rows.2", ROW_TYPES)
def rows_exact(exchange: Exchange) -> Iterator[Finding]:
    """Require exactly the keys ``id`` and ``randomNumber``, with JSON integers in range."""
    for item in exchange.row_objects:
        if not isinstance(item, dict):
            continue  # rows-are-objects reports this problem
        row = parse_row(item)
        if row is None or item.keys() != ROW_KEYS or {*map(type, item.values())} != {int}:
            yield Finding(
                "a row does not have the required keys and values. Write both values as JSON integers",
                expected=f'{{"id":1..{HIGHEST_ID},"randomNumber":1..{HIGHEST_NUMBER}}}, both integers',
                actual=excerpt(json.dumps(item, ensure_ascii=False)),
                accepted=row is not None,
            )


@exchange_check("count.1", QUERY_TYPES)
def count_exact(exchange: Exchange) -> Iterator[Finding]:
    """Require the requested number of rows, clamped to 1..500, or a single row if the parameter is not an integer."""
    case, document = exchange.case, exchange.document
    if isinstance(document, list) and len(document) not in (case.count, case.alternative_count):
        yield Finding(
            f"({case.name}) wrong number of rows. Clamp the number to 1..500, and use 1 if it is not an integer",
            expected=f"{case.count}" + (f" or {case.alternative_count}" if case.alternative_count else ""),
            actual=f"{len(document)}",
            accepted=not case.checked_by_techempower,
        )
