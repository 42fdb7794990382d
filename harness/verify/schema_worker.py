"""A program that compares documents with JSON Schemas, with limits for CPU time and memory.

For each comparison, the program reads two frames from stdin (the schema and the document), and writes a frame with the
result to stdout. A frame is a length in bytes (four bytes, big-endian), followed by the content. An empty schema frame
selects the previous schema. Each schema has a CPU budget. When the budget is used up, SIGPROF ends the process.
"""

import json
import resource
import signal
import struct
import sys
import time
import warnings
from typing import Any, BinaryIO

MEMORY_BYTES = 1 << 30
# CPU budget of a schema in seconds: the maximum, and the amounts that each document and each byte add.
MAX_SECONDS = 2.0
SECONDS_PER_DOCUMENT = 0.05
SECONDS_PER_BYTE = 5.0 / (1 << 20)
MAX_SHOWN_CHARACTERS = 160  # results contain at most this many characters of a value


def main() -> None:
    """Compare documents with schemas until stdin ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    import jsonschema.validators  # noqa: F401 - imported now, so that the import does not use up a schema's CPU budget
    import referencing  # noqa: F401

    validators: dict[bytes, Any] = {}
    budgets: dict[bytes, float] = {}  # schema -> remaining CPU seconds
    key = b""
    while (schema := read_frame(sys.stdin.buffer)) is not None:
        body = read_frame(sys.stdin.buffer) or b""
        key = schema or key
        budgets[key] = min(
            MAX_SECONDS, budgets.get(key, MAX_SECONDS) + SECONDS_PER_DOCUMENT + SECONDS_PER_BYTE * len(body)
        )
        before = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, budgets[key])
        result = compare(validators, key, body)
        signal.setitimer(signal.ITIMER_PROF, 0)
        budgets[key] = max(SECONDS_PER_DOCUMENT, budgets[key] - (time.process_time() - before))
        data = json.dumps(result).encode()
        sys.stdout.buffer.write(struct.pack(">I", len(data)) + data)
        sys.stdout.buffer.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """Return the next frame, or None at the end of the stream."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack(">I", head)
    return stream.read(size)


def compare(validators: dict[bytes, Any], schema: bytes, body: bytes) -> dict[str, str] | None:
    """Compare a document with a schema. Return None if it matches.

    Otherwise, return the place, the violated rule and the actual value. If the comparison fails, return the error.
    """
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    try:
        if schema not in validators:
            document = json.loads(schema)
            kind = validator_for(document, default=Draft202012Validator)
            validators[schema] = kind(document, registry=Registry())
        violation = next(validators[schema].iter_errors(json.loads(body)), None)
    except MemoryError:
        return {"error": f"takes more than {MEMORY_BYTES >> 20} MiB of memory"}
    except RecursionError:
        return {"error": "failed: the schema or the document is nested too deeply"}
    except Exception as error:  # noqa: BLE001 - any schema or document may make the library fail
        return {"error": f"failed: {type(error).__name__}: {str(error)[:MAX_SHOWN_CHARACTERS]}"}
    if violation is None:
        return None
    rule = f"the schema's {violation.validator}: {format_value(violation.validator_value)}"
    return {
        "place": str(violation.json_path)[:MAX_SHOWN_CHARACTERS],
        "rule": rule,
        "actual": format_value(violation.instance),
    }


def format_value(value: object) -> str:
    """Format a value as a string. Truncate long values to ``MAX_SHOWN_CHARACTERS`` and state their length."""
    try:
        text = repr(value)
    # repr fails for deeply nested values, and for numbers with thousands of digits.
    except (RecursionError, ValueError) as error:
        return f"a value that cannot be shown: {error}"
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}… ({len(text)} characters)"


if __name__ == "__main__":
    main()
