"""Tests for comparing a run with a published round."""

import json
from pathlib import Path

from harness.errors import UsageError
from harness.stats.published import compare_with_round, read_round
from harness.stats.ranking_model import Quantity, Ranking, Row
from harness.tests.approve import approve
from harness.tests.report import made
from harness.tests.stats.dense import dense


def entry(requests: int, errors: int = 0) -> dict[str, int]:
    return {"totalRequests": requests, "5xx": errors}


def ranking(figures: dict[str, float], leading: Quantity = "throughput", wide: int = 0) -> Ranking:
    """Return a json ranking in the order of ``figures``. Rank intervals extend ``wide`` ranks below the position."""
    figure = "throughput" if leading == "throughput" else "cpu_per_request"
    rows = [
        Row.model_validate({"implementation": name, figure: standing, "ranked": name != "a@x"})
        for place, (name, value) in enumerate(figures.items(), 1)
        for standing in [made.standing(value, value, (place, place + wide), place)]
    ]
    return made.ranking(tuple(rows), leading, overall=())


RAW = {
    "json": {"a": [entry(1500), entry(600)], "b": [entry(6000, 10)], "c": [entry(3000)], "d": [entry(0)]},
    "plaintext": {"a": [entry(30), entry(90), {"totalRequests": None}], "b": 1200, "c": [], "d": [entry(1)]},
    "cached_query": {"a": [entry(9000), entry(450)], "b": [{"5xx": 3}]},
    "update": {"a": [entry(80), entry(40, 10)]},
    "fortune": {},
}
BARE = {
    "other seconds": {"duration": 30, "rawData": RAW, "name": "", "environmentDescription": None},
    "no seconds": {"duration": None, "rawData": {"json": RAW["json"]}},
    "seconds of words": {"duration": "long", "rawData": {}},
    "no entries": {"rawData": {"json": {"a": ["b"]}}},
    "no raw data": {"duration": 15},
}
FIGURES = {"b@fb": 90.0, "c": 40.0, "a": 10.0, "own": 5.0, "a@x": 4.0}
RUNS = {
    "throughput": ranking(FIGURES),
    "cpu": ranking({name: 1 / each for name, each in FIGURES.items()}, "cpu"),
    "against": ranking({"a": 90.0, "c": 40.0, "b": 30.0, "own": 5.0}),
    "against, ranks that touch": ranking({"a": 90.0, "c": 40.0, "b": 30.0, "own": 5.0}, wide=1),
}


def test_comparison_with_a_published_round_is_as_approved(tmp_path: Path) -> None:
    path, comparisons = tmp_path / "bare.json", dict[str, object]()

    def reading() -> object:
        try:
            return vars(read_round(path))
        except UsageError as error:
            return str(error).replace(str(path), "FILE")

    comparisons["absent"] = reading()
    for name, document in BARE.items():
        path.write_text(json.dumps(document))
        comparisons[name] = reading()
    path.write_text(json.dumps({"name": "R", "environmentDescription": "big", "duration": 15, "rawData": RAW}))
    comparisons["round"] = reading()
    for name, run in RUNS.items():
        ours = run.test_types["json"]
        types = {"fortune": ours, "json": ours, "update": RUNS["against"].test_types["json"]}
        comparison = compare_with_round(read_round(path), run.model_copy(update={"test_types": types}))
        shares = {f"{row.test_type} {row.implementation}": [*vars(row).values()][2:] for row in comparison.rows}
        agreements = {
            each.test_type: f"{each.same} of {each.pairs}, reversed {each.reversed_decided}"
            for each in comparison.agreements
        }
        comparisons[name] = {**vars(comparison), "rows": shares, "agreements": agreements}
    approve("stats-published", dense(comparisons))
