"""Without Node.js, the dashboard's page is built in a container."""

import re
import shutil
from pathlib import Path

import pytest

from harness.dashboard import build as page

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.timeout(600)]


def test_without_node_a_container_builds_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web = tmp_path / "web"
    shutil.copytree(page.WEB, web, ignore=shutil.ignore_patterns("node_modules", "dist", "tests"))
    monkeypatch.setattr(page, "npm_is_new_enough", lambda: False)
    dist = page.ensure_built(web)
    script = re.search(r'src="\./(assets/[^"]+\.js)"', (dist / "index.html").read_text())
    assert script is not None
    assert (dist / script[1]).stat().st_size > 50_000
    assert (dist / page.STAMP).is_file()
    assert not (web / "node_modules").exists()
