"""Every row of a table shows latency on one basis: service time where all have it, wrk's under its name elsewhere."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.dashboard.digests import SampleLatency, latencies
from harness.records.models import AuditedLoad, RunRecords, Sample
from harness.report import Report, techempower
from harness.report import csv as csv_export
from harness.report.closed_loop import notes
from harness.report.terminal import console, show
from harness.stats.by_metric import rank_by
from harness.stats.closed_loop import NAMES, SERVICE, WRK, basis_of, basis_to_compare, latency_of
from harness.stats.closed_loop_rows import with_closed_loop
from harness.stats.model import Ranking
from harness.stats.ranking import rank
from harness.tests import records

SERVICE_P99 = 0.0007


def audited(sample: Sample, p99: float = SERVICE_P99) -> Sample:
    latency = records.LATENCY.model_copy(
        update={"basis": SERVICE, "mean": 0.0003, "max": 0.01, "percentiles": {"50": 0.0003, "99": p99}}
    )
    load = AuditedLoad(duration=1.0, requests=2000, cpu_per_request=None, latency=latency)
    return sample.model_copy(update={"audited": load})


def ranking(samples: Sequence[Sample]) -> Ranking:
    replicates = [records.replicate(i, b) for i in ("fast", "slow") for b in (0, 1)]
    verdicts = [records.verdict(i, t) for i in ("fast", "slow") for t in records.LEVELS]
    return with_closed_loop(rank(records.info(), samples, replicates, verdicts), samples)


def of(test_type: str, *, both: bool) -> list[Sample]:
    """Audits in the first process of ``fast``, and of ``slow`` too."""
    names = ("fast", "slow") if both else ("fast",)
    return [
        audited(s) if s.implementation in names and s.block == 0 and s.test_type == test_type else s
        for s in records.samples()
    ]


def test_a_table_shows_service_times_where_all_of_its_rows_have_them() -> None:
    shown = ranking(of("json", both=True)).test_types
    for row in shown["json"].headline.rows:
        assert row.latency is not None
        assert row.latency.basis == SERVICE
        assert row.latency.percentiles["99"].median == pytest.approx(SERVICE_P99)
        assert row.latency.mean.replicates == 1
        assert row.latency.maximum == 0.01
    fast = shown["query"].headline.rows[0]
    assert fast.latency is not None
    assert fast.latency.basis == WRK
    assert fast.latency.percentiles["99"].median == pytest.approx(0.002)


def test_one_row_without_a_service_time_leaves_the_whole_table_with_wrk_s() -> None:
    rows = ranking(of("json", both=False)).test_types["json"].headline.rows
    assert {row.latency.basis for row in rows if row.latency} == {WRK}


def test_rows_are_ranked_by_service_time_only_where_every_process_has_one() -> None:
    samples = [s for s in of("json", both=True) if s.test_type == "json"]
    cells = [[s for s in samples if s.implementation == name] for name in ("fast", "slow")]
    assert basis_of(cells) == SERVICE
    assert basis_to_compare(cells) == WRK
    assert basis_to_compare([[audited(s) for s in cell] for cell in cells]) == SERVICE


def test_the_ranking_by_response_time_names_its_basis() -> None:
    samples = [audited(s, 0.001 * (1 + s.block)) for s in records.samples()]
    known = RunRecords(
        info=records.info(),
        samples=tuple(samples),
        replicates=tuple(records.replicate(i, b) for i in ("fast", "slow") for b in (0, 1)),
        verdicts=tuple(records.verdict(i, t) for i in ("fast", "slow") for t in records.LEVELS),
        problems=(),
    )
    table = rank_by(known, "response-time-p99").tables[0]
    assert table.basis == NAMES[SERVICE]
    assert {row.standing.estimate.values for row in table.rows if row.standing} == {(0.001, 0.002)}
    assert rank_by(known, "memory").tables[0].basis == ""


def test_a_sample_that_a_gate_keeps_out_shows_no_latency() -> None:
    assert latency_of(records.broken(audited(records.samples()[0])), SERVICE) is None


def test_the_page_s_latencies_are_on_the_same_basis() -> None:
    samples = [
        SampleLatency.model_validate(s.model_dump(include={*SampleLatency.model_fields})) for s in of("json", both=True)
    ]
    (fast, slow) = latencies(samples)["json"].cells
    assert {fast.basis, slow.basis} == {NAMES[SERVICE]}
    assert (fast.percentiles["99"], fast.samples) == (SERVICE_P99, 1)
    assert {cell.basis for cell in latencies(samples)["query"].cells} == {NAMES[WRK]}


def test_exports_and_the_terminal_say_whose_latency_it_is() -> None:
    found = ranking(of("json", both=True))
    known = RunRecords(info=records.info(), samples=(), replicates=(), verdicts=(), problems=())
    out = io.StringIO()
    csv_export.export(Report(folder=Path(), records=known, ranking=found), out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    bases = {row["test_type"]: row["latency_basis"] for row in rows if row["implementation"] == "fast"}
    assert bases == {"json": SERVICE, "query": WRK}
    assert float(rows[0]["latency_p99_seconds"]) == pytest.approx(SERVICE_P99)
    text = io.StringIO()
    show(records.info(), found, console(text))
    assert "wrk p99 ms" in text.getvalue().partition("query, at")[2]
    assert "wrk" not in text.getvalue().partition("json, at")[2].partition("query, at")[0]
    assert [note.partition(":")[0] for note in notes(found)] == ["p50, p99", "wrk p50, p99"]


def test_results_json_keeps_wrk_s_fields_and_has_service_times_under_a_key_of_our_own() -> None:
    samples = tuple(of("json", both=True))
    known = RunRecords(info=records.info(), samples=samples, replicates=(), verdicts=(), problems=())
    document = techempower.document(known, ranking(samples))
    own = document["tfb"]
    assert isinstance(own, dict)
    assert set(own) == {"closedLoopServiceTime"}
    (figure,) = own["closedLoopServiceTime"]["json"]["fast"]
    assert figure["percentiles_seconds"]["99"]["median"] == pytest.approx(SERVICE_P99)
    raw = document["rawData"]
    assert isinstance(raw, dict)
    assert raw["json"]["fast"][0]["latencyAvg"] == "500.00us"


@pytest.mark.parametrize("both", [True, False])
def test_a_sample_without_histograms_keeps_its_percentiles(both: bool) -> None:
    sample = audited(records.samples()[0]) if both else records.samples()[0]
    short = sample.without_histograms()
    assert latency_of(short, SERVICE if both else WRK) == latency_of(sample, SERVICE if both else WRK)
