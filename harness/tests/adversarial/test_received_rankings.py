"""The sender of a results folder: a ranking.json that contradicts the trials reaches no published page."""

import base64
import gzip
import json
import re
from pathlib import Path

import pytest

from harness.dashboard import saved
from harness.extras.site import publish
from harness.records import store
from harness.stats.ranking import rank
from harness.tests.doubles import records


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    """A run whose ranking.json puts the slower implementation first: the two names are exchanged in it."""
    written = records.write(tmp_path / "results")
    found = store.read(written.folder)
    text = rank(found.info, found.trials, found.processes, found.verdicts).recorded()
    written.write_text(
        "ranking.json", text.replace('"fast"', '"-"').replace('"slow"', '"fast"').replace('"-"', '"slow"')
    )
    return written.folder


def first_of(document: object) -> str:
    """Return the implementation of the first row of a saved page's headline table."""
    rows = json.loads(json.dumps(document))["document"]["ranking"]["test_types"]["json"]["headline"]["rows"]
    return str(rows[0]["implementation"])


def test_a_saved_page_is_ranked_from_the_trials(forged: Path) -> None:
    found = re.search(r'id="run-data">([A-Za-z0-9+/=]+)</script>', saved.of_run(forged))
    assert found
    assert first_of(json.loads(gzip.decompress(base64.b64decode(found[1])))) == "fast"


def test_a_site_is_ranked_from_the_trials(forged: Path, tmp_path: Path) -> None:
    site = publish([forged], tmp_path / "site", name="one", published_at=1e9)
    rows = [row for row in site.rounds[0].runs[0].rows if row[0] == "json"]
    assert [name for _, name, cells in rows if cells[0].startswith("1 ")] == ["fast"]


def test_an_implementation_called_index_replaces_no_list(tmp_path: Path) -> None:
    info = records.info("run")
    first, second = info.implementations
    info = info.model_copy(update={"implementations": (first.model_copy(update={"name": "index"}), second)})
    trials = [each.model_copy(update={"implementation": "index"}) for each in records.trials()[:6]]
    records.stored(tmp_path / "r" / "run", info, trials)
    publish([tmp_path / "r" / "run"], tmp_path / "site", name="one", published_at=1e9)
    assert "<h1>Implementations</h1>" in (tmp_path / "site" / "implementations" / "index.html").read_text()
    assert len(list((tmp_path / "site" / "implementations").iterdir())) == 3
