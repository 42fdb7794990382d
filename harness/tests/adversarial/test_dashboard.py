"""Attack: a web page or a received results folder makes the dashboard use unlimited time or memory."""

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from harness.dashboard import api as dashboard_api
from harness.dashboard import results_folder
from harness.dashboard import run_documents as dashboard_runs
from harness.dashboard.api import Api
from harness.dashboard.results_folder import ResultsFolder
from harness.dashboard.run_documents import DashboardRun
from harness.dashboard.server import create_app
from harness.tests.doubles import records

RUN = "/api/runs/one"
DOCUMENTS = {
    RUN: "document",
    f"{RUN}/tests/json": "test",
    f"{RUN}/latency/json": "latency",
    f"{RUN}/overall?test_type=json": "overall",
    f"{RUN}/cell?implementation=fast&test_type=json": "cell",
}


class Counted:
    """A counter of ``DashboardRun`` calls that also records how many ran concurrently."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.at_once = self.most = 0
        self.seconds = 0.0
        self._lock = threading.Lock()

    def count(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        real = getattr(DashboardRun, name)

        def counted(run: DashboardRun, *words: object) -> object:
            with self._lock:
                self.made.append(name)
                self.at_once += 1
                self.most = max(self.most, self.at_once)
            try:
                time.sleep(self.seconds)
                return real(run, *words)
            finally:
                with self._lock:
                    self.at_once -= 1

        monkeypatch.setattr(DashboardRun, name, counted)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counts = Counted()
    for name in DOCUMENTS.values():
        counts.count(monkeypatch, name)
    return counts


@pytest.fixture
def api(tmp_path: Path) -> Api:
    records.write(tmp_path / "results", "one")
    return Api(ResultsFolder(tmp_path / "results"))


@pytest.fixture
def client(api: Api, tmp_path: Path) -> Iterator[TestClient]:
    web = tmp_path / "web"
    (web / "assets").mkdir(parents=True)
    (web / "index.html").touch()
    with TestClient(create_app(api, web), base_url="http://127.0.0.1") as client:
        yield client


@pytest.mark.parametrize("path", DOCUMENTS)
def test_unknown_parameters_make_no_document_again(client: TestClient, counted: Counted, path: str) -> None:
    first = client.get(path)
    assert first.status_code == 200
    for number in range(12):
        more = f"{path}{'&' if '?' in path else '?'}x{number}={number}#{number}"
        assert client.get(more).content == first.content
    assert counted.made == [DOCUMENTS[path]]


def test_reordered_parameters_reuse_the_cached_document(client: TestClient, counted: Counted) -> None:
    words = (
        "test_type=json&test_type=query",
        "test_type=query&test_type=json",
        "&".join(["test_type=json", "test_type=query"] * 50),
    )
    assert len({client.get(f"{RUN}/overall?{each}").content for each in words}) == 1
    assert client.get(f"{RUN}/cell?test_type=json&implementation=fast").status_code == 200
    assert client.get(f"{RUN}/cell?implementation=fast&test_type=json&implementation=fast").status_code == 200
    assert counted.made == ["overall", "cell"]


def test_comparison_is_made_once_for_all_spellings(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[int] = []

    def counted(before: DashboardRun, after: DashboardRun) -> object:
        created.append(1)
        return dashboard_runs.compare_runs(before, after)

    monkeypatch.setattr(dashboard_api, "compare_runs", counted)
    for query in ("a=one&b=one", "b=one&a=one", "a=one&b=one&c=1", "a=one&b=one&a=one"):
        assert client.get(f"/api/compare?{query}").status_code == 200
    assert created == [1]


@pytest.mark.parametrize(
    "path", ["tests/none", "latency/none", "overall?test_type=none", "cell?implementation=none&test_type=json"]
)
def test_what_a_run_has_not_reads_no_trials(client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(DashboardRun, "lines", lambda *_, **__: pytest.fail("read"))
    answer = client.get(f"{RUN}/{path}")
    assert answer.status_code in (200, 404)
    assert len(answer.content) < 1000


def test_concurrent_requests_share_one_document(api: Api, client: TestClient, counted: Counted) -> None:
    counted.seconds = 0.3
    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(lambda number: client.get(f"{RUN}/tests/json?x={number}").content, range(16)))
    assert len(found) == 1
    assert counted.made == ["test"]


def test_few_documents_are_made_at_once(tmp_path: Path, client: TestClient, counted: Counted) -> None:
    for number in range(12):
        records.write(tmp_path / "results", f"run-{number}")
    counted.seconds = 0.1
    with ThreadPoolExecutor(12) as pool:
        assert {*pool.map(lambda number: client.get(f"/api/runs/run-{number}").status_code, range(12))} == {200}
    assert counted.most <= dashboard_api.MAX_CONCURRENT


def test_kept_documents_are_few_and_small(tmp_path: Path, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard_api, "MAX_CACHED", 3)
    created: list[int] = []
    real = DashboardRun.document

    def document(run: DashboardRun) -> object:
        created.append(1)
        return real(run)

    monkeypatch.setattr(DashboardRun, "document", document)
    for number in range(5):
        records.write(tmp_path / "results", f"run-{number}")
    for _ in range(2):
        for number in (2, 3, 4, 0, 1):
            assert client.get(f"/api/runs/run-{number}").status_code == 200
    assert len(created) == 10  # every request evicted the least recently used document
    monkeypatch.setattr(dashboard_api, "MAX_CACHED", 256)
    monkeypatch.setattr(dashboard_api, "MAX_CACHED_BYTES", 10)
    for _ in range(2):
        assert client.get("/api/runs/run-2").status_code == 200
    assert len(created) == 12


def test_names_invalid_as_files_are_not_found(client: TestClient) -> None:
    for name in ("n" * 300, "n" * 20_000, "%00", "a%00b", "..", "%2e%2e", "é" * 200):
        assert client.get(f"/api/runs/{name}").status_code == 404
        assert client.get(f"/api/runs/one/log?path=logs/{name}").status_code == 404


@pytest.mark.timeout(60)
@pytest.mark.parametrize("trap", ["link", "link of a folder", "pipe", "above", "twice"])
def test_log_outside_the_run_is_not_shown(tmp_path: Path, client: TestClient, trap: str) -> None:
    logs, secret = tmp_path / "results" / "one" / "logs", tmp_path / "secret"
    secret.mkdir()
    (secret / "a.log").write_text("secret")
    path = "logs/a.log"
    if trap == "link":
        (logs / "a.log").symlink_to(secret / "a.log")
    elif trap == "link of a folder":
        (logs / "in").symlink_to(secret)
        path = "logs/in/a.log"
    elif trap == "pipe":
        os.mkfifo(logs / "a.log")
    elif trap == "above":
        path = "logs/../../../secret/a.log"
    else:
        path = "logs//../logs/../../../secret/a.log"
    answer = client.get(f"{RUN}/log", params={"path": path})
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace(path, "")
    assert DashboardRun(tmp_path / "results" / "one").logs() == []


def test_very_many_runs_are_listed_in_part(tmp_path: Path, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        info = records.info(f"run-{number}").model_copy(update={"started_at": 1e9 + number})
        records.stored(tmp_path / "results" / f"run-{number}", info, ())
    monkeypatch.setattr(results_folder, "MAX_LISTED", 3)
    found = client.get("/api/runs").json()
    assert [run["run_id"] for run in found["runs"]] == ["run-5", "run-4", "run-3"]
    assert "older runs are not listed" in found["broken"][0]["message"]
    monkeypatch.setattr(results_folder, "MAX_LISTED", 100)
    run_bytes = (tmp_path / "results" / "run-5" / "run.json").stat().st_size
    monkeypatch.setattr(results_folder, "MAX_LISTED_BYTES", run_bytes * 5 // 2)
    assert [run["run_id"] for run in client.get("/api/runs").json()["runs"]] == ["run-5", "run-4"]
    monkeypatch.setattr(results_folder, "MAX_LISTED_BYTES", 10)
    assert client.get("/api/runs").json()["runs"] == []
