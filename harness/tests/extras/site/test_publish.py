"""Rounds of runs as static pages."""

import json
import re
from pathlib import Path

import pytest

from harness.dashboard import build
from harness.errors import StoreError
from harness.site import publish as module
from harness.site.publish import publish
from harness.site.rounds import read, slug_of, unique_slugs
from harness.tests.doubles import invented, sample_data


@pytest.fixture(autouse=True)
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is built already."""
    assets = tmp_path / "web" / "dist" / "assets"
    assets.mkdir(parents=True)
    (assets / "index-1.js").write_text("0;")
    (assets / "style-1.css").write_text("a{}")
    monkeypatch.setattr(module, "ensure_built", lambda: assets.parent)
    assert build.WEB  # the real one is left alone


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    results = tmp_path_factory.mktemp("results")
    sample_data.small(results)
    sample_data.small(results, "20250622-second", seed=8, started_at=invented.EPOCH + 604_800)
    return [results / "20250615-small", results / "20250622-second"]


def test_a_round_has_a_page_of_its_own_one_a_run_and_one_an_implementation(runs: list[Path], tmp_path: Path) -> None:
    publish(runs[:1], tmp_path / "site", name="Round 1", published_at=invented.EPOCH)
    files = {str(path.relative_to(tmp_path / "site")) for path in (tmp_path / "site").rglob("*.html")}
    assert files == {
        "index.html",
        "implementations/index.html",
        *(f"implementations/{name}.html" for name in ("vertx-web", "resteasy", "es4x", "express")),
        "rounds/round-1/index.html",
        "rounds/round-1/20250615-small.html",
    }
    assert "leads overall" in (tmp_path / "site/index.html").read_text()


def test_every_link_leads_to_a_file(runs: list[Path], tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(runs, site, name="Round 1", published_at=invented.EPOCH)
    for path in site.rglob("*.html"):
        for address in re.findall(r'(?:href|src)="([^"#:]+)"', path.read_text()):
            assert (path.parent / address).resolve().is_file(), f"{path.name}: {address}"


def test_a_second_round_leaves_the_first_as_it_was_and_continues_the_history(runs: list[Path], tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(runs[:1], site, name="Round 1", published_at=invented.EPOCH)
    first = (site / "rounds/round-1/20250615-small.html").read_bytes()
    publish(runs[1:], site, name="Round 2", published_at=invented.EPOCH + 604_800)
    assert (site / "rounds/round-1/20250615-small.html").read_bytes() == first
    assert [one.name for one in read(site).rounds] == ["Round 1", "Round 2"]
    text = (site / "implementations/es4x.html").read_text()
    assert text.index("Round 2") < text.index("Round 1")  # newest first
    assert "<polyline" in text
    with pytest.raises(StoreError, match="is published already"):
        publish(runs[:1], site, name="Round 1", published_at=0.0)


def test_claims_of_a_run_are_told_with_their_verdicts(runs: list[Path], tmp_path: Path) -> None:
    claims = runs[1] / "claims.json"
    claims.write_text(json.dumps([{"statement": "a <b> is twice b", "verdict": "holds", "measured": "2.03×"}]))
    try:
        publish(runs[1:], tmp_path / "site", name="Claims", published_at=0.0)
    finally:
        claims.unlink()
    text = (tmp_path / "site/rounds/claims/index.html").read_text()
    assert "<td>a &lt;b&gt; is twice b</td>" in text
    assert "<td>holds</td>" in text


def test_a_folder_with_other_files_is_left_alone(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(StoreError, match="holds other files than a site"):
        publish(runs[:1], tmp_path / "mine", name="Round 1", published_at=0.0)


def test_names_that_would_share_an_address_are_numbered() -> None:
    assert unique_slugs(["C++", "c++", "!"]) == {"!": "implementation", "C++": "c", "c++": "c-2"}
    assert slug_of(" Round 1 / 2026 ") == "round-1-2026"
    with pytest.raises(StoreError, match="needs a letter"):
        slug_of("…")
