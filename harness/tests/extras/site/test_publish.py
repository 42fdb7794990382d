"""Publishing rounds as a static site."""

import json
import re
import shutil
import struct
import zlib
from html import unescape
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from harness import cli
from harness.errors import StoreError, UsageError
from harness.extras.site import site_pages as module
from harness.extras.site.badges import badge_texts, draw_badge, draw_trend
from harness.extras.site.preview import BAR, HEIGHT, WIDTH
from harness.extras.site.site_pages import publish
from harness.extras.site.site_records import Site, encode_name, read_site
from harness.tests.doubles import invented, sample_data


@pytest.fixture(autouse=True)
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the dashboard's page with one that needs no build."""
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
        *("rounds/index.html", "implementations/index.html"),
        *(f"implementations/{name}.html" for name in ("vertx-web", "resteasy", "es4x", "express")),
        "rounds/round-1/20250615-small.html",
    }
    landing = (tmp_path / "site/index.html").read_text()
    for text in ("Overall: ", "Measured 2025-06-15", "<details><summary>JSON</summary>", '<meta property="og:title"'):
        assert text in landing
    run_page = (tmp_path / "site/rounds/round-1/20250615-small.html").read_text()
    assert '<meta property="og:title"' in run_page
    assert "og:url" not in run_page  # requires the site's address, which is unknown


def test_links_lead_to_files_for_all_names(runs: list[Path], tmp_path: Path) -> None:
    shutil.copytree(runs[0], odd := tmp_path / runs[0].name)
    for file in odd.glob("*.json*"):
        file.write_text(file.read_text().replace("es4x", "a/b #100%"))
    site = tmp_path / "site"
    publish([odd, runs[1]], site, name="Round 1", published_at=invented.EPOCH)
    for path in site.rglob("*.html"):
        for address in re.findall(r'<(?:a|link|img)[^>]* (?:href|src)="([^"#:]+)"', path.read_text()):
            assert (path.parent / unquote(address)).resolve().is_file(), f"{path.name}: {address}"
    assert "a/b #100%" in (site / "implementations" / "a%2Fb%20%23100%25.html").read_text()


