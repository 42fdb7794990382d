"""Compares documents with JSON Schemas; a program of its own, so that it can be bounded in time and memory.

Reads frames from stdin and answers each pair of a schema and a document with one frame on stdout. A frame is its length
in bytes (four, big-endian) and so many bytes. An empty first frame means the schema of the pair before. A document that
takes more CPU time than its schema has left ends the process by SIGPROF.
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
# CPU time of a schema: what it has at most, and what each document adds.
MOST_SECONDS = 2.0
SECONDS_EACH = 0.05
SECONDS_PER_BYTE = 5.0 / (1 << 20)
SHOWN = 160  # characters of a value in an answer


def main() -> None:
    """Answer until stdin ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    import jsonschema.validators  # noqa: F401 - its CPU time is none of a document's
    import referencing  # noqa: F401

    validators: dict[bytes, Any] = {}
    left: dict[bytes, float] = {}
    key = b""
    while (schema := read(sys.stdin.buffer)) is not None:
        body = read(sys.stdin.buffer) or b""
        key = schema or key
        left[key] = min(MOST_SECONDS, left.get(key, MOST_SECONDS) + SECONDS_EACH + SECONDS_PER_BYTE * len(body))
        before = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, left[key])
        answer = compared(validators, key, body)
        signal.setitimer(signal.ITIMER_PROF, 0)
        left[key] = max(SECONDS_EACH, left[key] - (time.process_time() - before))
        data = json.dumps(answer).encode()
        sys.stdout.buffer.write(struct.pack(">I", len(data)) + data)
        sys.stdout.buffer.flush()


def read(stream: BinaryIO) -> bytes | None:
    """Return the next frame; None at the end of the stream."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack(">I", head)
    return stream.read(size)


def compared(validators: dict[bytes, Any], schema: bytes, body: bytes) -> dict[str, str] | None:
    """Return where a document does not fit and what was expected; None where it fits."""
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    try:
        if schema not in validators:
            document = json.loads(schema)
            kind = validator_for(document, default=Draft202012Validator)
            validators[schema] = kind(document, registry=Registry())
        wrong = next(validators[schema].iter_errors(json.loads(body)), None)
    except MemoryError:
        return {"error": f"takes more than {MEMORY_BYTES >> 20} MiB of memory"}
    except RecursionError:
        return {"error": "is nested too deep"}
    except Exception as error:  # noqa: BLE001 - of whatever schema and document: the pair cannot be compared
        return {"error": f"cannot be done: {type(error).__name__}: {str(error)[:SHOWN]}"}
    if wrong is None:
        return None
    rule = f"{wrong.validator} of the schema: {shown(wrong.validator_value)}"
    return {"place": str(wrong.json_path)[:SHOWN], "rule": rule, "found": shown(wrong.instance)}


def shown(value: object) -> str:
    """Return a value as text of bounded length."""
    try:
        text = repr(value)
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of thousands of digits
        return f"a value that cannot be shown: {error}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"


if __name__ == "__main__":
    main()
