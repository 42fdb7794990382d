"""Compares responses with JSON Schemas in a long-lived child process, so that an expensive schema cannot block tfb.

Regular expressions can take exponential time, and ``uniqueItems`` can take quadratic time. The child process
(``schema_worker``) therefore limits its CPU time and memory. If a comparison takes too long or ends the child
process, tfb does not use the schema again.
"""

import hashlib
import json
import os
import select
import signal
import struct
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from harness.host import process
from harness.verify import schema_worker

WAIT_SECONDS = 60.0  # wall-clock limit for a comparison; the child also limits the CPU time
NO_ORPHANS = sys.maxsize  # value of ``Child.born``, so that tfb attributes no orphaned server process to this child


@dataclass(frozen=True, kw_only=True)
class SchemaMismatch:
    """The first difference between a document and a schema, or the reason why they could not be compared."""

    message: str
    expected: str
    actual: str | None = None


class SchemaValidator:
    """A thread-safe validator that uses the child process and caches results."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: process.Child | None = None
        self._last = b""  # the latest schema sent to the child
        self._results: OrderedDict[tuple[bytes, bytes], SchemaMismatch | None] = OrderedDict()
        self._given_up: dict[bytes, str] = {}  # schema digest -> why tfb no longer uses the schema

    def find_mismatch(self, schema: bytes, document: bytes) -> SchemaMismatch | None:
        """Return why a document does not match a schema, or None if it matches. Both are JSON texts."""
        key = (hashlib.sha256(schema).digest(), hashlib.sha256(document).digest())
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            else:
                self._results[key] = self._compare(key[0], schema, document)
                if len(self._results) > 4_096:
                    self._results.popitem(last=False)
            return self._results[key]

    def close(self) -> None:
        """End the child process."""
        with self._lock:
            self._end()

    def _compare(self, digest: bytes, schema: bytes, document: bytes) -> SchemaMismatch | None:
        if digest not in self._given_up:
            try:
                result = self._exchange(schema, document)
            except _EndedError as error:
                self._given_up[digest] = str(error)
            else:
                return _to_mismatch(result)
        return SchemaMismatch(
            message=f"the comparison with the schema {self._given_up[digest]}. Simplify the schema",
            expected="a schema that tfb can evaluate in linear time; review pattern, uniqueItems, anyOf and $ref",
        )

    def _exchange(self, schema: bytes, document: bytes) -> dict[str, str] | None:
        child = self._start()
        repeated, self._last = schema == self._last, schema
        frames = [b"" if repeated else schema, document]
        try:
            assert child.stdin is not None  # noqa: S101 - ``_start`` requests a pipe
            child.stdin.write(b"".join(struct.pack(">I", len(frame)) + frame for frame in frames))
            child.stdin.flush()
            (size,) = struct.unpack(">I", self._read(child, 4))
            result: dict[str, str] | None = json.loads(self._read(child, size))
        except (OSError, ValueError) as error:
            raise self._end_with_reason(child) from error
        except BaseException:  # end the child, so that the next comparison does not read this comparison's late result
            self._end()
            raise
        return result

    def _read(self, child: process.Child, count: int) -> bytes:
        """Read ``count`` bytes from the child's output. Raises ValueError after ``WAIT_SECONDS``."""
        assert child.stdout is not None  # noqa: S101 - ``_start`` requests a pipe
        data, until = b"", time.monotonic() + WAIT_SECONDS
        while len(data) < count:
            if not select.select([child.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                raise ValueError("no result in time")
            if not (more := os.read(child.stdout.fileno(), count - len(data))):
                raise ValueError("incomplete result")
            data += more
        return data

    def _end_with_reason(self, child: process.Child) -> "_EndedError":
        """Stop the child and return the reason why it sent no result."""
        status = child.wait(1.0)
        self._end()
        if status in (None, -signal.SIGPROF):
            return _EndedError(f"takes more than {schema_worker.MAX_SECONDS:g} s of CPU time")
        return _EndedError(f"failed: the process ended with {process.describe_status(status or 0)}")

    def _start(self) -> process.Child:
        if self._child is None or self._child.poll() is not None:
            self._end()
            # With -P, Python does not import modules from the current folder or the program's folder.
            command = [sys.executable, "-P", str(Path(schema_worker.__file__).resolve())]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
            # When a run is interrupted, tfb immediately stops only the children whose stop signal is SIGTERM. With
            # SIGINT, the current comparison can finish.
            options = process.ProcessOptions(cwd=Path("/"), env=environment, stop_signal=signal.SIGINT)
            self._child = process.Child(
                command, options, stdin=process.PIPE, stdout=process.PIPE, stderr=process.DEVNULL
            )
            self._child.born = NO_ORPHANS
        return self._child

    def _end(self) -> None:
        child, self._child, self._last = self._child, None, b""
        if child is not None:
            child.kill()
            child.stop()
            if child.stdout is not None:
                child.stdout.close()


class _EndedError(Exception):
    """The child process exited, or exceeded a time limit, before it sent a result."""


def _to_mismatch(result: dict[str, str] | None) -> SchemaMismatch | None:
    if result is None:
        return None
    if "error" in result:
        return SchemaMismatch(
            message=f"the comparison with the schema {result['error']}. Simplify the schema",
            expected="a document that matches the schema",
        )
    return SchemaMismatch(
        message=f"{result['place']} does not match the schema. Correct the service or the schema",
        expected=result["rule"],
        actual=result["actual"],
    )


SCHEMA_VALIDATOR = SchemaValidator()  # shared by all verifications in this process