def test_second_round_keeps_first_and_extends_history(runs: list[Path], tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(runs[:1], site, name="Round 1", published_at=invented.EPOCH)
    first = {path: path.read_bytes() for path in (site / "rounds/round-1").iterdir()}
    publish(runs[1:], site, name="Round 2", published_at=invented.EPOCH + 604_800)
    assert {path: path.read_bytes() for path in (site / "rounds/round-1").iterdir()} == first
    assert [one.name for one in read_site(site).rounds] == ["Round 1", "Round 2"]
    text = (site / "implementations/es4x.html").read_text()
    assert text.index("Round 2") < text.index("Round 1")  # newest round first
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


def published(runs: list[Path], folder: Path, **more: str) -> Site:
    publish(runs[:1], folder, name="Round 1", published_at=invented.EPOCH, **more)
    return publish(runs[1:], folder, name="Round <2>", published_at=invented.EPOCH + 604_800)


def test_badges_show_the_newest_rank_interval(runs: list[Path], tmp_path: Path) -> None:
    site = published(runs, tmp_path / "site", url="https://bench.example.org/tfb/")
    results = [each for each in site.results() if (each[2].test_type, each[3].implementation) == ("json", "es4x")]
    shown = "rank 3 of 4 by req/s, Round <2>"
    assert badge_texts(results[-1]) == ("tfb json", shown)
    badges = tmp_path / "site/badges/json"
    document = json.loads((badges / "es4x.json").read_text())
    assert document == {"schemaVersion": 1, "label": "tfb json", "message": shown, "color": "0a5c66"}
    texts = ElementTree.fromstring((badges / "es4x.svg").read_text()).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314
    assert [each.text for each in texts] == ["tfb json", shown]
    page = unescape((tmp_path / "site/implementations/es4x.html").read_text())
    root = "https://bench.example.org/tfb"
    assert f"[![tfb]({root}/badges/json/es4x.svg)]({root}/implementations/es4x.html)" in page
    assert (
        "https://img.shields.io/endpoint?url=https%3A%2F%2Fbench.example.org%2Ftfb%2Fbadges%2Fjson%2Fes4x.json" in page
    )
    assert f'<meta property="og:url" content="{root}/implementations/es4x.html">' in page


def test_link_previews_show_the_ranking_as_bars(runs: list[Path], tmp_path: Path) -> None:
    site = published(runs, tmp_path / "site", url="https://bench.example.org/tfb")
    image = "rounds/round-2/20250622-second.png"
    for page in ("index.html", "rounds/round-2/20250622-second.html"):
        text = (tmp_path / "site" / page).read_text()
        assert f'<meta property="og:image" content="https://bench.example.org/tfb/{image}">' in text
    data = (tmp_path / "site" / image).read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (WIDTH, HEIGHT)
    start = data.index(b"IDAT") + 4
    packed = zlib.decompressobj().decompress(data[start:])
    rows = [packed[number * (WIDTH + 1) + 1 :][:WIDTH] for number in range(HEIGHT)]
    lengths = [row.count(BAR) for row in rows]
    bars = [length for before, length in pairwise(lengths) if length and not before]
    scores = [row.cpu.estimate.median for row in site.rounds[-1].runs[0].tables[0].rows if row.cpu]
    assert len(bars) == len(scores) == 3  # es4x failed a test type, so it has no score
    assert [bar / bars[0] for bar in bars] == pytest.approx([score / scores[0] for score in scores], abs=0.01)


def test_a_new_publication_replaces_the_style_sheet(runs: list[Path], tmp_path: Path) -> None:
    publish(runs[:1], tmp_path / "site", name="Round 1", published_at=invented.EPOCH)
    old = tmp_path / "web/dist/assets/style-1.css"
    old.rename(old.with_name("style-2.css")).write_text("b{}")
    publish(runs[1:], tmp_path / "site", name="Round 2", published_at=invented.EPOCH + 604_800)
    assert [path.read_text() for path in (tmp_path / "site/assets").iterdir()] == ["b{}"]


@pytest.mark.parametrize("url", ["ftp://a", "https://a/<b>", "https://a b", "javascript:alert(1)", "https://a)/"])
def test_unsafe_addresses_are_refused(url: str, runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a valid site address"):
        publish(runs[:1], tmp_path / "site", name="Round 1", published_at=0.0, url=url)


def test_a_trend_connects_rounds_on_the_same_machine(runs: list[Path], tmp_path: Path) -> None:
    results = [
        each
        for each in published(runs, tmp_path / "site").results()
        if (each[2].test_type, each[3].implementation) == ("json", "es4x")
    ]
    drawn = draw_trend("es4x", "json", results)
    assert (drawn.count("<circle"), drawn.count('class="line"')) == (2, 1)
    first, (round_2, run, *rest) = results
    elsewhere = (round_2, run.model_copy(update={"machine": "another"}), *rest)
    assert draw_trend("es4x", "json", [first, elsewhere]).count('class="line"') == 0  # type: ignore[list-item]
    assert draw_trend("es4x", "json", results[:1]) == ""


def test_runs_without_ranks_have_no_badges(runs: list[Path], tmp_path: Path) -> None:
    shutil.copytree(runs[0], smoke := tmp_path / runs[0].name)
    info = json.loads((smoke / "run.json").read_text())
    info["settings"]["profile"] = {**info["settings"].get("profile", {}), "ranked": False}
    (smoke / "run.json").write_text(json.dumps(info))
    publish([smoke], tmp_path / "site", name="Round 1", published_at=0.0)
    assert not (tmp_path / "site/badges").exists()
    assert not re.search(r"<tr><td>\d", (tmp_path / "site/index.html").read_text())


@pytest.mark.parametrize("name", ["..", ".", "index", "a/../b", "x" * 300])
def test_encoded_names_stay_within_their_folder(name: str, tmp_path: Path) -> None:
    assert (tmp_path / encode_name(name)).resolve().parent == tmp_path
    assert encode_name(name) not in ("", "index")


def test_a_badge_is_markup_for_any_text() -> None:
    title = ElementTree.fromstring(draw_badge("tfb <a>", 'rank "1" & more'))[0]  # noqa: S314
    assert title.text == 'tfb <a>: rank "1" & more'
