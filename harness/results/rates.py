"""The files of loads at given rates, beside samples.jsonl: rates.jsonl and capacities.jsonl."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from harness.results.records import GoalCapacity, RateSample, Record

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
        rates=tuple(_lines(folder / RATES, RateSample, problems)),
        capacities=tuple(_lines(folder / CAPACITIES, GoalCapacity, problems)),
        problems=tuple(problems),
    )


def _lines(path: Path, model: type[RecordT], problems: list[str]) -> Iterator[RecordT]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield model.model_validate_json(line)
                except ValidationError as error:
                    first = error.errors()[0]
                    where = ".".join(map(str, first["loc"])) or "the whole"
                    problems.append(f"{path}:{number}: cannot be read: {where}: {first['msg']}")
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")
