"""Tests for the summary in sentences."""

from harness.report.summary import summarize, summarize_run
from harness.stats.ranking_model import Ratio
from harness.tests.report import made

TIED = made.rows({"one": (1, 2), "two": (1, 2)})


def test_summary_names_groups_in_order() -> None:
    summary = summarize(made.info(), made.ranking(), "json", "cpu")
    assert summary.lead == (
        "JSON: es4x needs 2.00× as much CPU per request as vertx-web [1.96, 2.04]; resteasy and express 4.00× to 8.00×."
    )
    assert summary.figures == "vertx-web: 10 µs of CPU per request (2 processes each)."


def test_summary_without_baseline_names_the_order() -> None:
    said = summarize(made.info(), made.ranking().model_copy(update={"reference": None}), "json", "cpu")
    assert said.lead == "JSON, by CPU per request: vertx-web first; es4x second; resteasy and express tie."
    assert said.figures == (
        "vertx-web: 10 µs of CPU per request, es4x 2.00× [1.96, 2.04] vs the best, "
        "express 8.00× [7.84, 8.16] vs the best (2 processes each)."
    )


def test_summary_compares_with_a_slower_baseline() -> None:
    rows = made.rows({"fast": (1, 1), "same": (2, 3), "base": (2, 3), "slow": (4, 4)})
    factors = {"fast": 0.25, "same": 0.98, "base": 1.0, "slow": 3.0}
    related = tuple(
        row.model_copy(
            update={
                "cpu_per_request": row.cpu_per_request.model_copy(
                    update={"to_reference": Ratio(value=value, low=value / 1.1, high=value * 1.1)}
                )
            }
        )
        for row, value in zip(rows, factors.values(), strict=True)
        if row.cpu_per_request
    )
    ranking = made.ranking(related).model_copy(update={"reference": "base"})
    assert summarize(made.info(tuple(factors)), ranking, "json", "cpu").lead == (
        "JSON: fast needs 0.25× as much CPU per request as base [0.23, 0.28]; same ties with base; slow 3.00×."
    )


def test_tie_has_all_figures_and_no_leader() -> None:
    said = summarize(made.info(("one", "two")), made.ranking(TIED), "json", "throughput")
    assert said.lead == "JSON, by throughput: one and two tie: there is no clear winner."
    assert said.figures == "one and two: 40,000 to 80,000 requests/s (2 processes each)."


def test_summary_shows_differing_process_counts() -> None:
    row = made.standing(10e-6, 10e-6, (1, 1), 1)
    more = row.model_copy(update={"estimate": row.estimate.model_copy(update={"processes": 15})})
    rows = (made.row("a", 1, (1, 1)).model_copy(update={"cpu_per_request": more}), made.row("b", 2, (2, 2)))
    assert summarize(made.info(), made.ranking(rows), "json", "cpu").figures.endswith("(2 to 15 processes each).")


def test_group_ends_before_the_first_slower_row() -> None:
    """Server "one" ties with "two" and beats "three". "two" does not beat "three".

    A tie group ends before the first server that the group's first server beats.
    """
    summary = summarize(
        made.info(), made.ranking(made.rows({"one": (1, 2), "two": (1, 3), "three": (2, 3)})), "json", "cpu"
    )
    assert summary.lead == "JSON: two ties with one; three needs 4.00× as much CPU per request as one [3.92, 4.08]."


def test_a_crowd_is_told_briefly() -> None:
    names = [f"f{number:03}" for number in range(1, 301)]
    alone = {name: (place, place) for place, name in enumerate(names, 1)}

    def lead_of(places: dict[str, tuple[int, int]], reference: str | None = None) -> str:
        ranking = made.ranking(made.rows(places)).model_copy(update={"reference": reference})
        return summarize(made.info(), ranking, "json", "cpu").lead

    assert lead_of(alone, "f001") == (
        "JSON: f002 needs 2.00× as much CPU per request as f001 [1.96, 2.04]; f003 4.00×; 297 more follow."
    )
    assert lead_of(alone).endswith("f001 first; f002 second; f003 third; f004 fourth; 295 more in between; f300 last.")
    assert "f001, f002, f003 and 297 more tie" in lead_of(dict.fromkeys(names, (1, 300)))
    behind = dict.fromkeys(names[:20], (1, 20)) | {"next": (21, 21), "last": (22, 22)}
    assert lead_of(behind).endswith("; next rank 21; last last.")


def test_run_summary_has_leading_then_other_metric() -> None:
    said = summarize_run(made.info(), made.ranking(leading="throughput"))
    assert said.lead.startswith("Overall: es4x serves 0.50× as many requests as vertx-web")
    assert "Overall: es4x needs 2.00× as much CPU per request as vertx-web" in said.figures
    without = summarize_run(made.info(), made.ranking(overall=()))
    assert without.lead.startswith("JSON: es4x needs 2.00× as much CPU per request")


def test_summaries_of_empty_single_and_running_runs() -> None:
    nothing = made.ranking((made.unranked("a", "missing"),))
    assert summarize(made.info(("a",)), nothing, "json", "cpu").lead == (
        "JSON, by CPU per request: no measurement can be ranked."
    )
    alone = made.ranking(made.rows({"a": (1, 1)}))
    assert summarize(made.info(("a",)), alone, "json", "cpu").lead == "JSON, by CPU per request: only a was measured."
    running = summarize(made.info(status="running"), made.ranking(), "json", "cpu")
    assert running.lead.startswith("So far: JSON: es4x needs 2.00× as much CPU per request")


def test_summary_names_machine_and_improvements() -> None:
    said = summarize(made.info(machine=made.machine(concerns=("load 10.9 on 2 CPUs",))), made.ranking(), "json", "cpu")
    assert said.place == "Measured on Slow CPU, 2 CPUs, machine grade D, profile quick."
    assert said.improvements == (
        "For a more certain result, use more processes (--profile standard); a quieter machine (load 10.9 on 2 CPUs)."
    )
