"""Tests for the offline page: one small file without executable data."""

import base64
import gzip
import json
import re
from pathlib import Path

import pytest

from harness.dashboard import saved
from harness.dashboard.documents import Embedded
from harness.dashboard.run_documents import DashboardRun
from harness.tests.doubles import invented


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """Return a built page whose script contains text that could end a script element."""
    (tmp_path / "web" / "assets").mkdir(parents=True)
    (tmp_path / "web" / "assets" / "index-1.js").write_text("const a = '</script><!--';")
    (tmp_path / "web" / "assets" / "style-1.css").write_text("p { color: red }")
    return tmp_path / "web"


@pytest.fixture(scope="module")
def collected(sample_results: Path) -> Embedded:
    """Return the documents of a valid run. Tests share them, because collecting documents ranks the run again."""
    return saved.collect_documents(DashboardRun(sample_results / "20250615-small"))


def unpacked(text: str) -> Embedded:
    """Return the documents embedded in a saved page."""
    return Embedded.model_validate_json(plain(text))


def plain(text: str) -> bytes:
    """Return the decompressed JSON embedded in a saved page."""
    match = re.search(r'id="run-data">([A-Za-z0-9+/=]+)</script>', text)
    assert match
    return gzip.decompress(base64.b64decode(match[1]))


def test_the_run_is_in_the_file(sample_results: Path, web: Path, collected: Embedded) -> None:
    run = DashboardRun(sample_results / "20250615-small")
    embedded = unpacked(saved.render_page(web, collected))
    assert embedded.document.run == run.info
    assert set(embedded.tests) == {"json", "plaintext", "db", "query", "fortune", "update"}
    assert len(embedded.cells) == 24
    assert sum(len(cell.trials) for cell in embedded.cells) == len(run.trials())
    assert embedded.logs["logs/es4x/build.log"].text.endswith("BUILD SUCCESS\n")
    assert embedded.left_out == ()


def test_nothing_of_a_hostile_run_is_markup(sample_results: Path, web: Path) -> None:
    text = saved.render_page(web, saved.collect_documents(DashboardRun(sample_results / "20250617-hostile")))
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert "<title>&lt;script&gt;document.title=&#x27;owned&#x27;&lt;/script&gt;: tfb</title>" in text
    names = [info["name"] for info in json.loads(plain(text))["document"]["run"]["implementations"]]
    assert names == list(invented.MARKUP)


def test_the_policy_allows_exactly_the_two_assets(web: Path, collected: Embedded) -> None:
    text = saved.render_page(web, collected)
    script = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    assert script == ["const a = '<\\/script><\\!--';"]
    assert f"script-src '{saved.csp_hash(script[0])}'" in policy[1]
    assert f"style-src '{saved.csp_hash('p { color: red }')}'" in policy[1]
    assert "unsafe" not in policy[1]
    assert "connect-src" not in policy[1]  # default-src 'none' already forbids connections


def test_large_page_omits_parts_in_order(web: Path, collected: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    full = len(saved.compress(collected))
    monkeypatch.setattr(saved, "MAX_PAGE_BYTES", 4200 + full // 2)
    reduced = unpacked(saved.render_page(web, collected))
    assert any("second-by-second" in said for said in reduced.left_out)
    assert all(trial.windows == () for cell in reduced.cells for trial in cell.trials)
    tables = [{name: len(test.tables) for name, test in each.tests.items()} for each in (reduced, collected)]
    assert tables[0] == tables[1]
    monkeypatch.setattr(saved, "MAX_PAGE_BYTES", 0)
    assert unpacked(saved.render_page(web, collected)).tests == {}


def test_log_outside_the_folder_is_omitted(results: Path) -> None:
    logs = DashboardRun(results / "run").logs()
    (results / "run" / "logs" / "out.log").symlink_to(results / "run" / "run.json")
    assert DashboardRun(results / "run").logs() == logs


def test_numbers_keep_six_digits_except_times() -> None:
    assert [saved.round_number(text) for text in ("12345.6789", "1750000000.25")] == [12345.7, 1750000000.25]
