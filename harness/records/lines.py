"""JSON-lines files of a run, read as they grow; a line that cannot be read is named and the others count."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import ValidationError

from harness.records.bounded import open_regular, require_few
from harness.records.models import Problem, Record

LINE_BYTES = 16 * 2**20  # of one record; a trial with all its windows and its histogram takes some 100 KiB
LINE_OPENED = 100_000  # arrays and objects in it: 80 MB once read, even when empty; a histogram has some thousand
MOST_PROBLEMS = 200  # that are named; a file of other bytes has one in each line

AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass
class Lines:
    """How far a JSON-lines file has been read: complete lines only, so that it may grow meanwhile."""

    offset: int = 0
    number: int = 0
    problems: list[Problem] = field(default_factory=list)

    def complain(self, file: str, message: str) -> None:
        """Name a line that cannot be read; of very many the first ones."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(file=file, message=message))
        elif len(self.problems) == MOST_PROBLEMS:
            self.problems.append(Problem(file=file, message="further lines cannot be read, either"))


def grown(path: Path, lines: Lines, model: type[AnyRecord], having: Collection[bytes] = ()) -> Iterator[AnyRecord]:
    """The records that a file has gained since the last call; of those alone whose line holds all of ``having``."""
    try:
        with open_regular(path) as file:
            file.seek(lines.offset)
            while line := file.readline(LINE_BYTES):
                if len(line) == LINE_BYTES and not line.endswith(b"\n"):
                    line += _rest_of(file)  # passed over: no record is so long
                if not line.endswith(b"\n"):
                    return  # still being written
                lines.offset += len(line)
                lines.number += 1
                if not all(part in line for part in having) and line.startswith(b"{") and line.endswith(b"}\n"):
                    continue
                try:
                    if len(line) > LINE_BYTES:
                        raise ValueError(f"longer than {LINE_BYTES // 2**20} MiB")  # noqa: TRY301 - said as the others
                    record = model.model_validate_json(require_few(line, LINE_OPENED))
                except ValueError as error:
                    lines.complain(path.name, f"line {lines.number}: {first_complaint(error)}")
                else:
                    yield record
    except FileNotFoundError:
        return
    except OSError as error:
        lines.complain(path.name, f"cannot be read: {error.strerror}")


def _rest_of(file: BinaryIO) -> bytes:
    """The end of a line that is too long: only as much as tells how long it is and whether it ends."""
    length, last = 0, b""
    while part := file.readline(LINE_BYTES):
        length, last = length + len(part), part
        if part.endswith(b"\n"):
            break
    return bytes(max(0, length - 1)) + last[-1:]


def first_complaint(error: ValueError) -> str:
    """The first complaint in a few words: where, and what."""
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0]
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
