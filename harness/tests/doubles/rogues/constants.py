"""Rogues for the test types json and plaintext."""

from harness.tests.doubles.rogues import Rogue

ROGUES = (
    Rogue("json-trailing-comma", "json", "json-valid", "is lax about JSON", {"json_body": lambda _: b'{"message":"Hello, World!",}'}),
    Rogue("json-other-greeting", "json", "json-message", "greets otherwise", {"json_body": lambda _: b'{"message":"hello, world!"}'}),
    Rogue("plaintext-line-end", "plaintext", "plaintext-body", "adds a line end", {"plaintext_body": lambda _: b"Hello, World!\n"}),
)  # fmt: skip
