"""The ranking as CSV: one line a figure, called by its path in ranking.json, in SI units; unknowns have none."""

import csv
from collections.abc import Iterator
from typing import Any, TextIO

from harness.plain_text import cell
from harness.records.models import Record
from harness.report import Report
from harness.stats.model import Orders, Ranking

COLUMNS = (
    *("run", "test_type", "load", "headline", "implementation", "language", "platform", "use_case", "operation"),
    *("figure", "value", "low", "high", "processes"),  # low and high: of its 95 % interval
    *("ratio", "ratio_low", "ratio_high", "rank_low", "rank_high", "tie_group"),  # ratio to the reference
    *("ranked", "reason", "flags"),
)
ABOUT = ("implementation", "use_case", "operation", "ranked", "reason", "flags")
Json = dict[str, Any]


def export(report: Report, out: TextIO) -> None:
    """Every figure of every table."""
    info = report.records.info
    known = {each.name: {"language": each.language, "platform": each.platform} for each in info.implementations}
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for where, record in _records(report.ranking):
        row = record.model_dump(by_alias=True, exclude={"load", "points"})
        about = {name: row.pop(name) for name in ABOUT if name in row} | where
        about["flags"] = "; ".join(about.get("flags", ()))
        about |= {"run": info.run_id, **known.get(str(about["implementation"]), {})}
        for figure, values in _figures(row):
            line = {**about, "figure": figure, **values}
            writer.writerow("" if (value := line.get(name)) is None else cell(value) for name in COLUMNS)


def _records(ranking: Ranking) -> Iterator[tuple[Json, Record]]:
    """Every row of every table, with where it stands."""
    for test in ranking.test_types.values():
        for headline, tables in ((True, (test.headline,)), (False, test.tables)):
            for table in tables:
                for row in table.rows:
                    load = row.load or table.load
                    yield {"test_type": table.test_type, "load": load and load.label, "headline": headline}, row
    for rates in ranking.latency.values():
        for goal in rates.rows:
            yield {"test_type": rates.test_type, "load": rates.goal.label}, goal
            for point in goal.points:
                own = "" if point.share is None else f", {point.share:.0%} of own"
                at = {"test_type": rates.test_type, "load": f"{point.rate:.0f}/s{own}"}
                yield {"implementation": goal.implementation, **at}, point
    if ranking.orders:
        yield from _of_orders(ranking.orders)


def _of_orders(orders: Orders) -> Iterator[tuple[Json, Record]]:
    for of_factor in orders.tables:
        for order in of_factor.rows:
            yield {"test_type": "order", "load": f"x{of_factor.factor:g}", "headline": True}, order
    for capacity in orders.capacities:
        yield {"test_type": "order", "load": orders.goal and orders.goal.label}, capacity
    for name, points in orders.points.items():
        for wait in points:
            yield {"test_type": "order", "load": f"x{wait.factor:g}", "implementation": name}, wait


def _figures(found: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Json]]:
    """The numbers of a row, those with an interval or a rank together."""
    if "estimate" in found:
        ratio, rank = found["to_reference"] or {}, found["rank"]
        against = {"ratio": ratio.get("value"), "ratio_low": ratio.get("low"), "ratio_high": ratio.get("high")}
        places = {"rank_low": rank["low"], "rank_high": rank["high"], "tie_group": found["tie_group"]}
        yield ".".join(path), {**_estimate(found["estimate"]), **against, **places}
    elif "median" in found:
        yield ".".join(path), _estimate(found)
    else:
        for name, value in found.items():
            if isinstance(value, dict):
                yield from _figures(value, (*path, name))
            elif isinstance(value, int | float):
                yield ".".join((*path, name)), {"value": value}


def _estimate(found: Json) -> Json:
    return {"value": found["median"], **{name: found[name] for name in ("low", "high", "processes")}}
