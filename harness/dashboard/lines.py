"""JSON-lines files of a run, read as they grow; a line that cannot be read is named and the others count."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from harness.dashboard.documents import Problem
from harness.results.records import Record

AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass
class Lines:
    """A JSON-lines file read so far: complete lines only, so that a file may grow while it is read."""

    offset: int = 0
    number: int = 0
    spans: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    problems: list[Problem] = field(default_factory=list)


def grown(path: Path, lines: Lines, model: type[AnyRecord]) -> Iterator[tuple[AnyRecord, int, int]]:
    """The samples that a file has gained since the last call, each with where its line stands."""
    try:
        with path.open("rb") as file:
            file.seek(lines.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # still being written
                start, length = lines.offset, len(line)
                lines.offset += length
                lines.number += 1
                try:
                    sample = model.model_validate_json(line)
                except ValidationError as error:
                    message = f"line {lines.number}: {first_complaint(error)}"
                    lines.problems.append(Problem(file=path.name, message=message))
                else:
                    yield sample, start, length
    except FileNotFoundError:
        return


def first_complaint(error: ValidationError) -> str:
    """The first complaint in a few words: where, and what."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
