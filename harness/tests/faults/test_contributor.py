"""``verify`` and ``run`` explain each mistake in a new folder exactly once."""

import json
import re
import sys
from pathlib import Path

import pytest

from harness.paths import REPOSITORY
from harness.tests.scene import Scene

pytestmark = [pytest.mark.fault, pytest.mark.needs("postgres", ">=12")]

URLS = {
    "json_url": "/json",
    "plaintext_url": "/plaintext",
    "db_url": "/db",
    "query_url": "/queries?queries=",
    "fortune_url": "/fortunes",
}


def add(scene: Scene, *mistakes: str, name: str = "mine", urls: object = None, **local: object) -> Path:
    """Add an implementation whose server makes the given mistakes. Return its benchmark_config.json."""
    run = [sys.executable, "-m", "harness.tests.doubles.contributed", *mistakes]
    block = {"run": run, "env": {"PYTHONPATH": str(REPOSITORY)}, **local}
    entry = {"language": "Python", "database": "Postgres", **(urls or URLS), "local": block}  # type: ignore[dict-item]
    return scene.write(name, json.dumps({"framework": name, "tests": [{"default": entry}]}).encode())


def verify(scene: Scene, *words: str) -> str:
    """Run ``./tfb verify``, assert that it fails, and return its output."""
    where = ("--frameworks", str(scene.frameworks), "--rules", "tfb", "--runtime", "local", "--no-install")
    return scene.tfb("verify", "mine", *where, *words).ends(1).text


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        (["DBNAME=hello_world"], "queries database hello_world, but DBNAME is hello_world_of_"),
        (["DBUSER=benchmarkdbuser", "DBPASS=benchmarkdbpass"], "connects as user benchmarkdbuser, but DBUSER is"),
        (["DBPASS=benchmarkdbpass"], "with a password that differs from DBPASS"),
        (["DBPORT=1"], "did not connect to PostgreSQL at DBHOST=127.0.0.1, DBPORT="),
        (["DBHOST=tfb-database.invalid"], "did not connect to PostgreSQL at DBHOST=127.0.0.1, DBPORT="),
    ],
    ids=lambda value: value[0].partition("=")[0] if isinstance(value, list) else "",
)
def test_hard_coded_database_setting_is_reported(scene: Scene, fixed: list[str], expected: str) -> None:
    add(scene, "--fixed", *fixed)
    text = verify(scene)
    text = re.sub(r"\s*\n(?=\S)(?!mine: )", " ", text)  # join wrapped lines
    verdicts = [line for line in text.splitlines() if line.startswith("mine: ")]  # these lines repeat the reason
    assert text.count(expected) - sum(expected in line for line in verdicts) == 1, text


def test_late_database_connection_is_checked_by_the_rule(scene: Scene) -> None:
    add(scene, "--late", "--fixed", "DBNAME=hello_world")
    text = verify(scene)
    assert "queries database hello_world, but DBNAME is" in " ".join(text.split())
    assert "database-as-told in conduct: the server queries" in text


def test_run_reports_a_hard_coded_database(scene: Scene) -> None:
    add(scene, "--fixed", "DBNAME=hello_world")
    scene.measure("--test", "mine")
    scene.failed("mine", "queries database hello_world, but DBNAME is hello_world_of_")


def test_missing_header_is_reported_once(scene: Scene) -> None:
    add(scene, "--nameless")
    text = " ".join(verify(scene).split())
    assert text.count("no Server header") == 1, text
    assert "server-header in all test types: " in text
    scene.measure("--test", "mine")
    assert scene.why_failed("mine").count("no Server header") == 1


def test_ignoring_sigterm_is_reported(scene: Scene) -> None:
    urls = {key: URLS[key] for key in ("json_url", "plaintext_url")}
    add(scene, "--ignores-sigterm", urls=urls)
    where = ("--frameworks", str(scene.frameworks), "--rules", "tfb", "--runtime", "local", "--no-install")
    text = scene.tfb("verify", "mine", *where).ends(0).text
    assert "stops-when-asked in conduct: the server does not stop after SIGTERM" in text
    assert "exit within 5 s" in text
    assert scene.tfb("verify", "mine", *where, "--strict").ends(1).text.count("stops-when-asked") == 1


def test_only_strict_requires_files_of_a_pull_request(scene: Scene) -> None:
    urls = {key: URLS[key] for key in ("json_url", "plaintext_url")}
    path = add(scene, urls=urls)
    where = ("--frameworks", str(scene.frameworks), "--rules", "tfb", "--runtime", "local", "--no-install")
    # Without --strict, files that only a pull request needs may be missing.
    assert "README" not in scene.tfb("verify", "mine", *where).ends(0).text
    text = verify(scene, "--strict")
    for said in ("mine.dockerfile does not exist", "README.md does not exist"):
        assert said in text
    (path.parent / "README.md").write_text(f"# Mine\n\n{'It shows what a server does. ' * 5}\n")
    (path.parent / "mine.dockerfile").write_text(f"FROM x\nCOPY . .\nUSER app\nCMD {json.dumps(sys.argv)}\n")
    assert "folder.2" in verify(scene, "--strict")
    document = json.loads(path.read_bytes())
    local = document["tests"][0]["default"]["local"]
    run = local["run"]
    settings = "".join(f"ENV {key}={value}\n" for key, value in local["env"].items())
    (path.parent / "mine.dockerfile").write_text(f"FROM x\nCOPY . .\n{settings}USER app\nCMD {json.dumps(run)}\n")
    scene.tfb("verify", "mine", *where, "--strict").ends(0)


def test_missing_route_is_not_reported_as_database_mistake(scene: Scene) -> None:
    add(scene, "--late", urls={"json_url": "/json", "db_url": "/no-such-route"})
    text = verify(scene)
    assert "status-ok in db: GET /no-such-route: the response has status 404" in text, text
    assert "database-as-told" not in text, text


def test_error_status_quotes_the_log(scene: Scene) -> None:
    add(scene, "--fails", urls={key: URLS[key] for key in ("json_url", "plaintext_url")})
    text = verify(scene)
    assert text.count("server log: 12:00 ERROR request") == 1, text
    assert text.count("500 Other: sorry; server log") == 1, text


def test_panic_under_load_is_quoted_with_the_symptom(scene: Scene) -> None:
    urls = {key: URLS[key] for key in ("json_url", "plaintext_url")}
    add(scene, "--panics", urls=urls)
    scene.measure("--test", "mine", "--type", "json")
    reason = scene.why_failed("mine")
    assert "server log: " in reason
    assert "ValueError: index out of range" in reason, reason
