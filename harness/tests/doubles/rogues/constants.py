"""Rogues for the test types json and plaintext."""

from harness.tests.doubles.rogues import Rogue

ROGUES = (
    Rogue("json-trailing-comma", "json", "json-valid", "sends JSON with a trailing comma", {"json_body": lambda _: b'{"message":"Hello, World!",}'}),
    Rogue("json-other-greeting", "json", "json-message", "sends a different greeting", {"json_body": lambda _: b'{"message":"hello, world!"}'}),
    Rogue("plaintext-line-end", "plaintext", "plaintext-body", "adds a newline to the body", {"plaintext_body": lambda _: b"Hello, World!\n"}),
)  # fmt: skip
