"""Tests for rankings on the terminal and in Markdown."""

import io

import pytest

from harness.console import SafeConsole
from harness.records.loads import ClosedLoop
from harness.records.measurements import LatencyGoal
from harness.records.run_info import MachineLink, RoleMachine, RunInfo
from harness.records.run_records import RunRecords
from harness.report import Report, markdown, summary, tables, terminal
from harness.stats.ranking_model import (
    GoalRow,
    LatencyTable,
    Ranking,
    RatePoint,
    Ratio,
    ScenarioResults,
    ScenarioRow,
    ScenarioTable,
)
from harness.tests.report import made

LONG = "quarkus-hibernate-reactive"


def shown(info: RunInfo, ranking: Ranking, width: int = 200, *, every_load: bool = False) -> str:
    out = io.StringIO()
    console = SafeConsole(width=width, file=out)
    terminal.print_ranking(info, ranking, console, every_load=every_load)
    terminal.print_summary(summary.summarize_run(info, ranking), console)
    return out.getvalue()


def test_shared_machine_orders_rows_by_cpu() -> None:
    slow_and_frugal = made.row("frugal", 2, (1, 1)).model_copy(
        update={"cpu_per_request": made.standing(5e-6, 5e-6, (1, 1), 1)}
    )
    fast = made.row("fast", 1, (1, 1)).model_copy(update={"cpu_per_request": made.standing(10e-6, 5e-6, (2, 2), 2)})
    info = made.info(("fast", "frugal"))
    by_cpu = shown(info, made.ranking((fast, slow_and_frugal), "cpu")).partition("json, at c64")[2]
    assert by_cpu.index("  1  frugal") < by_cpu.index("  2  fast")
    assert by_cpu.index("µs CPU/req") < by_cpu.index("req/s")
    by_throughput = shown(info, made.ranking((fast, slow_and_frugal), "throughput")).partition("json, at c64")[2]
    assert by_throughput.index("fast") < by_throughput.index("frugal")
    assert by_throughput.index("req/s") < by_throughput.index("µs CPU/req")


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((1.12, 1.08, 1.17), "1.12× [1.08, 1.17]"),
        ((0.004, 0.0035, 0.0046), "0.0040× [0.0035, 0.0046]"),
        ((0.095, 0.0949, 12.34), "0.10× [0.095, 12.3]"),
        ((1234.5, None, None), "1,234×"),
    ],
)
def test_ratio_has_the_digits_of_the_page(ends: tuple[float, float, float], text: str) -> None:
    value, low, high = ends
    assert tables.format_ratio(Ratio(value=value, low=low, high=high)) == text


def test_unranked_profile_shows_figures_without_ranks() -> None:
    text = shown(made.info(ranked=False), made.ranking(overall=()))
    assert "Profile smoke only checks that implementations run; it does not rank them." in text
    tables = text.partition("json, at")[2].partition("Profile smoke")[0]
    assert "80,000" in tables
    assert not {"rank", "ranks", "first", "leads", "overall:"} & set(tables.split())


def test_excluded_row_has_dashes_and_a_reason() -> None:
    rows = (*made.rows({"a": (1, 1), "b": (2, 2)}), made.unranked("c", "excluded by validity checks: errors"))
    text = shown(made.info(("a", "b", "c")), made.ranking(rows, overall=()))
    assert ["–", "c", "–", "–"] in [line.split()[:4] for line in text.splitlines()]
    assert "excluded by validity checks: errors: c" in text


def test_remark_on_all_rows_appears_once() -> None:
    rows = tuple(made.row(name, place, (place, place), flags=("not warmed up",)) for place, name in enumerate("ab", 1))
    one = made.ranking(rows)
    assert shown(made.info(("a", "b")), one).count("not warmed up: all rows") == 1
    two = one.model_copy(update={"test_types": {"json": one.test_types["json"], "db": one.test_types["json"]}})
    text = shown(made.info(("a", "b")), two)
    assert text.count("not warmed up") == 1
    assert "in every table: not warmed up: all rows" in text


def test_open_loop_tables_of_capacity_and_latency() -> None:
    points = tuple(
        RatePoint(
            purpose=purpose, share=share, rate=1000.0, maximum=0.1234, flags=("client late",),
            percentiles={key: made.estimate(0.002) for key in ("50", "90", "99", "99.9")},
        )
        for purpose, share in (("share", 0.5), ("common", None))
    )  # fmt: skip
    goal = GoalRow(
        implementation="a", capacity=made.standing(1500, 1500, (1, 1), 1), above=1600, closed_loop=2e3, points=points
    )
    late = GoalRow(implementation="b", capacity=None, above=100, ranked=False, reason="missed the goal at every rate")
    table = LatencyTable(test_type="json", goal=LatencyGoal(), rows=(goal, late))
    text = shown(made.info(), made.ranking(latency={"json": table}))
    capacity, over_load = text.split("json, capacity at p99 ≤ 10 ms")[1].split("json, latency over load")
    assert capacity.splitlines()[3].split()[:3] == ["1", "a", "1,500"]
    assert "missed the goal at every rate: b" in capacity
    assert "(ms from the intended send time)" in over_load
    assert [line.split()[1:5] for line in over_load.splitlines() if "of own" in line] == [["50%", "of", "own", "1,000"]]
    assert "same for all" in over_load
    assert "client late: a at 1,000 req/s" in over_load
    assert "123.4" in over_load


