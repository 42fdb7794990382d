"""Rogues of the json and plaintext tests."""

from collections.abc import Callable

from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import Rogue


def rogue(name: str, test_type: str, caught_by: str, does: str, body: bytes) -> Rogue:
    method = "json_body" if test_type == "json" else "plaintext_body"
    answer: Callable[[ReferenceServer], bytes] = lambda self: body  # noqa: E731 - a method, not a name
    return Rogue(name=name, test_type=test_type, caught_by=caught_by, does=does, change={method: answer})


ROGUES = (
    rogue("json-trailing-comma", "json", "json-valid", "is lax about JSON", b'{"message":"Hello, World!",}'),
    rogue("json-with-bom", "json", "json-valid", "begins with a BOM", b'\xef\xbb\xbf{"message":"Hello, World!"}'),
    rogue("json-extra-key", "json", "json-message", "adds a key", b'{"message":"Hello, World!","id":1}'),
    rogue("json-other-greeting", "json", "json-message", "greets otherwise", b'{"message":"hello, world!"}'),
    rogue("json-key-twice", "json", "json-valid", "a name twice", b'{"message":"no","message":"Hello, World!"}'),
    rogue("plaintext-line-end", "plaintext", "plaintext-body", "adds a line end", b"Hello, World!\n"),
)  # fmt: skip
