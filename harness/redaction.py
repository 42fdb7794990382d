"""Replaces secrets in text before the text is recorded or shown.

``declare`` registers a service's environment variables. From then on, tfb redacts their values in logs, records and
messages.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

MIN_LENGTH = 6  # shorter values are not redacted
MIN_SECRET_LENGTH = 4  # replaces MIN_LENGTH if the variable's name suggests a secret
SECRET_NAME = re.compile(r"SECRET|TOKEN|PASS|PWD|KEY|CRED|AUTH|PRIVATE|SIGN|SALT|DSN", re.IGNORECASE)
# Plain words, short numbers and IP addresses. Unless the variable's name suggests a secret, they are not redacted,
# because messages would become unreadable.
PLAIN = re.compile(r"[A-Z]?[a-z]{1,12}|[A-Z]{1,12}|[0-9]{1,6}|[0-9]{1,3}(\.[0-9]{1,3}){3}|/")
PASSWORD = re.compile(r"://[^/@:\s]*:([^/@\s]+)@")  # a password in a URL
UNRESERVED = re.compile(rb"[\w.~-]", re.ASCII)
# Keys in JSON records whose values are never redacted. tfb or tfb.toml defines these values, not a server. Redaction
# would change a value that equals a secret by chance.
IDENTIFIERS = frozenset(
    (
        *("basis", "check", "client", "depth", "design", "digest", "display_name", "flag", "framework"),
        *("generator", "grade"),
        *("id", "implementation", "kind", "leading", "log", "metric", "name", "of", "only_in"),
        *("operation", "outcome", "profile", "purpose", "reference", "request", "role", "rule", "rules"),
        *("run_id", "runtime", "stage", "status", "test_type", "test_types", "to", "use_case", "verdict"),
    )
)
_values: dict[str, str] = {}  # text -> replacement


def declare(variables: Mapping[str, str]) -> None:
    """Redact the variables' values from now on, including quoted and encoded forms."""
    for name, value in variables.items():
        for part in _parts(value):
            secret = bool(SECRET_NAME.search(name)) and len(part) >= MIN_SECRET_LENGTH
            if secret or (len(part) >= MIN_LENGTH and not PLAIN.fullmatch(part)):
                _values.update(dict.fromkeys(_forms(part), f"[{name}]"))
    _pattern.cache_clear()


def forget() -> None:
    """Forget all declared values."""
    _values.clear()
    _pattern.cache_clear()


def redacted(text: str) -> str:
    """Return the text with each declared value replaced by ``[NAME]``."""
    return _pattern().sub(lambda match: _values[match[0]], text) if _values else text


def redacted_json(text: str) -> str:
    """Return a JSON document with secrets redacted, except in keys and in the values of ``IDENTIFIERS``."""
    if not _values:
        return text
    indent = 1 if "\n" in text else None
    return json.dumps(_redact_strings(json.loads(text)), indent=indent, ensure_ascii=False)


def redact_file(path: Path) -> None:
    """Redact a file in place. No other process may be writing to it."""
    if not _values:
        return
    try:
        with path.open("r+b") as file:
            text = file.read().decode("utf-8", "surrogateescape")
            if (changed := redacted(text)) != text:
                file.seek(0)
                file.write(changed.encode("utf-8", "surrogateescape"))
                file.truncate()
    except FileNotFoundError:
        return


def _redact_strings(document: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(document, str):
        return redacted(document)
    if isinstance(document, list):
        return [_redact_strings(each) for each in document]
    if isinstance(document, dict):
        return {key: each if key in IDENTIFIERS else _redact_strings(each) for key, each in document.items()}
    return document


def _parts(value: str) -> Iterable[str]:
    """Yield the value itself, each line of a multi-line value, and each password in a URL."""
    yield value
    yield from (line.strip() for line in value.splitlines() if "\n" in value)
    yield from PASSWORD.findall(value)


def _forms(value: str) -> set[str]:
    """Return all forms of the value: unchanged, and as in JSON, Python, shells, URLs, compose files and base64."""
    escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    shell = {value.replace("'", "'\"'\"'"), value.replace("$", "$$")}
    return {value, *escaped, *shell, _quoted(value), base64.b64encode(value.encode()).decode()}


def _quoted(value: str) -> str:
    """URL-encode the value."""
    units = (bytes([each]) for each in value.encode())
    return "".join(unit.decode() if UNRESERVED.fullmatch(unit) else f"%{unit[0]:02X}" for unit in units)


@cache
def _pattern() -> re.Pattern[str]:
    """Return a pattern that matches all forms of all secrets, longer forms first."""
    return re.compile("|".join(re.escape(each) for each in sorted(_values, key=len, reverse=True)))
