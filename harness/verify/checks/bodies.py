"""The bodies of json, plaintext and rows: valid, an object or an array, exact keys, integers in range."""

from collections.abc import Iterator

from harness.verify.checks import GREETING_TYPES, JSON_TYPES, QUERY_TYPES, ROW_TYPES, Finding, each, shown
from harness.verify.checks.evidence import HIGHEST_ID, HIGHEST_NUMBER, UNREADABLE, Exchange, sound_row

GREETING = "Hello, World!"
LIMITS = {"id": HIGHEST_ID, "randomNumber": HIGHEST_NUMBER}


@each("json.1", JSON_TYPES)
def json_valid(exchange: Exchange) -> Iterator[Finding]:
    """The body is one JSON text in UTF-8."""
    try:
        _ = exchange.document
    except ValueError as error:
        yield Finding(f"{error}", expected="a JSON text in UTF-8", actual=shown(exchange.body))


@each("json.3", JSON_TYPES)
def keys_once(exchange: Exchange) -> Iterator[Finding]:
    """No two names of an object differ only in case."""
    for item in exchange.items or (exchange.parsed,):
        if isinstance(item, dict) and len({str(key).lower() for key in item}) != len(item):
            names = ", ".join(map(str, item))
            yield Finding(
                f"names that differ only in case: {names}", expected="each name once", actual=shown(f"{item}")
            )
            return


@each("json.2", frozenset({"json"}))
def json_message(exchange: Exchange) -> Iterator[Finding]:
    """The document is one object with the one key ``message``, spelt so."""
    document = exchange.parsed
    if document is not UNREADABLE and document != {"message": GREETING}:
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
    return folded.get("message") == GREETING.lower()


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
    if document is UNREADABLE:
        return  # the check json-valid says so
    if not isinstance(document, wanted) or not all(isinstance(item, dict) for item in exchange.items):
        yield Finding(
            f"not {'an object' if wanted is dict else 'an array of objects'}",
            expected='{"id":…,"randomNumber":…}' if wanted is dict else '[{"id":…,"randomNumber":…},…]',
            actual=shown(exchange.body),
            accepted=wanted is dict and [*map(type, exchange.items)] == [dict],  # in an array
        )


@each("rows.2", ROW_TYPES)
def keys_exact(exchange: Exchange) -> Iterator[Finding]:
    """A row has the keys ``id`` and ``randomNumber``, spelt so, and no other."""
    for row in exchange.objects:
        spelt = {str(key).lower() for key in row}
        if row.keys() != LIMITS.keys() and len(spelt) == len(row):
            yield Finding(
                f"a row with the keys {', '.join(map(str, row)) or 'of nothing'}",
                expected="id, randomNumber",
                actual=shown(f"{row}"),
                accepted={"id", "randomnumber"} <= spelt,
            )


@each("rows.3", ROW_TYPES)
def integers(exchange: Exchange) -> Iterator[Finding]:
    """Both values are JSON integers: no strings, fractions, exponents, booleans or null."""
    for row in exchange.objects:
        for key in LIMITS.keys() & row.keys():
            if type(row[key]) is not int:
                yield Finding(
                    f"{key} is not a JSON integer",
                    expected="an integer",
                    actual=f"{row[key]!r}",
                    accepted=sound_row(row) is not None,
                )


@each("rows.4", ROW_TYPES)
def in_range(exchange: Exchange) -> Iterator[Finding]:
    """Both values are between 1 and 10,000."""
    for row in exchange.objects:
        for key, limit in LIMITS.items():
            value = row.get(key)
            if type(value) is int and not 1 <= value <= limit:
                yield Finding(f"{key} is out of range", expected=f"1..{limit}", actual=shown(f"{value}", 40))


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
