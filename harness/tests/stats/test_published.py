"""A run beside a published round: shares, order and what cannot be held together."""

import json
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.stats.model import Quantity, Ranking, Row
from harness.stats.published import hold, read_round
from harness.tests.report import made


def entry(requests: int, errors: int = 0) -> dict[str, int]:
    return {"totalRequests": requests, "5xx": errors}


def round_file(folder: Path, raw: object) -> Path:
    path = folder / "round.json"
    path.write_text(json.dumps({"name": "R", "environmentDescription": "big", "duration": 15, "rawData": raw}))
    return path


def ranking(figures: dict[str, float], leading: Quantity = "throughput") -> Ranking:
    """Of ``json``, the best first."""
    figure = "throughput" if leading == "throughput" else "cpu_per_request"
    rows = [
        Row.model_validate({"implementation": name, figure: made.standing(value, value, (place, place), place)})
        for place, (name, value) in enumerate(figures.items(), 1)
    ]
    return made.ranking(tuple(rows), leading, overall=())


def test_a_round_shows_the_best_level_and_of_query_the_last_and_leaves_errors_out(tmp_path: Path) -> None:
    raw = {"json": {"a": [entry(15), entry(300, errors=150), {}]}, "query": {"a": [entry(900), entry(30)]}}
    found = read_round(round_file(tmp_path, raw))
    assert found.rates == {"json": {"a": 10.0}, "query": {"a": 2.0}}


def test_where_cpu_leads_requests_per_cpu_second_are_held_beside_the_round(tmp_path: Path) -> None:
    raw = {"json": {"a": [entry(1500)], "b": [entry(6000)]}}
    held = hold(read_round(round_file(tmp_path, raw)), ranking({"b": 1e-5, "a": 4e-5}, "cpu"))
    assert [(row.implementation, row.run_rank) for row in held.rows] == [("b", 1), ("a", 2)]
    assert [row.run_share for row in held.rows] == pytest.approx([2.0, 0.5])
    assert held.agreements[0].same == 1


def test_shares_are_of_the_mean_of_those_that_both_have(tmp_path: Path) -> None:
    raw = {"json": {"a": [entry(1500)], "b": [entry(6000)], "z": [entry(99_000)]}}
    held = hold(read_round(round_file(tmp_path, raw)), ranking({"b@fb": 90.0, "a": 10.0, "own": 5.0}))
    assert [(row.implementation, row.round_rank, row.run_rank) for row in held.rows] == [("b@fb", 1, 1), ("a", 2, 2)]
    assert [row.round_share for row in held.rows] == pytest.approx([2.0, 0.5])
    assert [row.run_share for row in held.rows] == pytest.approx([3.0, 1 / 3])
    assert held.only_run == ("own",)


def test_an_order_that_the_run_decides_against_the_round_is_named(tmp_path: Path) -> None:
    raw = {"json": {"a": [entry(1500)], "b": [entry(6000)]}}
    (found,) = hold(read_round(round_file(tmp_path, raw)), ranking({"a": 20.0, "b": 10.0})).agreements
    assert (found.pairs, found.same, found.reversed_decided) == (1, 0, (("a", "b"),))


@pytest.mark.parametrize("text", ["[]", "{", '{"rawData": []}', "{}"])
def test_a_file_that_is_no_results_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"not a results.json of TechEmpower's"):
        read_round(path)
