"""Tests of the summary in sentences."""

from harness.report.summary import summarize, summarize_run
from harness.tests.report import made

TIED = made.rows({"one": (1, 2), "two": (1, 2)})


def test_summary_names_groups_in_order() -> None:
    said = summarize(made.info(), made.ranking(), "json", "cpu")
    assert said.lead == "JSON, by CPU per request: vertx-web first; es4x second; resteasy and express tie."
    assert said.figures == (
        "vertx-web: 10 µs of CPU per request, es4x 2.00× [1.96, 2.04] of the best, "
        "express 8.00× [7.84, 8.16] of the best (2 processes of each)."
    )


def test_tie_has_all_figures_and_no_leader() -> None:
    said = summarize(made.info(("one", "two")), made.ranking(TIED), "json", "throughput")
    assert said.lead == "JSON, by throughput: one and two tie; no leader is established."
    assert said.figures == "one and two: 40,000 to 80,000 requests/s (2 processes of each)."


def test_summary_shows_differing_process_counts() -> None:
    row = made.standing(10e-6, 10e-6, (1, 1), 1)
    more = row.model_copy(update={"estimate": row.estimate.model_copy(update={"processes": 15})})
    rows = (made.row("a", 1, (1, 1)).model_copy(update={"cpu_per_request": more}), made.row("b", 2, (2, 2)))
    assert summarize(made.info(), made.ranking(rows), "json", "cpu").figures.endswith("(2 to 15 processes of each).")


def test_open_rank_has_no_ordinal() -> None:
    """Check a server that is between ranks: server one beats three, but two does not beat three.

    A group ends before the first server that the group's first server beats.
    """
    said = summarize(
        made.info(), made.ranking(made.rows({"one": (1, 2), "two": (1, 3), "three": (2, 3)})), "json", "cpu"
    )
    assert said.lead == "JSON, by CPU per request: one and two tie; three rank 2–3."


def test_a_crowd_is_told_briefly() -> None:
    names = [f"f{number:03}" for number in range(1, 301)]
    alone = {name: (place, place) for place, name in enumerate(names, 1)}
    lead = summarize(made.info(), made.ranking(made.rows(alone)), "json", "cpu").lead
    assert lead.endswith("f001 first; f002 second; f003 third; f004 fourth; 295 more in between; f300 last.")
    crowd = summarize(made.info(), made.ranking(made.rows(dict.fromkeys(names, (1, 300)))), "json", "cpu").lead
    assert "f001, f002, f003 and 297 more tie" in crowd
    behind = dict.fromkeys(names[:20], (1, 20)) | {"next": (21, 21), "last": (22, 22)}
    assert summarize(made.info(), made.ranking(made.rows(behind)), "json", "cpu").lead.endswith(
        "; next rank 21; last last."
    )


def test_run_summary_has_leading_then_other_metric() -> None:
    said = summarize_run(made.info(), made.ranking(leading="throughput"))
    assert said.lead.startswith("Overall, by throughput: vertx-web first")
    assert "Overall, by CPU per request: vertx-web first" in said.figures
    assert "times the baseline" in said.figures
    without = summarize_run(made.info(), made.ranking(overall=()))
    assert without.lead.startswith("JSON, by CPU per request: vertx-web first")


def test_summaries_of_empty_single_and_running_runs() -> None:
    nothing = made.ranking((made.unranked("a", "missing"),))
    assert summarize(made.info(("a",)), nothing, "json", "cpu").lead == (
        "JSON, by CPU per request: no measurement can be ranked."
    )
    alone = made.ranking(made.rows({"a": (1, 1)}))
    assert summarize(made.info(("a",)), alone, "json", "cpu").lead == "JSON, by CPU per request: only a was measured."
    running = summarize(made.info(status="running"), made.ranking(), "json", "cpu")
    assert running.lead.startswith("So far: JSON, by CPU per request: vertx-web first")


def test_summary_names_machine_and_improvements() -> None:
    said = summarize(made.info(machine=made.machine(concerns=("load 10.9 on 2 CPUs",))), made.ranking(), "json", "cpu")
    assert said.place == "Measured on Slow CPU, 2 CPUs, machine grade D, profile quick."
    assert said.improvements == (
        "For a more certain result, use more processes (--profile standard); a quieter machine (load 10.9 on 2 CPUs)."
    )
