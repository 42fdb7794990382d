"""What a page says without a script."""

from pathlib import Path

from harness.dashboard.documents import RunList
from harness.dashboard.plain import ROOT, run_page, with_runs
from harness.dashboard.runs import Run, Runs
from harness.dashboard.titles import title_of
from harness.report.sentence import sentences


def test_the_list_of_runs_stands_where_the_script_would_draw(sample_results: Path) -> None:
    text = with_runs(f"<body>{ROOT}</body>", Runs(sample_results).listed())
    assert '<a href="plain/20250615-small">Synthetic run 20250615-small</a>' in text
    assert text.startswith('<body><div id="app"><noscript>')


def test_no_run_is_said(tmp_path: Path) -> None:
    assert "There is no run yet" in with_runs(ROOT, RunList(runs=(), broken=()))


def test_a_run_is_its_answer_and_its_tables(sample_results: Path) -> None:
    run = Run(sample_results / "20250615-small")
    document = run.document(run.ranking(), answer=sentences)
    text = run_page(document, ["../assets/style.css"])
    assert document.sentences["overall"][document.ranking.leading][0] in text
    assert text.count("<table") == 1 + len(document.ranking.test_types)
    assert "<h2>Fortunes</h2>" in text


def test_names_mean_nothing_to_html(sample_results: Path) -> None:
    run = Run(sample_results / "20250617-hostile")
    text = run_page(run.document(run.ranking(), answer=sentences), [])
    assert "<script" not in text
    assert "<img" not in text


def test_a_name_that_only_repeats_the_time_is_replaced_by_what_the_run_is(sample_results: Path) -> None:
    info = Run(sample_results / "20250615-small").info
    timed = info.model_copy(update={"name": "2025-06-15 15:06:40"})
    assert title_of(info) == "Synthetic run 20250615-small"
    assert title_of(timed) == "4 implementations, 6 test types"
    few = timed.model_copy(update={"implementations": info.implementations[:2], "loads": {"db": ()}})
    assert title_of(few) == "vertx-web and resteasy, db"
