"""Figures are called with their units in files, and files of the version before are read as well."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from harness.records import models as recorded
from harness.records import orders, store
from harness.records.models import SCHEMA_VERSION, Record
from harness.records.store import RunStore
from harness.stats import model
from harness.stats.ranking import rank
from harness.tests import records

UNITS = (
    "seconds",
    "seconds_to_steady",
    "relative",
    "bytes",
    "per_second",
    "per_second_per_megabyte",
    "percent",
    "per_request",
    "per_arrival",
)
# Numbers of things, shares of one, ratios and their bounds, logarithms; a Standing or an Estimate has the unit of the
# field that it stands in, an Interval, too.
WITHOUT_UNIT = {
    *("share", "steal_share", "wait_share", "link_share", "idle_cpu_share", "late_share", "value", "threshold"),
    *(
        "confidence",
        "factor",
        "percentile",
        "responses",
        "responses_per_request",
        "threads",
        "cpu_quota",
        "load_average",
    ),
    *("low", "high", "simultaneous_low", "simultaneous_high", "mean", "squared_error", "freedom", "within", "between"),
    *(
        "median",
        "cv",
        "p_value",
        "fail_over",
        "score",
        "cpu_score",
        "ratios",
        "prior_freedom",
        "pair_level",
        "capacity",
        "values",
    ),
    "above",  # of OrderCapacityRow and OrderCapacity: a factor
}


def figures(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(model, name) of every field that holds a number that is no integer, or several."""
    for title, definition in schema["$defs"].items():
        for name, field in definition.get("properties", {}).items():
            if '"number"' in json.dumps(field):
                yield title, name


def of(module: object) -> list[type[Record]]:
    """The models that a module defines."""
    classes = vars(module).values()
    return [
        each
        for each in classes
        if inspect.isclass(each) and issubclass(each, Record) and each.__module__ == getattr(module, "__name__", "")
    ]


@pytest.mark.parametrize("module", [recorded, model, orders], ids=["records", "ranking", "orders"])
def test_every_figure_is_called_with_its_unit(module: object) -> None:
    models = [(each, "serialization", TypeAdapter(each)) for each in of(module) if each is not Record]
    _, schema = TypeAdapter.json_schemas(models)  # type: ignore[arg-type]
    found = list(figures(schema))
    assert len(found) > 5
    silent = [
        f"{title}.{name}"
        for title, name in found
        if not name.endswith((*UNITS, "_at", "_asked", "_achieved")) and name not in WITHOUT_UNIT
    ]
    assert silent == []


def test_files_of_the_version_before_are_read_as_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    new = records.write(tmp_path_factory.mktemp("new"))
    old = records.write(tmp_path_factory.mktemp("old"))
    as_before(old)
    one, other = store.read(new.folder), store.read(old.folder)
    assert (one.samples, one.replicates, one.verdicts) == (other.samples, other.replicates, other.verdicts)
    assert other.problems == ()
    assert {"duration_seconds", "requests_per_second"} <= first_sample(new).keys()
    assert {"duration", "throughput"} <= first_sample(old).keys()


def test_a_run_that_an_older_version_began_goes_on_in_this_one(tmp_path: Path) -> None:
    begun = records.write(tmp_path)
    as_before(begun)
    begun.add_sample(records.samples()[0])
    begun.write_info(store.read(begun.folder).info)
    known = store.read(begun.folder)
    assert known.problems == ()
    assert list(known.samples) == [*records.samples(), records.samples()[0]]
    assert json.loads((begun.folder / "run.json").read_text())["schema_version"] == SCHEMA_VERSION


def test_a_ranking_is_the_same_again_by_either_names() -> None:
    ranking = rank(records.info(), records.samples(), [], [])
    for text in (ranking.recorded(), ranking.model_dump_json()):
        assert model.Ranking.model_validate_json(text) == ranking
    (row, *_) = json.loads(ranking.recorded())["test_types"]["json"]["headline"]["rows"]
    assert {"requests_per_second", "cpu_seconds_per_request", "rss_peak_bytes"} <= row.keys()


def as_before(run: RunStore) -> None:
    """Its files with the names that fields had in schema version 1."""
    known = store.read(run.folder)
    texts = {
        "run.json": [known.info.model_copy(update={"schema_version": 1})],
        "samples.jsonl": known.samples,
        "replicates.jsonl": known.replicates,
        **{f"verify/{v.implementation}/{v.test_type}-r{v.replicate}.json": [v] for v in known.verdicts},
    }
    for name, each in texts.items():
        (run.folder / name).write_text("".join(one.model_dump_json() + "\n" for one in each))


def first_sample(run: RunStore) -> dict[str, Any]:
    """As the file has it."""
    text = (run.folder / "samples.jsonl").read_text()
    found: dict[str, Any] = json.loads(text.splitlines()[0])
    return found
