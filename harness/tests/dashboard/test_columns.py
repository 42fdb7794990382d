"""Long tables are sent as columns, from which the same rows come again."""

from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json

from harness.dashboard.columns import LEAST_ROWS, columns, packed, tables
from harness.dashboard.documents import RunDocument
from harness.dashboard.runs import open_run


def rows_of(table: dict[str, Any]) -> list[dict[str, Any]]:
    """What web/src/columns.ts makes of columns."""
    values = {name: values_of(column, table["count"]) for name, column in table["columns"].items()}
    return [{name: each[index] for name, each in values.items()} for index in range(table["count"])]


def values_of(column: dict[str, Any], count: int) -> list[Any]:
    """Of one column."""
    if "each" in column:
        return list(column["each"])
    if "same" in column:
        return [column["same"]] * count
    absent = set(column["none"])
    return [None if i in absent else row for i, row in enumerate(rows_of({**column, "count": count}))]


@pytest.mark.parametrize("least", [2, LEAST_ROWS])
def test_a_run_s_document_is_the_same_again(sample_results: Path, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.dashboard.columns.LEAST_ROWS", least)
    run = open_run(sample_results, "20250615-small")
    document = run.document(run.headlines())
    sent = from_json(packed(document))
    found = [(holder, key) for holder, key in tables(sent) if isinstance(holder[key], dict)]
    assert (len(found) == 8) == (least == 2)  # implementations, scores and six test types; short ones stay rows
    for holder, key in found:
        holder[key] = rows_of(holder[key])
    assert RunDocument.model_validate(sent) == RunDocument.model_validate_json(document.model_dump_json())


@pytest.mark.parametrize("pair", [(1, True), (True, 1), (0, False), (1, 1.0), (0.0, None), ("", None)])
def test_what_is_equal_or_empty_but_of_another_kind_stays_apart(pair: tuple[object, object]) -> None:
    """1 == True == 1.0 in Python: told once for all rows, one would be read as the other."""
    rows = [{"value": value, "other": {"within": value}} for value in pair * LEAST_ROWS]
    table = columns(rows)
    assert table is not None
    kinds = [(type(row["value"]), type(row["other"]["within"])) for row in rows_of(table)]
    assert kinds == [(type(value), type(value)) for value in pair * LEAST_ROWS]
    assert rows_of(table) == rows


@pytest.mark.parametrize("name", ["__proto__", "constructor ", ""])
def test_names_that_a_script_could_take_for_its_own_are_no_columns(name: str) -> None:
    assert columns([{name: 1}] * LEAST_ROWS) is None
    inner = columns([{"ratios": {name: 1.0}}, {"ratios": {name: 2.0}}] * LEAST_ROWS)
    assert inner == {"count": 2 * LEAST_ROWS, "columns": {"ratios": {"each": [{name: 1.0}, {name: 2.0}] * LEAST_ROWS}}}
