"""Publishing of rounds as a static site."""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from harness import cli
from harness.errors import StoreError
from harness.extras.site import publishing as module
from harness.extras.site.publishing import cells, publish, read
from harness.records.loads import Scenario
from harness.stats.ranking_model import Estimate, RankInterval, Row, Standing
from harness.tests.doubles import invented, sample_data


@pytest.fixture(autouse=True)
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the dashboard's page by a page that needs no build."""
    assets = tmp_path / "web" / "dist" / "assets"
    assets.mkdir(parents=True)
    (assets / "index-1.js").write_text("0;")
    (assets / "style-1.css").write_text("a{}")
    monkeypatch.setattr(module, "ensure_built", lambda: assets.parent)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    results = tmp_path_factory.mktemp("results")
    sample_data.small(results)
    sample_data.second(results)
    return [results / "20250615-small", results / "20250622-second"]


def test_round_has_pages_for_runs_and_implementations(runs: list[Path], tmp_path: Path) -> None:
    words = ("report", str(runs[0]), "--site", str(tmp_path / "site"), "--round", "Round 1")
    assert cli.main(words) == 0
    files = {str(path.relative_to(tmp_path / "site")) for path in (tmp_path / "site").rglob("*.html")}
    assert files == {
        "index.html",
        "implementations/index.html",
        *(f"implementations/{name}.html" for name in ("vertx-web", "resteasy", "es4x", "express")),
        "rounds/round-1/20250615-small.html",
    }
    assert "Overall, by throughput: " in (tmp_path / "site/index.html").read_text()


def test_links_lead_to_files_for_all_names(runs: list[Path], tmp_path: Path) -> None:
    shutil.copytree(runs[0], odd := tmp_path / runs[0].name)
    for file in odd.glob("*.json*"):
        file.write_text(file.read_text().replace("es4x", "a/b #100%"))
    site = tmp_path / "site"
    publish([odd, runs[1]], site, name="Round 1", published_at=invented.EPOCH)
    for path in site.rglob("*.html"):
        for address in re.findall(r'<(?:a|link)[^>]* href="([^"#:]+)"', path.read_text()):
            assert (path.parent / unquote(address)).resolve().is_file(), f"{path.name}: {address}"
    assert "a/b #100%" in (site / "implementations" / "a%2Fb%20%23100%25.html").read_text()


def test_second_round_keeps_first_and_extends_history(runs: list[Path], tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(runs[:1], site, name="Round 1", published_at=invented.EPOCH)
    first = {path: path.read_bytes() for path in (site / "rounds/round-1").iterdir()}
    publish(runs[1:], site, name="Round 2", published_at=invented.EPOCH + 604_800)
    assert {path: path.read_bytes() for path in (site / "rounds/round-1").iterdir()} == first
    assert [one.name for one in read(site).rounds] == ["Round 1", "Round 2"]
    text = (site / "implementations/es4x.html").read_text()
    assert text.index("Round 2") < text.index("Round 1")  # the newest round is listed first
    with pytest.raises(StoreError, match="is already published"):
        publish(runs[:1], site, name="Round 1", published_at=0.0)


def test_a_folder_with_other_files_is_left_alone(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(StoreError, match="contains files that do not belong to a site"):
        publish(runs[:1], tmp_path / "mine", name="Round 1", published_at=0.0)
    with pytest.raises(StoreError, match="must contain a letter"):
        publish(runs[:1], tmp_path / "site", name="…", published_at=0.0)
    with pytest.raises(StoreError, match="two of these runs have the same id"):
        publish([runs[0], runs[0]], tmp_path / "site", name="Round 1", published_at=0.0)


def test_scenario_rows_are_ranked_by_cpu_only() -> None:
    estimate = Estimate(median=2e-3, low=None, high=None, processes=1, values=())
    place = Standing(
        estimate=estimate, position=1, rank=RankInterval(low=1, high=2), tie_group=1, to_reference=None, to_best=None
    )
    load = Scenario(connections=1, factor=8)
    row = Row(implementation="a", load=load, throughput=place, cpu_per_request=place)
    assert cells(row, 3) == ("–", "1–2 of 3", "–", "–", "–", "2,000")
