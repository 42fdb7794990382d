"""Attack: a forged ranking.json or impossible values mislead a report's readers or break the report."""

import base64
import gzip
import json
import re
from pathlib import Path

import pytest

from harness import cli
from harness.dashboard import saved
from harness.errors import Exit
from harness.extras.site.site_pages import publish
from harness.records import store
from harness.stats.ranking import rank
from harness.tests.doubles import records


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    """Return a run whose ranking.json swaps the names of two implementations."""
    written = records.write(tmp_path / "results")
    found = store.read_run(written.folder)
    text = rank(found.info, found.trials, found.processes, found.verdicts).to_json()
    written.write_text(
        "ranking.json", text.replace('"fast"', '"-"').replace('"slow"', '"fast"').replace('"-"', '"slow"')
    )
    return written.folder


def first_of(document: object) -> str:
    """Return the first implementation in the headline table of a saved page."""
    rows = json.loads(json.dumps(document))["document"]["ranking"]["test_types"]["json"]["headline"]["rows"]
    return str(rows[0]["implementation"])


def test_a_saved_page_is_ranked_from_the_trials(forged: Path) -> None:
    found = re.search(r'id="run-data">([A-Za-z0-9+/=]+)</script>', saved.render_run(forged))
    assert found
    assert first_of(json.loads(gzip.decompress(base64.b64decode(found[1])))) == "fast"


def test_a_site_is_ranked_from_the_trials(forged: Path, tmp_path: Path) -> None:
    site = publish([forged], tmp_path / "site", name="one", published_at=1e9)
    rows = [row for *_, table, row in site.results() if table.test_type == "json"]
    assert [row.implementation for row in rows if row.throughput and row.throughput.position == 1] == ["fast"]


def test_an_implementation_called_index_replaces_no_list(tmp_path: Path) -> None:
    info = records.info("run")
    first, second = info.implementations
    info = info.model_copy(update={"implementations": (first.model_copy(update={"name": "index"}), second)})
    trials = [each.model_copy(update={"implementation": "index"}) for each in records.trials()[:6]]
    records.stored(tmp_path / "r" / "run", info, trials)
    publish([tmp_path / "r" / "run"], tmp_path / "site", name="one", published_at=1e9)
    assert "<h1>Implementations</h1>" in (tmp_path / "site" / "implementations" / "index.html").read_text()
    assert len(list((tmp_path / "site" / "implementations").iterdir())) == 3


TIMES = (
    '"basis":"closed-loop, service time","mean_seconds":-1,"stdev_seconds":1,"min_seconds":1,"max_seconds":1,'
    '"percentiles_seconds":{}'
)
IMPOSSIBLE = {
    "negative CPU": ('"cpu_seconds_per_request":', "-1"),
    "negative throughput": ('"requests_per_second":', "-1e308"),
    "negative latency": ('"latency":', f"{{{TIMES}}}"),
    "negative memory": ('"rss_peak_bytes":', "-1"),
    "largest throughput": ('"requests_per_second":', "1.7976931348623157e308"),
    "shortest load": ('"duration_seconds":', "5e-324"),
    "distant time": ('"started_at":', "1e308"),
    "very many requests": ('"requests":', "1" + "0" * 400),
    "smallest throughput": ('"requests_per_second":', "5e-324"),
}


@pytest.mark.parametrize("figure", IMPOSSIBLE)
@pytest.mark.parametrize("words", [("report", "--levels"), ("report", "--format", "techempower"), ("compare", "one")])
def test_an_impossible_figure_is_no_mistake_of_tfb(
    tmp_path: Path, words: tuple[str, ...], figure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key, value = IMPOSSIBLE[figure]
    file = records.write(tmp_path, "one").folder / "trials.jsonl"
    text, count = re.subn(rf"{key}[^,}}]+", f"{key}{value}", file.read_text(encoding="utf-8"))
    assert count
    file.write_text(text, encoding="utf-8")
    cli.main([words[0], "one", *words[1:], "--results", str(tmp_path)])
    assert "internal error in tfb" not in capsys.readouterr().err


@pytest.mark.parametrize("rate", ["0", "-1", "-0.0"])
def test_a_load_without_a_positive_rate_is_named(tmp_path: Path, rate: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = records.write(tmp_path, "one").folder / "trials.jsonl"
    first, *others = file.read_text(encoding="utf-8").splitlines()
    load = f'"load":{{"kind":"open","rate":{rate},"connections":64}}'
    file.write_text("\n".join([re.sub(r'"load":\{[^}]*\}', load, first), *others, ""]), encoding="utf-8")
    assert cli.main(["report", "one", "--results", str(tmp_path)]) == Exit.FAILED
    assert "trials.jsonl: line 1: load.open.rate: Input should be greater than 0" in capsys.readouterr().err
