"""A program that compares documents with JSON Schemas, with limits on CPU time and memory.

It reads frames from stdin: pairs of a schema and a document. For each pair it writes a frame with the result to stdout.
A frame is a length in bytes (four bytes, big-endian), followed by the content. An empty schema repeats the previous
schema. If a document uses up the CPU time of the schema, SIGPROF ends the process.
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
# CPU time of a schema: the maximum, and the time that each document and each byte add.
MOST_SECONDS = 2.0
SECONDS_EACH = 0.05
SECONDS_PER_BYTE = 5.0 / (1 << 20)
SHOWN = 160  # characters of a value in a result


def main() -> None:
    """Compare documents until stdin ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    import jsonschema.validators  # noqa: F401 - now, so that no document is charged for the CPU time
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
    """Return the next frame, or None at the end of the stream."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack(">I", head)
    return stream.read(size)


def compared(validators: dict[bytes, Any], schema: bytes, body: bytes) -> dict[str, str] | None:
    """Return the place where a document does not fit and the violated rule, or None if it fits."""
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
    except Exception as error:  # noqa: BLE001 - any schema or document may make the library fail
        return {"error": f"cannot be done: {type(error).__name__}: {str(error)[:SHOWN]}"}
    if wrong is None:
        return None
    rule = f"{wrong.validator} of the schema: {shown(wrong.validator_value)}"
    return {"place": str(wrong.json_path)[:SHOWN], "rule": rule, "found": shown(wrong.instance)}


def shown(value: object) -> str:
    """Format a value as a text of at most about ``SHOWN`` characters."""
    try:
        text = repr(value)
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of thousands of digits
        return f"a value that cannot be shown: {error}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"


if __name__ == "__main__":
    main()
