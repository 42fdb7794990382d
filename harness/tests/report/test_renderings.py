"""Renderings of one ranking: the same figures on the terminal, in Markdown, CSV and JSON."""

import csv
import io
import re
from pathlib import Path
from typing import TextIO

import pytest
from rich.cells import cell_len

from harness.cli import main
from harness.console import SafeConsole
from harness.errors import Exit
from harness.records.models import RunRecords
from harness.report import Report, layout, terminal
from harness.report.cells import HEADERS
from harness.report.columns import COLUMNS
from harness.report.exporters import EXPORTERS
from harness.stats.model import Ranking
from harness.stats.ranking import rank
from harness.tests import records
from harness.tests.report import recorded_terminal


@pytest.fixture(scope="module")
def ranking() -> Ranking:
    replicates = [records.replicate(i, b) for i in ("fast", "slow") for b in (0, 1)]
    verdicts = [records.verdict(i, t) for i in ("fast", "slow") for t in records.LEVELS]
    return rank(records.info(), records.samples(), replicates, verdicts)


def exported(ranking: Ranking, name: str) -> str:
    known = RunRecords(info=records.info(), samples=(), replicates=(), verdicts=(), problems=())
    out = io.StringIO()
    EXPORTERS[name].export(Report(folder=Path(), records=known, ranking=ranking), out)
    return out.getvalue()


def shown(ranking: Ranking, width: int, *, levels: bool = False) -> str:
    console = SafeConsole(width=width, file=io.StringIO())
    terminal.show(records.info(), ranking, console, levels=levels)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_terminal_shows_a_table_a_test_type_with_every_implementation(ranking: Ranking) -> None:
    text = shown(ranking, 200)
    assert text.startswith("Run 20260101-000000  complete, profile simulated, local runtime, seed 0, 1 min 01 s")
    (row,) = [line for line in text.partition("json, at")[2].splitlines() if line.split()[1:2] == ["fast"]][:1]
    assert row.split()[0] == "1"
    assert "2,020" in row  # the median of 2,000 and 2,040
    assert "495" in row  # its CPU per request in microseconds, the median of 500 and 490
    assert all(
        header.split()[0] in text for header in HEADERS if header not in ("n", "errors", "p50 ms", "p99 ms")
    )  # said once, or of none


def test_a_narrow_terminal_keeps_every_line_within_its_width(ranking: Ranking) -> None:
    text = shown(ranking, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "startup time" not in text
    assert "2,020" in text


@pytest.mark.parametrize("width", [*recorded_terminal.WIDTHS, recorded_terminal.PIPE])
def test_a_ranking_is_printed_as_it_was_recorded(width: int) -> None:
    file = recorded_terminal.FOLDER / f"ranking-{width or 'pipe'}.txt"
    assert recorded_terminal.recorded(width) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [*recorded_terminal.WIDTHS, recorded_terminal.PIPE])
def test_a_ranking_of_one_process_each_is_printed_as_it_was_recorded(width: int) -> None:
    file = recorded_terminal.FOLDER / f"in-turns-{width or 'pipe'}.txt"
    text = recorded_terminal.recorded(width, turns=True)
    assert text == file.read_text(encoding="utf-8")
    assert "1 process each" in text
    assert "fresh ones are taken to differ by 5 %" in " ".join(text.split())


@pytest.mark.parametrize("width", [80, 100, 120, 160, 200])
def test_every_table_keeps_its_figures_and_intervals_within_the_width(width: int) -> None:
    _, ranking = recorded_terminal.made()
    for test_type in ranking.test_types.values():
        laid = layout.lay(test_type.headline, width)
        assert laid.headers[:4] == ("rank", "implementation", "req/s", "95 %")
        assert laid.headers.count("95 %") == 2
        longest = [max(map(cell_len, texts)) for texts in zip(laid.headers, *laid.rows, strict=True)]
        longest[1] = laid.name_width
        assert sum(longest) + layout.GAP * (len(longest) - 1) <= width


def test_a_pipe_gets_every_column_and_every_name_whole() -> None:
    text = recorded_terminal.recorded(recorded_terminal.PIPE)
    assert "…" not in text
    assert "quarkus-hibernate-reactive" in text
    assert {"memory", "startup time", "CPU rank", "remarks"} <= set(re.split(r"  +", text.replace("\n", "  ")))


def test_what_all_rows_share_is_said_once(ranking: Ranking) -> None:
    text = recorded_terminal.recorded(80)
    assert text.count("provisional") == 3  # above the tables, in the answer, in the notes
    assert text.count("not warmed up") == 1


def test_levels_add_a_table_for_each_level(ranking: Ranking) -> None:
    assert "query, at c64 q1" not in shown(ranking, 200)
    assert "query, at c64 q1" in shown(ranking, 200, levels=True)


def test_a_cell_that_was_kept_out_is_a_dash_with_its_reason_not_a_zero(ranking: Ranking) -> None:
    table_of_20 = ranking.test_types["query"].levels[-1]
    slow = next(row for row in table_of_20.rows if row.implementation == "slow")
    assert (slow.throughput, slow.ranked, slow.errors) == (None, False, 6)
    text = exported(ranking, "markdown")
    (line,) = [
        x
        for x in text.partition("## query, at c64 q20")[2].partition("##")[0].splitlines()
        if x.startswith("| – | slow")
    ]
    assert line.split(" | ")[2] == "–"
    assert "errors" in line


def test_markdown_tables_have_as_many_cells_in_every_line(ranking: Ranking) -> None:
    for block in exported(ranking, "markdown").split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in lines}) <= 1


def test_csv_has_si_numbers_and_empty_unknowns(ranking: Ranking) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(ranking, "csv"))))
    assert tuple(rows[0]) == COLUMNS
    (fast,) = [r for r in rows if (r["implementation"], r["test_type"], r["table"]) == ("fast", "json", "headline")]
    assert float(fast["requests_per_second"]) == pytest.approx(2020)
    assert float(fast["cpu_seconds_per_request"]) == pytest.approx((1 / 2000 + 1 / 2040) / 2)
    assert (fast["level"], fast["rank_low"], fast["replicates"]) == ("c64", "1", "2")
    (slow,) = [r for r in rows if (r["implementation"], r["level"], r["table"]) == ("slow", "c64 q20", "level")]
    assert (slow["requests_per_second"], slow["ranked"], slow["errors"]) == ("", "False", "6")


def test_json_is_the_ranking_itself(ranking: Ranking) -> None:
    assert Ranking.model_validate_json(exported(ranking, "json")) == ranking


def test_a_new_exporter_is_a_function_and_a_line_in_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Names:
        def export(self, report: Report, out: TextIO) -> None:
            out.writelines(f"{row.implementation}\n" for row in report.ranking.test_types["json"].headline.rows)

    monkeypatch.setitem(EXPORTERS, "names", Names())
    folder = records.write(tmp_path).folder
    assert main(["report", str(folder), "--format", "names"]) == Exit.OK
    assert capsys.readouterr().out == "fast\nslow\n"
    assert main(["report", str(folder), "--format", "names", "--output", str(tmp_path / "names.txt")]) == Exit.OK
    assert (tmp_path / "names.txt").read_text() == "fast\nslow\n"
