"""The shape of JSON answers: valid, an object or an array, exact keys, integers in range."""

from collections.abc import Iterator

from harness.verify.checks import JSON_TYPES, QUERY_TYPES, ROW_TYPES, Finding, check, shown
from harness.verify.checks.evidence import HIGHEST_ID, HIGHEST_NUMBER, Evidence, Exchange, sound_row
from harness.verify.checks.json_text import JsonError, RepeatedNameError

KEYS = {"id", "randomNumber"}
LIMITS = {"id": HIGHEST_ID, "randomNumber": HIGHEST_NUMBER}


@check("json.1", JSON_TYPES)
def json_valid(evidence: Evidence) -> Iterator[Finding]:
    """The body is one JSON text in UTF-8."""
    for exchange in evidence.good:
        try:
            _ = exchange.document
        except RepeatedNameError:
            continue  # the check keys-once says so
        except JsonError as error:
            yield Finding(
                message=f"GET {exchange.target}: {error}", expected="a JSON text in UTF-8", actual=_body(exchange)
            )


@check("json.3", JSON_TYPES)
def keys_once(evidence: Evidence) -> Iterator[Finding]:
    """No name occurs twice in an object, in whatever case."""
    for exchange in evidence.good:
        try:
            items = exchange.items or (exchange.document,)
        except RepeatedNameError as error:
            yield Finding(message=f"GET {exchange.target}: {error}", expected="each name once", actual=_body(exchange))
            continue
        except JsonError:
            continue
        for item in items:
            if isinstance(item, dict) and len({str(key).lower() for key in item}) != len(item):
                yield Finding(
                    message=f"GET {exchange.target}: names that differ only in case: {', '.join(map(str, item))}",
                    expected="each name once",
                    actual=shown(str(item)),
                )
                break


@check("rows.1", ROW_TYPES)
def rows_are_objects(evidence: Evidence) -> Iterator[Finding]:
    """A single row is an object, several are an array of objects, also when it is an array of one."""
    for exchange in evidence.good:
        try:
            document = exchange.document
        except JsonError:
            continue
        wanted = dict if exchange.case.count is None else list
        if not isinstance(document, wanted) or not all(isinstance(item, dict) for item in exchange.items):
            yield Finding(
                message=f"GET {exchange.target}: not {'an object' if wanted is dict else 'an array of objects'}",
                expected='{"id":…,"randomNumber":…}' if wanted is dict else '[{"id":…,"randomNumber":…},…]',
                actual=_body(exchange),
            )


@check("rows.2", ROW_TYPES)
def keys_exact(evidence: Evidence) -> Iterator[Finding]:
    """A row has the keys ``id`` and ``randomNumber``, spelt so, and no other."""
    for exchange, row in _objects(evidence):
        spelt = {str(key).lower() for key in row}
        if set(row) != KEYS and len(spelt) == len(row):
            yield Finding(
                message=f"GET {exchange.target}: a row with the keys {', '.join(map(str, row)) or 'of nothing'}",
                expected="id, randomNumber",
                actual=shown(str(row)),
                accepted={"id", "randomnumber"} <= spelt,
            )


@check("rows.3", ROW_TYPES)
def integers(evidence: Evidence) -> Iterator[Finding]:
    """Both values are JSON integers: no strings, fractions, exponents, booleans or null."""
    for exchange, row in _objects(evidence):
        for key in KEYS & row.keys():
            if type(row[key]) is not int:
                yield Finding(
                    message=f"GET {exchange.target}: {key} is not a JSON integer",
                    expected="an integer",
                    actual=f"{row[key]!r}",
                    accepted=sound_row(row) is not None,
                )


@check("rows.4", ROW_TYPES)
def in_range(evidence: Evidence) -> Iterator[Finding]:
    """Both values are between 1 and 10,000."""
    for exchange, row in _objects(evidence):
        for key in KEYS & row.keys():
            value = row[key]
            if type(value) is int and not 1 <= value <= LIMITS[key]:
                yield Finding(
                    message=f"GET {exchange.target}: {key} is out of range",
                    expected=f"1..{LIMITS[key]}",
                    actual=shown(str(value), 40),
                )


@check("count.1", QUERY_TYPES)
def count_exact(evidence: Evidence) -> Iterator[Finding]:
    """As many rows as were asked for; outside 1..500 and where there is no number, the nearest bound or one."""
    for exchange in evidence.good:
        try:
            document = exchange.document
        except JsonError:
            continue
        case = exchange.case
        if isinstance(document, list) and len(document) not in (case.count, case.or_count):
            yield Finding(
                message=f"GET {exchange.target} ({case.name}): wrong number of rows",
                expected=f"{case.count}" + (f" or {case.or_count}" if case.or_count else ""),
                actual=f"{len(document)}",
                accepted=not case.tried,
            )


def _objects(evidence: Evidence) -> Iterator[tuple[Exchange, dict[str, object]]]:
    for exchange in evidence.good:
        for item in exchange.items:
            if isinstance(item, dict):
                yield exchange, item


def _body(exchange: Exchange) -> str:
    return shown(exchange.response.body if exchange.response else b"")


CHECKS = (json_valid, keys_once, rows_are_objects, keys_exact, integers, in_range, count_exact)