@pytest.mark.needs_extra("orders")
def test_order_table_has_response_time_and_cpu() -> None:
    row = ScenarioRow(
        implementation="a", response=made.standing(0.012, 0.012, (1, 1), 1), percentiles={"99": made.estimate(0.05)},
        cpu_per_request=made.standing(900e-6, 900e-6, (1, 1), 1), database_cpu_per_arrival=made.estimate(300e-6),
        rss_peak=2e8,
    )  # fmt: skip
    orders = ScenarioResults(
        tables=(ScenarioTable(factor=8, rows=(row,)),),
        goal=LatencyGoal(percentile=99, seconds=0.1),
        capacities=(GoalRow(implementation="a", capacity=made.standing(32, 32, (1, 1), 1), above=36),),
    )
    text = shown(made.info(("a",)), made.ranking(orders=orders, overall=()))
    assert "order ×8, by the response time of create order" in text
    assert {"12.00", "50.00", "900", "300"} <= set(text.split())
    assert "highest factor at which create order meets p99 ≤ 100 ms" in text
    orders = orders.model_copy(update={"goal": None})
    smoke = shown(made.info(("a",), ranked=False), made.ranking(orders=orders, overall=()))
    assert "rank" not in smoke.partition("order ×8")[2].partition("\n·")[0]


@pytest.mark.parametrize("width", [70, 80, 100, 160])
def test_lines_fit_the_terminal(width: int) -> None:
    rows = made.rows({LONG: (1, 2), "b": (1, 2)})
    text = shown(made.info((LONG, "b")), made.ranking(rows), width)
    assert max(map(len, text.splitlines())) <= width
    assert LONG.replace("-", "") in "".join(text.replace("-", "").split())
    assert {"80,000", "10"} <= set(text.split())


def test_columns_without_room_move_below() -> None:
    narrow, wide = (shown(made.info(), made.ranking(), width).partition("json, at")[2] for width in (80, 200))
    for text in (narrow, wide):
        header = next(line for line in text.splitlines() if "implementation" in line)
        assert [part for part in ("rank", "µs CPU/req [95 %]", "× vertx-web", "req/s") if part not in header] == []
        assert all(text.count(word) == 1 for word in ("memory", "p99 ms", "startup time"))
    assert narrow.index("memory") > narrow.index("express")
    assert wide.index("memory") < wide.index("express")


def test_only_tied_rows_have_a_letter() -> None:
    tied = shown(made.info(), made.ranking()).partition("json, at")[2]
    assert [line.split()[1] for line in tied.splitlines() if "resteasy" in line or "express" in line][:2] == ["a", "a"]
    assert " tie " in tied
    apart = shown(made.info(("a", "b")), made.ranking(made.rows({"a": (1, 1), "b": (2, 2)}), overall=()))
    assert " tie " not in apart.partition("json, at")[2].partition("·")[0]


@pytest.mark.parametrize(("columns", "most"), [("90", 90), ("", 10_000), ("x", 10_000)])
def test_a_pipe_is_as_wide_as_columns_says(columns: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = io.StringIO()
    terminal.print_ranking(made.info(), made.ranking(), terminal.make_console(out))
    longest = max(map(len, out.getvalue().splitlines()))
    assert longest <= most
    assert (longest > 100) == (most > 100)  # names do not wrap if the terminal is wide


def test_each_load_has_a_table_when_asked() -> None:
    other = made.table(made.rows({"a": (1, 1)}), ClosedLoop(connections=256))
    test = made.ranking().test_types["json"].model_copy(update={"tables": (made.table(()), other)})
    ranking = made.ranking().model_copy(update={"test_types": {"json": test}})
    assert "json, at c256" not in shown(made.info(), ranking)
    assert "json, at c256" in shown(made.info(), ranking, every_load=True)


def test_heading_names_machines_and_links() -> None:
    machine = made.machine("B")
    app = RoleMachine(role="server", name="app", address="10.0.0.2", engine="26.1.5", machine=machine)
    link = MachineLink(of="app", to="c1", round_trip=80e-6, throughput=1.25e9)
    lines = terminal.heading(made.info(machines=(app,), links=(link,))).plain.splitlines()
    assert "ended 19" in lines[0]
    assert "server: app (10.0.0.2), Slow CPU, 2 CPUs, Docker 26.1.5, grade B" in lines
    assert "app to c1: round trip 80 µs, 10.00 Gbit/s" in lines


def test_markdown_tables_are_rectangular() -> None:
    out = io.StringIO()
    markdown.export(Report(records=RunRecords(info=made.info()), ranking=made.ranking()), out)
    text = out.getvalue()
    assert "es4x needs 2.00× as much CPU per request as vertx-web" in text
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1
