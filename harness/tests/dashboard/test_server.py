"""Tests for the dashboard's server, which provides read-only access to results/."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from harness.dashboard import documents
from harness.dashboard.api import Api
from harness.dashboard.results_folder import ResultsFolder
from harness.dashboard.run_documents import DashboardRun
from harness.dashboard.server import create_app
from harness.records.record import Record

RUN = "/api/runs/20250615-small"


def app(results: Path, web: Path) -> Starlette:
    return create_app(Api(ResultsFolder(results)), web)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page that needs no build."""
    folder = tmp_path_factory.mktemp("web")
    (folder / "assets").mkdir()
    (folder / "assets" / "index.js").write_text("// page")
    (folder / "index.html").write_text('<!doctype html><body><div id="app"></div>')
    return folder


@pytest.fixture(scope="module")
def client(sample_results: Path, web: Path) -> Iterator[TestClient]:
    """Yield a client for the dashboard's server."""
    with TestClient(app(sample_results, web), base_url="http://127.0.0.1") as client:
        yield client


def test_a_baseline_has_documents_of_its_own(client: TestClient) -> None:
    def reference(query: str) -> str | None:
        return documents.RunDocument.model_validate_json(client.get(f"{RUN}{query}").content).ranking.reference

    assert [reference(query) for query in ("", "?baseline=es4x", "")] == ["vertx-web", "es4x", "vertx-web"]
    assert client.get(f"{RUN}?baseline=nobody").status_code == 404
    scores = client.get(f"{RUN}/overall?test_type=db&test_type=json&baseline=es4x").json()["scores"]
    assert next(each for each in scores if each["implementation"] == "es4x")["ratios"] == {"db": 1.0, "json": 1.0}
    lead = next(each for each in client.get("/api/runs").json()["runs"] if each["run_id"] == "20250615-small")["lead"]
    assert "as many requests as vertx-web" in lead  # in the list of runs, ratios refer to each run's own baseline


def test_every_document_is_what_its_model_says(client: TestClient) -> None:
    models: dict[str, type[Record]] = {
        "/api/runs": documents.RunList,
        RUN: documents.RunDocument,
        f"{RUN}/tests/db": documents.TestDocument,
        f"{RUN}/latency/db": documents.LatencyDocument,
        f"{RUN}/live": documents.LiveDocument,
        f"{RUN}/cell?implementation=es4x&test_type=db": documents.CellDocument,
        f"{RUN}/overall?test_type=db&test_type=json": documents.OverallDocument,
        "/api/compare?a=20250615-small&b=20250622-second": documents.ComparisonDocument,
        "/api/claims": documents.ClaimsDocument,
    }
    for path, model in models.items():
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["content-type"] == "application/json"
        model.model_validate_json(answer.content)


@pytest.mark.parametrize(
    "path",
    [
        *(
            f"/api/runs/{name}"
            for name in ("..", "%2e%2e", "..%2f..%2fetc", "corrupt", ".hidden", "no-such-run", "%00")
        ),
        *(
            f"{RUN}/log?path={path}"
            for path in ("../../../../etc/passwd", "run.json", "logs", "logs/none", "logs/../run.json", "/etc/passwd")
        ),
        f"{RUN}/log?path=logs/%00",
        f"{RUN}/tests/nothing",
        f"{RUN}/overall?test_type=nothing",
        "/api/compare?a=../results/20250615-small&b=20250622-second",
        "/assets/..%2findex.html",
        "/assets/%2e%2e/index.html",
        "/run.json",
        "/results/20250615-small/run.json",
    ],
)
def test_what_is_not_a_result_is_not_found(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/", "/api/runs", RUN, f"{RUN}/live"])
def test_nothing_can_be_written(client: TestClient, method: str, path: str) -> None:
    assert client.request(method, path).status_code == 405


@pytest.mark.parametrize("path", ["/", "/api/runs", "/assets/index.js", "/nowhere"])
def test_every_answer_carries_the_policy(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((name, 421) for name in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "")),
        *((name, 200) for name in ("127.0.0.1:8000", "localhost", "[::1]:8000", "192.168.0.7:8000", "LOCALHOST:80")),
    ],
)
def test_foreign_host_header_is_rejected(client: TestClient, host: str, status: int) -> None:
    assert client.get("/api/runs", headers={"host": host}).status_code == status


def test_other_sites_get_no_documents(client: TestClient) -> None:
    answers = [client.get(path, headers={"sec-fetch-site": "cross-site"}).status_code for path in ("/api/runs", "/")]
    assert answers == [403, 200]


def test_a_page_built_anew_is_served_at_once(client: TestClient, web: Path) -> None:
    (web / "index.html").write_text("<!doctype html><p>anew")
    assert client.get("/").text == "<!doctype html><p>anew"


def test_document_is_cached_until_files_change(results: Path, web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    made = DashboardRun.document

    def counted(run: DashboardRun) -> documents.RunDocument:
        read.append(run.id)
        return made(run)

    monkeypatch.setattr(DashboardRun, "document", counted)
    with TestClient(app(results, web), base_url="http://127.0.0.1") as client:
        with ThreadPoolExecutor() as viewers:
            responses = set(viewers.map(lambda _: client.get("/api/runs/run").text, range(20)))
        assert (len(responses), read) == (1, ["run"])
        with (results / "run" / "trials.jsonl").open("a") as file:
            file.write("\n")
        client.get("/api/runs/run")
    assert read == ["run", "run"]


def test_slow_document_does_not_block_others(sample_results: Path, web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, over = threading.Event(), threading.Event()

    def slow(_: DashboardRun, test_type: str) -> documents.LatencyDocument:
        begun.set()
        over.wait(20)
        return documents.LatencyDocument(test_type=test_type, cells=())

    monkeypatch.setattr(DashboardRun, "latency", slow)
    with TestClient(app(sample_results, web), base_url="http://127.0.0.1") as client, ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(client.get, f"{RUN}/latency/db")
        try:
            assert begun.wait(20)
            assert pool.submit(client.get, f"{RUN}/tests/db").result(10).status_code == 200
            assert not waiting.done()
        finally:
            over.set()
        assert waiting.result(10).status_code == 200


def test_growing_run_is_cached_briefly(results: Path, web: Path) -> None:
    path = results / "run" / "run.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"status": "running"}))
    with TestClient(app(results, web), base_url="http://127.0.0.1") as client:
        cell = "/api/runs/run/cell?implementation=es4x&test_type=db"
        before = client.get(cell).content
        (results / "run" / "trials.jsonl").write_text("")
        assert client.get(cell).content == before
        path.write_text(json.dumps(document))
        assert client.get(cell).json()["trials"] == []


def test_unreadable_claims_are_a_problem(tmp_path: Path, web: Path) -> None:
    (tmp_path / "claims.json").write_text("{")
    with TestClient(app(tmp_path, web), base_url="http://127.0.0.1") as client:
        answer = client.get("/api/claims")
    assert answer.status_code == 200
    assert "claims.json" in answer.json()["problem"]
    assert answer.json()["verdicts"] == []
