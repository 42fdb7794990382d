"""The two constant bodies: json and plaintext."""

from collections.abc import Iterator

from harness.verify.checks import GREETING_TYPES, Finding, check, shown
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.json_text import JsonError

GREETING = "Hello, World!"


@check("json.2", frozenset({"json"}))
def json_message(evidence: Evidence) -> Iterator[Finding]:
    """The document is one object with the one key ``message``, spelt so."""
    for exchange in evidence.good:
        try:
            document = exchange.document
        except JsonError:
            continue  # the check json-valid says so
        if document != {"message": GREETING}:
            yield Finding(
                message=f"GET {exchange.target}: not the object of the json test",
                expected='{"message":"Hello, World!"}',
                actual=shown(exchange.response.body if exchange.response else b""),
                accepted=_same_words(document),
            )


def _same_words(document: object) -> bool:
    """The message in any case, perhaps beside other strings: TechEmpower's verification folds all, and takes it."""
    if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
        return False
    folded = {str(key).lower(): value.lower() for key, value in document.items()}
    return folded.get("message") == GREETING.lower()


@check("plaintext.1", GREETING_TYPES)
def plaintext_body(evidence: Evidence) -> Iterator[Finding]:
    """The body is exactly the greeting."""
    for exchange in evidence.good:
        if exchange.response is not None and exchange.response.body != GREETING.encode():
            yield Finding(
                message=f"GET {exchange.target}: not the greeting",
                expected=GREETING,
                actual=shown(exchange.response.body),
                accepted=GREETING.lower().encode() in exchange.response.body.lower(),
            )


CHECKS = (json_message, plaintext_body)
