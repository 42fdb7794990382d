"""Plugins from other packages, and plugins that cannot be loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from harness import plugins
from harness.dashboard.api import Api
from harness.dashboard.results_folder import ResultsFolder
from harness.dashboard.server import create_app
from harness.errors import UsageError
from harness.paths import REPOSITORY
from harness.plan.testtypes import TestType
from harness.tests.doubles import records

ENTRY_POINTS = "[tfb.plugins]\nexample = example_plugin:ExamplePlugin\n"
PLUGIN = """
from harness.plugins import PageView, Plugin, Verb

class ExamplePlugin(Plugin):
    verbs = {"greet": Verb(target="example_parts:greet", help="say hello")}
    test_types = {"greet": "example_parts:GREET"}
    exporters = {"names": "example_parts:export_names"}
    designs = {"once": "example_parts:design"}
    page_views = {"names": PageView(target="example_parts:render", title="Names & more")}
"""
PARTS = """
from harness.plan.testtypes import TestType

GREET = TestType(name="greet", response_shape="greeting")

def greet(name):
    print(f"hello {name}")
    return 0

def export_names(report, out):
    out.write(" ".join(each.name for each in report.records.info.implementations))

def design(plan, seed):
    yield from ()

def render(results):
    return f"<!doctype html><p>{results.name}"
"""
START = "import sys; sys.path.append(sys.argv.pop(1)); from harness import cli; sys.exit(cli.main())"


def install(folder: Path, plugin: str = PLUGIN) -> Path:
    metadata = folder / "example_tfb-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: example-tfb\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    (folder / "example_plugin.py").write_text(plugin, encoding="utf-8")
    (folder / "example_parts.py").write_text(PARTS, encoding="utf-8")
    return folder


def tfb(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START, str(site), *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_plugin_replaces_no_verb(tmp_path: Path) -> None:
    verbs = '"report": Verb(target="example_parts:greet", help="say hello")'
    other = '"greet": Verb(target="example_parts:greet", help="say hello", group="social")'
    (old,) = [line for line in PLUGIN.splitlines() if line.startswith("    verbs")]
    completed = tfb(install(tmp_path, PLUGIN.replace(old, f"    verbs = {{{verbs}, {other}}}")), "--help")

    assert "plugin example: its verb 'report' is ignored" in completed.stderr
    assert "print a run's results as text" in completed.stdout
    assert "social:\n  greet" in completed.stdout


def test_a_distribution_adds_a_verb(tmp_path: Path) -> None:
    site = install(tmp_path)
    assert "greet" in tfb(site, "--help").stdout
    assert tfb(site, "greet", "you").stdout == "hello you\n"


def test_a_distribution_adds_an_exporter(tmp_path: Path) -> None:
    site, run = install(tmp_path), tmp_path / "run"
    run.mkdir()
    records.stored(run, records.info(), records.trials())
    assert tfb(site, "report", str(run), "--format", "names").stdout.split() == ["fast", "slow"]


def test_distributions_add_test_types_and_designs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(install(tmp_path))
    monkeypatch.setattr(plugins, "installed", plugins.installed.__wrapped__)
    assert plugins.Extensions[TestType]("test_types").load_all()["greet"].response_shape == "greeting"
    assert "once" in plugins.Extensions[object]("designs").names()


def test_a_distribution_adds_a_page_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = tmp_path / "results"
    results.mkdir()
    monkeypatch.syspath_prepend(install(tmp_path))
    monkeypatch.setattr(plugins, "installed", plugins.installed.__wrapped__)
    (tmp_path / "assets").mkdir()
    app = create_app(Api(ResultsFolder(results)), tmp_path)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/api/runs").json()["views"] == {"names": "Names & more"}
        assert client.get("/views/names").text == "<!doctype html><p>results"
        assert client.get("/views/absent").status_code == 404


@pytest.mark.parametrize("plugin", ["import absent_module", "ExamplePlugin = 3", "raise SystemError('x' * 9999)"])
def test_a_broken_plugin_is_named_and_others_work(plugin: str, tmp_path: Path) -> None:
    completed = tfb(install(tmp_path, plugin), "--help")
    assert completed.returncode == 0
    assert "compare" in completed.stdout
    assert completed.stderr.startswith(
        "tfb: warning: cannot load the plugin example of example-tfb from example_plugin:"
    )
    assert completed.stderr.endswith("Repair or uninstall example-tfb\n")


def test_a_broken_part_is_named_on_use(tmp_path: Path) -> None:
    site = install(tmp_path, PLUGIN.replace("example_parts:export_names", "example_parts:absent"))
    assert tfb(site, "--help").stderr == ""
    run = tmp_path / "run"
    run.mkdir()
    records.stored(run, records.info(), records.trials())
    completed = tfb(site, "report", str(run), "--format", "json")
    assert completed.returncode == 0
    assert "cannot load the plugin example of example-tfb from example_parts:absent: AttributeError" in completed.stderr


def test_hooks_without_plugins_are_usage_errors() -> None:
    hook = plugins.Hook[object](name="absent", purpose="--absent")
    with pytest.raises(UsageError, match="no installed plugin provides --absent"):
        hook.load()


def test_every_object_of_built_in_plugins_is_importable() -> None:
    for plugin in plugins.installed():
        parts = plugin.parts
        paths = [verb.target for verb in parts.verbs.values()] + [view.target for view in parts.page_views.values()]
        for named in (parts.test_types, parts.verifications, parts.designs, parts.exporters, parts.hooks):
            paths += named.values()
        assert paths, f"{plugin.name} adds nothing"
        for path in paths:
            plugin.load(path)
