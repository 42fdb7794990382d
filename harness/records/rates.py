"""The files of loads at given rates, beside samples.jsonl: rates.jsonl and capacities.jsonl."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.records.lines import Lines, grown
from harness.records.models import GoalCapacity, RateSample, Record

RATES, CAPACITIES = "rates.jsonl", "capacities.jsonl"

RecordT = TypeVar("RecordT", bound=Record)


@dataclass(frozen=True, kw_only=True)
class RateRecords:
    """What a run's folder holds of them, as far as it could be read; empty for a run without any."""

    rates: tuple[RateSample, ...] = ()
    capacities: tuple[GoalCapacity, ...] = ()
    problems: tuple[str, ...] = ()  # one message for each line that could not be read


def read(folder: Path) -> RateRecords:
    """Both files; a broken line, as a kill leaves it, is a problem and no error."""
    problems: list[str] = []
    return RateRecords(
        rates=tuple(lines_of(folder / RATES, RateSample, problems)),
        capacities=tuple(lines_of(folder / CAPACITIES, GoalCapacity, problems)),
        problems=tuple(problems),
    )


def lines_of(path: Path, model: type[RecordT], problems: list[str]) -> Iterator[RecordT]:
    """The records of one file; what cannot be read is added to ``problems``."""
    lines = Lines()
    yield from (record for record, _, _ in grown(path, lines, model))
    problems += [f"{path}: {problem.message}" for problem in lines.problems]
    if path.is_file() and path.stat().st_size > lines.offset:
        problems.append(f"{path}:{lines.number + 1}: cannot be read: cut off")
