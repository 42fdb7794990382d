"""Replaces secrets in whatever is recorded or shown.

The values of a service's variables are declared here once. The log, records, messages and kept output pass through.
"""

import base64
import json
import logging
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

LEAST = 6  # characters of a value that is replaced wherever it stands
LEAST_SECRET = 4  # the same where the variable's name says that it is secret
SECRET_NAME = re.compile(r"SECRET|TOKEN|PASS|PWD|KEY|CRED|AUTH|PRIVATE|SIGN|SALT|DSN", re.IGNORECASE)
# A word or a short number says nothing, and replacing it would spoil every message that holds it.
PLAIN = re.compile(r"[A-Z]?[a-z]{1,12}|[A-Z]{1,12}|[0-9]{1,6}|[0-9]{1,3}(\.[0-9]{1,3}){3}|/")
PASSWORD = re.compile(r"://[^/@:\s]*:([^/@\s]+)@")  # of an address
UNRESERVED = re.compile(rb"[\w.~-]", re.ASCII)
_values: dict[str, str] = {}  # text -> what stands in its place


def declare(variables: Mapping[str, str]) -> None:
    """Have the values of these variables replaced from now on, also where they are quoted or encoded."""
    for name, value in variables.items():
        for part in _parts(value):
            secret = bool(SECRET_NAME.search(name)) and len(part) >= LEAST_SECRET
            if secret or (len(part) >= LEAST and not PLAIN.fullmatch(part)):
                _values.update(dict.fromkeys(_forms(part), f"[{name}]"))
    _pattern.cache_clear()


def forget() -> None:
    """Declare no values any more."""
    _values.clear()
    _pattern.cache_clear()


def redacted(text: str) -> str:
    """Return the text with ``[NAME]`` in the place of each declared value."""
    return _pattern().sub(lambda match: _values[match[0]], text) if _values else text


def redacted_json(text: str) -> str:
    """Return a JSON document with its texts redacted; keys and numbers stay as they are."""
    if not _values:
        return text
    indent = 1 if "\n" in text else None
    return json.dumps(_walked(json.loads(text)), indent=indent, ensure_ascii=False)


def redact_file(path: Path) -> None:
    """Replace declared values in a file that nobody writes to any more."""
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


class RedactingFilter(logging.Filter):
    """A filter of a log handler that replaces declared values in each message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the values in the record; keep every record."""
        if _values:
            record.msg, record.args = redacted(record.getMessage()), None
        return True


def _walked(found: Any) -> Any:  # noqa: ANN401 - what JSON can hold
    if isinstance(found, str):
        return redacted(found)
    if isinstance(found, list):
        return [_walked(each) for each in found]
    if isinstance(found, dict):
        return {key: _walked(each) for key, each in found.items()}
    return found


def _parts(value: str) -> Iterable[str]:
    """Yield the value, each of its lines, and the password of an address in it."""
    yield value
    yield from (line.strip() for line in value.splitlines() if "\n" in value)
    yield from PASSWORD.findall(value)


def _forms(value: str) -> set[str]:
    """Return the forms in which a value is printed: JSON, Python, the shell, URLs, YAML of compose, base64."""
    escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    shell = {value.replace("'", "'\"'\"'"), value.replace("$", "$$")}
    return {value, *escaped, *shell, _quoted(value), base64.b64encode(value.encode()).decode()}


def _quoted(value: str) -> str:
    """Return a value as it stands in a URL."""
    units = (bytes([each]) for each in value.encode())
    return "".join(unit.decode() if UNRESERVED.fullmatch(unit) else f"%{unit[0]:02X}" for unit in units)


@cache
def _pattern() -> re.Pattern[str]:
    """Return a pattern of all forms, in which a longer one goes before its own part."""
    return re.compile("|".join(re.escape(each) for each in sorted(_values, key=len, reverse=True)))
